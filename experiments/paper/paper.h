/* The tables of `bcd experiment cost`, `memory` and `timing`, which need no long trainings.  Each
 * paper_add_... adds tables; a table remembers what fails (table.h). */
#pragma once

#include "../../dist/simulate.h"
#include "../cli/command_line.h"
#include "published.h"

/* Finishes such an experiment: fills the provenance, writes DIR/NAME.h5 (DIR: rundir_results),
 * prints the tables unless --quiet, and frees them.  Pass failed = true when making them failed;
 * then it only frees them.  Returns -1 with an error set. */
int paper_write(Tables *tables, const CommandLine *line, const char *name, bool failed);

/* ---- `bcd experiment cost`: money and GPU hours that BCD saves by the published times -------- */

/* The B-F multipliers that a saving is computed with. */
typedef enum {
    MULTIPLIER_TABLES,  /* the one behind the published tables, recomputed */
    MULTIPLIER_AVERAGE, /* printed as the average */
    MULTIPLIER_TEXT,    /* mean over the language models, recomputed */
    MULTIPLIER_WORST,   /* printed as the worst */
    MULTIPLIER_OURS,    /* of --multiplier, or NAN */
    MULTIPLIERS
} MultiplierKind;

enum { COST_GPUS = 3 };
extern const char *const cost_gpus[COST_GPUS]; /* keys of gpu_table */

typedef struct {
    double multiplier[MULTIPLIERS];
    int multipliers;         /* MULTIPLIERS, or one less when MULTIPLIER_OURS is NAN */
    double price[COST_GPUS]; /* dollars per GPU and hour: of the paper, or of --price */
    bool priced;             /* by --price */
    Source ours;             /* of MULTIPLIER_OURS */
} CostSettings;

/* Columns for a saving: the published one, the multiplier whose saving is nearest to it, how far
 * that is off, and the saving with each multiplier. */
enum { SAVED_COLUMNS = 3 + MULTIPLIERS };
/* Fills those columns; returns how many there are. */
int cost_saved_columns(TableColumn *columns, const CostSettings *settings);
/* Fills their cells in the last row, from column `first` on. */
void cost_put_saved(Table *table, int first, const CostSettings *settings, double published,
                    const double saved[MULTIPLIERS]);

void paper_add_table1(Tables *tables);
void paper_add_reductions(Tables *tables, const CostSettings *settings); /* 5 to 7, 12 to 14 */
void paper_add_claims(Tables *tables, const CostSettings *settings);
void paper_add_prices(Tables *tables, const CostSettings *settings);

/* ---- what memory and timing measure here: small networks, or those of --models --------------- */

typedef struct {
    const char *model, *data, *optimizer, *batch;
} MeasuredNetwork;

/* Sets the options of a training of a network.  Returns -1 with an error set. */
int measured_options(Options *o, const Options *asked, const MeasuredNetwork *network,
                     int submodels);

/* Calls `add` for each network, numbered from 1: those of the preset, which model NULL ends, or
 * those of --models, on generated images or on the project's text, with the batch of the preset's
 * network for the same data (or of its last one).  Returns -1 with an error set. */
typedef int AddNetwork(Tables *tables, const CommandLine *asked, const MeasuredNetwork *network,
                       int number);
int measured_for_each(Tables *tables, const CommandLine *asked, const MeasuredNetwork *preset,
                      AddNetwork *add);

/* ---- `bcd experiment memory`: published, closed form, planned, and measured here ------------- */

/* A training of one sample in fp32: peak bytes over the submodels. */
typedef struct {
    double parameters;  /* a number, not bytes */
    double trained;     /* parameters, gradients and optimizer state: what the paper counts */
    double closed_form; /* of the same, for submodels of equal size */
    double activations, all;
} MemorySums;

/* Plans the memory (ref/memory.h) of a model cut into `submodels` balanced submodels.  Returns
 * zeros and marks `table` as failed when that is impossible. */
MemorySums paper_memory(Table *table, const char *model, OptimizerKind optimizer, int submodels,
                        bool recompute);

void paper_add_table8(Tables *tables); /* with the memory of Table 4, and activations */
void paper_add_figure5(Tables *tables);
void paper_add_tables9_11(Tables *tables); /* the memory of Tables 9 to 11 */

/* ---- steps.c: simulates the steps whose times the paper publishes ------------------------------
 *
 * The paper does not state its setting.  Its times fit one micro-batch of 1 x 1024 tokens in strict
 * fp32, without overlap in the pipeline.  It uses Megatron-LM, so attention scores go through
 * memory (Efficiency), and the backward pass of a chunk is one task.  The fraction of the peak that
 * matrix products reach is unknown: SETTING_ROOFLINE takes what cuBLAS reaches on other GPUs;
 * SETTING_CALIBRATED takes the fraction with which the published time of G-1.6B on one GPU of that
 * kind, which has no communication, comes out.  All other times are then predictions. */
typedef enum { SETTING_ROOFLINE, SETTING_CALIBRATED } PaperSetting;

/* Returns the published step that a GPU is calibrated with, or NULL with an error set. */
const PaperStep *paper_calibration(const char *gpu);

/* Returns the efficiency of a GPU of the paper in a setting; it is calibrated once.  Marks `table`
 * as failed when that is impossible. */
const Efficiency *paper_efficiency(Table *table, const char *gpu, PaperSetting setting);

/* Returns the milliseconds of a step of 1024 tokens, the mean over the submodels; NAN for a model
 * that Table 8 does not describe.  Returns NAN and marks `table` as failed on an error. */
double paper_step_ms(Table *table, const PaperStep *step, PaperSetting setting);

/* Fills five cells from column `first` on: the published milliseconds, then for each setting the
 * simulated ones and their deviation. */
void paper_put_step(Table *table, int first, const PaperStep *step);
/* Fills two cells: the published milliseconds and the simulated ones in SETTING_CALIBRATED, both
 * times a factor. */
void paper_put_pair(Table *table, int first, const PaperStep *step, double factor);

/* ---- `bcd experiment timing`: steps, published, simulated, and measured here ----------------- */

void paper_add_table3_4(Tables *tables);
void paper_add_table15_16(Tables *tables);
void paper_add_figure4(Tables *tables, double multiplier);
void paper_add_figure6(Tables *tables);
/* Adds all of these, and how far the simulator is off. */
void paper_add_timing(Tables *tables, double multiplier);

/* Sorts value[n] and returns the median. */
double paper_median(double *value, int n);

/* Returns the operations of a step of submodel k over those of a full update, for M equal submodels
 * that are contiguous in depth, k = 1 at the input; k = 0: the mean over the submodels.  Forward,
 * input gradients and weight gradients count 1 each: forward of all blocks (cached: from submodel k
 * up), input gradients down to submodel k, weight gradients of submodel k. */
double timing_flop_ratio(int k, int submodels, bool cached);

/* The networks of a preset; the tables of a network: its submodels against the full update, and its
 * pipelines. */
const MeasuredNetwork *timing_networks(int preset);
AddNetwork paper_add_shares, paper_add_pipelines;
/* Sets the cell's value to the median of value[repeats], and the spread of a measured cell to their
 * standard deviation.  Sorts `value`.  repeats >= 2. */
void timing_take_median(Cell *cell, double *value, int repeats);
/* Adds Figure 3: --cache in long phases.  Returns 0, -1 with an error set, or the exit status when
 * interrupted. */
int paper_add_figure3(Tables *tables, const CommandLine *asked);
