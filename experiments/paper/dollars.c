/* What a training costs in dollars. */
#include <math.h>
#include <string.h>

#include "cost.h"
#include "times.h"

enum { SEQUENCE = 1024 }; /* tokens of a published iteration */

/* Milliseconds of one iteration, and on how many GPUs; NAN where there is no
 * such time. */
typedef struct {
    double ms;
    int gpus;
} Iteration;

typedef struct {
    Iteration full, offload, bcd;   /* on RTX 4090 */
    Iteration elsewhere[COST_GPUS]; /* a full update, by cost_gpus */
    Source source;
} Training;

/* ---- published
 * -------------------------------------------------------------------------------
 */

static Iteration published_offload(const char *model) {
    for (size_t i = 0; i < paper_offload_count; i++)
        if (strcmp(paper_offload[i].model, model) == 0)
            return (Iteration){paper_offload[i].offload_ms, paper_offload[i].gpus};
    return (Iteration){NAN, 0};
}

static Iteration published_elsewhere(const char *gpu, const char *model) {
    for (size_t i = 0; i < paper_elsewhere_count; i++) {
        const PaperElsewhere *there = &paper_elsewhere[i];
        if (!strcmp(there->gpu, gpu) && !strcmp(there->model, model))
            return (Iteration){there->full_ms, paper_gpus(there->gpus)};
    }
    return (Iteration){NAN, 0};
}

static Training published(const PaperDistributed *row) {
    Training training = {.full = {row->full_ms, paper_gpus(row->full)},
                         .offload = published_offload(row->model),
                         .bcd = {paper_bcd_ms(row->model), paper_gpus(row->bcd)},
                         .source = SOURCE_RECOMPUTED};
    for (int g = 1; g < COST_GPUS; g++)
        training.elsewhere[g] = published_elsewhere(cost_gpus[g], row->model);
    return training;
}

/* ---- simulated
 * -------------------------------------------------------------------------------
 */

static int simulate_offload(Iteration *offload, const char *model, const Practice *practice) {
    PaperStep step = {"rtx4090", model, {1, offload->gpus}, TIMED_OFFLOAD, 1, 0};
    if (isnan(offload->ms)) return 0;
    return paper_step_ms(&offload->ms, NULL, &step, SETTING_CALIBRATED, practice);
}

/* The same trainings on the same GPUs. */
static int simulate_training(Training *training, const PaperDistributed *row,
                             const Practice *rtx4090) {
    *training = published(row);
    training->source = SOURCE_SIMULATED;
    int failed = timing_simulated_ms(&training->full.ms, "rtx4090", row->model, row->full, 1) ||
                 timing_simulated_ms(&training->bcd.ms, "rtx4090", row->model, row->bcd, 3) ||
                 simulate_offload(&training->offload, row->model, rtx4090);
    for (int g = 1; g < COST_GPUS && !failed; g++) {
        Iteration *there = &training->elsewhere[g];
        PaperGpus gpus = {1, there->gpus};
        if (!isnan(there->ms))
            failed = timing_simulated_ms(&there->ms, cost_gpus[g], row->model, gpus, 1);
    }
    return failed;
}

/* ---- the table
 * -------------------------------------------------------------------------------
 */

enum { FULL, OFFLOAD, A100, A800, BCD, COLUMNS = BCD + MULTIPLIERS };

static double dollars(const CostSettings *settings, Iteration iteration, double price) {
    return settings->tokens / SEQUENCE * iteration.ms / 3.6e6 * iteration.gpus * price;
}

static void put_training(Table *table, const CostSettings *settings, const Training *training) {
    const double *price = settings->price;
    Source source = training->source;
    table_number(table, FULL, dollars(settings, training->full, price[0]), source);
    table_number(table, OFFLOAD, dollars(settings, training->offload, price[0]), source);
    for (int g = 1; g < COST_GPUS; g++)
        table_number(table, A100 + g - 1, dollars(settings, training->elsewhere[g], price[g]),
                     source);
    for (int m = 0; m < settings->multipliers; m++)
        table_number(table, BCD + m,
                     settings->multiplier[m] * dollars(settings, training->bcd, price[0]), source);
}

static int make_columns(TableColumn columns[COLUMNS], const CostSettings *settings) {
    static const TableColumn fixed[BCD] = {
        [FULL] = {"full", "full", "RTX 4090", COLUMN_NUMBER, 0},
        [OFFLOAD] = {"offload", "offload", "RTX 4090", COLUMN_NUMBER, 0},
        [A100] = {"full_a100", "full", "A100", COLUMN_NUMBER, 0},
        [A800] = {"full_a800", "full", "A800", COLUMN_NUMBER, 0},
    };
    TableColumn saved[SAVED_COLUMNS];
    cost_saved_columns(saved, settings);
    memcpy(columns, fixed, sizeof fixed);
    for (int m = 0; m < settings->multipliers; m++) {
        columns[BCD + m] = saved[SAVED_WITH + m];
        columns[BCD + m].kind = COLUMN_NUMBER;
        columns[BCD + m].decimals = 0;
        snprintf(columns[BCD + m].unit, sizeof columns->unit, "BCD-1/3");
    }
    return BCD + settings->multipliers;
}

static Table *add_table(Tables *tables, const CostSettings *settings, const char *name,
                        const char *from) {
    TableColumn columns[COLUMNS];
    int count = make_columns(columns, settings);
    char title[160];
    snprintf(title, sizeof title, "What a training on %.3g tokens costs, in dollars, by %s times",
             settings->tokens, from);
    Table *table = tables_add(tables, name, title, "model, N/G", columns, count);
    if (!table) return NULL;
    strcpy(table->unit, "$");
    table_note(table,
               "An iteration is taken as %d tokens (inferred: the paper does not "
               "say); with the "
               "multipliers above the columns, at %.2f, %.2f and %.2f $/h for "
               "RTX 4090, A100 and "
               "A800.",
               SEQUENCE, settings->price[0], settings->price[1], settings->price[2]);
    return table;
}

int cost_add_dollars(Tables *tables, const CostSettings *settings) {
    Table *by_published = add_table(tables, settings, "dollars", "published");
    Table *by_simulated = add_table(tables, settings, "dollars_simulated", "simulated");
    Practice rtx4090;
    if (!by_published || !by_simulated || paper_practice(&rtx4090, "rtx4090", SETTING_CALIBRATED))
        return -1;
    for (size_t i = 0; i < paper_distributed_count; i++) {
        const PaperDistributed *row = &paper_distributed[i];
        Training training = published(row);
        table_row(by_published, "%s %d/%d", row->model, row->full.nodes, row->full.per_node);
        put_training(by_published, settings, &training);
        if (simulate_training(&training, row, &rtx4090)) return -1;
        if (isnan(training.full.ms)) continue; /* L-8.0B: not determined */
        table_row(by_simulated, "%s %d/%d", row->model, row->full.nodes, row->full.per_node);
        put_training(by_simulated, settings, &training);
    }
    return 0;
}
