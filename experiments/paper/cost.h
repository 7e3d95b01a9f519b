/* `bcd experiment cost`: what BCD saves in money and GPU hours, from the published times, prices
 * and multipliers, beside the published savings (Tables 1, 5 to 7 and 12 to 14). */
#ifndef EXPERIMENTS_COST_H
#define EXPERIMENTS_COST_H

#include "../tables/table.h"
#include "published.h"

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
    double price[COST_GPUS]; /* dollars per hour: of the paper, or as told */
    bool priced;             /* as told */
    double tokens;
} CostSettings;

/* From --multiplier, --price and --tokens.  -1 and an error. */
int cost_settings(CostSettings *settings, const Options *options);

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

/* Each adds tables; -1 and an error. */
int cost_add_reductions(Tables *tables, const CostSettings *settings); /* cost_reductions.c */
int cost_add_implied(Tables *tables);
int cost_add_simulated(Tables *tables, const CostSettings *settings); /* cost_simulated.c */
int cost_add_claims(Tables *tables, const CostSettings *settings);    /* cost_claims.c */
int cost_add_speedups(Tables *tables);
int cost_add_cards(Tables *tables); /* cost_prices.c */
int cost_add_prices(Tables *tables, const CostSettings *settings);
int cost_add_dollars(Tables *tables, const CostSettings *settings); /* cost_dollars.c */

#endif
