#include "cost.h"

#include <math.h>

#include "../cli/price.h"
#include "../experiment.h"
#include "../study/multiplier.h"
#include "../study/paper.h"

const char *const cost_gpus[COST_GPUS] = {"rtx4090", "a100", "a800"};

int cost_settings(CostSettings *settings, const Options *options) {
    *settings = (CostSettings){.tokens = options->train_tokens};
    double *multiplier = settings->multiplier;
    multiplier[MULTIPLIER_TABLES] = paper_table_multiplier();
    multiplier[MULTIPLIER_AVERAGE] = paper_average_multiplier;
    multiplier[MULTIPLIER_TEXT] = paper_mean_multiplier("adam", 0);
    multiplier[MULTIPLIER_WORST] = paper_worst_multiplier;
    settings->priced = *options->price != 0;
    for (int g = 0; g < COST_GPUS; g++) {
        const Gpu *gpu = gpu_find(cost_gpus[g]);
        if (!gpu || price_find(&settings->price[g], gpu, options->price)) return -1;
    }
    if (multiplier_read(&multiplier[MULTIPLIER_OURS], options->multiplier)) return -1;
    settings->multipliers = MULTIPLIER_OURS + !isnan(multiplier[MULTIPLIER_OURS]);
    return 0;
}

/* ---- one saving with each multiplier ---------------------------------------------------------
 */

int cost_saved_columns(TableColumn *columns, const CostSettings *settings) {
    static const char *const names[MULTIPLIERS] = {"tables", "average", "language", "worst",
                                                   "ours"};
    columns[SAVED_PUBLISHED] = (TableColumn){"published", "published", "", COLUMN_PERCENT, 1};
    columns[SAVED_NEAREST] = (TableColumn){"nearest", "nearest", "", COLUMN_TEXT, 0};
    columns[SAVED_OFF] = (TableColumn){"off", "off", "points", COLUMN_NUMBER, 1};
    for (int m = 0; m < settings->multipliers; m++) {
        TableColumn *column = &columns[SAVED_WITH + m];
        *column = (TableColumn){.kind = COLUMN_PERCENT, .decimals = 1};
        snprintf(column->name, sizeof column->name, "multiplier_%s", names[m]);
        snprintf(column->head, sizeof column->head, "%.4g", settings->multiplier[m]);
        snprintf(column->unit, sizeof column->unit, "%s", names[m]);
    }
    return SAVED_WITH + settings->multipliers;
}

void cost_put_saved(Table *table, int first, const CostSettings *settings, double published,
                    const double saved[MULTIPLIERS]) {
    const double follows = 0.015; /* farther off, a cell follows from none of them */
    int nearest = 0;
    for (int m = 0; m < MULTIPLIER_OURS; m++)
        if (fabs(saved[m] - published) < fabs(saved[nearest] - published)) nearest = m;
    double off = saved[nearest] - published;
    table_number(table, first + SAVED_PUBLISHED, published, SOURCE_PUBLISHED);
    table_text(table, first + SAVED_NEAREST, SOURCE_NONE, "%s",
               fabs(off) <= follows ? table->column[first + SAVED_WITH + nearest].head : "none");
    table_number(table, first + SAVED_OFF, 100 * off, SOURCE_NONE);
    for (int m = 0; m < settings->multipliers; m++)
        table_number(table, first + SAVED_WITH + m, saved[m], SOURCE_RECOMPUTED);
}

int experiment_cost(const Options *options) {
    Tables tables = {0};
    CostSettings settings;
    int failed = cost_settings(&settings, options) || cost_add_cards(&tables) ||
                 cost_add_reductions(&tables, &settings) || cost_add_implied(&tables) ||
                 cost_add_simulated(&tables, &settings) || cost_add_claims(&tables, &settings) ||
                 cost_add_speedups(&tables) || cost_add_prices(&tables, &settings) ||
                 cost_add_dollars(&tables, &settings) || tables_deliver(&tables, options, "cost");
    tables_free(&tables);
    return failed ? -1 : 0;
}
