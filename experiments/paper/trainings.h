/* The published trainings (Tables 2, 9, 10 and 11), as data, and which of ours are shown with them.
 * Each table has a file with its cells, the trainings that are run for it, and what it shows. */
#ifndef EXPERIMENTS_PAPER_TRAININGS_H
#define EXPERIMENTS_PAPER_TRAININGS_H

#include <stdbool.h>

#include "../study/cases.h"
#include "../tables/table.h"

typedef enum {
    SCORE_ACCURACY,      /* per cent correct */
    SCORE_PERPLEXITY,    /* exp(loss) */
    SCORE_TEN_PERPLEXITY /* printed under "Acc" with a per cent sign, but 10 exp(loss), truncated */
} PaperScore;

/* One cell group of a table: a model trained in one way. */
typedef struct {
    int table;             /* 2, 9, 10 or 11; 0 ends */
    const char *row;       /* as printed */
    const char *model;     /* our preset of that model, or the one that stands for it */
    const char *data;      /* our name of that data set */
    const char *optimizer; /* "sgd" or "adam" */
    int submodels;         /* 1: full update */
    double fraction;       /* SR, the part of the data each submodel sees */
    double duration;       /* to convergence: epochs, or iterations in the GPT rows of Table 2 */
    bool iterations;       /* which of the two */
    PaperScore score_kind;
    double score; /* as printed */
    double loss;
    double memory_mib; /* NAN where the table has none */
} PaperRow;

extern const PaperRow paper_table2[], paper_table9[], paper_table10[], paper_table11[];
/* The rows of one of these tables. */
const PaperRow *paper_rows(int table);

/* Accuracy in per cent, or perplexity, with the misprinted cells put right. */
double paper_score(const PaperRow *row);

/* The full update that a BCD row is to be compared with: same table, model, data and optimizer, on
 * all of the data.  NULL if the table has none. */
const PaperRow *paper_full(const PaperRow *row);

/* B-F multiplier of a BCD row, recomputed: its duration over that of the full update; NAN for a
 * full update, or without one. */
double paper_multiplier(const PaperRow *row);

/* Mean multiplier over the BCD rows of Table 2 with this optimizer: of the image models (1), the
 * language models (0), or all (-1). */
double paper_mean_multiplier(const char *optimizer, int images);

/* The row of a table that was trained most like this: same kind of input, optimizer, number of
 * submodels and part of the data, the model's preset name if there is such a row.  *exact tells
 * whether model and data are the published ones too.  NULL if the table has no such training; adamw
 * counts as adam, never exact. */
const PaperRow *paper_find(int table, const char *model, const char *data, bool images,
                           const char *optimizer, int submodels, double fraction, bool *exact);

/* What must be said with the published numbers, one line each; NULL ends. */
typedef enum {
    PAPER_NOTE_ACC,        /* Tables 9 and 11 */
    PAPER_NOTE_MULTIPLIER, /* the average */
    PAPER_NOTE_EPOCH,
    PAPER_NOTE_MEMORY, /* Tables 9 to 11 */
    PAPER_NOTE_CIFAR,  /* Table 2 */
    PAPER_NOTE_GPT2,
    PAPER_NOTE_CONVERGED,
    PAPER_NOTES
} PaperNote;
extern const char *const paper_notes[PAPER_NOTES + 1];

/* Each adds its tables, as far as the study has trainings for them. */
void paper_add_comparisons(Tables *tables, const Cases *cases); /* Tables 2, 9, 10 and 11 */
void paper_add_multipliers(Tables *tables, const Cases *cases); /* B-F */
void paper_add_finetuned(Tables *tables, const Cases *cases);   /* --init; and LoRA, published */

#endif
