/* Tables 2, 9, 10 and 11: each published training next to those of ours that are most like it. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "../study/measures.h"
#include "trainings.h"

typedef struct {
    int table;
    bool images; /* of image models; the other tables are of language models */
    const char *name, *title;
} Comparison;

static const Comparison comparisons[] = {
    {2, true, "table2_images", "Table 2, image models: full update and BCD-1/3"},
    {2, false, "table2_language", "Table 2, language models: full update and BCD-1/3"},
    {9, false, "table9", "Table 9: GPT-2 by part of the data and of the parameters"},
    {10, true, "table10", "Table 10: ResNet-14 by part of the data and of the parameters"},
    {11, false, "table11", "Table 11: GPT-2 in one to four submodels"},
};

/* Table 2 counts iterations for language models; all else counts epochs. */
static bool counts_updates(const Comparison *c) { return c->table == 2 && !c->images; }

/* Table 2 prints no memory; the validation loss of ours takes its place. */
static bool prints_memory(const Comparison *c) { return c->table != 2; }

/* ---- which trainings ------------------------------------------------------------------------- */

enum { LETTERS = 10 };

/* The cases of a table: their letters are a, b, ... */
typedef struct {
    const Comparison *comparison;
    int count, left_out;
    const StudyCase *item[LETTERS];
} ComparedCases;

/* Returns the published row that a training is compared with, or NULL when the table has none.
 * *exact: as paper_find has it. */
static const PaperRow *find_row(const Comparison *c, const StudyRow *row, bool *exact) {
    bool fine_tuned = *row->settings.init != 0;
    if (study_is_images(row) != c->images || !strcmp(row->method, "offload") || fine_tuned)
        return NULL;
    return paper_find(c->table, row->model, row->data, c->images, row->optimizer,
                      (int)row->submodels, row->settings.fraction, exact);
}

/* Returns true for trainings that the table is about.  A full update alone, or one of another
 * network, was trained for another comparison. */
static bool is_subject(const Comparison *c, const StudyRow *row) {
    bool exact = false;
    if (!find_row(c, row, &exact)) return false;
    if (c->table == 2) return study_is_bcd3(row) || exact;
    if (c->table == 11) return row->submodels == 2 || row->submodels == 4;
    return row->settings.fraction < 1;
}

static ComparedCases find_cases(const Cases *cases, const Comparison *c) {
    ComparedCases compared = {.comparison = c};
    for (int i = 0; i < cases->cases; i++) {
        const StudyCase *item = &cases->item[i];
        bool found = false;
        for (int m = 0; m < item->methods; m++) found |= is_subject(c, item->method[m].row[0]);
        if (found && compared.count < LETTERS)
            compared.item[compared.count++] = item;
        else
            compared.left_out += found;
    }
    return compared;
}

/* ---- columns --------------------------------------------------------------------------------- */

static double updates(const MeasurePair *pair) { return pair->row->steps_to_converge; }
static double epochs(const MeasurePair *pair) {
    return updates(pair) * pair->row->epochs / (double)pair->row->steps;
}

enum {
    PUBLISHED_DURATION,
    PUBLISHED_SCORE = 2,
    DURATION = 5,
    SCORE = 7,
    PUBLISHED_MEMORY = 9,
    VALID_LOSS = PUBLISHED_MEMORY, /* in tables without memory, the last */
    COLUMNS = 12
};

static const MeasureColumn all_columns[COLUMNS] = {
    {"published_duration", "epochs", "publ.", 0, SOURCE_PUBLISHED, NULL, MEAN_ALONE},
    {"published_multiplier", "B-F", "publ.", 2, SOURCE_RECOMPUTED, NULL, MEAN_ALONE},
    {"published_score", "accuracy", "publ. %", 1, SOURCE_PUBLISHED, NULL, MEAN_ALONE},
    {"published_loss", "loss", "publ.", 4, SOURCE_PUBLISHED, NULL, MEAN_ALONE},
    {"seeds", "seeds", "here", 0, SOURCE_NONE, measure_one, SEED_COUNT},
    {"duration", "epochs", "to level", 2, SOURCE_MEASURED, epochs, OVER_SEEDS},
    {"multiplier", "B-F", "here", 2, SOURCE_MEASURED, measure_multiplier, OVER_SEEDS},
    {"score", "accuracy", "here, %", 1, SOURCE_MEASURED, measure_score, OVER_SEEDS},
    {"train_loss", "training loss", "here", 3, SOURCE_MEASURED, measure_train_loss, OVER_SEEDS},
    {"published_memory", "P+G+S", "publ. MiB", 2, SOURCE_PUBLISHED, NULL, MEAN_ALONE},
    {"memory", "P+G+S", "here MiB", 2, SOURCE_MEASURED, measure_trained, MEAN_ALONE},
    {"closed_form", "equal parts", "here MiB", 2, SOURCE_CLOSED_FORM, measure_closed_form,
     MEAN_ALONE},
};

/* Fills the columns of a table; returns how many there are. */
static int make_columns(MeasureColumn column[COLUMNS], const Comparison *c) {
    memcpy(column, all_columns, sizeof all_columns);
    if (counts_updates(c)) {
        column[PUBLISHED_DURATION].head = column[DURATION].head = "updates";
        column[DURATION].decimals = 0;
        column[DURATION].measure = updates;
    }
    if (!c->images) {
        column[PUBLISHED_SCORE].head = column[SCORE].head = "perplexity";
        column[PUBLISHED_SCORE].unit = "publ.";
        column[SCORE].unit = "here";
        column[PUBLISHED_SCORE].decimals = column[SCORE].decimals = 2;
    }
    if (prints_memory(c)) return COLUMNS;
    column[VALID_LOSS] = (MeasureColumn){"valid_loss",    "valid. loss",      "here",    3,
                                         SOURCE_MEASURED, measure_valid_loss, OVER_SEEDS};
    return c->images ? VALID_LOSS + 1 : VALID_LOSS; /* a perplexity is a validation loss */
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void put_published(Table *table, const Comparison *c, const PaperRow *paper) {
    table_put(table, 0, paper->duration, paper_multiplier(paper), paper_score(paper), paper->loss);
    if (paper->score_kind == SCORE_TEN_PERPLEXITY)
        table_number(table, PUBLISHED_SCORE, paper_score(paper), SOURCE_RECOMPUTED);
    if (prints_memory(c)) table_put(table, PUBLISHED_MEMORY, paper->memory_mib);
}

/* Returns how long full updates took to the level they share with BCD-1/3 on all of the data. */
static Mean full_duration(const Comparison *c, const StudyCase *item) {
    Mean mean = {0};
    const CaseMethod *method = item->method, *end = method + item->methods;
    while (method < end && !study_is_bcd3(method->row[0])) method++;
    for (int s = 0; method < end && s < method->seeds; s++) {
        const StudyRow *row = method->row[s], *full = case_full_update(item, row);
        if (!full) continue;
        double steps = row->steps_to_converge / row->multiplier;
        mean_add(&mean, counts_updates(c) ? steps : steps * full->epochs / (double)full->steps);
    }
    return mean;
}

static void put_ours(Table *table, const Comparison *c, const CaseMethod *method) {
    MeasureColumn column[COLUMNS];
    measure_put(table, column, make_columns(column, c), method, false);
    if (method->row[0]->submodels > 1) return;
    Mean mean = full_duration(c, method->of);
    table_mean(table, DURATION, mean_value(&mean), mean_spread(&mean), SOURCE_MEASURED);
}

/* "ResNet8 SGD, 1/3"; the rows of Tables 9 to 11 have such names already. */
static void put_label(char label[64], const PaperRow *paper) {
    if (paper->table != 2)
        snprintf(label, 64, "%.40s", paper->row);
    else
        snprintf(label, 64, "%.40s %s, %s", paper->row,
                 strcmp(paper->optimizer, "sgd") ? "Adam" : "SGD",
                 paper->submodels == 1 ? "full" : "1/3");
}

/* Adds a published row with our first training of that kind, then a line for each other one.  The
 * label names our network where it is not the published one: "ResNet8 SGD, 1/3 [a: resnet-8x8]". */
static void put_row(Table *table, const ComparedCases *compared, const PaperRow *paper) {
    const Comparison *c = compared->comparison;
    char label[64], name[32], network[CASE_NAME];
    bool exact;
    int lines = 0;
    put_label(label, paper);
    for (int i = 0; i < compared->count; i++)
        for (int m = 0; m < compared->item[i]->methods; m++) {
            const CaseMethod *method = &compared->item[i]->method[m];
            const StudyRow *first = method->row[0];
            if (find_row(c, first, &exact) != paper || !case_is_plain(method)) continue;
            if (lines)
                table_row(table, "  %s %s [%c]", case_network(first, network),
                          study_method(first, name), 'a' + i);
            else if (strcmp(first->model, paper->model))
                table_row(table, "%s [%c: %s]", label, 'a' + i, case_network(first, network));
            else
                table_row(table, "%s [%c]", label, 'a' + i);
            if (!lines++) put_published(table, c, paper);
            put_ours(table, c, method);
        }
    if (lines) return;
    table_row(table, "%s", label);
    put_published(table, c, paper);
}

/* ---- notes ----------------------------------------------------------------------------------- */

/* "0.1", or "0.001 to 0.002" */
typedef struct {
    double min, max;
    char text[48];
} Range;

static void range_add(Range *range, double value) {
    range->min = fmin(range->min, value);
    range->max = fmax(range->max, value);
    snprintf(range->text, sizeof range->text, range->min < range->max ? "%.3g to %.3g" : "%.3g",
             range->min, range->max);
}

/* Says which training has which letter: "[a] resnet8 on cifar10, sgd, ...". */
static void note_case(Table *table, const ComparedCases *compared, int number) {
    const StudyCase *item = compared->item[number];
    const StudyRow *row = item->method[0].row[0];
    Range rates = {.min = INFINITY}, epochs_done = {.min = INFINITY};
    bool all_exact = true, exact = false;
    for (int m = 0; m < item->methods; m++) {
        const StudyRow *first = item->method[m].row[0];
        if (!find_row(compared->comparison, first, &exact) || !case_is_plain(&item->method[m]))
            continue;
        all_exact &= exact;
        range_add(&rates, first->settings.lr);
        range_add(&epochs_done, first->epochs);
    }
    table_note(table, "[%c] %s on %s, %s, batch %" PRId64 ", rate %s, %s epochs, %s in %s%s.",
               'a' + number, row->model, row->data, row->optimizer, row->batch, rates.text,
               epochs_done.text, row->provenance.device, row->provenance.precision,
               all_exact ? "" : ": another training than the published one");
}

static void note_paper(Table *table, const Comparison *c) {
    const struct {
        bool said;
        const char *note;
    } notes[] = {
        {true,
         "The paper gives no rule for \"converged\", and does not say whether \"loss\" is of "
         "training or validation, so that comparisons with ours are rough."},
        {c->table == 2 && c->images,
         "The paper names CIFAR-10 for its ResNets; ResNet101's 70.9 % is most likely CIFAR-100 "
         "(inferred)."},
        {c->table == 9 || c->table == 11,
         "The GPT cells under \"Acc\" in Tables 9 and 11 are 10 x perplexity, truncated (10 "
         "exp(1.9407) = 69.6), in all their rows: higher is worse. They are shown here as "
         "perplexity."},
        {prints_memory(c),
         "The published \"Mem\" of Tables 9 to 11 is the closed form W (1 + k/M), W = 4 bytes per "
         "parameter, k = 2 for SGD with momentum and 3 for Adam; activations are not in it."},
        {!c->images,
         "No usual configuration of GPT-2 has the memory printed for 0.15B; 16 layers of width 768 "
         "stand in for it."},
        {!counts_updates(c),
         "One published epoch is one pass over the data, whichever submodel is active."}};
    for (size_t n = 0; n < sizeof notes / sizeof *notes; n++)
        if (notes[n].said) table_note(table, "%s", notes[n].note);
}

static void add_comparison(Tables *tables, const Cases *cases, const Comparison *c) {
    MeasureColumn column[COLUMNS];
    ComparedCases compared = find_cases(cases, c);
    if (!compared.count) return;
    Table *table =
        measure_table(tables, c->name, c->title, "training", column, make_columns(column, c));
    for (const PaperRow *p = paper_rows(c->table); p->table; p++)
        if ((p->score_kind == SCORE_ACCURACY) == c->images) put_row(table, &compared, p);
    for (int i = 0; i < compared.count; i++) note_case(table, &compared, i);
    if (compared.left_out)
        table_note(table, "%d more networks or settings are not shown here.", compared.left_out);
    table_note(
        table,
        "To level: until the smoothed training loss was at the lowest value that both BCD and the "
        "full update of the same seed reached; for full updates, the one shared with BCD-1/3.  "
        "Scores and losses here are those at the end of the training.");
    note_paper(table, c);
}

void paper_add_comparisons(Tables *tables, const Cases *cases) {
    for (size_t c = 0; c < sizeof comparisons / sizeof *comparisons; c++)
        add_comparison(tables, cases, &comparisons[c]);
}
