/* Numbers in the paper's text, recomputed from its tables. */
#include <math.h>
#include <string.h>

#include "paper.h"

const double paper_claims[PAPER_CLAIMS] = {
    [CLAIM_OFFLOAD] = 0.420,           /* section 4.3.3 */
    [CLAIM_OFFLOAD_WORST] = 1.125,     /* section 4.3.3 */
    [CLAIM_DISTRIBUTED_WORST] = 0.489, /* section 4.3.3 */
    [CLAIM_COST_4090] = 0.536,         /* abstract */
    [CLAIM_COST_A100] = 0.749,         /* abstract */
    [CLAIM_COST_4090_MEAN] = 0.536,    /* abstract: "averagely" */
    [CLAIM_COST_A100_MEAN] = 0.749,    /* abstract: "averagely" */
    [CLAIM_SPEEDUP_MIN] = 1.52,        /* section 4.3.2 */
    [CLAIM_SPEEDUP_MAX] = 1.76,        /* section 4.3.2 */
    [CLAIM_SPEEDUP_MEAN] = 1.41,       /* section 4.3.2 */
};

static const char *const claim_names[CLAIMS] = {
    "time saved over OffLoad (average)", "faster than OffLoad (worst)",
    "slower than distributed (worst)",   "cost saved on RTX 4090, more than",
    "cost saved over A100, more than",   "cost saved on RTX 4090, mean of four",
    "cost saved over A100, mean of four"};

/* Returns true for a row of Table 3 or 4, which have a BCD step for each offloaded one and for each
 * full update on RTX 4090. */
static bool is_row(const PaperStep *step, int table) {
    return step->table == table && step->method != TIMED_BCD && !strcmp(step->gpu, "rtx4090");
}

/* Returns the mean over the rows of Table 3 or 4 of a BCD step's time over the other's, or of the
 * inverse. */
static double mean_ratio(int table, bool inverse) {
    double sum = 0;
    int rows = 0;
    for (const PaperStep *s = paper_steps; s->model; s++) {
        if (!is_row(s, table)) continue;
        double bcd_ms = paper_step(4, s->model, 3)->ms;
        sum += inverse ? s->ms / bcd_ms : bcd_ms / s->ms;
        rows++;
    }
    return sum / rows;
}

/* Returns the smallest cost saved over the models, recomputed from times and prices.  *mean: the
 * mean of these savings; *printed: the mean of the printed average cells. */
static double min_saving(const char *gpu, double multiplier, double *mean, double *printed) {
    double min = INFINITY, sum = 0, sum_printed = 0;
    int rows = 0;
    for (int r = 0; r < PAPER_REDUCTIONS; r++) {
        const PaperReduction *row = &paper_reductions[r];
        if (strcmp(row->gpu, gpu)) continue;
        double saved = 1 - multiplier * paper_ratio(row, PAPER_COST);
        min = fmin(min, saved);
        sum += saved;
        sum_printed += row->average[PAPER_COST];
        rows++;
    }
    *mean = sum / rows;
    *printed = sum_printed / rows;
    return isnan(multiplier) ? NAN : min;
}

static void add_claims(Tables *tables, const CostSettings *settings) {
    TableColumn columns[SAVED_COLUMNS];
    double value[CLAIMS][MULTIPLIERS], printed[2];
    int count = cost_saved_columns(columns, settings);
    Table *table =
        tables_add(tables, "claims", "Per cents in the text, from the paper's own tables", "claim",
                   columns, count);
    for (int m = 0; m < MULTIPLIERS; m++) {
        double multiplier = settings->multiplier[m];
        value[CLAIM_OFFLOAD][m] = 1 - multiplier * mean_ratio(3, false);
        value[CLAIM_OFFLOAD_WORST][m] = mean_ratio(3, true) / multiplier - 1;
        value[CLAIM_DISTRIBUTED_WORST][m] = 1 - mean_ratio(4, true) / multiplier;
        value[CLAIM_COST_4090][m] =
            min_saving("rtx4090", multiplier, &value[CLAIM_COST_4090_MEAN][m], &printed[0]);
        value[CLAIM_COST_A100][m] =
            min_saving("a100", multiplier, &value[CLAIM_COST_A100_MEAN][m], &printed[1]);
    }
    for (int c = 0; c < CLAIMS; c++) {
        table_row(table, "%s", claim_names[c]);
        cost_put_saved(table, 0, settings, paper_claims[c], value[c]);
    }
    table_note(
        table,
        "The 42.0 %% against OffLoad is said of the average multiplier, and is what the worst "
        "one gives.  The abstract's 53.6 and 74.9 %%, \"averagely more than\", are the least "
        "of four models; the printed average cells have the means %.1f and %.1f %%.",
        100 * printed[0], 100 * printed[1]);
}

/* The ratios of times in Table 4. */
static void add_speedups(Tables *tables) {
    static const TableColumn columns[] = {
        {"full", "full", "N/G", COLUMN_TEXT, 0, SOURCE_PUBLISHED},
        {"full_ms", "full", "ms", COLUMN_NUMBER, 0, SOURCE_PUBLISHED},
        {"bcd", "BCD-1/3", "N/G", COLUMN_TEXT, 0, SOURCE_PUBLISHED},
        {"bcd_ms", "BCD-1/3", "ms", COLUMN_NUMBER, 0, SOURCE_PUBLISHED},
        {"speedup", "speed-up", "of a step", COLUMN_NUMBER, 2, SOURCE_RECOMPUTED},
        {"break_even", "even at", "multipl.", COLUMN_NUMBER, 2, SOURCE_RECOMPUTED},
    };
    Table *table = tables_add(tables, "speedup",
                              "Table 4: a step of BCD-1/3 on half the GPUs, and the multiplier at "
                              "which it costs as much",
                              "model", columns, 6);
    double min = INFINITY, max = 0;
    for (const PaperStep *full = paper_steps; full->model; full++) {
        if (!is_row(full, 4)) continue;
        const PaperStep *bcd = paper_step(4, full->model, 3);
        double speedup = full->ms / bcd->ms;
        table_row(table, "%s", full->model);
        put_gpus(table, 0, full->gpus, SOURCE_PUBLISHED);
        table_put(table, 1, full->ms);
        put_gpus(table, 2, bcd->gpus, SOURCE_PUBLISHED);
        table_put(table, 3, bcd->ms, speedup,
                  speedup * ((double)paper_gpus(full->gpus) / paper_gpus(bcd->gpus)));
        min = fmin(min, speedup);
        max = fmax(max, speedup);
    }
    table_note(
        table,
        "Section 4.3.2 says %.2f to %.2f times, mean %.2f; the table spans %.2f to %.2f, mean "
        "%.2f.  \"even at\": with this B-F multiplier BCD takes as many GPU hours as the full "
        "update.",
        paper_claims[CLAIM_SPEEDUP_MIN], paper_claims[CLAIM_SPEEDUP_MAX],
        paper_claims[CLAIM_SPEEDUP_MEAN], min, max, mean_ratio(4, true));
}

void paper_add_claims(Tables *tables, const CostSettings *settings) {
    add_claims(tables, settings);
    add_speedups(tables);
}
