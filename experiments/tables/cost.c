#include "cost.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../experiment.h"
#include "../study/paper.h"
#include "../study/study.h"

const char *const cost_gpus[COST_GPUS] = {"rtx4090", "a100", "a800"};

/* ---- settings --------------------------------------------------------------------------------
 */

/* The mean of a study's BCD rows: language models if it has any, for those are what is priced. */
static int mean_multiplier(double *multiplier, const Study *study, const char *files) {
    double sum[2] = {0};
    int rows[2] = {0};
    for (int r = 0; r < study->rows; r++) {
        const StudyRow *row = &study->row[r];
        if (row->submodels < 2 || !isfinite(row->multiplier)) continue;
        bool images = study_is_images(row);
        sum[images] += row->multiplier;
        rows[images]++;
    }
    int kind = rows[0] ? 0 : 1;
    if (!rows[kind])
        return error_set("--multiplier %.200s: no BCD row beside a full update in it", files);
    *multiplier = sum[kind] / rows[kind];
    return 0;
}

static int measured_multiplier(double *multiplier, const char *files) {
    Study study = {0};
    char list[OPTION_TEXT];
    int failed = 0;
    snprintf(list, sizeof list, "%s", files);
    for (char *path = strtok(list, ","); path && !failed; path = strtok(NULL, ","))
        failed = study_read(&study, path);
    failed = failed || study_converge(&study) || mean_multiplier(multiplier, &study, files);
    study_free(&study);
    return failed ? -1 : 0;
}

static int read_multiplier(double *multiplier, const char *text) {
    char *end;
    *multiplier = NAN;
    if (!*text) return 0;
    *multiplier = strtod(text, &end);
    if (*end) return measured_multiplier(multiplier, text);
    if (*multiplier > 0 && isfinite(*multiplier)) return 0;
    return error_set("--multiplier %s: it takes a number above 0, or files of results", text);
}

static int read_prices(CostSettings *settings, const char *text) {
    char list[OPTION_TEXT];
    snprintf(list, sizeof list, "%s", text);
    for (char *item = strtok(list, ","); item; item = strtok(NULL, ",")) {
        char *equals = strchr(item, '='), *end = item;
        double price = equals ? strtod(equals + 1, &end) : NAN;
        int gpu = 0;
        if (!equals || end == equals + 1 || *end || !(price > 0))
            return error_set("--price %s: it takes GPU=DOLLARS, as in rtx4090=0.31", item);
        *equals = 0;
        while (gpu < COST_GPUS && strcmp(cost_gpus[gpu], item)) gpu++;
        if (gpu == COST_GPUS)
            return error_set("--price %s: the paper compares rtx4090, a100 and a800", item);
        settings->price[gpu] = price;
        settings->priced = true;
    }
    return 0;
}

int cost_settings(CostSettings *settings, const Options *options) {
    *settings = (CostSettings){.tokens = options->train_tokens};
    double *multiplier = settings->multiplier;
    multiplier[MULTIPLIER_TABLES] = paper_table_multiplier();
    multiplier[MULTIPLIER_AVERAGE] = paper_average_multiplier;
    multiplier[MULTIPLIER_TEXT] = paper_mean_multiplier("adam", 0);
    multiplier[MULTIPLIER_WORST] = paper_worst_multiplier;
    for (int g = 0; g < COST_GPUS; g++) settings->price[g] = paper_price(cost_gpus[g]);
    if (read_multiplier(&multiplier[MULTIPLIER_OURS], options->multiplier) ||
        read_prices(settings, options->price))
        return -1;
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
                 cost_add_claims(&tables, &settings) || cost_add_speedups(&tables) ||
                 cost_add_prices(&tables, &settings) || cost_add_dollars(&tables, &settings) ||
                 tables_deliver(&tables, options, "cost");
    tables_free(&tables);
    return failed ? -1 : 0;
}
