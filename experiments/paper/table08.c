/* Tables 8 and 4: parameters, gradients and Adam's state; and the activations they leave out. */
#include <math.h>
#include <string.h>

#include "../train/fit.h"
#include "paper.h"

const PaperModel paper_models[PAPER_MODELS + 1] = {
    {"G-1.6B", 1, 30, 2048, 16, 0, 24.077, 12.038},
    {"G-5.4B", 4, 28, 3968, 32, 0, 81.881, 40.942},
    {"G-10B", 8, 56, 3968, 32, 0, 160.738, 80.370},
    {"G-20B", 16, 110, 3968, 32, 0, 312.805, 156.402},
    {"L-1.5B", 1, 30, 2048, 16, 5050, 24.632, 11.662},
    {"L-6.0B", 4, 32, 4096, 32, 9200, 89.815, 44.908},
    {"L-11B", 8, 64, 4096, 32, 9200, 175.714, 87.858},
    {"L-23B", 16, 128, 4096, 32, 9200, 347.539, 173.769},
    {0},
};
/* In Table 4, but not in Table 8. */
static const PaperModel undescribed = {
    .model = "L-8.0B", .gpus = 6, .full_gib = 120.327, .bcd_gib = 60.163};

const PaperModel *paper_model(const char *model) {
    const PaperModel *m = paper_models;
    while (m->model && strcmp(m->model, model)) m++;
    return m->model ? m : NULL;
}

MemorySums paper_memory(Table *table, const char *name, OptimizerKind optimizer, int submodels,
                        bool recompute) {
    FitBytes bytes;
    Model *model = model_create(name);
    Setup setup = {
        .model = model,
        .stage_settings = {
            .batch = 1, .optimizer = optimizer_defaults(optimizer), .recompute = recompute}};
    Partition *partition = &setup.bcd.partition;
    MemorySums sums = {0};
    if (!model || partition_balanced(partition, model, submodels, NULL) ||
        fit_plan(&bytes, &setup, 0))
        table_fail(table);
    else
        sums =
            (MemorySums){.parameters = (double)model->param_count,
                         .trained = (double)(bytes.device[MEM_PARAMETERS] +
                                             bytes.device[MEM_GRADIENTS] + bytes.device[MEM_STATE]),
                         .closed_form = memory_closed_form(model, &setup.stage_settings.optimizer,
                                                           PRECISION_FP32, submodels),
                         .activations = (double)bytes.device[MEM_ACTIVATIONS],
                         .all = (double)bytes.device[MEM_ROLES]};
    setup_free(&setup);
    return sums;
}

static const TableColumn published_columns[] = {
    {"parameters", "parameters", "", COLUMN_NUMBER, 0, SOURCE_CLOSED_FORM},
    {"full_published", "full", "GiB", COLUMN_NUMBER, 3, SOURCE_PUBLISHED},
    {"full_recomputed", "2 x BCD", "GiB", COLUMN_NUMBER, 3, SOURCE_RECOMPUTED},
    {"full_closed_form", "full, 16 N", "GiB", COLUMN_NUMBER, 3, SOURCE_CLOSED_FORM},
    {"full_deviation", "off", "", COLUMN_DEVIATION, 2, SOURCE_NONE},
    {"bcd3_published", "BCD-1/3", "GiB", COLUMN_NUMBER, 3, SOURCE_PUBLISHED},
    {"bcd3_closed_form", "8 N", "GiB", COLUMN_NUMBER, 3, SOURCE_CLOSED_FORM},
    {"bcd3_deviation", "off", "", COLUMN_DEVIATION, 2, SOURCE_NONE},
    {"bcd3_plan", "planned", "GiB", COLUMN_NUMBER, 3, SOURCE_CLOSED_FORM},
};
/* What the published memory leaves out. */
static const TableColumn activation_columns[] = {
    {"full", "full", "P+G+S", COLUMN_NUMBER, 2, SOURCE_CLOSED_FORM},
    {"full_activations", "full", "activat.", COLUMN_NUMBER, 2, SOURCE_CLOSED_FORM},
    {"full_activations_of_w", "full", "act. / W", COLUMN_NUMBER, 2, SOURCE_CLOSED_FORM},
    {"full_recompute", "full", "recomp.", COLUMN_NUMBER, 2, SOURCE_CLOSED_FORM},
    {"bcd3", "BCD-1/3", "P+G+S", COLUMN_NUMBER, 2, SOURCE_CLOSED_FORM},
    {"bcd3_activations", "BCD-1/3", "activat.", COLUMN_NUMBER, 2, SOURCE_CLOSED_FORM},
    {"bcd3_recompute", "BCD-1/3", "recomp.", COLUMN_NUMBER, 2, SOURCE_CLOSED_FORM},
    {"bcd3_all", "BCD-1/3", "all", COLUMN_NUMBER, 2, SOURCE_CLOSED_FORM},
    {"bcd3_per_gpu", "BCD-1/3", "per GPU", COLUMN_NUMBER, 2, SOURCE_CLOSED_FORM},
};

/* Adds a row to each of the two tables. */
static void add_model(Table *published, Table *activations, const PaperModel *row) {
    const char *name = row->model;
    double third = row->bcd_gib;
    MemorySums full = paper_memory(published, name, OPTIMIZER_ADAM, 1, false),
               bcd = paper_memory(published, name, OPTIMIZER_ADAM, 3, false),
               full_again = paper_memory(activations, name, OPTIMIZER_ADAM, 1, true),
               bcd_again = paper_memory(activations, name, OPTIMIZER_ADAM, 3, true);
    table_row(published, "%s", name);
    table_put(published, 0, full.parameters, row->full_gib, 2 * third, full.closed_form / GIB,
              full.closed_form / GIB / row->full_gib - 1, third, bcd.closed_form / GIB,
              bcd.closed_form / GIB / third - 1, bcd.trained / GIB);
    table_row(activations, "%s", name);
    table_put(activations, 0, full.trained / GIB, full.activations / GIB,
              full.activations / (4 * full.parameters), full_again.activations / GIB,
              bcd.trained / GIB, bcd.activations / GIB, bcd_again.activations / GIB, bcd.all / GIB,
              bcd.all / row->gpus / GIB);
}

/* Adds the model that has no parameter count and no closed form, and says how many layers like
 * those of L-6.0B and L-11B, which differ in nothing else, would take the memory printed for it. */
static void add_undescribed(Table *table) {
    const PaperModel *low = paper_model("L-6.0B"), *high = paper_model("L-11B");
    double of_low = paper_memory(table, low->model, OPTIMIZER_ADAM, 1, false).parameters,
           of_high = paper_memory(table, high->model, OPTIMIZER_ADAM, 1, false).parameters,
           each = (of_high - of_low) / (high->layers - low->layers);
    table_row(table, "%s", undescribed.model);
    table_put(table, 1, undescribed.full_gib, 2 * undescribed.bcd_gib, NAN, NAN,
              undescribed.bcd_gib);
    table_note(table,
               "%s is not in Table 8: its memory would take %.2f layers like those of L-6.0B, so "
               "the paper does not determine it.",
               undescribed.model, low->layers + (undescribed.full_gib * GIB / 16 - of_low) / each);
}

void paper_add_table8(Tables *tables) {
    Table *table =
        tables_add(tables, "table8", "Tables 8 and 4: parameters, gradients and Adam's state, fp32",
                   "model", published_columns, 9);
    Table *activations =
        tables_add(tables, "activations",
                   "What the published memory leaves out: one sequence of 1024 tokens, GiB, fp32",
                   "model", activation_columns, 9);
    strcpy(activations->unit, "GiB");
    for (const PaperModel *row = paper_models; row->model; row++)
        add_model(table, activations, row);
    table_note(table,
               "The published columns are the closed form W (1 + 3/M), W = 4 N bytes: 16 N for a "
               "full update, 8 N for thirds of equal size.  \"planned\": the largest of three "
               "balanced submodels of whole blocks, as this program would allocate it.");
    table_note(table,
               "L-1.5B contradicts itself: the published %.3f is not twice the published %.3f, "
               "which is what the closed form gives.",
               paper_model("L-1.5B")->full_gib, paper_model("L-1.5B")->bcd_gib);
    add_undescribed(table);
    table_note(
        activations,
        "The plan of this program for the whole model, with the submodel that needs most. "
        "P+G+S: parameters, gradients and state.  recomp.: activations when only block "
        "inputs are kept.  all: with workspace; per GPU: divided by the GPUs of Table 8.  The "
        "paper speaks of activations of about 0.7 W.");
}
