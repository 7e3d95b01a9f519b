/* Each published training of a table beside those here that come nearest to it. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "../study/measures.h"
#include "trainings.h"

/* ---- which trainings ------------------------------------------------------------------------- */

enum { LETTERS = 10 };

/* The cases that a table shows: their letters are a, b, ... */
typedef struct {
    const PaperTable *table;
    int count, left_out;
    const StudyCase *item[LETTERS];
} PaperCases;

/* The published row that a training is shown with; NULL: none in this table. */
static const PaperRow *find(const PaperTable *table, const StudyRow *row, bool *exact) {
    if (study_is_images(row) != table->images || !strcmp(row->method, "offload") ||
        *row->settings.init) /* fine-tuned */
        return NULL;
    return paper_find(table->table, row->model, row->data, study_is_images(row), row->optimizer,
                      (int)row->submodels, row->fraction, exact);
}

static bool is_shown(const PaperTable *table, const StudyCase *item) {
    for (int m = 0; m < item->methods; m++) {
        const StudyRow *row = item->method[m].row[0];
        bool exact = false;
        if (find(table, row, &exact) && table->is_about(row, exact)) return true;
    }
    return false;
}

static PaperCases find_cases(const Cases *cases, const PaperTable *table) {
    PaperCases shown = {.table = table};
    for (int c = 0; c < cases->cases; c++) {
        if (!is_shown(table, &cases->item[c])) continue;
        if (shown.count < LETTERS)
            shown.item[shown.count++] = &cases->item[c];
        else
            shown.left_out++;
    }
    return shown;
}

/* ---- cells ----------------------------------------------------------------------------------- */

static double updates(const MeasurePair *pair) { return pair->row->steps_to_converge; }
static double epochs(const MeasurePair *pair) {
    return updates(pair) * pair->row->epochs / (double)pair->row->steps;
}

enum {
    THEIR_DURATION,
    THEIR_SCORE = 2,
    THEIRS = 4,
    DURATION,
    SCORE = 7,
    VALID = 9, /* or, in tables that print memory: */
    THEIR_MEMORY = VALID,
    MEMORY,
    COLUMNS = 12
};

static const MeasureColumn all_columns[COLUMNS] = {
    {"published_duration", "epochs", "publ.", 0, SOURCE_PUBLISHED, NULL, FIRST_SEED},
    {"published_multiplier", "B-F", "publ.", 2, SOURCE_RECOMPUTED, NULL, FIRST_SEED},
    {"published_score", "accuracy", "publ. %", 1, SOURCE_PUBLISHED, NULL, FIRST_SEED},
    {"published_loss", "loss", "publ.", 4, SOURCE_PUBLISHED, NULL, FIRST_SEED},
    {"seeds", "seeds", "here", 0, SOURCE_NONE, measure_one, SEED_COUNT},
    {"duration", "epochs", "to level", 2, SOURCE_MEASURED, epochs, OVER_SEEDS},
    {"multiplier", "B-F", "here", 2, SOURCE_MEASURED, measure_multiplier, OVER_SEEDS},
    {"score", "accuracy", "here, %", 1, SOURCE_MEASURED, measure_score, OVER_SEEDS},
    {"train_loss", "training loss", "here", 3, SOURCE_MEASURED, measure_train_loss, OVER_SEEDS},
    {"published_memory", "P+G+S", "publ. MiB", 2, SOURCE_PUBLISHED, NULL, FIRST_SEED},
    {"memory", "P+G+S", "here MiB", 2, SOURCE_MEASURED, measure_trained, MEAN_ALONE},
    {"closed_form", "equal parts", "here MiB", 2, SOURCE_CLOSED_FORM, measure_closed_form,
     FIRST_SEED},
};

/* Those of a table; returns how many. */
static int columns_of(MeasureColumn column[COLUMNS], const PaperTable *table) {
    memcpy(column, all_columns, sizeof all_columns);
    if (table->iterations) {
        column[THEIR_DURATION].head = column[DURATION].head = "updates";
        column[DURATION].decimals = 0;
        column[DURATION].measure = updates;
    }
    if (!table->images) {
        column[THEIR_SCORE].head = column[SCORE].head = "perplexity";
        column[THEIR_SCORE].unit = "publ.";
        column[SCORE].unit = "here";
        column[THEIR_SCORE].decimals = column[SCORE].decimals = 2;
    }
    if (table->memory) return COLUMNS;
    column[VALID] = (MeasureColumn){"valid_loss",    "valid. loss",      "here",    3,
                                    SOURCE_MEASURED, measure_valid_loss, OVER_SEEDS};
    return table->images ? VALID + 1 : VALID; /* perplexities say the validation loss */
}

static void put_published(Table *table, const PaperTable *of, const PaperRow *paper) {
    table_put(table, 0, paper->duration, paper_multiplier(paper), paper_score(paper), paper->loss);
    if (paper->score_kind == SCORE_TEN_PERPLEXITY)
        table_number(table, THEIR_SCORE, paper_score(paper), SOURCE_RECOMPUTED);
    if (of->memory) table_put(table, THEIR_MEMORY, paper->memory_mib);
}

/* Of a full update: to the level that it shares with BCD-1/3 on all of the data. */
static Mean full_duration(const PaperTable *table, const StudyCase *item) {
    Mean mean = {0};
    const CaseMethod *method = item->method, *end = method + item->methods;
    while (method < end && !study_is_third(method->row[0])) method++;
    for (int s = 0; method < end && s < method->seeds; s++) {
        const StudyRow *row = method->row[s], *full = case_partner(item, row);
        if (!full) continue;
        double steps = row->steps_to_converge / row->multiplier;
        mean_add(&mean, table->iterations ? steps : steps * full->epochs / (double)full->steps);
    }
    return mean;
}

static void put_trainings(Table *table, const PaperTable *of, const CaseMethod *method) {
    MeasureColumn column[COLUMNS];
    int count = columns_of(column, of), rest = of->memory ? MEMORY : VALID;
    measure_put(table, THEIRS, column + THEIRS, VALID - THEIRS, method, false);
    measure_put(table, rest, column + rest, count - rest, method, false);
    if (method->row[0]->submodels > 1) return;
    Mean mean = full_duration(of, method->of);
    table_mean(table, DURATION, mean_value(&mean), mean_spread(&mean), SOURCE_MEASURED);
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* "ResNet8 SGD, 1/3"; Tables 9 to 11 name their rows by these themselves. */
static void put_label(char label[64], const PaperRow *paper) {
    if (paper->table != 2)
        snprintf(label, 64, "%.40s", paper->row);
    else
        snprintf(label, 64, "%.40s %s, %s", paper->row,
                 strcmp(paper->optimizer, "sgd") ? "Adam" : "SGD",
                 paper->submodels == 1 ? "full" : "1/3");
}

/* The published row, with the first training that belongs there, then one line for each other. */
static void put_row(Table *table, const PaperCases *shown, const PaperRow *paper) {
    char label[64], name[32], network[CASE_NAME];
    bool exact;
    int lines = 0;
    put_label(label, paper);
    for (int i = 0; i < shown->count; i++)
        for (int m = 0; m < shown->item[i]->methods; m++) {
            const CaseMethod *method = &shown->item[i]->method[m];
            const StudyRow *first = method->row[0];
            if (find(shown->table, first, &exact) != paper || !case_is_plain(method)) continue;
            if (lines)
                table_row(table, "  %s %s [%c]", case_network(first, network),
                          study_method(first, name), 'a' + i);
            else
                table_row(table, "%s [%c]", label, 'a' + i);
            if (!lines++) put_published(table, shown->table, paper);
            put_trainings(table, shown->table, method);
        }
    if (lines) return;
    table_row(table, "%s", label);
    put_published(table, shown->table, paper);
}

/* Which network has which letter: "[a] resnet8 on cifar10, sgd, ...". */
static void note_case(Table *table, const PaperCases *shown, int number) {
    const StudyCase *item = shown->item[number];
    const StudyRow *row = item->method[0].row[0];
    double min = INFINITY, max = 0;
    bool all_exact = true, exact = false;
    for (int m = 0; m < item->methods; m++) {
        const StudyRow *first = item->method[m].row[0];
        if (!find(shown->table, first, &exact) || !case_is_plain(&item->method[m])) continue;
        all_exact &= exact;
        min = fmin(min, first->epochs);
        max = fmax(max, first->epochs);
    }
    char duration[48];
    snprintf(duration, sizeof duration, min < max ? "%.3g to %.3g" : "%.3g", min, max);
    table_note(table, "[%c] %s on %s, %s, batch %" PRId64 ", rate %g, %s epochs, %s in %s%s.",
               'a' + number, row->model, row->data, row->optimizer, row->batch, row->lr, duration,
               row->device, row->precision,
               all_exact ? "" : ": another training than the published one");
}

static void add(Tables *tables, const Cases *cases, const PaperTable *of) {
    MeasureColumn column[COLUMNS];
    PaperCases shown = find_cases(cases, of);
    if (!shown.count) return;
    Table *table =
        measure_table(tables, of->name, of->title, "training", column, columns_of(column, of));
    for (const PaperRow *p = paper_rows(of->table); p->table; p++)
        if ((p->score_kind == SCORE_ACCURACY) == of->images) put_row(table, &shown, p);
    for (int i = 0; i < shown.count; i++) note_case(table, &shown, i);
    if (shown.left_out)
        table_note(table, "%d more networks or settings are not shown here.", shown.left_out);
    table_note(
        table,
        "To the level: until the smoothed training loss first was at the lowest that BCD and "
        "the full update of the same seed both reached; of a full update, that beside "
        "BCD-1/3.  Scores and losses here are of the end of the training.");
    for (const PaperNote *n = of->note; *n != PAPER_NOTES; n++)
        table_note(table, "%s", paper_notes[*n]);
}

void paper_add_beside(Tables *tables, const Cases *cases, const PaperTable *shown) {
    for (; shown->name; shown++) add(tables, cases, shown);
}
