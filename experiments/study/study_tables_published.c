/* Tables 2, 9, 10 and 11: each published training beside those here that come nearest to it. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "study_tables_parts.h"

enum {
    THEIR_DURATION,
    THEIR_MULTIPLIER,
    THEIR_SCORE,
    THEIR_LOSS,
    SEEDS,
    DURATION,
    MULTIPLIER,
    SCORE,
    TRAIN,
    COMMON,
    VALID = COMMON,        /* image models of Table 2; the perplexity of language models says it */
    THEIR_MEMORY = COMMON, /* Tables 9 to 11 */
    MEMORY,
    CLOSED,
    COLUMNS
};

typedef struct {
    int table;
    bool images, iterations;
    const char *name, *title;
} Published;

static const Published published[] = {
    {2, true, false, "table2_images", "Table 2, image models: full update and BCD-1/3"},
    {2, false, true, "table2_language", "Table 2, language models: full update and BCD-1/3"},
    {9, false, false, "table9", "Table 9: GPT-2 by part of the data and of the parameters"},
    {10, true, false, "table10", "Table 10: ResNet-14 by part of the data and of the parameters"},
    {11, false, false, "table11", "Table 11: GPT-2 in one to four submodels"},
};

/* ---- which trainings -------------------------------------------------------------------------
 */

enum { LETTERS = 10 };

/* The cases that have a place in a table: their letters are a, b, ... */
typedef struct {
    const Cases *cases;
    const Published *published;
    int count, left_out;
    const Case *item[LETTERS];
} Places;

/* The published row that a method stands beside; NULL: none in this table. */
static const PaperRow *find(const Places *places, const StudyRow *row, bool *exact) {
    if (study_is_images(row) != places->published->images || !strcmp(row->method, "offload") ||
        *row->settings.init) /* fine-tuned */
        return NULL;
    return paper_find(places->published->table, row->model, row->data, study_is_images(row),
                      row->optimizer, (int)row->submodels, row->fraction, exact);
}

/* What a table is about: less data (9, 10), other M than 3 (11), BCD-1/3 at all (2); a full update
 * alone, of another network, is there for another comparison. */
static bool is_about(int table, const StudyRow *row, bool exact) {
    if (table == 2) return study_is_third(row) || exact;
    if (table == 11) return row->submodels == 2 || row->submodels == 4;
    return row->fraction < 1;
}

static bool has_place(const Places *places, const Case *item) {
    for (int m = 0; m < item->methods; m++) {
        const StudyRow *row = case_first(places->cases, &item->method[m]);
        bool exact = false;
        if (find(places, row, &exact) && is_about(places->published->table, row, exact))
            return true;
    }
    return false;
}

static Places find_places(const Cases *cases, const Published *table) {
    Places places = {.cases = cases, .published = table};
    for (int c = 0; c < cases->cases; c++) {
        if (!has_place(&places, &cases->item[c])) continue;
        if (places.count < LETTERS)
            places.item[places.count++] = &cases->item[c];
        else
            places.left_out++;
    }
    return places;
}

/* ---- cells -----------------------------------------------------------------------------------
 */

static void put_published(Table *table, const PaperRow *paper) {
    bool ten = paper->score_kind == SCORE_TEN_PERPLEXITY;
    table_number(table, THEIR_DURATION, paper->duration, SOURCE_PUBLISHED);
    table_number(table, THEIR_MULTIPLIER, paper_multiplier(paper), SOURCE_RECOMPUTED);
    table_number(table, THEIR_SCORE, paper_score(paper),
                 ten ? SOURCE_RECOMPUTED : SOURCE_PUBLISHED);
    table_number(table, THEIR_LOSS, paper->loss, SOURCE_PUBLISHED);
    if (paper->table != 2) table_number(table, THEIR_MEMORY, paper->memory_mib, SOURCE_PUBLISHED);
}

/* Updates of a training to the level of its pair, or epochs. */
static double duration_of(const StudyRow *row, double steps, bool iterations) {
    return iterations ? steps : steps * row->epochs / (double)row->steps;
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
            if (full)
                mean_add(&mean, duration_of(full, row->steps_to_converge / row->multiplier,
                                            places->published->iterations));
        }
        break;
    }
    return mean;
}

static void put_trainings(Table *table, const Places *places, const Case *item,
                          const CaseMethod *method) {
    const StudyRow *first = case_first(places->cases, method);
    Mean duration = {0}, multiplier = {0}, score = {0}, train = {0}, valid = {0}, memory = {0};
    for (int s = 0; s < method->seeds; s++) {
        const StudyRow *row = &places->cases->study->row[method->row[s]];
        mean_add(&duration,
                 duration_of(row, row->steps_to_converge, places->published->iterations));
        mean_add(&multiplier, row->submodels > 1 ? row->multiplier : NAN);
        mean_add(&score, study_score(row));
        mean_add(&train, row->train_loss);
        mean_add(&valid, row->valid_loss);
        mean_add(&memory, study_trained_bytes(row) / MIB);
    }
    if (first->submodels == 1) duration = full_duration(places, item);
    table_number(table, SEEDS, method->seeds, SOURCE_NONE);
    study_put_mean(table, DURATION, &duration, SOURCE_MEASURED);
    study_put_mean(table, MULTIPLIER, &multiplier, SOURCE_MEASURED);
    study_put_mean(table, SCORE, &score, SOURCE_MEASURED);
    study_put_mean(table, TRAIN, &train, SOURCE_MEASURED);
    if (places->published->table != 2) {
        table_number(table, MEMORY, mean_value(&memory), SOURCE_MEASURED);
        table_number(table, CLOSED, first->closed_form / MIB, SOURCE_CLOSED_FORM);
    } else if (places->published->images) {
        study_put_mean(table, VALID, &valid, SOURCE_MEASURED);
    }
}

/* ---- rows ------------------------------------------------------------------------------------
 */

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
            if (find(places, case_first(places->cases, method), &exact) != paper ||
                !case_is_plain(places->cases, places->item[i], method))
                continue;
            const StudyRow *first = case_first(places->cases, method);
            if (lines++)
                table_row(table, "  %s %s [%c]", case_network(first, network),
                          study_method(first, name), 'a' + i);
            else
                table_row(table, "%s [%c]", label, 'a' + i);
            if (lines == 1) put_published(table, paper);
            put_trainings(table, places, places->item[i], method);
        }
    if (lines) return;
    table_row(table, "%s", label);
    put_published(table, paper);
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
    char epochs[48];
    snprintf(epochs, sizeof epochs, least < most ? "%.3g to %.3g" : "%.3g", least, most);
    table_note(table, "[%c] %s on %s, %s, batch %" PRId64 ", rate %g, %s epochs, %s in %s%s.",
               'a' + number, row->model, row->data, row->optimizer, row->batch, row->lr, epochs,
               row->device, row->precision,
               all_exact ? "" : ": another training than the published one");
}

static void put_notes(Table *table, const Places *places) {
    int number = places->published->table;
    for (int i = 0; i < places->count; i++) note_case(table, places, i);
    if (places->left_out)
        table_note(table, "%d more networks or settings are not shown here.", places->left_out);
    table_note(
        table,
        "To the level: until the smoothed training loss first was at the lowest that BCD and "
        "the full update of the same seed both reached; of a full update, that beside "
        "BCD-1/3.  Scores and losses here are of the end of the training.");
    table_note(table, "%s", paper_notes[PAPER_NOTE_CONVERGED]);
    if (number == 9 || number == 11) table_note(table, "%s", paper_notes[PAPER_NOTE_ACC]);
    if (number != 2) table_note(table, "%s", paper_notes[PAPER_NOTE_MEMORY]);
    if (number == 2 && places->published->images)
        table_note(table, "%s", paper_notes[PAPER_NOTE_CIFAR]);
    if (!places->published->images) table_note(table, "%s", paper_notes[PAPER_NOTE_GPT2]);
    if (!places->published->iterations) table_note(table, "%s", paper_notes[PAPER_NOTE_EPOCH]);
}

static int columns_of(const Published *published_table, TableColumn column[COLUMNS]) {
    static const TableColumn columns[COLUMNS] = {
        [THEIR_DURATION] = {"published_duration", "epochs", "publ.", COLUMN_NUMBER, 0, SOURCE_NONE},
        [THEIR_MULTIPLIER] = {"published_multiplier", "B-F", "publ.", COLUMN_NUMBER, 2,
                              SOURCE_NONE},
        [THEIR_SCORE] = {"published_score", "accuracy", "publ. %", COLUMN_NUMBER, 1, SOURCE_NONE},
        [THEIR_LOSS] = {"published_loss", "loss", "publ.", COLUMN_NUMBER, 4, SOURCE_NONE},
        [SEEDS] = {"seeds", "seeds", "here", COLUMN_NUMBER, 0, SOURCE_NONE},
        [DURATION] = {"duration", "epochs", "to level", COLUMN_NUMBER, 2, SOURCE_NONE},
        [MULTIPLIER] = {"multiplier", "B-F", "here", COLUMN_NUMBER, 2, SOURCE_NONE},
        [SCORE] = {"score", "accuracy", "here, %", COLUMN_NUMBER, 1, SOURCE_NONE},
        [TRAIN] = {"train_loss", "training loss", "here", COLUMN_NUMBER, 3, SOURCE_NONE},
        [THEIR_MEMORY] = {"published_memory", "P+G+S", "publ. MiB", COLUMN_NUMBER, 2, SOURCE_NONE},
        [MEMORY] = {"memory", "P+G+S", "here MiB", COLUMN_NUMBER, 2, SOURCE_NONE},
        [CLOSED] = {"closed_form", "equal parts", "here MiB", COLUMN_NUMBER, 2, SOURCE_NONE},
    };
    static const TableColumn valid = {"valid_loss", "valid. loss", "here", COLUMN_NUMBER, 3,
                                      SOURCE_NONE};
    memcpy(column, columns, sizeof columns);
    if (published_table->iterations) {
        strcpy(column[THEIR_DURATION].head, "updates");
        strcpy(column[DURATION].head, "updates");
        column[DURATION].decimals = 0;
    }
    if (!published_table->images) {
        strcpy(column[THEIR_SCORE].head, "perplexity");
        strcpy(column[THEIR_SCORE].unit, "publ.");
        strcpy(column[SCORE].head, "perplexity");
        strcpy(column[SCORE].unit, "here");
        column[THEIR_SCORE].decimals = column[SCORE].decimals = 2;
    }
    if (published_table->table != 2) return COLUMNS;
    column[VALID] = valid;
    return published_table->images ? VALID + 1 : COMMON;
}

int study_add_published(Tables *tables, const Cases *cases) {
    for (size_t t = 0; t < sizeof published / sizeof *published; t++) {
        TableColumn column[COLUMNS];
        Places places = find_places(cases, &published[t]);
        if (!places.count) continue;
        int columns = columns_of(&published[t], column);
        Table *table =
            tables_add(tables, published[t].name, published[t].title, "training", column, columns);
        if (!table) return -1;
        for (const PaperRow *p = paper_rows; p < paper_rows + paper_row_count; p++)
            if (p->table == published[t].table &&
                (p->score_kind == SCORE_ACCURACY) == published[t].images)
                put_row(table, &places, p);
        put_notes(table, &places);
    }
    return 0;
}
