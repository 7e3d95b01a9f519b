/* The published tables of memory, time and cost as data; those of trainings are in trainings.h.
 * Each printed cell stands in one place, and what follows from other cells is computed.  An empty
 * row ends each array. */
#pragma once

#include <stdbool.h>

#include "../tables/table.h"

/* "N/G": nodes, and GPUs of each. */
typedef struct {
    int nodes, per_node;
} PaperGpus;

int paper_gpus(PaperGpus gpus); /* of all nodes */
void put_gpus(Table *table, int column, PaperGpus gpus, Source source);

/* ---- table08.c: the models, with the memory of Table 4 --------------------------------------- */
typedef struct {
    const char *model;                   /* our preset has the same name */
    int gpus, layers, width, heads, ffn; /* ffn is 0 where the table has none */
    double full_gib, bcd_gib;            /* of a full update and of BCD-1/3, printed as GB */
} PaperModel;
enum { PAPER_MODELS = 8 };
extern const PaperModel paper_models[PAPER_MODELS + 1];
const PaperModel *paper_model(const char *model); /* NULL: not in Table 8 */

/* ---- steps.c: times of a step ---------------------------------------------------------------- */

typedef enum { TIMED_FULL, TIMED_BCD, TIMED_CACHED, TIMED_OFFLOAD } TimedMethod;

/* A step whose time is published, or one like it. */
typedef struct {
    int table;               /* 3, 4, 15 or 16; 4 for section 4.4.2 too (A100 and A800) */
    const char *gpu, *model; /* key of gpu_table; preset */
    PaperGpus gpus;
    TimedMethod method;
    int submodels; /* of BCD; else 1 */
    double ms;
} PaperStep;

/* All published steps, those of a table in the order in which they are printed; Table 3 has its
 * offloaded steps alone.  An empty one ends the array. */
extern const PaperStep paper_steps[];
/* Returns the first step of a table with this model and number of submodels, or NULL. */
const PaperStep *paper_step(int table, const char *model, int submodels);

/* Milliseconds of a full update on these GPUs, from Table 4 or section 4.4.2, and of BCD-1/3 on
 * RTX 4090 (from Tables 15 and 16, which print more digits, or else Table 4).  NAN where the paper
 * has no such time. */
double paper_full_ms(const char *gpu, const char *model, PaperGpus gpus);
double paper_bcd_ms(const char *model);

/* ---- tables05_14.c --------------------------------------------------------------------------- */

/* What BCD-1/3 on RTX 4090 saves against a full update on `gpu`, as a fraction of the cost (Tables
 * 5 to 7) and of the GPU hours (Tables 12 to 14, which print no GPUs of their own). */
typedef enum { PAPER_COST, PAPER_HOURS, PAPER_SAVINGS } PaperSaving;
typedef struct {
    const char *gpu, *model;
    PaperGpus full, bcd;
    double worst[PAPER_SAVINGS], average[PAPER_SAVINGS];
} PaperReduction;
enum { PAPER_REDUCTIONS = 12 };
extern const PaperReduction paper_reductions[PAPER_REDUCTIONS];
/* A saving is 1 - multiplier x ratio.  Returns this ratio: the GPU time of a BCD step over that of
 * a full one, by the published times; for the cost times the price of an RTX 4090 over that of the
 * other GPU (section 4.4.1). */
double paper_ratio(const PaperReduction *row, PaperSaving what);

/* The B-F multipliers in the text. */
extern const double paper_average_multiplier, paper_worst_multiplier;
/* Returns the multiplier that a row's average cell was computed with if its worst cell was computed
 * with the worst one: worst multiplier x (1 - average) / (1 - worst), in which times and prices
 * cancel; and the median over all rows, which is not the printed average. */
double paper_row_multiplier(const PaperReduction *row, PaperSaving what);
double paper_table_multiplier(void);
