/* The tables that are no trainings, as `bcd experiment` makes them: each function adds tables,
 * which remember what fails. */
#ifndef EXPERIMENTS_PAPER_TABLES_H
#define EXPERIMENTS_PAPER_TABLES_H

#include "../cli/options.h"
#include "published.h"

/* How an experiment of tables ends: fills the provenance, writes DIR/NAME.h5, DIR as rundir_results
 * says, prints the tables unless --quiet, and frees them.  `failed`: they could not be made.  -1
 * and an error. */
int paper_deliver(Tables *tables, const Options *options, const char *name, bool failed);

/* ---- `bcd experiment cost`: what BCD saves in money and GPU hours, from the published times,
 * prices and multipliers, and the published savings */

/* The multipliers a saving may be computed with. */
typedef enum {
    MULTIPLIER_TABLES,  /* the one behind the published tables, recomputed */
    MULTIPLIER_AVERAGE, /* printed as the average */
    MULTIPLIER_TEXT,    /* mean of the language models, recomputed */
    MULTIPLIER_WORST,   /* printed as the worst */
    MULTIPLIER_OURS,    /* NAN unless given */
    MULTIPLIERS
} MultiplierKind;

enum { COST_GPUS = 3 };
extern const char *const cost_gpus[COST_GPUS]; /* keys of gpu_table */

typedef struct {
    double multiplier[MULTIPLIERS];
    int multipliers;         /* without those that are NAN: MULTIPLIER_OURS is the last */
    double price[COST_GPUS]; /* dollars per hour: of the paper, or as given */
    bool priced;             /* as given */
    Source ours;             /* where MULTIPLIER_OURS comes from */
    double tokens;
} CostSettings;

/* Columns of one saving with each multiplier, which of them comes nearest to the published one, and
 * how far it is off. */
enum {
    SAVED_PUBLISHED,
    SAVED_NEAREST,
    SAVED_OFF,
    SAVED_WITH,
    SAVED_COLUMNS = SAVED_WITH + MULTIPLIERS
};
/* Fills those columns; returns how many, which is one less without a multiplier of our own. */
int cost_saved_columns(TableColumn *columns, const CostSettings *settings);
/* Fills their cells, the first in column `first`. */
void cost_put_saved(Table *table, int first, const CostSettings *settings, double published,
                    const double saved[MULTIPLIERS]);

void paper_add_table1(Tables *tables);
void paper_add_reductions(Tables *tables, const CostSettings *settings); /* 5 to 7, 12 to 14 */
void paper_add_implied(Tables *tables);
void paper_add_claims(Tables *tables, const CostSettings *settings);
void paper_add_prices(Tables *tables, const CostSettings *settings);
void paper_add_dollars(Tables *tables, const CostSettings *settings);

/* ---- `bcd experiment memory`: bytes of parameters, gradients, optimizer state and activations
 * with the published ones, and of short trainings here */

/* Bytes of a model while the submodel that needs most trains; `all`: every role together. */
typedef struct {
    double trained; /* parameters, gradients and optimizer state: what the paper counts */
    double activations, all;
} MemorySums;

/* By the plan of ref/memory.h for one sample, cut into `submodels` balanced parts; zeros where
 * `table`, which it is for, fails. */
MemorySums memory_sums(Table *table, const Model *model, const OptimizerSettings *optimizer,
                       int submodels, bool recompute);

void paper_add_table8(Tables *tables); /* and the memory of Table 4, and activations */
void paper_add_figure5(Tables *tables);
void paper_add_small_memory(Tables *tables); /* that of Tables 9 to 11 */

/* ---- `bcd experiment timing`: steps, simulated and published, and measured here --------- */

void paper_add_table3_4(Tables *tables);
void paper_add_offload(Tables *tables);
void paper_add_table15_16(Tables *tables);
void paper_add_deviations(Tables *tables); /* of the tables above */
void paper_add_figure4(Tables *tables, double multiplier);
void paper_add_figure6(Tables *tables);

/* What operations alone say a step of submodel k of M equal parts takes of a full update, k from 1
 * at the input side, 0: the mean.  Forward 1, input gradients 1, weight gradients 1; contiguous in
 * depth: forward everywhere (cached: from k up), input gradients down to k, weight gradients of k.
 */
double timing_theory(int k, int parts, bool cached);

#endif
