/* Table 11: the unfrozen part of the parameters, 1/M.  GPT-2 in one to four submodels; and memory
 * and time of an update of ours against it, drawn. */
#include <math.h>
#include <string.h>

#include "../study/measures.h"
#include "../study/networks.h"
#include "trainings.h"

/* ---- published ------------------------------------------------------------------------------- */

#define GPT(row, opt, m, epochs, printed, loss, mib)                                          \
    {                                                                                         \
        11, row, "gpt2-0.15B", "wikitext2", opt, m, 1.0, epochs, false, SCORE_TEN_PERPLEXITY, \
            printed, loss, mib                                                                \
    }
const PaperRow paper_table11[] = {
    GPT("1 SGD", "sgd", 1, 24, 69.6, 1.9407, 1824.45),
    GPT("1/2 SGD", "sgd", 2, 40, 67.1, 1.9033, 1216.30),
    GPT("1/3 SGD", "sgd", 3, 44, 69.1, 1.9343, 1013.58),
    GPT("1/4 SGD", "sgd", 4, 50, 67.5, 1.9109, 912.23),
    GPT("1 Adam", "adam", 1, 18, 65.9, 1.8869, 2432.60),
    GPT("1/2 Adam", "adam", 2, 40, 66.3, 1.8924, 1520.38),
    GPT("1/3 Adam", "adam", 3, 50, 66.2, 1.8910, 1216.30),
    GPT("1/4 Adam", "adam", 4, 60, 66.8, 1.8995, 1064.26),
    {0},
};

/* ---- trained here ---------------------------------------------------------------------------- */

const TrainingKind training_ufp = {
    .name = "ufp",
    .tables = {11},
    .variant = {{1, 1, NULL}, {2, 1, NULL}, {3, 1, NULL}, {4, 1, NULL}},
    .preset = {[PRESET_SMOKE] = {SMOKE_GPT("2")},
               [PRESET_LAPTOP] = {{LAPTOP_WIKITEXT(LAPTOP_GPT, "sgd,adam")},
                                  LAPTOP_TEXT("sgd,adam")},
               [PRESET_GPU] = {GPU_GPT}},
};

/* ---- shown together -------------------------------------------------------------------------- */

static bool is_about(const StudyRow *row, bool exact) {
    (void)exact;
    return row->submodels == 2 || row->submodels == 4;
}

const PaperTable paper_shown11[] = {
    {.table = 11,
     .memory = true,
     .name = "table11",
     .title = "Table 11: GPT-2 in one to four submodels",
     .is_about = is_about,
     .note = {PAPER_NOTE_CONVERGED, PAPER_NOTE_ACC, PAPER_NOTE_MEMORY, PAPER_NOTE_GPT2,
              PAPER_NOTE_EPOCH, PAPER_NOTES}},
    {0},
};

/* ---- drawn ----------------------------------------------------------------------------------- */

enum { FIGURES = 4 }; /* cases that are drawn */

static double peak_mib(const MeasurePair *pair, MemRole role) {
    return pair->row->peak[role] / MIB;
}
static double parameters(const MeasurePair *pair) { return peak_mib(pair, MEM_PARAMETERS); }
static double gradients(const MeasurePair *pair) { return peak_mib(pair, MEM_GRADIENTS); }
static double state(const MeasurePair *pair) { return peak_mib(pair, MEM_STATE); }
static double activations(const MeasurePair *pair) { return peak_mib(pair, MEM_ACTIVATIONS); }
static double other(const MeasurePair *pair) {
    return peak_mib(pair, MEM_BUFFERS) + peak_mib(pair, MEM_CACHE) + peak_mib(pair, MEM_WORKSPACE);
}

enum { MEMORY_COLUMNS = 6, TIME_COLUMNS = 2 };
static const MeasureColumn memory_columns[MEMORY_COLUMNS] = {
    {"parameters", "parameters", "MiB", 2, SOURCE_MEASURED, parameters, FIRST_SEED},
    {"gradients", "gradients", "MiB", 2, SOURCE_MEASURED, gradients, FIRST_SEED},
    {"state", "optimizer state", "MiB", 2, SOURCE_MEASURED, state, FIRST_SEED},
    {"activations", "activations", "MiB", 2, SOURCE_MEASURED, activations, FIRST_SEED},
    {"other", "other", "MiB", 2, SOURCE_MEASURED, other, FIRST_SEED},
    {"closed_form", "first three, equal parts", "MiB", 2, SOURCE_CLOSED_FORM, measure_closed_form,
     FIRST_SEED},
};
static const MeasureColumn time_columns[TIME_COLUMNS] = {
    {"time", "measured", "/ full", 3, SOURCE_MEASURED, measure_time_ratio, OVER_SEEDS},
    {"operations", "operations", "/ full", 3, SOURCE_CLOSED_FORM, measure_operations_ratio,
     MEAN_ALONE},
};

/* The first way to train with each M on all of the data; the offloading full update is none. */
static bool is_drawn(const CaseMethod *method) {
    const StudyRow *row = method->row[0];
    return row->fraction >= 1 && strcmp(row->method, "offload") && case_is_plain(method);
}

static Table *add_drawn(Tables *tables, const StudyCase *item, const char *name, int number,
                        const char *what, const MeasureColumn *columns, int count) {
    char network[CASE_NAME], title[160], numbered[48];
    snprintf(numbered, sizeof numbered, "%s_%d", name, number);
    snprintf(title, sizeof title, "%s against the unfrozen part: %.100s", what,
             case_name(item->method->row[0], network));
    Table *table = measure_table(tables, numbered, title, "unfrozen part", columns, count);
    for (int m = 0; m < item->methods; m++) {
        if (!is_drawn(&item->method[m])) continue;
        int submodels = (int)item->method[m].row[0]->submodels;
        table_row(table, submodels == 1 ? "1" : "1/%d", submodels);
        measure_put(table, 0, columns, count, &item->method[m], false);
        if (submodels == 1 && columns == time_columns) table_put(table, 0, 1); /* by definition */
    }
    return table;
}

static void draw_case(Tables *tables, const StudyCase *item, int number) {
    Table *memory = add_drawn(tables, item, "ufp_memory", number, "Peak memory by role",
                              memory_columns, MEMORY_COLUMNS);
    Table *time = add_drawn(tables, item, "ufp_time", number, "Time of an update", time_columns,
                            TIME_COLUMNS);
    memory->figure = FIGURE_STACKED;
    strcpy(memory->axis, "MiB at the peak");
    time->figure = FIGURE_LINES;
    strcpy(time->axis, "an update over a full one");
    table_note(memory,
               "Peaks of each role, which need not come at the same time.  The closed form is of "
               "parameters, gradients and optimizer state, in submodels of equal size.");
    table_note(time,
               "Means over all updates and seeds, each over the full update of the same "
               "seed; operations counted from shapes, nothing cached.");
}

void paper_add_ufp(Tables *tables, const Cases *cases) {
    int drawn = 0;
    for (int c = 0; c < cases->cases && drawn < FIGURES; c++) {
        const StudyCase *item = &cases->item[c];
        int count = 0;
        for (int m = 0; m < item->methods; m++) count += is_drawn(&item->method[m]);
        if (count > 2) draw_case(tables, item, ++drawn);
    }
}
