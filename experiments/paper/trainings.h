/* The published trainings (Tables 2, 9, 10 and 11) as data, and the tables that compare ours with
 * them. The cells of a table, and the trainings that its experiment runs, are in a file of that
 * name. */
#pragma once

#include <stdbool.h>

#include "../study/measures.h"

typedef enum {
    SCORE_ACCURACY,      /* per cent correct */
    SCORE_PERPLEXITY,    /* exp(loss) */
    SCORE_TEN_PERPLEXITY /* printed as "Acc" in per cent, but it is 10 exp(loss), truncated */
} PaperScore;

/* A row: a model trained by one method. */
typedef struct {
    int table;             /* 2, 9, 10 or 11; 0 ends */
    const char *row;       /* as printed */
    const char *model;     /* our preset of that model, or the one that stands in for it */
    const char *data;      /* our name of that data set */
    const char *optimizer; /* "sgd" or "adam" */
    int submodels;         /* 1: full update */
    double fraction;       /* SR, the part of the data each submodel sees */
    double duration;       /* to convergence: epochs, or iterations in the GPT rows of Table 2 */
    PaperScore score_kind;
    double score; /* as printed */
    double loss;
    double memory_mib; /* NAN where the table has none */
} PaperRow;

extern const PaperRow paper_table2[], paper_table9[], paper_table10[], paper_table11[];
/* Returns the rows of one of these tables, which a row with table 0 ends. */
const PaperRow *paper_rows(int table);

/* Returns the accuracy in per cent, or the perplexity, corrected for SCORE_TEN_PERPLEXITY. */
double paper_score(const PaperRow *row);

/* Returns the full update of the same table, model, data and optimizer, on all of the data; NULL
 * when the table has none. */
const PaperRow *paper_full(const PaperRow *row);

/* Returns the B-F multiplier of a BCD row: its duration over that of its full update; NAN for a
 * full update, or when there is none. */
double paper_multiplier(const PaperRow *row);

/* Returns the mean multiplier over the BCD rows of Table 2 with this optimizer: of image models
 * (images = 1), language models (0), or both (-1). */
double paper_mean_multiplier(const char *optimizer, int images);

/* Returns the row of a table that a training of ours is compared with, or NULL: one with the same
 * kind of input, optimizer, number of submodels and fraction of the data, preferably the same
 * model, then the same data.  AdamW is compared with Adam. */
const PaperRow *paper_find(int table, const char *model, const char *data, bool images,
                           const char *optimizer, int submodels, double fraction);

/* Each adds its tables if the study has trainings for them. */
void paper_add_comparisons(Tables *tables, const Cases *cases); /* Tables 2, 9, 10 and 11 */
void paper_add_multipliers(Tables *tables, const Cases *cases); /* B-F */
extern const MeasureTable paper_finetuned; /* finetune.c: trainings with --init */
