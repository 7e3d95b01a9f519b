/* Numbers in the paper's text, recomputed from its tables. */
#include <math.h>
#include <string.h>

#include "paper.h"

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

/* Returns the cost saved over the models, the mean or the smallest, with a B-F multiplier. */
static double saving(const char *gpu, double multiplier, bool mean) {
    double min = INFINITY, sum = 0;
    int rows = 0;
    for (int r = 0; r < PAPER_REDUCTIONS; r++) {
        const PaperReduction *row = &paper_reductions[r];
        if (strcmp(row->gpu, gpu)) continue;
        double saved = 1 - multiplier * paper_ratio(row, PAPER_COST);
        min = fmin(min, saved);
        sum += saved;
        rows++;
    }
    return mean ? sum / rows : min;
}

/* Returns the mean over the models of the printed average cells, in per cent. */
static double printed_saving(const char *gpu) {
    double sum = 0;
    int rows = 0;
    for (int r = 0; r < PAPER_REDUCTIONS; r++) {
        if (strcmp(paper_reductions[r].gpu, gpu)) continue;
        sum += paper_reductions[r].average[PAPER_COST];
        rows++;
    }
    return 100 * sum / rows;
}

enum { CLAIMS = 7 };
typedef struct {
    const char *name;
    double published, recomputed;
} Claim;

/* Overwrites the claims; they are recomputed from the tables with a B-F multiplier. */
static void make_claims(Claim claim[CLAIMS], double multiplier) {
    const Claim all[CLAIMS] = {
        /* section 4.3.3 */
        {"time saved over OffLoad (average)", 0.420, 1 - multiplier * mean_ratio(3, false)},
        {"faster than OffLoad (worst)", 1.125, mean_ratio(3, true) / multiplier - 1},
        {"slower than distributed (worst)", 0.489, 1 - mean_ratio(4, true) / multiplier},
        /* abstract; "averagely" makes them means of the models */
        {"cost saved on RTX 4090, more than", 0.536, saving("rtx4090", multiplier, false)},
        {"cost saved over A100, more than", 0.749, saving("a100", multiplier, false)},
        {"cost saved on RTX 4090, mean of four", 0.536, saving("rtx4090", multiplier, true)},
        {"cost saved over A100, mean of four", 0.749, saving("a100", multiplier, true)},
    };
    memcpy(claim, all, sizeof all);
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
        "Section 4.3.2 says 1.52 to 1.76 times, mean 1.41; the table spans %.2f to %.2f, mean "
        "%.2f.  \"even at\": with this B-F multiplier BCD takes as many GPU hours as the full "
        "update.",
        min, max, mean_ratio(4, true));
}

void paper_add_claims(Tables *tables, const CostSettings *settings) {
    TableColumn columns[SAVED_COLUMNS];
    int count = cost_saved_columns(columns, settings);
    Table *table =
        tables_add(tables, "claims", "Per cents in the text, from the paper's own tables", "claim",
                   columns, count);
    Claim claim[MULTIPLIERS][CLAIMS];
    for (int m = 0; m < MULTIPLIERS; m++) make_claims(claim[m], settings->multiplier[m]);
    for (int c = 0; c < CLAIMS; c++) {
        double saved[MULTIPLIERS];
        for (int m = 0; m < MULTIPLIERS; m++) saved[m] = claim[m][c].recomputed;
        table_row(table, "%s", claim[0][c].name);
        cost_put_saved(table, 0, settings, claim[0][c].published, saved);
    }
    table_note(
        table,
        "The 42.0 %% against OffLoad is said of the average multiplier, and is what the worst "
        "one gives.  The abstract's 53.6 and 74.9 %%, \"averagely more than\", are the least "
        "of four models; the printed average cells have the means %.1f and %.1f %%.",
        printed_saving("rtx4090"), printed_saving("a100"));
    add_speedups(tables);
}
