#include "memory.h"

#include <math.h>
#include <string.h>

#include "../experiment.h"
#include "../train/fit.h"
#include "published.h"

int memory_sums(MemorySums *sums, const Model *model, const StageSettings *settings,
                int submodels) {
    size_t bytes[MEM_ROLES + 1], host[MEM_ROLES + 1];
    Partition partition;
    if (partition_balanced(&partition, model, submodels)) return -1;
    FitTraining training = {.model = model, .partition = &partition, .settings = *settings};
    int failed = fit_plan(bytes, host, fit_plan_cpu, &training);
    partition_free(&partition);
    sums->trained = (double)(bytes[MEM_PARAMETERS] + bytes[MEM_GRADIENTS] + bytes[MEM_STATE]);
    sums->activations = (double)bytes[MEM_ACTIVATIONS];
    sums->all = (double)bytes[MEM_ROLES];
    return failed;
}

StageSettings memory_plain_settings(OptimizerKind kind) {
    return (StageSettings){.batch = 1, .optimizer = optimizer_defaults(kind)};
}

/* ---- Tables 8 and 4 --------------------------------------------------------------------------
 */

enum {
    M_COUNT,
    M_FULL_PUBLISHED,
    M_TWICE,
    M_FULL,
    M_FULL_OFF,
    M_BCD_PUBLISHED,
    M_BCD,
    M_BCD_OFF,
    M_PLAN,
    M_COLUMNS
};
static const TableColumn model_columns[M_COLUMNS] = {
    [M_COUNT] = {"parameters", "parameters", "", COLUMN_NUMBER, 0},
    [M_FULL_PUBLISHED] = {"full_published", "full", "GiB", COLUMN_NUMBER, 3},
    [M_TWICE] = {"full_recomputed", "2 x BCD", "GiB", COLUMN_NUMBER, 3},
    [M_FULL] = {"full_closed_form", "full, 16 N", "GiB", COLUMN_NUMBER, 3},
    [M_FULL_OFF] = {"full_deviation", "off", "", COLUMN_DEVIATION, 2},
    [M_BCD_PUBLISHED] = {"bcd3_published", "BCD-1/3", "GiB", COLUMN_NUMBER, 3},
    [M_BCD] = {"bcd3_closed_form", "8 N", "GiB", COLUMN_NUMBER, 3},
    [M_BCD_OFF] = {"bcd3_deviation", "off", "", COLUMN_DEVIATION, 2},
    [M_PLAN] = {"bcd3_plan", "planned", "GiB", COLUMN_NUMBER, 3},
};

static double published_bcd(const char *model) {
    for (size_t i = 0; i < paper_distributed_count; i++)
        if (strcmp(paper_distributed[i].model, model) == 0) return paper_distributed[i].bcd_gib;
    return NAN;
}

static void put_published(Table *table, double full, double bcd) {
    table_number(table, M_FULL_PUBLISHED, full, SOURCE_PUBLISHED);
    table_number(table, M_TWICE, 2 * bcd, SOURCE_RECOMPUTED);
    table_number(table, M_BCD_PUBLISHED, bcd, SOURCE_PUBLISHED);
}

static int add_model(Table *table, const PaperModel *row) {
    Model *model = model_create(row->model);
    StageSettings settings = memory_plain_settings(OPTIMIZER_ADAM);
    MemorySums planned;
    if (!model) return -1;
    double full = memory_closed_form(model, &settings.optimizer, PRECISION_FP32, 1);
    double bcd = memory_closed_form(model, &settings.optimizer, PRECISION_FP32, 3);
    int failed = memory_sums(&planned, model, &settings, 3);
    table_row(table, "%s", row->model);
    put_published(table, row->memory_gib, published_bcd(row->model));
    table_number(table, M_COUNT, (double)model->param_count, SOURCE_CLOSED_FORM);
    table_number(table, M_FULL, full / BYTES_GIB, SOURCE_CLOSED_FORM);
    table_number(table, M_BCD, bcd / BYTES_GIB, SOURCE_CLOSED_FORM);
    table_number(table, M_PLAN, planned.trained / BYTES_GIB, SOURCE_CLOSED_FORM);
    table_deviation(table, M_FULL_OFF, M_FULL, M_FULL_PUBLISHED);
    table_deviation(table, M_BCD_OFF, M_BCD, M_BCD_PUBLISHED);
    model_free(model);
    return failed;
}

/* Layers like those of L-6.0B and L-11B, which differ in nothing else, that would fill the memory
 * printed for L-8.0B; NAN where memory runs out. */
static double undescribed_layers(double full_gib) {
    const PaperModel *low = paper_model("L-6.0B"), *high = paper_model("L-11B");
    Model *a = model_create(low->model), *b = model_create(high->model);
    double layers = NAN;
    if (a && b) {
        double each = (double)(b->param_count - a->param_count) / (high->layers - low->layers);
        layers = low->layers + (full_gib * BYTES_GIB / 16 - (double)a->param_count) / each;
    }
    model_free(a);
    model_free(b);
    return layers;
}

/* The models of Table 4 that Table 8 does not describe: no parameter count, hence no closed form.
 */
static void add_undescribed(Table *table) {
    for (size_t i = 0; i < paper_distributed_count; i++) {
        const PaperDistributed *row = &paper_distributed[i];
        if (paper_model(row->model)) continue;
        table_row(table, "%s", row->model);
        put_published(table, row->full_gib, row->bcd_gib);
        table_note(table,
                   "%s is not in Table 8: its memory would take %.2f layers like those of L-6.0B, "
                   "so the paper does not determine it.",
                   row->model, undescribed_layers(row->full_gib));
    }
}

static int add_models(Tables *tables) {
    Table *table =
        tables_add(tables, "table8", "Tables 8 and 4: parameters, gradients and Adam's state, fp32",
                   "model", model_columns, M_COLUMNS);
    if (!table) return -1;
    for (size_t i = 0; i < paper_model_count; i++)
        if (add_model(table, &paper_models[i])) return -1;
    table_note(table,
               "The published columns are the closed form W (1 + 3/M), W = 4 N bytes: 16 N for a "
               "full update, 8 N for thirds of equal size.  \"planned\": the largest of three "
               "balanced submodels of whole blocks, as this program would allocate it.");
    table_note(table,
               "L-1.5B contradicts itself: the published %.3f is not twice the published %.3f, "
               "which is what the closed form gives.",
               paper_model("L-1.5B")->memory_gib, published_bcd("L-1.5B"));
    add_undescribed(table);
    return 0;
}

/* ---- activations -----------------------------------------------------------------------------
 */

enum {
    A_TRAINED,
    A_ACTIVATIONS,
    A_OF_W,
    A_RECOMPUTED,
    A_BCD,
    A_BCD_ACTIVATIONS,
    A_BCD_RECOMPUTED,
    A_ALL,
    A_PER_GPU,
    A_COLUMNS
};
static const TableColumn activation_columns[A_COLUMNS] = {
    [A_TRAINED] = {"full", "full", "P+G+S", COLUMN_NUMBER, 2},
    [A_ACTIVATIONS] = {"full_activations", "full", "activat.", COLUMN_NUMBER, 2},
    [A_OF_W] = {"full_activations_of_w", "full", "act. / W", COLUMN_NUMBER, 2},
    [A_RECOMPUTED] = {"full_recompute", "full", "recomp.", COLUMN_NUMBER, 2},
    [A_BCD] = {"bcd3", "BCD-1/3", "P+G+S", COLUMN_NUMBER, 2},
    [A_BCD_ACTIVATIONS] = {"bcd3_activations", "BCD-1/3", "activat.", COLUMN_NUMBER, 2},
    [A_BCD_RECOMPUTED] = {"bcd3_recompute", "BCD-1/3", "recomp.", COLUMN_NUMBER, 2},
    [A_ALL] = {"bcd3_all", "BCD-1/3", "all", COLUMN_NUMBER, 2},
    [A_PER_GPU] = {"bcd3_per_gpu", "BCD-1/3", "per GPU", COLUMN_NUMBER, 2},
};

static int add_activations_of(Table *table, const PaperModel *row) {
    Model *model = model_create(row->model);
    StageSettings settings = memory_plain_settings(OPTIMIZER_ADAM), again = settings;
    MemorySums full, bcd, full_again, bcd_again;
    again.recompute = true;
    int failed = !model || memory_sums(&full, model, &settings, 1) ||
                 memory_sums(&bcd, model, &settings, 3) ||
                 memory_sums(&full_again, model, &again, 1) ||
                 memory_sums(&bcd_again, model, &again, 3);
    double weights = failed ? 0 : 4.0 * (double)model->param_count;
    model_free(model);
    if (failed) return -1;
    const double values[A_COLUMNS] = {[A_TRAINED] = full.trained / BYTES_GIB,
                                      [A_ACTIVATIONS] = full.activations / BYTES_GIB,
                                      [A_OF_W] = full.activations / weights,
                                      [A_RECOMPUTED] = full_again.activations / BYTES_GIB,
                                      [A_BCD] = bcd.trained / BYTES_GIB,
                                      [A_BCD_ACTIVATIONS] = bcd.activations / BYTES_GIB,
                                      [A_BCD_RECOMPUTED] = bcd_again.activations / BYTES_GIB,
                                      [A_ALL] = bcd.all / BYTES_GIB,
                                      [A_PER_GPU] = bcd.all / row->gpus / BYTES_GIB};
    table_row(table, "%s", row->model);
    for (int c = 0; c < A_COLUMNS; c++) table_number(table, c, values[c], SOURCE_CLOSED_FORM);
    return 0;
}

static int add_activations(Tables *tables) {
    Table *table =
        tables_add(tables, "activations",
                   "What the published memory leaves out: one sequence of 1024 tokens, GiB, fp32",
                   "model", activation_columns, A_COLUMNS);
    if (!table) return -1;
    strcpy(table->unit, "GiB");
    for (size_t i = 0; i < paper_model_count; i++)
        if (add_activations_of(table, &paper_models[i])) return -1;
    table_note(
        table,
        "The plan of this program for the whole model, with the submodel that needs most. "
        "P+G+S: parameters, gradients and state.  recomp.: activations when only block "
        "inputs are kept.  all: with workspace; per GPU: divided by the GPUs of Table 8.  The "
        "paper speaks of activations of about 0.7 W.");
    return 0;
}

int experiment_memory(const Options *options) {
    Tables tables = {0};
    int failed = add_models(&tables) || add_activations(&tables) || memory_add_figure5(&tables) ||
                 memory_add_small_models(&tables) || memory_measure(&tables, options) ||
                 tables_deliver(&tables, options, "memory");
    tables_free(&tables);
    return failed ? -1 : 0;
}
