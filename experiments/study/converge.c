/* Steps to convergence and the B-F multiplier, from the curves of trainings; and the convergence of
 * a training by itself. */
#include "converge.h"

#include <math.h>
#include <stdlib.h>

#include "../alloc.h"
#include "cases.h"

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

/* ---- smoothed losses ------------------------------------------------------------------------- */

/* Trailing means of a loss over a window of updates or evaluations.  There are none over less than
 * a window, because a low loss of one batch is no convergence. */
typedef struct {
    double step, loss;
} Point;
typedef struct {
    size_t points;
    Point *point;
    bool interpolated; /* otherwise ratios of evaluations at the same updates take few values */
} Smooth;

/* Returns the window for comparing two trainings: a fortieth of the shorter one, but at least ten
 * rows, or all when there are fewer. */
static size_t window_of(const StudyRow *a, const StudyRow *b) {
    size_t shorter = a->curve_rows < b->curve_rows ? a->curve_rows : b->curve_rows;
    size_t window = shorter / 40 > 10 ? shorter / 40 : 10;
    if (window > shorter) window = shorter;
    return window ? window : 1;
}

static double sum(const CurveRow *curve, size_t begin, size_t end) {
    double total = 0;
    for (size_t i = begin; i < end; i++) total += curve[i].loss;
    return total;
}

static Smooth smooth_training(const StudyRow *row, size_t window) {
    Smooth smooth = {.point = xmalloc((row->curve_rows + 1) * sizeof *smooth.point)};
    double total = 0;
    for (size_t i = 0; i < row->curve_rows; i++) {
        size_t begin = i + 1 > window ? i + 1 - window : 0;
        /* It is computed anew once per window, so that rounding errors do not add up. */
        if (i % window == 0)
            total = sum(row->curve, begin, i + 1);
        else
            total += row->curve[i].loss - (begin ? row->curve[begin - 1].loss : 0);
        if (i + 1 >= window)
            smooth.point[smooth.points++] =
                (Point){(double)row->curve[i].step, total / (double)window};
    }
    return smooth;
}

/* What is averaged over evaluations: the loss, or the cost, which is the error in per cent of an
 * image model.  Less is better. */
static double loss_of(const StudyRow *row, size_t e) { return row->evaluation[e].loss; }
static double cost_of(const StudyRow *row, size_t e) {
    return study_is_images(row) ? 100 - 100 * row->evaluation[e].accuracy : loss_of(row, e);
}

/* Returns the mean of the `count` evaluations up to number `last`. */
static double mean_to(const StudyRow *row, size_t last, size_t count,
                      double (*of)(const StudyRow *, size_t)) {
    double sum = 0;
    for (size_t e = last + 1 - count; e <= last; e++) sum += of(row, e);
    return sum / (double)count;
}

/* The mean validation losses of `count` evaluations; each belongs to the middle one. */
static Smooth smooth_validation(const StudyRow *row, size_t count) {
    Smooth smooth = {.point = xmalloc((row->evaluation_rows + 1) * sizeof *smooth.point),
                     .interpolated = true};
    for (size_t e = count - 1; e < row->evaluation_rows; e++)
        smooth.point[smooth.points++] =
            (Point){(double)row->evaluation[e - count / 2].step, mean_to(row, e, count, loss_of)};
    return smooth;
}

/* ---- the same loss --------------------------------------------------------------------------- */

static double lowest(const Smooth *smooth) {
    double min = NAN;
    for (size_t p = 0; p < smooth->points; p++) min = fmin(min, smooth->point[p].loss);
    return min;
}

/* Returns the updates until the loss is at or below the level. */
static double first_at(const Smooth *smooth, double level) {
    for (size_t p = 0; p < smooth->points; p++) {
        const Point *now = &smooth->point[p], *before = p ? now - 1 : NULL;
        if (!(now->loss <= level)) continue;
        if (!smooth->interpolated || !before || !isfinite(before->loss)) return now->step;
        double weight = (before->loss - level) / (before->loss - now->loss);
        return before->step + weight * (now->step - before->step);
    }
    return NAN;
}

/* Compares two trainings at the higher of their two lowest losses, and frees the points.  Returns
 * false when one of them had that loss in its first mean already. */
static bool compare(double *level, double *steps, double *multiplier, Smooth own, Smooth full) {
    double low = lowest(&own), full_low = lowest(&full);
    *level = isnan(low) || isnan(full_low) ? NAN : fmax(low, full_low);
    *steps = first_at(&own, *level);
    *multiplier = *steps / first_at(&full, *level);
    bool later = isnan(*level) || fmin(own.point->loss, full.point->loss) > *level;
    free(own.point);
    free(full.point);
    return later;
}

static void converge_row(StudyRow *row, const StudyRow *full) {
    size_t window = window_of(row, full);
    compare(&row->level, &row->steps_to_converge, &row->multiplier, smooth_training(row, window),
            smooth_training(full, window));
    row->epochs_to_converge = row->steps_to_converge * row->epochs / (double)row->steps;
    /* A validation loss needs no smoothing: it is over the whole split. */
    compare(&row->valid_level, &row->valid_steps, &row->valid_multiplier, smooth_validation(row, 1),
            smooth_validation(full, 1));
}

double plateau_multiplier(const StudyRow *row, const StudyRow *full) {
    double level, steps, multiplier;
    bool later = compare(&level, &steps, &multiplier, smooth_validation(row, PLATEAU_MEAN),
                         smooth_validation(full, PLATEAU_MEAN));
    return later ? multiplier : NAN; /* one that begins below reached it at an unknown update */
}

/* ---- a training by itself -------------------------------------------------------------------- */

static double epoch_of(const StudyRow *row, size_t e) {
    return (double)row->evaluation[e].step * row->epochs / (double)row->steps;
}

int plateau_find(const StudyRow *row, double amount, double patience) {
    size_t n = row->evaluation_rows, best = PLATEAU_MEAN - 1;
    for (size_t e = PLATEAU_MEAN; e < n; e++) {
        /* The next value counts even if it comes later than `patience`. */
        if (epoch_of(row, e) - epoch_of(row, best) > patience && e > best + 1) return (int)best;
        if (mean_to(row, e, PLATEAU_MEAN, cost_of) <
            mean_to(row, best, PLATEAU_MEAN, cost_of) - amount)
            best = e;
    }
    /* If the training ended within `patience`, nothing is known of what would have followed. */
    return n > best && epoch_of(row, n - 1) - epoch_of(row, best) >= patience ? (int)best : -1;
}

double plateau_score(const StudyRow *row, double updates, double *spread) {
    size_t end = 0;
    Mean mean = {0};
    while (end < row->evaluation_rows && (double)row->evaluation[end].step <= updates) end++;
    for (size_t e = end - PLATEAU_MEAN; end >= PLATEAU_MEAN && e < end; e++)
        mean_add(&mean, study_score(row, &row->evaluation[e]));
    bool all = mean.count == PLATEAU_MEAN;
    if (spread) *spread = all ? mean_spread(&mean) : NAN;
    return all ? mean_value(&mean) : NAN;
}

void plateau_fill(StudyRow *row) {
    bool images = study_is_images(row);
    int at = plateau_find(row, images ? PLATEAU_POINTS : PLATEAU_NATS,
                          images ? PLATEAU_IMAGE_EPOCHS : PLATEAU_TOKEN_EPOCHS);
    row->plateau_steps = row->plateau_epochs = row->plateau_score = row->plateau_spread = NAN;
    row->end_score = plateau_score(row, INFINITY, &row->end_spread);
    if (at < 0) return;
    row->plateau_steps = (double)row->evaluation[at].step;
    row->plateau_epochs = epoch_of(row, (size_t)at);
    row->plateau_score = plateau_score(row, row->plateau_steps, &row->plateau_spread);
}

/* ---- all trainings --------------------------------------------------------------------------- */

static void reset(StudyRow *row) {
    row->level = row->steps_to_converge = row->epochs_to_converge = NAN;
    row->valid_level = row->valid_steps = NAN;
    row->multiplier = row->valid_multiplier = row->submodels == 1 ? 1 : NAN;
    size_t window = window_of(row, row), end = row->curve_rows;
    if (end) row->train_loss = sum(row->curve, end - window, end) / (double)window;
}

static void converge_method(Study *study, const CaseMethod *method) {
    for (int s = 0; s < method->seeds; s++) {
        StudyRow *row = &study->row[method->row[s] - study->row];
        const StudyRow *full = row->submodels > 1 ? case_full_update(method->of, row) : NULL;
        if (full) converge_row(row, full);
    }
}

void study_converge(Study *study) {
    Cases cases;
    for (int r = 0; r < study->rows; r++) {
        reset(&study->row[r]);
        plateau_fill(&study->row[r]);
    }
    cases_make(&cases, study);
    for (int m = 0; m < cases.methods; m++) converge_method(study, &cases.method[m]);
    cases_free(&cases);
}
