/* How far BCD and the full update were when they had spent as much: updates, operations, seconds;
 * and within the same memory. */
#include <math.h>
#include <string.h>

#include "converge.h"
#include "measures.h"

enum { SEEDS, BUDGET, BCD, FULL, OFF, AHEAD, COLUMNS };

/* What is compared: more of a score is better for images, less for language models. */
typedef enum { BY_SCORE, BY_LOSS } By;

static const TableColumn columns[COLUMNS] = {
    [SEEDS] = {"seeds", "seeds", "", COLUMN_NUMBER, 0, SOURCE_NONE},
    [BUDGET] = {"budget", "at equal", "", COLUMN_TEXT, 0, SOURCE_NONE},
    [BCD] = {"bcd", "", "BCD", COLUMN_NUMBER, 0, SOURCE_MEASURED},
    [FULL] = {"full", "", "full", COLUMN_NUMBER, 0, SOURCE_MEASURED},
    [OFF] = {"difference", "difference", "BCD - full", COLUMN_NUMBER, 0, SOURCE_MEASURED},
    [AHEAD] = {"ahead", "verdict", "", COLUMN_TEXT, 0, SOURCE_NONE}};

/* ---- a training at a budget ------------------------------------------------------------------ */

/* Rows of the curve within a budget. */
static size_t rows_within(const StudyRow *row, StudyAxis axis, double budget) {
    size_t low = 0, high = row->curve_rows;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (study_at(row, middle, axis) <= budget)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static double score_of(const StudyRow *row, const EvaluationRow *evaluation) {
    return study_is_images(row) ? 100 * evaluation->accuracy : evaluation->perplexity;
}

/* Between two evaluations on the straight line from one to the other; NAN before the first. */
static double score_after(const StudyRow *row, double updates) {
    const EvaluationRow *before = NULL;
    for (size_t e = 0; e < row->evaluation_rows; e++) {
        const EvaluationRow *here = &row->evaluation[e];
        if ((double)here->step <= updates) {
            before = here;
            continue;
        }
        if (!before) return NAN;
        double part = (updates - (double)before->step) / (double)(here->step - before->step);
        return (1 - part) * score_of(row, before) + part * score_of(row, here);
    }
    return before ? score_of(row, before) : NAN;
}

/* ---- pairs ----------------------------------------------------------------------------------- */

typedef struct {
    By by;
    Mean budget, bcd, full, off; /* over pairs of which both are known */
} Comparison;

static double reached(const StudyRow *row, By by, size_t rows, size_t window) {
    if (by == BY_LOSS) return study_loss(row, rows, window);
    return score_after(row, rows ? (double)row->curve[rows - 1].step : 0);
}

/* Both at the end of the one that spent less. */
static void compare(Comparison *sum, const StudyRow *row, const StudyRow *full, StudyAxis axis) {
    double own = study_end(row, axis), other = study_end(full, axis);
    double budget = own < other ? own : other;
    if (!isfinite(own + other) || (axis == AXIS_SECONDS && !study_same_clock(row, full))) return;
    size_t window = study_window(row, full);
    double bcd_at = reached(row, sum->by, rows_within(row, axis, budget), window);
    double full_at = reached(full, sum->by, rows_within(full, axis, budget), window);
    if (!isfinite(bcd_at + full_at)) return;
    mean_add(&sum->budget, budget);
    mean_add(&sum->bcd, bcd_at);
    mean_add(&sum->full, full_at);
    mean_add(&sum->off, bcd_at - full_at);
}

/* Student's t: were there no difference, a mean of n of them would be further from 0 than this many
 * standard errors 5 times of 100 (two-sided, n - 1 degrees of freedom).  Beyond the table Fisher's
 * expansion about the normal distribution, right to 0.001. */
double study_student(int n) {
    static const double t[] = {NAN,   NAN,   12.706, 4.303, 3.182, 2.776,
                               2.571, 2.447, 2.365,  2.306, 2.262};
    const double z = 1.95996, v = n - 1;
    if (n < (int)(sizeof t / sizeof *t)) return n < 2 ? NAN : t[n];
    return z + (pow(z, 3) + z) / (4 * v) + (5 * pow(z, 5) + 16 * pow(z, 3) + 3 * z) / (96 * v * v) +
           (3 * pow(z, 7) + 19 * pow(z, 5) + 17 * pow(z, 3) - 15 * z) / (384 * pow(v, 3));
}

typedef enum { NO_VERDICT, BCD_AHEAD, FULL_AHEAD, UNDECIDED, VERDICTS } Verdict;
static const char *const verdict_words[VERDICTS] = {"", "BCD ahead", "full ahead", "undecided"};

/* `sign` 1: more is better. */
static Verdict judge(const Mean *off, int sign) {
    if (off->count < 2) return NO_VERDICT;
    double error = mean_spread(off) / sqrt(off->count);
    if (!(fabs(off->mean) > study_student(off->count) * error)) return UNDECIDED;
    return sign * off->mean > 0 ? BCD_AHEAD : FULL_AHEAD;
}

/* A table, and how often it has which verdict at equal updates, seconds, ... (as StudyAxis), and at
 * equal memory. */
typedef struct {
    By by;
    Table *table;
    int verdicts[AXES + 1][VERDICTS];
} Compared;

static void put(Compared *compared, int equal, const Comparison *sum, const StudyRow *row,
                const char *budget) {
    Table *table = compared->table;
    bool more_is_better = sum->by == BY_SCORE && study_is_images(row);
    table_put(table, SEEDS, sum->off.count);
    table_text(table, BUDGET, SOURCE_NONE, "%s", budget);
    table_put(table, BCD, mean_value(&sum->bcd), mean_value(&sum->full));
    table_mean(table, OFF, mean_value(&sum->off), mean_spread(&sum->off), SOURCE_MEASURED);
    Verdict verdict = judge(&sum->off, more_is_better ? 1 : -1);
    table_text(table, AHEAD, SOURCE_NONE, "%s", verdict_words[verdict]);
    compared->verdicts[equal][verdict]++;
}

/* ---- equal memory ---------------------------------------------------------------------------- */

/* The same data, in the same steps and at the same rate: another network may stand beside it. */
static bool comparable(const StudyRow *a, const StudyRow *b) {
    return !strcmp(a->data, b->data) && !strcmp(a->optimizer, b->optimizer) &&
           a->batch == b->batch && a->lr == b->lr && a->weight_decay == b->weight_decay &&
           !strcmp(a->device, b->device) && !strcmp(a->precision, b->precision) &&
           a->settings.context == b->settings.context &&
           (!strcmp(a->checksum, b->checksum) || !strcmp(a->data, "synthetic"));
}

/* The full update that needs most memory, but not more than this method; NULL: none. */
static const CaseMethod *fitting(const Cases *cases, const StudyRow *row, const Case **of) {
    const CaseMethod *best = NULL;
    double most = 0;
    const Case *item;
    for (const CaseMethod *m = NULL; (m = cases_next(cases, m, &item));) {
        const StudyRow *full = case_first(cases, m);
        double peak = full->peak[MEM_ROLES];
        if (strcmp(full->method, "full") || !comparable(full, row) || !(peak > most) ||
            peak > row->peak[MEM_ROLES])
            continue;
        best = m;
        *of = item;
        most = peak;
    }
    return best;
}

/* The same training of a smaller network stands beside each seed. */
static void put_memory(Compared *compared, const Cases *cases, const CaseMethod *method,
                       const char *label) {
    const StudyRow *row = case_first(cases, method);
    const Case *item = NULL;
    const CaseMethod *small = fitting(cases, row, &item);
    Comparison sum = {.by = compared->by};
    for (int s = 0; small && s < method->seeds; s++) {
        const StudyRow *own = &cases->study->row[method->row[s]];
        const StudyRow *full = case_partner(cases, item, own);
        if (full) compare(&sum, own, full, AXIS_UPDATES);
    }
    if (!sum.off.count) return;
    char budget[64], network[CASE_NAME];
    snprintf(budget, sizeof budget, "%.3g MiB: %.30s", row->peak[MEM_ROLES] / MIB,
             case_network(case_first(cases, small), network));
    table_row(compared->table, "%s", label);
    put(compared, AXES, &sum, row, budget);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void write_budget(char text[64], double value, StudyAxis axis) {
    if (axis == AXIS_UPDATES)
        snprintf(text, 64, "%.0f updates", value);
    else if (axis == AXIS_SECONDS)
        snprintf(text, 64, value < 100 ? "%.2g seconds" : "%.0f seconds", value);
    else if (value < 1e12)
        snprintf(text, 64, "%.3g Gflop", value / 1e9);
    else
        snprintf(text, 64, value < 1e15 ? "%.3g Tflop" : "%.4g Tflop", value / 1e12);
}

static void put_method(Compared *compared, const Cases *cases, const Case *item,
                       const CaseMethod *method) {
    static const StudyAxis order[AXES] = {AXIS_UPDATES, AXIS_OPERATIONS, AXIS_SECONDS};
    char label[CASE_LABEL], budget[64];
    const StudyRow *first = case_first(cases, method);
    case_label(cases, item, method, label);
    for (int a = 0; a < AXES; a++) {
        Comparison sum = {.by = compared->by};
        for (int s = 0; s < method->seeds; s++) {
            const StudyRow *row = &cases->study->row[method->row[s]];
            const StudyRow *full = case_partner(cases, item, row);
            if (full && row->submodels > 1) compare(&sum, row, full, order[a]);
        }
        if (!sum.off.count) continue;
        table_row(compared->table, "%s", label);
        write_budget(budget, mean_value(&sum.budget), order[a]);
        put(compared, (int)order[a], &sum, first, budget);
    }
    put_memory(compared, cases, method, label);
}

static int add(Compared *compared, Tables *tables, const Cases *cases, By by) {
    bool loss = by == BY_LOSS;
    TableColumn column[COLUMNS];
    memcpy(column, columns, sizeof column);
    strcpy(column[BCD].head, loss ? "loss" : "score");
    strcpy(column[FULL].head, column[BCD].head);
    column[BCD].decimals = column[FULL].decimals = column[OFF].decimals = loss ? 3 : 2;
    *compared = (Compared){.by = by};
    compared->table =
        tables_add(tables, loss ? "equal_loss" : "equal_score",
                   loss ? "At equal updates, operations, seconds, memory: training loss"
                        : "At equal updates, operations, seconds, memory: validation score",
                   "training", column, COLUMNS);
    if (!compared->table) return -1;
    const Case *item;
    for (const CaseMethod *m = NULL; (m = cases_next(cases, m, &item));)
        if (study_pairs(cases, item, m)) put_method(compared, cases, item, m);
    return 0;
}

static int add_score(Compared *score, Tables *tables, const Cases *cases) {
    if (add(score, tables, cases, BY_SCORE)) return -1;
    Table *table = score->table;
    table_note(table,
               "Both where the one that spent less came to its end (means over the seeds).  Score: "
               "accuracy in %%, or perplexity, on the validation split at that point, not the best "
               "until then; between two evaluations on the straight line.  Operations are counted "
               "from shapes.");
    table_note(
        table,
        "Verdict: ahead where the mean difference of paired seeds is more than Student's t "
        "(two-sided, 95 %%) times its standard error, the spread over the root of the seeds; "
        "with one seed there is none.  Each row is judged by itself: of twenty without any "
        "difference, chance calls one ahead.");
    table_note(table, "%s", study_clock_note);
    table_note(table,
               "MiB: beside the full update of the network named, the largest here that needs no "
               "more memory at its peak (all roles) than BCD, at equal updates.");
    return 0;
}

static int add_loss(Compared *loss, Tables *tables, const Cases *cases) {
    if (add(loss, tables, cases, BY_LOSS)) return -1;
    table_note(
        loss->table,
        "The same with the smoothed training loss: the mean over the last updates within the "
        "budget, as many as a fortieth of the shorter of the two trainings, at least ten.");
    return 0;
}

/* ---- all verdicts ---------------------------------------------------------------------------- */

enum { LOSS_COLUMNS = VERDICTS - 1, COUNT_COLUMNS = 2 * LOSS_COLUMNS };

static const TableColumn count_columns[COUNT_COLUMNS] = {
    {"loss_bcd", "BCD ahead", "training loss", COLUMN_NUMBER, 0, SOURCE_NONE},
    {"loss_full", "full ahead", "training loss", COLUMN_NUMBER, 0, SOURCE_NONE},
    {"loss_undecided", "undecided", "training loss", COLUMN_NUMBER, 0, SOURCE_NONE},
    {"score_bcd", "BCD ahead", "valid. score", COLUMN_NUMBER, 0, SOURCE_NONE},
    {"score_full", "full ahead", "valid. score", COLUMN_NUMBER, 0, SOURCE_NONE},
    {"score_undecided", "undecided", "valid. score", COLUMN_NUMBER, 0, SOURCE_NONE},
};

static void count(Table *table, const Compared *loss, const Compared *score) {
    static const struct {
        int equal;
        const char *label;
    } rows[] = {{AXIS_UPDATES, "updates"},
                {AXIS_OPERATIONS, "operations"},
                {AXIS_SECONDS, "seconds"},
                {AXES, "memory"}};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        table_row(table, "%s", rows[r].label);
        for (int v = 0; v < LOSS_COLUMNS; v++) {
            table_number(table, v, loss->verdicts[rows[r].equal][v + 1], SOURCE_MEASURED);
            table_number(table, LOSS_COLUMNS + v, score->verdicts[rows[r].equal][v + 1],
                         SOURCE_MEASURED);
        }
    }
    table_note(table,
               "How many rows of the two tables below have which verdict; those of one seed have "
               "none.  Rows of the same full update are no independent witnesses.");
}

int study_add_budgets(Tables *tables, const Cases *cases) {
    Compared score, loss;
    if (!study_any_pairs(cases)) return 0;
    Table *table = tables_add(tables, "verdicts", "Does BCD match the full update, at equal cost?",
                              "at equal", count_columns, COUNT_COLUMNS);
    if (!table || add_score(&score, tables, cases) || add_loss(&loss, tables, cases)) return -1;
    count(table, &loss, &score);
    return 0;
}
