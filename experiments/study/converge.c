/* Steps to convergence and the B-F multiplier, from the curves of trainings. */
#include <math.h>

#include "cases.h"
#include "converge.h"

const char study_convergence_rule[] =
    "A BCD training is compared only with the full update of the same network, data, optimizer, "
    "batch, device, precision and seed, with the same learning rate if there is one. Both training "
    "losses are smoothed by a trailing mean over a fortieth of the shorter training, at least ten "
    "updates. The level is the higher of the two lowest smoothed losses, which both reached. A "
    "training reaches it at the first step whose smoothed loss is at or below the level. The B-F "
    "multiplier is the steps of BCD to the level over those of the full update. The same is done "
    "with the validation losses, interpolated linearly between evaluations. All of it depends on "
    "how long the two were trained; the paper states no rule. A training by itself has converged "
    "at " PLATEAU_RULE ".";

static double sum(const CurveRow *curve, size_t begin, size_t end) {
    double total = 0;
    for (size_t i = begin; i < end; i++) total += curve[i].loss;
    return total;
}

double study_smooth_next(StudySmooth *s) {
    size_t i = s->next++, begin = i + 1 > s->window ? i + 1 - s->window : 0;
    /* The running sum is computed anew once per window, so that rounding errors do not add up. */
    if (i % s->window == 0)
        s->total = sum(s->curve, begin, i + 1);
    else
        s->total += s->curve[i].loss - (begin ? s->curve[begin - 1].loss : 0);
    return s->total / (double)(i + 1 - begin);
}

size_t study_window(const StudyRow *a, const StudyRow *b) {
    size_t shorter = a->curve_rows < b->curve_rows ? a->curve_rows : b->curve_rows;
    size_t window = shorter / 40 > 10 ? shorter / 40 : 10;
    if (window > shorter) window = shorter;
    return window ? window : 1;
}

double study_loss(const StudyRow *row, size_t end, size_t window) {
    return end < window || !window ? NAN : sum(row->curve, end - window, end) / (double)window;
}

/* Returns the lowest smoothed loss, NAN without a curve.  Means over fewer than `window` updates do
 * not count, because a low loss of one batch is no convergence. */
static double lowest(const StudyRow *row, size_t window) {
    StudySmooth smooth = {.curve = row->curve, .window = window};
    double min = NAN;
    while (smooth.next < row->curve_rows) {
        double loss = study_smooth_next(&smooth);
        if (smooth.next >= window && (isnan(min) || loss < min)) min = loss;
    }
    return min;
}

static double first_at(const StudyRow *row, size_t window, double level) {
    StudySmooth smooth = {.curve = row->curve, .window = window};
    while (smooth.next < row->curve_rows)
        if (study_smooth_next(&smooth) <= level && smooth.next >= window)
            return (double)row->curve[smooth.next - 1].step;
    return NAN;
}

static double higher(double a, double b) { return isnan(a) || isnan(b) ? NAN : fmax(a, b); }

static void converge_training(StudyRow *row, const StudyRow *full) {
    size_t window = study_window(row, full);
    row->level = higher(lowest(row, window), lowest(full, window));
    row->steps_to_converge = first_at(row, window, row->level);
    row->epochs_to_converge = row->steps_to_converge * row->epochs / (double)row->steps;
    row->multiplier = row->steps_to_converge / first_at(full, window, row->level);
}

static double lowest_validation(const StudyRow *row) {
    double min = NAN;
    for (size_t e = 0; e < row->evaluation_rows; e++)
        if (isnan(min) || row->evaluation[e].loss < min) min = row->evaluation[e].loss;
    return min;
}

/* Returns the update at which the validation loss reaches the level.  It is interpolated: otherwise
 * ratios could take only the few values that evaluations at the same updates allow. */
static double first_validation(const StudyRow *row, double level) {
    for (size_t e = 0; e < row->evaluation_rows; e++) {
        const EvaluationRow *current = &row->evaluation[e], *previous = current - 1;
        if (!(current->loss <= level)) continue;
        if (!e || !isfinite(previous->loss)) return (double)current->step;
        double weight = (previous->loss - level) / (previous->loss - current->loss);
        return (double)previous->step + weight * (double)(current->step - previous->step);
    }
    return NAN;
}

/* The same by validation loss, which needs no smoothing: it is over the whole split. */
static void converge_validation(StudyRow *row, const StudyRow *full) {
    row->valid_level = higher(lowest_validation(row), lowest_validation(full));
    row->valid_steps = first_validation(row, row->valid_level);
    row->valid_multiplier = row->valid_steps / first_validation(full, row->valid_level);
}

static void reset(StudyRow *row) {
    row->level = row->steps_to_converge = row->epochs_to_converge = NAN;
    row->valid_level = row->valid_steps = NAN;
    row->multiplier = row->valid_multiplier = row->submodels == 1 ? 1 : NAN;
    if (row->curve_rows) row->train_loss = study_loss(row, row->curve_rows, study_window(row, row));
}

static void converge_method(Study *study, const CaseMethod *method) {
    for (int s = 0; s < method->seeds; s++) {
        StudyRow *row = &study->row[method->row[s] - study->row];
        const StudyRow *full = row->submodels > 1 ? case_full_update(method->of, row) : NULL;
        if (!full) continue;
        converge_training(row, full);
        converge_validation(row, full);
    }
}

int study_converge(Study *study) {
    Cases cases;
    for (int r = 0; r < study->rows; r++) {
        reset(&study->row[r]);
        if (plateau_fill(&study->row[r])) return -1;
    }
    if (cases_make(&cases, study)) return -1;
    for (int m = 0; m < cases.methods; m++) converge_method(study, &cases.method[m]);
    cases_free(&cases);
    return 0;
}
