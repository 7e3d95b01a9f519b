/* Sentences of the paper with a number in them, recomputed from its tables. */
#include <math.h>
#include <string.h>

#include "cost.h"

/* The mean over Table 3 of a BCD step's time over an offloaded one's, or of the inverse. */
static double offload_mean(bool inverse) {
    double sum = 0;
    for (size_t i = 0; i < paper_offload_count; i++) {
        double ratio = paper_offload[i].bcd_ms / paper_offload[i].offload_ms;
        sum += inverse ? 1 / ratio : ratio;
    }
    return sum / (double)paper_offload_count;
}

static double speedup(const PaperDistributed *row) { return row->full_ms / row->bcd_ms; }

static double mean_speedup(void) {
    double sum = 0;
    for (size_t i = 0; i < paper_distributed_count; i++) sum += speedup(&paper_distributed[i]);
    return sum / (double)paper_distributed_count;
}

/* The least saving over the models of a table of cost, as recomputed from times and prices. */
static double least_saving(const char *gpu, double multiplier) {
    double least = INFINITY;
    for (size_t i = 0; i < paper_reduction_count; i++) {
        const PaperReduction *row = &paper_reductions[i];
        if (!paper_is_cost(row) || strcmp(row->gpu, gpu)) continue;
        double ratio = paper_time_ratio(row) * paper_price("rtx4090") / paper_price(gpu);
        least = fmin(least, 1 - multiplier * ratio);
    }
    return least;
}

static double mean_of_cells(const char *gpu) {
    double sum = 0;
    int rows = 0;
    for (size_t i = 0; i < paper_reduction_count; i++) {
        const PaperReduction *row = &paper_reductions[i];
        if (!paper_is_cost(row) || strcmp(row->gpu, gpu)) continue;
        sum += row->average;
        rows++;
    }
    return sum / rows;
}

static double claim_with(PaperClaimKind kind, double multiplier) {
    switch (kind) {
        case CLAIM_OFFLOAD:
            return 1 - multiplier * offload_mean(false);
        case CLAIM_OFFLOAD_WORST:
            return offload_mean(true) / multiplier - 1;
        case CLAIM_DISTRIBUTED_WORST:
            return 1 - mean_speedup() / multiplier;
        case CLAIM_COST_4090:
            return isnan(multiplier) ? NAN : least_saving("rtx4090", multiplier);
        case CLAIM_COST_A100:
            return isnan(multiplier) ? NAN : least_saving("a100", multiplier);
        default:
            return NAN;
    }
}

int cost_add_claims(Tables *tables, const CostSettings *settings) {
    static const PaperClaimKind kinds[] = {CLAIM_OFFLOAD, CLAIM_OFFLOAD_WORST,
                                           CLAIM_DISTRIBUTED_WORST, CLAIM_COST_4090,
                                           CLAIM_COST_A100};
    TableColumn columns[SAVED_COLUMNS];
    int count = cost_saved_columns(columns, settings);
    Table *table =
        tables_add(tables, "claims", "Per cents in the text, from the paper's own tables", "claim",
                   columns, count);
    if (!table) return -1;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const PaperClaim *claim = &paper_claims[kinds[k]];
        double value[MULTIPLIERS];
        for (int m = 0; m < MULTIPLIERS; m++)
            value[m] = claim_with(kinds[k], settings->multiplier[m]);
        table_row(table, "%s", claim->what);
        cost_put_saved(table, 0, settings, claim->value, value);
    }
    table_note(
        table,
        "The 42.0 %% against OffLoad is said of the average multiplier, and is what the worst "
        "one gives.  The abstract's 53.6 and 74.9 %%, \"averagely more than\", are the least "
        "of four models; the printed average cells have the means %.1f and %.1f %%.",
        100 * mean_of_cells("rtx4090"), 100 * mean_of_cells("a100"));
    return 0;
}

/* ---- Table 4 as ratios -----------------------------------------------------------------------
 */

int cost_add_speedups(Tables *tables) {
    enum { FULL, FULL_MS, BCD, BCD_MS, SPEEDUP, HOURS, COLUMNS };
    static const TableColumn columns[COLUMNS] = {
        [FULL] = {"full", "full", "N/G", COLUMN_TEXT, 0},
        [FULL_MS] = {"full_ms", "full", "ms", COLUMN_NUMBER, 0},
        [BCD] = {"bcd", "BCD-1/3", "N/G", COLUMN_TEXT, 0},
        [BCD_MS] = {"bcd_ms", "BCD-1/3", "ms", COLUMN_NUMBER, 0},
        [SPEEDUP] = {"speedup", "speed-up", "of a step", COLUMN_NUMBER, 2},
        [HOURS] = {"break_even", "even at", "multipl.", COLUMN_NUMBER, 2},
    };
    Table *table = tables_add(tables, "speedup",
                              "Table 4: a step of BCD-1/3 on half the GPUs, and the multiplier at "
                              "which it costs as much",
                              "model", columns, COLUMNS);
    double least = INFINITY, most = 0;
    if (!table) return -1;
    for (size_t i = 0; i < paper_distributed_count; i++) {
        const PaperDistributed *row = &paper_distributed[i];
        double one = speedup(row), gpus = (double)paper_gpus(row->full) / paper_gpus(row->bcd);
        table_row(table, "%s", row->model);
        table_text(table, FULL, SOURCE_PUBLISHED, "%d/%d", row->full.nodes, row->full.per_node);
        table_number(table, FULL_MS, row->full_ms, SOURCE_PUBLISHED);
        table_text(table, BCD, SOURCE_PUBLISHED, "%d/%d", row->bcd.nodes, row->bcd.per_node);
        table_number(table, BCD_MS, row->bcd_ms, SOURCE_PUBLISHED);
        table_number(table, SPEEDUP, one, SOURCE_RECOMPUTED);
        table_number(table, HOURS, one * gpus, SOURCE_RECOMPUTED);
        least = fmin(least, one);
        most = fmax(most, one);
    }
    table_note(
        table,
        "Section 4.3.2 says %.2f to %.2f times, mean %.2f; the table spans %.2f to %.2f, mean "
        "%.2f.  \"even at\": with this B-F multiplier BCD takes as many GPU hours as the full "
        "update.",
        paper_claims[CLAIM_SPEEDUP_LEAST].value, paper_claims[CLAIM_SPEEDUP_MOST].value,
        paper_claims[CLAIM_SPEEDUP_MEAN].value, least, most, mean_speedup());
    return 0;
}
