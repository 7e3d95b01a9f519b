/* Steps to convergence and the B-F multiplier, from the curves of trainings; and the convergence of
 * a training by itself. */
#include "converge.h"

#include <math.h>

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

/* Returns the window for comparing two trainings: a fortieth of the shorter one, but at least ten
 * rows, or all when there are fewer. */
static size_t window_of(const StudyRow *a, const StudyRow *b) {
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
    size_t window = window_of(row, full);
    row->level = higher(lowest(row, window), lowest(full, window));
    row->steps_to_converge = first_at(row, window, row->level);
    row->epochs_to_converge = row->steps_to_converge * row->epochs / (double)row->steps;
    row->multiplier = row->steps_to_converge / first_at(full, window, row->level);
}

/* What is averaged over evaluations: the loss, or the cost, which is the error in per cent of an
 * image model.  Less is better. */
static double loss_of(const StudyRow *row, size_t e) { return row->evaluation[e].loss; }
static double cost_of(const StudyRow *row, size_t e) {
    return study_is_images(row) ? 100 - 100 * row->evaluation[e].accuracy : loss_of(row, e);
}

/* Returns the mean of the `count` evaluations up to number `last`; NAN for fewer. */
static double mean_to(const StudyRow *row, size_t last, size_t count,
                      double (*of)(const StudyRow *, size_t)) {
    double sum = 0;
    if (last + 1 < count) return NAN;
    for (size_t e = last + 1 - count; e <= last; e++) sum += of(row, e);
    return sum / (double)count;
}

static double lowest_validation(const StudyRow *row, size_t count) {
    double min = NAN;
    for (size_t e = 0; e < row->evaluation_rows; e++) {
        double loss = mean_to(row, e, count, loss_of);
        if (isnan(min) || loss < min) min = loss;
    }
    return min;
}

/* Returns the update at which the mean validation loss of `count` evaluations, which belongs to the
 * middle one, reaches the level.  It is interpolated: otherwise ratios could take only the few
 * values that evaluations at the same updates allow. */
static double first_validation(const StudyRow *row, double level, size_t count) {
    for (size_t e = count - 1; e < row->evaluation_rows; e++) {
        const EvaluationRow *middle = &row->evaluation[e - count / 2];
        double loss = mean_to(row, e, count, loss_of);
        if (!(loss <= level)) continue;
        double before = e >= count ? mean_to(row, e - 1, count, loss_of) : NAN;
        if (!isfinite(before)) return (double)middle->step;
        double weight = (before - level) / (before - loss);
        return (double)middle[-1].step + weight * (double)(middle->step - middle[-1].step);
    }
    return NAN;
}

/* The same by validation loss, which needs no smoothing: it is over the whole split. */
static void converge_validation(StudyRow *row, const StudyRow *full) {
    row->valid_level = higher(lowest_validation(row, 1), lowest_validation(full, 1));
    row->valid_steps = first_validation(row, row->valid_level, 1);
    row->valid_multiplier = row->valid_steps / first_validation(full, row->valid_level, 1);
}

double plateau_multiplier(const StudyRow *row, const StudyRow *full) {
    size_t count = PLATEAU_MEAN, first = count - 1;
    double level = higher(lowest_validation(row, count), lowest_validation(full, count));
    /* One that begins below the level reached it at an unknown update. */
    if (isnan(level) || mean_to(row, first, count, loss_of) <= level ||
        mean_to(full, first, count, loss_of) <= level)
        return NAN;
    return first_validation(row, level, count) / first_validation(full, level, count);
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
    if (row->curve_rows) row->train_loss = study_loss(row, row->curve_rows, window_of(row, row));
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
