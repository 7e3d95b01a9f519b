#include "measures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "converge.h"

Table *measure_table(Tables *tables, const MeasureTable *measures) {
    TableColumn column[MEASURE_COLUMNS];
    int count = 0;
    for (const MeasureColumn *c = measures->column; c->name; c++) {
        TableColumn *to = &column[count++];
        *to = (TableColumn){.kind = c->kind == VERDICT ? COLUMN_TEXT : COLUMN_NUMBER,
                            .decimals = c->decimals,
                            .source = c->source};
        snprintf(to->name, sizeof to->name, "%s", c->name);
        snprintf(to->head, sizeof to->head, "%s", c->head);
        snprintf(to->unit, sizeof to->unit, "%s", c->unit);
    }
    return tables_add(tables, measures->name, measures->title, "training", column, count);
}

/* From a table for n <= 10, else by Fisher's expansion about the normal quantile, within 0.001. */
double study_student(int n) {
    static const double t[] = {NAN,   NAN,   12.706, 4.303, 3.182, 2.776,
                               2.571, 2.447, 2.365,  2.306, 2.262};
    const double z = 1.95996, v = n - 1;
    if (n < (int)(sizeof t / sizeof *t)) return n < 2 ? NAN : t[n];
    return z + (pow(z, 3) + z) / (4 * v) + (5 * pow(z, 5) + 16 * pow(z, 3) + 3 * z) / (96 * v * v) +
           (3 * pow(z, 7) + 19 * pow(z, 5) + 17 * pow(z, 3) - 15 * z) / (384 * pow(v, 3));
}

/* Returns whether BCD or the full update has the better score, from their differences, "" for one
 * seed. */
static const char *judge(const Mean *difference, bool more_is_better) {
    if (difference->count < 2) return "";
    double error = mean_spread(difference) / sqrt(difference->count);
    if (!(fabs(difference->mean) > study_student(difference->count) * error)) return "undecided";
    return (difference->mean > 0) == more_is_better ? "BCD ahead" : "full ahead";
}

void measure_put(Table *table, const Cases *cases, const MeasureTable *measures,
                 const CaseMethod *method) {
    for (int c = 0; measures->column[c].name; c++) {
        const MeasureColumn *column = &measures->column[c];
        Mean mean = {0};
        for (int s = 0; s < method->seeds; s++) {
            MeasurePair pair = {method->row[s], case_full_update(method->of, method->row[s]),
                                cases};
            if (measures->paired && !pair.full) continue;
            double value = column->measure(&pair);
            if (column->kind == RATIO)
                value /= column->measure(&(MeasurePair){pair.full, pair.full, cases});
            mean_add(&mean, value);
        }
        double spread = column->kind == OVER_SEEDS ? mean_spread(&mean) : NAN;
        if (column->kind == SEED_COUNT)
            table_number(table, c, mean.count, column->source);
        else if (column->kind == VERDICT)
            table_text(table, c, column->source, "%s",
                       judge(&mean, study_is_images(method->row[0])));
        else
            table_mean(table, c, mean_value(&mean), spread, column->source);
    }
}

/* Returns true for BCD if at least one of its seeds has a full update to compare with. */
static bool is_compared(const CaseMethod *method) {
    for (int s = 0; s < method->seeds; s++)
        if (method->row[s]->submodels > 1 && case_full_update(method->of, method->row[s]))
            return true;
    return false;
}

Table *measure_add(Tables *tables, const Cases *cases, const MeasureTable *measures) {
    Table *table = NULL;
    for (int m = 0; m < cases->methods; m++) {
        const CaseMethod *method = &cases->method[m];
        if ((measures->paired && !is_compared(method)) ||
            (measures->selects && !measures->selects(method)))
            continue;
        if (!table) table = measure_table(tables, measures);
        table_row(table, "%s", case_label(method).text);
        measure_put(table, cases, measures, method);
    }
    for (int n = 0; table && measures->note[n]; n++) table_note(table, "%s", measures->note[n]);
    return table;
}

double measure_one(const MeasurePair *pair) { return pair->row != NULL; }
double measure_train_loss(const MeasurePair *pair) { return pair->row->train_loss; }
double measure_valid_loss(const MeasurePair *pair) { return pair->row->valid_loss; }
double measure_perplexity(const MeasurePair *pair) { return pair->row->perplexity; }
double measure_steps(const MeasurePair *pair) { return (double)pair->row->steps; }
double measure_seconds(const MeasurePair *pair) { return pair->row->seconds; }
double measure_peak(const MeasurePair *pair) { return pair->row->peak[MEM_ROLES] / MIB; }
double measure_closed_form(const MeasurePair *pair) { return pair->row->closed_form / MIB; }

double measure_multiplier(const MeasurePair *pair) {
    return pair->row->submodels > 1 ? pair->row->multiplier : NAN;
}

double measure_valid_multiplier(const MeasurePair *pair) {
    return pair->row->submodels > 1 ? pair->row->valid_multiplier : NAN;
}

double measure_score(const MeasurePair *pair) {
    return study_is_images(pair->row) ? 100 * pair->row->accuracy : pair->row->perplexity;
}

double measure_trained(const MeasurePair *pair) {
    const double *peak = pair->row->peak;
    return (peak[MEM_PARAMETERS] + peak[MEM_GRADIENTS] + peak[MEM_STATE]) / MIB;
}

double study_axis_total(const StudyRow *row, StudyAxis axis) {
    return row->curve_rows ? study_axis_value(row, row->curve_rows - 1, axis) : NAN;
}

static double per_update(const StudyRow *row, StudyAxis axis) {
    return study_axis_total(row, axis) / study_axis_total(row, AXIS_UPDATES);
}

double measure_time_ratio(const MeasurePair *pair) {
    if (!pair->full || !study_times_comparable(pair->row, pair->full)) return NAN;
    return per_update(pair->row, AXIS_SECONDS) / per_update(pair->full, AXIS_SECONDS);
}

const char study_times_note[] =
    "Seconds are compared only where both trainings had the same processor or GPU and as many "
    "threads.";

/* ---- B-F multipliers ------------------------------------------------------------------------- */

Multipliers multipliers_of(const Cases *cases, const char *optimizer, int images) {
    Multipliers mean = {{0}, {0}};
    for (int m = 0; m < cases->methods; m++) {
        const CaseMethod *method = &cases->method[m];
        const StudyRow *first = method->row[0];
        if (!study_is_bcd3(first) || !case_is_plain(method) ||
            strncmp(first->optimizer, optimizer, strlen(optimizer)) ||
            (images >= 0 && study_is_images(first) != (images == 1)))
            continue;
        for (int s = 0; s < method->seeds; s++) {
            mean_add(&mean.training, method->row[s]->multiplier);
            mean_add(&mean.validation, method->row[s]->valid_multiplier);
        }
    }
    return mean;
}

static int measured_multiplier(double *multiplier, const char *files) {
    Study study = {0};
    Cases cases = {0};
    Mean mean = {0};
    Text list = text_of("%s", files);
    int failed = 0;
    for (char *path = strtok(list.text, ","); path && !failed; path = strtok(NULL, ","))
        failed = study_read(&study, path);
    if (!failed) {
        study_converge(&study);
        cases_make(&cases, &study);
    }
    /* Of the first kind that was trained: language models with Adam are what is priced. */
    for (int kind = 0; kind < 4 && !mean.count; kind++)
        mean = multipliers_of(&cases, kind % 2 ? "sgd" : "adam", kind / 2).training;
    *multiplier = mean_value(&mean);
    cases_free(&cases);
    study_free(&study);
    if (failed || mean.count) return failed ? -1 : 0;
    return error_set(
        "--multiplier %.200s: no BCD-1/3 on all of the data with a full update of its seed", files);
}

int multiplier_read(double *multiplier, const char *text) {
    char *end;
    *multiplier = NAN;
    if (!*text) return 0;
    *multiplier = strtod(text, &end);
    if (*end) return measured_multiplier(multiplier, text);
    if (*multiplier > 0 && isfinite(*multiplier)) return 0;
    return error_set("--multiplier %s: it takes a number above 0, or files of results", text);
}
