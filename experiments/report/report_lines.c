/* What a report says, line by line: measured, from the closed form, and published. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/error.h"
#include "report.h"

enum {
    SOURCE,
    METHOD,
    SECONDS,
    UPDATES,
    EPOCHS,
    MULTIPLIER,
    SCORE,
    VALID,
    TRAIN,
    STATE,
    PEAK,
    RATE
};

const ReportColumn report_columns[REPORT_CELLS] = {
    [SOURCE] = {"source", "", "measured here, computed by the closed form, or published", -11},
    [METHOD] =
        {"method", "",
         "every parameter at each step, or one of M submodels; x.9: with so much of the data", -7},
    [SECONDS] = {"time", "s", "seconds of training, evaluations left out", 7},
    [UPDATES] = {"updates", "to level", "updates until the smoothed training loss is at the level",
                 8},
    [EPOCHS] = {"epochs", "to level", "the same in passes over the data", 8},
    [MULTIPLIER] = {"B-F", "", "updates to level over those of the full update", 5},
    [SCORE] = {"score", "", "accuracy, or perplexity, at the end", 8},
    [VALID] = {"valid.", "loss", "loss on the validation split at the end, nats per target", 7},
    [TRAIN] = {"train.", "loss", "smoothed training loss at the end, nats per target", 7},
    [STATE] = {"P+G+S", "MiB", "parameters, gradients and optimizer state, at their peak", 7},
    [PEAK] = {"peak", "MiB", "everything allocated at a time, activations too", 7},
    [RATE] = {"rate", "1/s", "images or tokens trained on per second", 7},
};

/* Four significant digits in plain notation; nothing for what does not exist. */
static void number(char cell[32], double value) {
    if (isnan(value))
        cell[0] = 0;
    else if (isinf(value))
        snprintf(cell, 32, "inf");
    else if (fabs(value) >= 1e7)
        snprintf(cell, 32, "%.3g", value);
    else if (fabs(value) >= 1000 || value == 0)
        snprintf(cell, 32, "%.0f", value);
    else
        snprintf(cell, 32, "%.*f",
                 fabs(value) >= 100  ? 1
                 : fabs(value) >= 10 ? 2
                                     : 4 - (fabs(value) >= 1),
                 value);
}

static void score(char cell[32], bool images, double accuracy, double perplexity) {
    if (!images)
        number(cell, perplexity);
    else if (!isnan(accuracy))
        snprintf(cell, 32, "%.1f %%", 100 * accuracy);
}

static ReportLine *add_line(ReportGroup *report, const char *source, const char *method) {
    ReportLine *line = &report->line[report->lines++];
    memset(line, 0, sizeof *line);
    snprintf(line->cell[SOURCE], sizeof line->cell[SOURCE], "%s", source);
    snprintf(line->cell[METHOD], sizeof line->cell[METHOD], "%s", method);
    return line;
}

static double trained_bytes(const StudyRow *row) {
    return row->peak[MEM_PARAMETERS] + row->peak[MEM_GRADIENTS] + row->peak[MEM_STATE];
}

static void add_measured(ReportGroup *report, const StudyRow *row) {
    char method[32];
    ReportLine *line = add_line(report, "measured", study_method(row, method));
    double mib = 1024 * 1024;
    number(line->cell[SECONDS], row->seconds);
    if (!isnan(row->steps_to_converge))
        snprintf(line->cell[UPDATES], sizeof line->cell[UPDATES], "%.0f", row->steps_to_converge);
    if (!isnan(row->epochs_to_converge))
        snprintf(line->cell[EPOCHS], sizeof line->cell[EPOCHS], "%.2f", row->epochs_to_converge);
    if (!isnan(row->multiplier))
        snprintf(line->cell[MULTIPLIER], sizeof line->cell[MULTIPLIER], "%.2f", row->multiplier);
    score(line->cell[SCORE], study_is_images(row), row->accuracy, row->perplexity);
    number(line->cell[VALID], row->valid_loss);
    number(line->cell[TRAIN], row->train_loss);
    number(line->cell[STATE], trained_bytes(row) / mib);
    number(line->cell[PEAK], row->peak[MEM_ROLES] / mib);
    number(line->cell[RATE], row->rate);
}

static void add_closed_form(ReportGroup *report, const StudyRow *row) {
    char method[32];
    ReportLine *line = add_line(report, "closed form", study_method(row, method));
    number(line->cell[STATE], row->closed_form / (1024 * 1024));
}

static void add_published(ReportGroup *report, const PaperRow *paper) {
    char method[32] = "full";
    if (paper->submodels > 1) snprintf(method, sizeof method, "BCD-1/%d", paper->submodels);
    ReportLine *line = add_line(report, "published", method);
    snprintf(line->cell[paper->iterations ? UPDATES : EPOCHS], 32, "%.0f", paper->duration);
    double multiplier = paper->submodels > 1 ? paper_multiplier(paper) : 1;
    if (!isnan(multiplier)) snprintf(line->cell[MULTIPLIER], 32, "%.2f", multiplier);
    score(line->cell[SCORE], paper->score_kind == SCORE_ACCURACY, paper_score(paper) / 100,
          paper_score(paper));
    number(line->cell[TRAIN], paper->loss);
    number(line->cell[STATE], paper->memory_mib);
}

static void add_paper(ReportGroup *report, const StudyRow *row) {
    bool exact = false;
    const PaperRow *paper = paper_find(0, row->model, row->data, study_is_images(row),
                                       row->optimizer, (int)row->submodels, row->fraction, &exact);
    if (!paper) return;
    add_published(report, paper);
    if (!*report->published)
        snprintf(report->published, sizeof report->published, "Published: Table %d, %s on %s%s.",
                 paper->table, paper->row, paper->data,
                 exact ? "" : ": another training than this one, for orientation only");
}

static void write_titles(ReportGroup *report) {
    const StudyRow *row = report->row[0];
    int used = snprintf(report->title, sizeof report->title, "%s on %s, %s", row->model, row->data,
                        row->optimizer);
    if (*row->device && strcmp(row->device, "cpu"))
        snprintf(report->title + used, sizeof report->title - (size_t)used, ", %s in %s",
                 row->device, row->precision);
    used =
        snprintf(report->subtitle, sizeof report->subtitle,
                 "%" PRId64 " parameters, batch %" PRId64 ", rate %g, seed %" PRId64 ", %" PRId64,
                 row->parameters, row->batch, row->lr, row->seed, row->steps);
    for (int r = 1; r < report->rows; r++) /* most often all are trained for as long */
        if (report->row[r]->steps != row->steps)
            used += snprintf(report->subtitle + used, sizeof report->subtitle - (size_t)used,
                             ", %" PRId64, report->row[r]->steps);
    used += snprintf(report->subtitle + used, sizeof report->subtitle - (size_t)used, " updates");
    if (!isnan(row->level) && report->rows > 1)
        snprintf(report->subtitle + used, sizeof report->subtitle - (size_t)used,
                 "; compared at training loss %.4g", row->level);
}

/* In order of M, so that the full update comes first. */
static void insert_row(ReportGroup *report, const StudyRow *row) {
    int at = report->rows++;
    for (; at > 0 && report->row[at - 1]->submodels > row->submodels; at--)
        report->row[at] = report->row[at - 1];
    report->row[at] = row;
}

/* What the closed form leaves out: it takes submodels of equal size. */
static void note_imbalance(ReportGroup *report) {
    for (int r = 0; r < report->rows; r++) {
        const StudyRow *row = report->row[r];
        char method[32];
        size_t used = strlen(report->imbalance);
        if (row->submodels > 1 && row->imbalance > 0.02)
            snprintf(report->imbalance + used, sizeof report->imbalance - used,
                     "%s %s: the largest submodel has %.2f times the mean",
                     used ? ";" : "The closed form takes equal submodels;",
                     study_method(row, method), 1 + row->imbalance);
    }
    if (*report->imbalance)
        strncat(report->imbalance, ".", sizeof report->imbalance - strlen(report->imbalance) - 1);
}

/* How far a training was when it first reached the level of the convergence rule. */
static double at_level(const StudyRow *row, StudyAxis axis) {
    for (size_t i = 0; i < row->curve_rows; i++)
        if ((double)row->curve[i].step == row->steps_to_converge) return study_at(row, i, axis);
    return NAN;
}

/* The smoothed loss when a training had spent a budget; NAN: at its first update it had more. */
static double loss_at(const StudyRow *row, size_t window, StudyAxis axis, double budget) {
    size_t end = 0;
    double sum = 0;
    while (end < row->curve_rows && study_at(row, end, axis) <= budget) end++;
    if (end < window) return NAN;
    for (size_t i = end - window; i < end; i++) sum += row->curve[i].loss;
    return sum / (double)window;
}

static const char *const axis_names[AXES] = {"updates", "seconds", "operations"};

/* What a reader wants to know first, in one sentence. */
static void add_finding(ReportGroup *report, const StudyRow *row, const StudyRow *full) {
    char method[32], *text = report->finding[report->findings++];
    size_t size = sizeof report->finding[0];
    int used = snprintf(text, size, "%s beside the full update: %.2f times the updates",
                        study_method(row, method), row->multiplier);
    for (StudyAxis axis = AXIS_SECONDS; axis < AXES; axis++) {
        double ratio = at_level(row, axis) / at_level(full, axis);
        if (isfinite(ratio))
            used += snprintf(text + used, size - (size_t)used, ", %.2f times the %s", ratio,
                             axis_names[axis]);
    }
    used += snprintf(text + used, size - (size_t)used, " to the same training loss");
    if (!isnan(row->valid_multiplier))
        used +=
            snprintf(text + used, size - (size_t)used,
                     ", %.2f times the updates to the same validation loss", row->valid_multiplier);
    snprintf(text + used, size - (size_t)used,
             "; %.2f times the time per update; %.2f times the P+G+S, %.2f times the peak memory.",
             row->seconds / (double)row->steps / (full->seconds / (double)full->steps),
             trained_bytes(row) / trained_bytes(full),
             row->peak[MEM_ROLES] / full->peak[MEM_ROLES]);
}

/* Losses of both where the shorter of two trainings ends, by each measure. */
static void add_comparison(ReportGroup *report, const StudyRow *row, const StudyRow *full) {
    char method[32], *text = report->comparison[report->findings - 1];
    size_t size = sizeof report->comparison[0];
    int used = 0;
    *text = 0;
    for (StudyAxis axis = 0; axis < AXES; axis++) {
        double budget = fmin(study_at(row, row->curve_rows - 1, axis),
                             study_at(full, full->curve_rows - 1, axis));
        double own = loss_at(row, report->window, axis, budget);
        double other = loss_at(full, report->window, axis, budget);
        if (!isfinite(own + other)) continue;
        if (!used)
            used = snprintf(text, size, "Training loss of %s (and of the full update):",
                            study_method(row, method));
        used += snprintf(text + used, size - (size_t)used, "%s %.4g (%.4g) at equal %s",
                         axis ? "," : "", own, other, axis_names[axis]);
    }
    if (used) snprintf(text + used, size - (size_t)used, ".");
}

static void add_findings(ReportGroup *report) {
    const StudyRow *full = report->row[0];
    for (int r = 1; r < report->rows && full->submodels == 1; r++) {
        const StudyRow *row = report->row[r];
        double sum = row->multiplier + row->seconds + full->seconds + trained_bytes(row) +
                     trained_bytes(full);
        if (row->submodels < 2 || !isfinite(sum)) continue;
        add_finding(report, row, full);
        add_comparison(report, row, full);
    }
}

void report_group(ReportGroup *report, const Study *study, const int *group, int number_of_group) {
    *report = (ReportGroup){0};
    for (int r = 0; r < study->rows; r++) {
        if (group[r] != number_of_group) continue;
        if (report->rows == REPORT_METHODS)
            report->left_out++;
        else
            insert_row(report, &study->row[r]);
    }
    report->window = study_window(report->row[0], report->row[report->rows - 1]);
    for (int r = 0; r < report->rows; r++) add_measured(report, report->row[r]);
    for (int r = 0; r < report->rows; r++) add_closed_form(report, report->row[r]);
    for (int r = 0; r < report->rows; r++) add_paper(report, report->row[r]);
    write_titles(report);
    note_imbalance(report);
    add_findings(report);
}

/* The mean over the BCD rows of a kind; *count tells how many. */
static double measured_mean(const Study *study, const char *optimizer, bool images, int *count) {
    double sum = 0;
    *count = 0;
    for (int r = 0; r < study->rows; r++) {
        const StudyRow *row = &study->row[r];
        if (row->submodels < 2 || isnan(row->multiplier) || study_is_images(row) != images ||
            strcmp(row->optimizer, optimizer))
            continue;
        sum += row->multiplier;
        ++*count;
    }
    return *count ? sum / *count : NAN;
}

int report_means(const Study *study, char line[REPORT_MEANS][160]) {
    static const char *const optimizers[] = {"sgd", "adam"};
    int lines = 0;
    for (int o = 0; o < 2; o++)
        for (int images = 1; images >= 0; images--) {
            int count;
            double measured = measured_mean(study, optimizers[o], images, &count);
            int used = snprintf(line[lines], 160, "%-4s %-15s published %4.2f   measured ",
                                optimizers[o], images ? "image models" : "language models",
                                paper_mean_multiplier(optimizers[o], images));
            if (count)
                snprintf(line[lines] + used, 160 - (size_t)used, "%4.2f  (%d row%s)", measured,
                         count, count > 1 ? "s" : "");
            else
                snprintf(line[lines] + used, 160 - (size_t)used, "not here");
            lines++;
        }
    snprintf(line[lines++], 160,
             "adam all together    published %4.2f, printed as the average 1.39",
             paper_mean_multiplier("adam", -1));
    return lines;
}
