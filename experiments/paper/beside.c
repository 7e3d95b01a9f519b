/* Each published training of a table beside those here that come nearest to it. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "../study/measures.h"
#include "trainings.h"

/* ---- which trainings ------------------------------------------------------------------------- */

enum { LETTERS = 10 };

/* The cases that have a place in a table: their letters are a, b, ... */
typedef struct {
    const Cases *cases;
    const PaperTable *table;
    int count, left_out;
    const Case *item[LETTERS];
} Places;

/* The published row that a method stands beside; NULL: none in this table. */
static const PaperRow *find(const Places *places, const StudyRow *row, bool *exact) {
    if (study_is_images(row) != places->table->images || !strcmp(row->method, "offload") ||
        *row->settings.init) /* fine-tuned */
        return NULL;
    return paper_find(places->table->table, row->model, row->data, study_is_images(row),
                      row->optimizer, (int)row->submodels, row->fraction, exact);
}

static bool has_place(const Places *places, const Case *item) {
    for (int m = 0; m < item->methods; m++) {
        const StudyRow *row = case_first(places->cases, &item->method[m]);
        bool exact = false;
        if (find(places, row, &exact) && places->table->is_about(row, exact)) return true;
    }
    return false;
}

static Places find_places(const Cases *cases, const PaperTable *table) {
    Places places = {.cases = cases, .table = table};
    for (int c = 0; c < cases->cases; c++) {
        if (!has_place(&places, &cases->item[c])) continue;
        if (places.count < LETTERS)
            places.item[places.count++] = &cases->item[c];
        else
            places.left_out++;
    }
    return places;
}

/* ---- cells ----------------------------------------------------------------------------------- */

static double updates(const Pair *pair) { return pair->row->steps_to_converge; }
static double epochs(const Pair *pair) {
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
static Mean full_duration(const Places *places, const Case *item) {
    Mean mean = {0};
    for (int m = 0; m < item->methods; m++) {
        const CaseMethod *method = &item->method[m];
        if (!study_is_third(case_first(places->cases, method))) continue;
        for (int s = 0; s < method->seeds; s++) {
            const StudyRow *row = &places->cases->study->row[method->row[s]];
            const StudyRow *full = case_partner(places->cases, item, row);
            if (!full) continue;
            double steps = row->steps_to_converge / row->multiplier;
            mean_add(&mean, places->table->iterations ? steps
                                                      : steps * full->epochs / (double)full->steps);
        }
        break;
    }
    return mean;
}

static void put_trainings(Table *table, const Places *places, const Case *item,
                          const CaseMethod *method) {
    MeasureColumn column[COLUMNS];
    int count = columns_of(column, places->table);
    measure_put(table, THEIRS, column + THEIRS, VALID - THEIRS, places->cases, item, method, false);
    int rest = places->table->memory ? MEMORY : VALID;
    measure_put(table, rest, column + rest, count - rest, places->cases, item, method, false);
    if (case_first(places->cases, method)->submodels > 1) return;
    Mean mean = full_duration(places, item);
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
static void put_row(Table *table, const Places *places, const PaperRow *paper) {
    char label[64], name[32], network[CASE_NAME];
    bool exact;
    int lines = 0;
    put_label(label, paper);
    for (int i = 0; i < places->count; i++)
        for (int m = 0; m < places->item[i]->methods; m++) {
            const CaseMethod *method = &places->item[i]->method[m];
            const StudyRow *first = case_first(places->cases, method);
            if (find(places, first, &exact) != paper ||
                !case_is_plain(places->cases, places->item[i], method))
                continue;
            if (lines)
                table_row(table, "  %s %s [%c]", case_network(first, network),
                          study_method(first, name), 'a' + i);
            else
                table_row(table, "%s [%c]", label, 'a' + i);
            if (!lines++) put_published(table, places->table, paper);
            put_trainings(table, places, places->item[i], method);
        }
    if (lines) return;
    table_row(table, "%s", label);
    put_published(table, places->table, paper);
}

/* Which network stands where: "[a] resnet8 on cifar10, sgd, ...". */
static void note_case(Table *table, const Places *places, int number) {
    const Case *item = places->item[number];
    const StudyRow *row = case_first(places->cases, &item->method[0]);
    double least = INFINITY, most = 0;
    bool all_exact = true, exact = false;
    for (int m = 0; m < item->methods; m++) {
        const StudyRow *first = case_first(places->cases, &item->method[m]);
        if (!find(places, first, &exact) || !case_is_plain(places->cases, item, &item->method[m]))
            continue;
        all_exact &= exact;
        least = fmin(least, first->epochs);
        most = fmax(most, first->epochs);
    }
    char duration[48];
    snprintf(duration, sizeof duration, least < most ? "%.3g to %.3g" : "%.3g", least, most);
    table_note(table, "[%c] %s on %s, %s, batch %" PRId64 ", rate %g, %s epochs, %s in %s%s.",
               'a' + number, row->model, row->data, row->optimizer, row->batch, row->lr, duration,
               row->device, row->precision,
               all_exact ? "" : ": another training than the published one");
}

int paper_add_beside(Tables *tables, const Cases *cases, const PaperTable *of) {
    MeasureColumn column[COLUMNS];
    Places places = find_places(cases, of);
    if (!places.count) return 0;
    Table *table =
        measure_table(tables, of->name, of->title, "training", column, columns_of(column, of));
    if (!table) return -1;
    for (const PaperRow *p = paper_rows(of->table); p->table; p++)
        if ((p->score_kind == SCORE_ACCURACY) == of->images) put_row(table, &places, p);
    for (int i = 0; i < places.count; i++) note_case(table, &places, i);
    if (places.left_out)
        table_note(table, "%d more networks or settings are not shown here.", places.left_out);
    table_note(
        table,
        "To the level: until the smoothed training loss first was at the lowest that BCD and "
        "the full update of the same seed both reached; of a full update, that beside "
        "BCD-1/3.  Scores and losses here are of the end of the training.");
    for (const PaperNote *n = of->note; *n != PAPER_NOTES; n++)
        table_note(table, "%s", paper_notes[*n]);
    return 0;
}
