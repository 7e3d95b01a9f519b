/* The rules that say after how long a training converged, on curves drawn by hand. */
#include "../../experiments/study/converge.h"

#include <math.h>
#include <stdio.h>

#include "../test.h"
#include "study_sample.h"

enum { MOST = 24 };

/* A loss an epoch, from the first on; improvements of more than 1 within 3 epochs count. */
static int find(const double *value, int n) {
    EvaluationRow evaluation[MOST];
    StudyRow row = {
        .steps = 1, .epochs = 1, .evaluation = evaluation, .evaluation_rows = (uint64_t)n};
    for (int i = 0; i < n; i++)
        evaluation[i] = (EvaluationRow){.step = (uint64_t)i + 1, .loss = value[i]};
    return plateau_find(&row, 1, 3);
}

static void case_curves(void) {
    static const struct {
        const char *what;
        int n, at; /* the answer */
        double value[MOST];
    } curves[] = {
        {"nothing", 0, -1, {0}},
        {"fewer than five", 4, -1, {9, 9, 9, 9}},
        {"five: what comes after is not known", 5, -1, {9, 9, 9, 9, 9}},
        {"flat for less than the patience", 7, -1, {9, 9, 9, 9, 9, 9, 9}},
        {"flat for as long", 8, 4, {9, 9, 9, 9, 9, 9, 9, 9}},
        {"always falling", 12, -1, {120, 110, 100, 90, 80, 70, 60, 50, 40, 30, 20, 10}},
        /* means from the fifth on: 80, 70, 61, 54, 50, 50, ...: 50 is the ninth's */
        {"falling, then flat", 14, 8, {100, 90, 80, 70, 60, 50, 45, 45, 50, 60, 50, 45, 45, 50}},
        /* means 9, 9 - 5/5, ...: the fall of a mean is 1, which is not more than 1 */
        {"by no more than the amount", 8, 4, {9, 9, 9, 9, 9, 4, 9, 9}},
        {"by a little more", 8, -1, {9, 9, 9, 9, 9, 3, 9, 9}},
        /* means 9, 9, 9, 9, 9, 5: that comes in the fifth epoch after */
        {"better again, but too late", 10, 4, {9, 9, 9, 9, 9, 9, 9, 9, 9, -11}},
        /* one lucky value moves the mean of five by a fifth of itself */
        {"noise", 9, 4, {9, 8, 10, 9, 9, 10, 8, 8, 10}},
        {"worse and worse", 9, 4, {1, 2, 3, 4, 5, 6, 7, 8, 9}},
        /* means 9, 8.4, 7.8, 7.8, ...: 8.4 is no new best, although nothing later beats it by 1 */
        {"a new best is better than the best, not than the mean before",
         10,
         6,
         {9, 9, 9, 9, 9, 6, 6, 9, 9, 9}},
        {"slowly, but more than the amount in three epochs",
         12,
         -1,
         {20, 19.5, 19, 18.5, 18, 17.5, 17, 16.5, 16, 15.5, 15, 14.5}},
    };
    for (size_t c = 0; c < sizeof curves / sizeof *curves; c++) {
        int at = find(curves[c].value, curves[c].n);
        CHECK(at == curves[c].at, "%s: after %d, not %d", curves[c].what, at, curves[c].at);
    }
}

/* Accuracy 50, 60, 70, 80, 80, ... of 20 evaluations, every second epoch of 10 updates: the means
 * of five are 68, 74, 78, 80, 80, ...; the last that is better by more than half a point is the
 * eighth, after 16 epochs. */
static void case_row(void) {
    EvaluationRow evaluation[20];
    StudyRow row = {.steps = 400,
                    .epochs = 40,
                    .submodels = 1,
                    .evaluation = evaluation,
                    .evaluation_rows = 20};
    snprintf(row.input, sizeof row.input, "images");
    for (int e = 0; e < 20; e++)
        evaluation[e] = (EvaluationRow){
            .step = 20 * ((uint64_t)e + 1), .accuracy = 0.1 * (e < 3 ? 5 + e : 8), .loss = 10 - e};
    evaluation[19].accuracy = 0.85;
    plateau_fill(&row);
    CHECK(row.plateau_steps == 160 && fabs(row.plateau_epochs - 16) < 1e-12, "after %g epochs",
          row.plateau_epochs);
    CHECK(fabs(row.plateau_score - 80) < 1e-9 && fabs(row.plateau_spread) < 1e-9, "%g, spread %g",
          row.plateau_score, row.plateau_spread);
    CHECK(fabs(row.end_score - 81) < 1e-9 && fabs(row.end_spread - sqrt(5)) < 1e-9,
          "at the end %g, spread %g", row.end_score, row.end_spread);
    CHECK(fabs(plateau_score(&row, 119, NULL) - 68) < 1e-9 && isnan(plateau_score(&row, 99, NULL)),
          "after fewer updates: %g", plateau_score(&row, 119, NULL));
    /* Of text the loss counts, and it falls by a nat each time: never. */
    snprintf(row.input, sizeof row.input, "tokens");
    plateau_fill(&row);
    CHECK(isnan(row.plateau_steps) && isnan(row.plateau_score), "text after %g", row.plateau_steps);
}

/* A full update that falls by a nat in each of 12 evaluations, and BCD by half a nat but for one
 * lucky evaluation.  BCD's lowest mean of five is 7.5, in the middle of the updates 80 to 120; the
 * full update has means of 8 and 7 around the updates 50 and 60. */
static void case_multiplier(void) {
    EvaluationRow fast[12], slow[12];
    StudyRow full = {.evaluation = fast, .evaluation_rows = 12};
    StudyRow bcd = {.evaluation = slow, .evaluation_rows = 12};
    for (int e = 0; e < 12; e++) {
        uint64_t step = 10 * ((uint64_t)e + 1);
        fast[e] = (EvaluationRow){.step = step, .loss = 12 - e};
        slow[e] = (EvaluationRow){.step = step, .loss = e == 4 ? 5 : 12 - 0.5 * e};
    }
    double multiplier = plateau_multiplier(&bcd, &full);
    CHECK(fabs(multiplier - 100.0 / 55) < 1e-12, "%g", multiplier);
    full.evaluation += 5;
    full.evaluation_rows -= 5;
    CHECK(isnan(plateau_multiplier(&bcd, &full)), "of a full update that begins below");
    /* A constant loss begins at the level, too, whichever of the two has it. */
    for (int e = 0; e < 12; e++) fast[e].loss = 8;
    full.evaluation = fast, full.evaluation_rows = 12;
    CHECK(isnan(plateau_multiplier(&bcd, &full)), "of a full update that begins there");
    CHECK(isnan(plateau_multiplier(&full, &bcd)), "of BCD that begins there");
    bcd.evaluation += 8; /* no fifth one behind them */
    bcd.evaluation_rows = 4;
    CHECK(isnan(plateau_multiplier(&bcd, &full)), "of four evaluations");
}

static double mean_of_ten(const StudyRow *row, int end) {
    double mean = 0;
    for (int i = end - 10; i < end; i++) mean += row->curve[i].loss / 10;
    return mean;
}

/* The level and the updates to it.  A low loss of the first batch is no convergence. */
static void case_smoothing(void) {
    Study study = sample_study();
    double low[2] = {INFINITY, INFINITY}, steps[2];
    for (int r = 0; r < 2; r++) {
        for (int i = 0; i < SAMPLE_STEPS; i++)
            study.row[r].curve[i].loss =
                i ? 4 + sin(3 * i + r) - 0.01 * (i < 150 ? i : 300 - i) * (1 + r) : 0.1;
        for (int end = 10; end <= SAMPLE_STEPS; end++)
            low[r] = fmin(low[r], mean_of_ten(&study.row[r], end));
    }
    study_converge(&study);
    const StudyRow *bcd = &study.row[1];
    for (int r = 0; r < 2; r++)
        for (steps[r] = 10; mean_of_ten(&study.row[r], (int)steps[r]) > bcd->level + 1e-12;)
            steps[r]++;
    CHECK(fabs(bcd->level - fmax(low[0], low[1])) <= 1e-12, "level %g", bcd->level);
    CHECK(bcd->steps_to_converge == steps[1] && bcd->multiplier == steps[1] / steps[0],
          "BCD after %g, B-F %g", bcd->steps_to_converge, bcd->multiplier);
    study_free(&study);
}

void test_plateau(void) {
    RUN(case_curves);
    RUN(case_row);
    RUN(case_multiplier);
    RUN(case_smoothing);
}
