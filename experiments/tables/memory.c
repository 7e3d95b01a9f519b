#include "memory.h"

#include <math.h>
#include <string.h>

#include "../experiment.h"
#include "../options/fit.h"
#include "../study/paper.h"
#include "../study/paper_tables.h"

#define GIB (1024.0 * 1024 * 1024)
#define MIB (1024.0 * 1024)

enum { MOST_SUBMODELS = 5 };

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

static StageSettings plain_settings(OptimizerKind kind) {
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
    StageSettings settings = plain_settings(OPTIMIZER_ADAM);
    MemorySums planned;
    if (!model) return -1;
    double full = memory_closed_form(model, &settings.optimizer, PRECISION_FP32, 1);
    double bcd = memory_closed_form(model, &settings.optimizer, PRECISION_FP32, 3);
    int failed = memory_sums(&planned, model, &settings, 3);
    table_row(table, "%s", row->model);
    put_published(table, row->memory_gib, published_bcd(row->model));
    table_number(table, M_COUNT, (double)model->param_count, SOURCE_CLOSED_FORM);
    table_number(table, M_FULL, full / GIB, SOURCE_CLOSED_FORM);
    table_number(table, M_BCD, bcd / GIB, SOURCE_CLOSED_FORM);
    table_number(table, M_PLAN, planned.trained / GIB, SOURCE_CLOSED_FORM);
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
        layers = low->layers + (full_gib * GIB / 16 - (double)a->param_count) / each;
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
    StageSettings settings = plain_settings(OPTIMIZER_ADAM), again = settings;
    MemorySums full, bcd, full_again, bcd_again;
    again.recompute = true;
    int failed = !model || memory_sums(&full, model, &settings, 1) ||
                 memory_sums(&bcd, model, &settings, 3) ||
                 memory_sums(&full_again, model, &again, 1) ||
                 memory_sums(&bcd_again, model, &again, 3);
    double weights = failed ? 0 : 4.0 * (double)model->param_count;
    model_free(model);
    if (failed) return -1;
    const double values[A_COLUMNS] = {[A_TRAINED] = full.trained / GIB,
                                      [A_ACTIVATIONS] = full.activations / GIB,
                                      [A_OF_W] = full.activations / weights,
                                      [A_RECOMPUTED] = full_again.activations / GIB,
                                      [A_BCD] = bcd.trained / GIB,
                                      [A_BCD_ACTIVATIONS] = bcd.activations / GIB,
                                      [A_BCD_RECOMPUTED] = bcd_again.activations / GIB,
                                      [A_ALL] = bcd.all / GIB,
                                      [A_PER_GPU] = bcd.all / row->gpus / GIB};
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

/* ---- Figure 5 --------------------------------------------------------------------------------
 */

enum { FIGURE5_MODELS = 8, FIGURE5_COLUMNS = FIGURE5_MODELS + 1 };

static int fill_figure5(Table *table, Model *const *models) {
    StageSettings settings = plain_settings(OPTIMIZER_ADAM);
    for (int m = 1; m <= MOST_SUBMODELS; m++) {
        table_row(table, m == 1 ? "1" : "1/%d", m);
        table_number(table, 0, (1 + 3.0 / m) / 4, SOURCE_CLOSED_FORM);
        for (int i = 0; i < FIGURE5_MODELS; i++) {
            MemorySums sums;
            if (memory_sums(&sums, models[i], &settings, m)) return -1;
            double full = memory_closed_form(models[i], &settings.optimizer, PRECISION_FP32, 1);
            table_number(table, i + 1, sums.trained / full, SOURCE_CLOSED_FORM);
        }
    }
    table_note(table,
               "Of a full update's bytes.  \"equal parts\": the closed form (1 + 3/M) / 4, the "
               "same for all; the models: their largest balanced submodel of whole blocks.  The "
               "paper draws its Figure 5 without printing numbers.");
    return 0;
}

static int add_figure5(Tables *tables) {
    TableColumn columns[FIGURE5_COLUMNS] = {{"equal_parts", "equal parts", "", COLUMN_PERCENT, 1}};
    Model *models[FIGURE5_MODELS] = {NULL};
    int failed = 0;
    for (int i = 0; i < FIGURE5_MODELS && !failed; i++) {
        TableColumn *column = &columns[i + 1];
        snprintf(column->head, sizeof column->head, "%s", paper_models[i].model);
        snprintf(column->name, sizeof column->name, "%s", paper_models[i].model);
        column->kind = COLUMN_PERCENT;
        column->decimals = 1;
        models[i] = model_create(paper_models[i].model);
        failed = !models[i];
    }
    Table *table =
        failed ? NULL
               : tables_add(tables, "figure5", "Figure 5: memory against UFP, the part that trains",
                            "UFP", columns, FIGURE5_COLUMNS);
    if (table) {
        table->figure = FIGURE_LINES;
        strcpy(table->axis, "parameters, gradients, state: % of a full update's");
        failed = fill_figure5(table, models);
    }
    for (int i = 0; i < FIGURE5_MODELS; i++) model_free(models[i]);
    return table && !failed ? 0 : -1;
}

/* ---- Tables 9 to 11 --------------------------------------------------------------------------
 */

enum { S_PUBLISHED, S_OWN, S_OWN_OFF, S_OURS, S_OURS_OFF, S_PLAN, S_COLUMNS };
static const TableColumn small_columns[S_COLUMNS] = {
    [S_PUBLISHED] = {"published", "published", "MiB", COLUMN_NUMBER, 2},
    [S_OWN] = {"recomputed", "from its W", "MiB", COLUMN_NUMBER, 2},
    [S_OWN_OFF] = {"recomputed_deviation", "off", "", COLUMN_DEVIATION, 2},
    [S_OURS] = {"closed_form", "our model", "MiB", COLUMN_NUMBER, 2},
    [S_OURS_OFF] = {"closed_form_deviation", "off", "", COLUMN_DEVIATION, 2},
    [S_PLAN] = {"plan", "planned", "MiB", COLUMN_NUMBER, 2},
};

static int add_small(Table *table, const PaperRow *row) {
    bool adam = strcmp(row->optimizer, "adam") == 0;
    StageSettings settings = plain_settings(adam ? OPTIMIZER_ADAM : OPTIMIZER_SGD);
    const PaperRow *full = paper_full(row);
    double k = 1 + optimizer_state_vectors(&settings.optimizer);
    MemorySums planned;
    Model *model = model_create(row->model);
    if (!model) return -1;
    double ours = memory_closed_form(model, &settings.optimizer, PRECISION_FP32, row->submodels);
    int failed = memory_sums(&planned, model, &settings, row->submodels);
    table_row(table, "%d: %s", row->table, row->row);
    table_number(table, S_PUBLISHED, row->memory_mib, SOURCE_PUBLISHED);
    if (full)
        table_number(table, S_OWN, full->memory_mib / (1 + k) * (1 + k / row->submodels),
                     SOURCE_RECOMPUTED);
    table_number(table, S_OURS, ours / MIB, SOURCE_CLOSED_FORM);
    table_number(table, S_PLAN, planned.trained / MIB, SOURCE_CLOSED_FORM);
    table_deviation(table, S_OWN_OFF, S_OWN, S_PUBLISHED);
    table_deviation(table, S_OURS_OFF, S_OURS, S_PUBLISHED);
    model_free(model);
    return failed;
}

static int add_smalls(Tables *tables) {
    Table *table = tables_add(tables, "tables9to11",
                              "Tables 9 to 11: parameters, gradients and state of GPT-2 0.15B and "
                              "ResNet-14",
                              "table: row", small_columns, S_COLUMNS);
    if (!table) return -1;
    for (size_t r = 0; r < paper_row_count; r++)
        if (!isnan(paper_rows[r].memory_mib) && add_small(table, &paper_rows[r])) return -1;
    table_note(table,
               "\"from its W\": W (1 + k/M) with the W that the table's own full update implies, k "
               "= 3 for Adam, 2 for SGD with momentum.");
    table_note(table,
               "The W of the 0.15B GPT-2 belongs to no natural configuration; 16 layers x 768 "
               "stand for it.  \"planned\": the largest balanced submodel.");
    return 0;
}

int experiment_memory(const Options *options) {
    Tables tables = {0};
    int failed = add_models(&tables) || add_activations(&tables) || add_figure5(&tables) ||
                 add_smalls(&tables) || memory_measure(&tables, options) ||
                 tables_deliver(&tables, options, "memory");
    tables_free(&tables);
    return failed ? -1 : 0;
}
