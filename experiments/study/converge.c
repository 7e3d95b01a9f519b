/* Steps to convergence and the B-F multiplier, from the curves of training. */
#include <math.h>
#include <stdlib.h>

#include "../../ref/error.h"
#include "study.h"

const char study_convergence_rule[] =
    "The training loss is smoothed by a trailing mean over a fortieth of the shortest training of "
    "the group (same model, data, optimizer, batch and seed), at least ten updates. Each training "
    "has a lowest smoothed "
    "loss; the highest of these, reached by every method of the group, is the level. A training "
    "has converged at the first step whose smoothed loss is at or below the level. The B-F "
    "multiplier is steps to converge with BCD over steps to converge with the full update, to the "
    "same loss. The same is done with the validation losses, without smoothing. All of it depends "
    "on how long the trainings ran; the paper's rule is not stated.";

static double sum(const CurveRow *curve, size_t begin, size_t end) {
    double total = 0;
    for (size_t i = begin; i < end; i++) total += curve[i].loss;
    return total;
}

void study_smooth(double *smooth, const CurveRow *curve, size_t rows, size_t window) {
    double total = 0;
    for (size_t i = 0; i < rows; i++) {
        size_t begin = i + 1 > window ? i + 1 - window : 0;
        /* A running sum, begun afresh once a window so that rounding does not add up. */
        if (i % window == 0)
            total = sum(curve, begin, i + 1);
        else
            total += curve[i].loss - (begin ? curve[begin - 1].loss : 0);
        smooth[i] = total / (double)(i + 1 - begin);
    }
}

size_t study_window(const Study *study, const int *group, int number) {
    size_t shortest = SIZE_MAX;
    for (int r = 0; r < study->rows; r++)
        if (group[r] == number && study->row[r].curve_rows < shortest)
            shortest = study->row[r].curve_rows;
    size_t window = shortest / 40 > 10 ? shortest / 40 : 10;
    if (window > shortest) window = shortest;
    return window ? window : 1;
}

/* The lowest smoothed loss; NAN without a curve.  A mean over fewer than `window` updates does not
 * count: one lucky first batch is no convergence. */
static double lowest(const double *smooth, size_t rows, size_t window) {
    double least = NAN;
    for (size_t i = window - 1; i < rows; i++)
        if (isnan(least) || smooth[i] < least) least = smooth[i];
    return least;
}

static double first_at(const StudyRow *row, const double *smooth, size_t window, double level) {
    for (size_t i = window - 1; i < row->curve_rows; i++)
        if (smooth[i] <= level) return (double)row->curve[i].step;
    return NAN;
}

/* The smoothed curves of a group, each pass anew: only one is held at a time. */
static double group_level(Study *study, const int *group, int number, size_t window,
                          double *smooth) {
    double level = NAN;
    for (int r = 0; r < study->rows; r++) {
        StudyRow *row = &study->row[r];
        if (group[r] != number || !row->curve_rows) continue;
        study_smooth(smooth, row->curve, row->curve_rows, window);
        row->train_loss = smooth[row->curve_rows - 1];
        double least = lowest(smooth, row->curve_rows, window);
        if (isnan(level) || least > level) level = least;
    }
    return level;
}

/* The same by the validation loss, which is not smoothed: it is of the whole split. */
static void converge_validation(Study *study, const int *group, int number) {
    double level = NAN, full_steps = NAN;
    for (int r = 0; r < study->rows; r++) {
        const StudyRow *row = &study->row[r];
        double least = NAN;
        if (group[r] != number) continue;
        for (size_t e = 0; e < row->evaluation_rows; e++)
            if (isnan(least) || row->evaluation[e].loss < least) least = row->evaluation[e].loss;
        if (isnan(level) || least > level) level = least;
    }
    for (int r = 0; r < study->rows; r++) {
        StudyRow *row = &study->row[r];
        if (group[r] != number) continue;
        row->valid_level = level;
        row->valid_steps = NAN;
        for (size_t e = row->evaluation_rows; e-- > 0;)
            if (row->evaluation[e].loss <= level)
                row->valid_steps = (double)row->evaluation[e].step;
        if (row->submodels == 1) full_steps = row->valid_steps;
    }
    for (int r = 0; r < study->rows; r++)
        if (group[r] == number)
            study->row[r].valid_multiplier = study->row[r].valid_steps / full_steps;
}

static void converge_group(Study *study, const int *group, int number, double *smooth) {
    size_t window = study_window(study, group, number);
    double level = group_level(study, group, number, window, smooth), full_steps = NAN;
    for (int r = 0; r < study->rows; r++) {
        StudyRow *row = &study->row[r];
        if (group[r] != number) continue;
        study_smooth(smooth, row->curve, row->curve_rows, window);
        row->level = level;
        row->steps_to_converge = first_at(row, smooth, window, level);
        row->epochs_to_converge = row->steps_to_converge * row->epochs / (double)row->steps;
        if (row->submodels == 1) full_steps = row->steps_to_converge;
    }
    for (int r = 0; r < study->rows; r++)
        if (group[r] == number)
            study->row[r].multiplier = study->row[r].steps_to_converge / full_steps;
}

int study_converge(Study *study) {
    size_t longest = 0;
    for (int r = 0; r < study->rows; r++)
        if (study->row[r].curve_rows > longest) longest = study->row[r].curve_rows;
    int *group = calloc((size_t)study->rows + 1, sizeof *group);
    double *smooth = calloc(longest + 1, sizeof *smooth);
    if (group && smooth) {
        int groups = study_groups(study, group);
        for (int g = 0; g < groups; g++) {
            converge_group(study, group, g, smooth);
            converge_validation(study, group, g);
        }
    }
    bool failed = !group || !smooth;
    free(group);
    free(smooth);
    return failed ? error_set("study: out of memory to smooth %zu losses", longest) : 0;
}
