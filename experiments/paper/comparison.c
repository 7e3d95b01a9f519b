/* Tables 2, 9, 10 and 11: below each published training those of ours that are most like it; and
 * the mean B-F multipliers. */
#include <math.h>
#include <string.h>

#include "../study/converge.h"
#include "trainings.h"

/* ---- the published rows ---------------------------------------------------------------------- */

const PaperRow *paper_rows(int table) {
    static const PaperRow *const rows[] = {
        [2] = paper_table2, [9] = paper_table9, [10] = paper_table10, [11] = paper_table11};
    return rows[table];
}

double paper_score(const PaperRow *row) {
    return row->score_kind == SCORE_TEN_PERPLEXITY ? row->score / 10 : row->score;
}

const PaperRow *paper_full(const PaperRow *row) {
    for (const PaperRow *p = paper_rows(row->table); p->table; p++)
        if (p->submodels == 1 && p->fraction >= 1 && !strcmp(p->model, row->model) &&
            !strcmp(p->data, row->data) && !strcmp(p->optimizer, row->optimizer))
            return p;
    return NULL;
}

double paper_multiplier(const PaperRow *row) {
    const PaperRow *full = paper_full(row);
    return full && row->submodels > 1 ? row->duration / full->duration : NAN;
}

static bool is_images(const PaperRow *row) { return row->score_kind == SCORE_ACCURACY; }

double paper_mean_multiplier(const char *optimizer, int images) {
    double sum = 0;
    int count = 0;
    for (const PaperRow *p = paper_table2; p->table; p++) {
        if (p->submodels == 1 || strcmp(p->optimizer, optimizer)) continue;
        if (images >= 0 && is_images(p) != (images == 1)) continue;
        sum += paper_multiplier(p);
        count++;
    }
    return count ? sum / count : NAN;
}

const PaperRow *paper_find(int table, const char *model, const char *data, bool images,
                           const char *optimizer, int submodels, double fraction) {
    const char *kind = strcmp(optimizer, "adamw") ? optimizer : "adam";
    const PaperRow *best = NULL;
    int best_likeness = 0;
    for (const PaperRow *p = paper_rows(table); p->table; p++) {
        if (is_images(p) != images || p->submodels != submodels ||
            fabs(p->fraction - fraction) > 1e-9 || strcmp(p->optimizer, kind))
            continue;
        int likeness = 1 + 4 * !strcmp(p->model, model) + 2 * !strcmp(p->data, data);
        if (likeness <= best_likeness) continue; /* of equals, the first is taken */
        best = p;
        best_likeness = likeness;
    }
    return best;
}

/* ---- the tables ------------------------------------------------------------------------------ */

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

/* ---- which trainings ------------------------------------------------------------------------- */

/* Returns the published row that a training is compared with, or NULL when the table has none. */
static const PaperRow *find_row(const Comparison *c, const StudyRow *row) {
    bool fine_tuned = *row->settings.init != 0;
    if (study_is_images(row) != c->images || !strcmp(row->method, "offload") || fine_tuned)
        return NULL;
    return paper_find(c->table, row->model, row->data, c->images, row->optimizer,
                      (int)row->submodels, row->settings.fraction);
}

/* Returns true for trainings that the table is about.  A full update alone, or one of another
 * network, was trained for another comparison. */
static bool is_subject(const Comparison *c, const StudyRow *row) {
    if (!find_row(c, row)) return false;
    if (c->table == 2) return study_is_bcd3(row);
    if (c->table == 11) return row->submodels == 2 || row->submodels == 4;
    return row->settings.fraction < 1;
}

static bool has_subject(const Comparison *c, const StudyCase *item) {
    for (int m = 0; m < item->methods; m++)
        if (is_subject(c, item->method[m].row[0])) return true;
    return false;
}

/* ---- columns --------------------------------------------------------------------------------- */

static double rate(const MeasurePair *pair) { return pair->row->settings.optimizer.lr; }
/* To two digits after the point; published ones are whole numbers. */
static double trained(const MeasurePair *pair) { return round(100 * pair->row->epochs) / 100; }
static double level_epochs(const MeasurePair *pair) { return pair->row->epochs_to_converge; }
static double level_updates(const MeasurePair *pair) { return pair->row->steps_to_converge; }

/* The last evaluations of a short training are far apart, so that their mean says little. */
static double score(const MeasurePair *pair) {
    bool is_short = pair->row->evaluation_rows < 2 * PLATEAU_MEAN;
    return is_short ? measure_score(pair) : pair->row->end_score;
}

enum { TRAINED = 2, TO_LEVEL, MULTIPLIER, SCORE, LOSS, MEMORY, VALID_LOSS = 9, COLUMNS };

static const MeasureColumn all_columns[COLUMNS] = {
    {"seeds", "seeds", "", 0, SOURCE_NONE, measure_one, SEED_COUNT},
    {"rate", "rate", "", DECIMALS_FREE, SOURCE_NONE, rate, MEAN_ALONE},
    {"trained", "trained", "epochs", DECIMALS_FREE, SOURCE_NONE, trained, MEAN_ALONE},
    {"to_level", "to level", "epochs", 2, SOURCE_MEASURED, level_epochs, OVER_SEEDS},
    {"multiplier", "B-F", "", 2, SOURCE_MEASURED, measure_multiplier, OVER_SEEDS},
    {"score", "accuracy", "%", 1, SOURCE_MEASURED, score, OVER_SEEDS},
    {"train_loss", "loss", "training", 4, SOURCE_MEASURED, measure_train_loss, OVER_SEEDS},
    {"memory", "P+G+S", "MiB", 2, SOURCE_MEASURED, measure_trained, MEAN_ALONE},
    {"closed_form", "equal parts", "MiB", 2, SOURCE_CLOSED_FORM, measure_closed_form, MEAN_ALONE},
    {"valid_loss", "loss", "validation", 4, SOURCE_MEASURED, measure_valid_loss, OVER_SEEDS},
};

static void make_columns(MeasureColumn column[COLUMNS], const Comparison *c) {
    memcpy(column, all_columns, sizeof all_columns);
    if (c->images) return;
    column[SCORE].head = "perplexity";
    column[SCORE].unit = "";
    column[SCORE].decimals = 2;
    if (c->table == 2) { /* which counts iterations here, and epochs of images */
        column[TRAINED].unit = column[TO_LEVEL].unit = "updates";
        column[TRAINED].measure = measure_steps;
        column[TO_LEVEL].measure = level_updates;
        column[TO_LEVEL].decimals = 0;
    }
    column[VALID_LOSS].name = NULL; /* the end: a perplexity is a validation loss */
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* "ResNet8 SGD, 1/3"; the rows of Tables 9 to 11 have such names already. */
static void put_published(Table *table, const PaperRow *paper) {
    if (paper->table == 2)
        table_row(table, "%s %s, %s", paper->row, strcmp(paper->optimizer, "sgd") ? "Adam" : "SGD",
                  paper->submodels == 1 ? "full" : "1/3");
    else
        table_row(table, "%s", paper->row);
    bool corrected = paper->score_kind == SCORE_TEN_PERPLEXITY;
    table_number(table, TRAINED, paper->duration, SOURCE_PUBLISHED);
    table_number(table, MULTIPLIER, paper_multiplier(paper), SOURCE_RECOMPUTED);
    table_number(table, SCORE, paper_score(paper),
                 corrected ? SOURCE_RECOMPUTED : SOURCE_PUBLISHED);
    table_number(table, LOSS, paper->loss, SOURCE_PUBLISHED);
    table_number(table, MEMORY, paper->memory_mib, SOURCE_PUBLISHED);
}

/* ---- notes ----------------------------------------------------------------------------------- */

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
        {c->table != 2,
         "The published \"Mem\" of Tables 9 to 11 is the closed form W (1 + (1 + k)/M), W = 4 "
         "bytes per parameter, k = 1 for SGD with momentum and 2 for Adam; activations are not in "
         "it."},
        {!c->images,
         "No usual configuration of GPT-2 has the memory printed for 0.15B; 16 layers of width 768 "
         "stand in for it."},
        {c->table != 2 || c->images,
         "One published epoch is one pass over the data, whichever submodel is active."}};
    for (size_t n = 0; n < sizeof notes / sizeof *notes; n++)
        if (notes[n].said) table_note(table, "%s", notes[n].note);
}

static void add_comparison(Tables *tables, const Cases *cases, const Comparison *c) {
    MeasureTable measures = {.name = c->name, .title = c->title};
    bool found = false;
    for (int i = 0; i < cases->cases; i++) found |= has_subject(c, &cases->item[i]);
    if (!found) return;
    make_columns(measures.column, c);
    Table *table = measure_table(tables, &measures);
    for (const PaperRow *p = paper_rows(c->table); p->table; p++) {
        if (is_images(p) != c->images) continue;
        put_published(table, p);
        for (int m = 0; m < cases->methods; m++) {
            const CaseMethod *method = &cases->method[m];
            if (find_row(c, method->row[0]) != p || !case_is_plain(method) ||
                !has_subject(c, method->of))
                continue;
            table_row(table, "  here: %s", case_label(method).text);
            measure_put(table, cases, &measures, method);
        }
    }
    table_note(
        table,
        "Below a published training, \"here\": ours of that kind, with the network, data and "
        "settings that its row names; means and spreads over seeds.  Losses and scores are at the "
        "end of the training; a score is the mean of the last five evaluations where there are "
        "ten or more.");
    table_note(table,
               "Trained: the published ones until they were called converged.  To level: until the "
               "smoothed training loss of BCD was at the lowest value that both it and the full "
               "update of the same seed reached; B-F is that over what the full update took.");
    note_paper(table, c);
}

void paper_add_comparisons(Tables *tables, const Cases *cases) {
    for (size_t c = 0; c < sizeof comparisons / sizeof *comparisons; c++)
        add_comparison(tables, cases, &comparisons[c]);
}

/* ---- B-F multipliers ------------------------------------------------------------------------- */

void paper_add_multipliers(Tables *tables, const Cases *cases) {
    static const TableColumn columns[] = {
        {"published", "Table 2", "mean", COLUMN_NUMBER, 2, SOURCE_RECOMPUTED},
        {"trainings", "trainings", "here", COLUMN_NUMBER, 0, SOURCE_NONE},
        {"training_loss", "to equal loss", "in training", COLUMN_NUMBER, 2, SOURCE_MEASURED},
        {"validation_loss", "to equal loss", "in validation", COLUMN_NUMBER, 2, SOURCE_MEASURED},
    };
    static const struct {
        const char *label, *optimizer;
        int images;
    } rows[] = {{"SGD, image models", "sgd", 1},
                {"SGD, language models", "sgd", 0},
                {"Adam, image models", "adam", 1},
                {"Adam, language models", "adam", 0},
                {"Adam, all (printed: 1.39)", "adam", -1}};
    Table *table =
        tables_add(tables, "multipliers", "B-F multipliers: updates of BCD-1/3 over full updates",
                   "optimizer, networks", columns, 4);
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        Multipliers here = multipliers_of(cases, rows[r].optimizer, rows[r].images);
        table_row(table, "%s", rows[r].label);
        table_put(table, 0, paper_mean_multiplier(rows[r].optimizer, rows[r].images),
                  here.training.count);
        table_mean(table, 2, mean_value(&here.training), mean_spread(&here.training),
                   SOURCE_MEASURED);
        table_mean(table, 3, mean_value(&here.validation), mean_spread(&here.validation),
                   SOURCE_MEASURED);
    }
    table_note(table,
               "Means over all trainings here in three submodels, on all of the data, with a full "
               "update of the same seed; spread: the standard deviation of a single training.  "
               "Adam includes AdamW.");
    table_note(
        table,
        "BCD-1/3 updates a parameter once in three updates, so that short trainings, which are far "
        "from convergence, are expected to need about three times as many.  The published "
        "trainings ran to convergence.");
    table_note(table,
               "The published average multiplier 1.39 is the mean over five Adam rows, of image "
               "models and of language models; the means of the two are given separately.");
}
