#include "converge.h"

#include <math.h>
#include <stdlib.h>

#include "../../ref/error.h"
#include "cases.h"

/* Returns the mean of the PLATEAU_MEAN values up to `last`. */
static double mean_to(const double *value, int last) {
    double sum = 0;
    for (int i = last - PLATEAU_MEAN + 1; i <= last; i++) sum += value[i];
    return sum / PLATEAU_MEAN;
}

int plateau_find(const double *epoch, const double *value, int n, double amount, double patience) {
    int best = PLATEAU_MEAN - 1;
    for (int i = PLATEAU_MEAN; i < n; i++) {
        /* The next value counts even if it comes later than `patience`. */
        if (epoch[i] - epoch[best] > patience && i > best + 1) return best;
        if (mean_to(value, i) < mean_to(value, best) - amount) best = i;
    }
    /* If the training ended within `patience`, nothing is known of what would have followed. */
    return n > best && epoch[n - 1] - epoch[best] >= patience ? best : -1;
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

/* Returns a value of which less is better: the error in per cent, or the loss. */
static double cost_of(const StudyRow *row, const EvaluationRow *evaluation) {
    return study_is_images(row) ? 100 - 100 * evaluation->accuracy : evaluation->loss;
}

int plateau_fill(StudyRow *row) {
    bool images = study_is_images(row);
    int n = (int)row->evaluation_rows;
    row->plateau_steps = row->plateau_epochs = row->plateau_score = row->plateau_spread = NAN;
    row->end_score = plateau_score(row, INFINITY, &row->end_spread);
    double *epoch = calloc(2 * (size_t)n + 1, sizeof *epoch), *cost = epoch + n;
    if (!epoch) return error_set("study: out of memory");
    for (int e = 0; e < n; e++) {
        epoch[e] = (double)row->evaluation[e].step * row->epochs / (double)row->steps;
        cost[e] = cost_of(row, &row->evaluation[e]);
    }
    int at = plateau_find(epoch, cost, n, images ? PLATEAU_POINTS : PLATEAU_NATS,
                          images ? PLATEAU_IMAGE_EPOCHS : PLATEAU_TOKEN_EPOCHS);
    if (at >= 0) {
        row->plateau_steps = (double)row->evaluation[at].step;
        row->plateau_epochs = epoch[at];
        row->plateau_score = plateau_score(row, row->plateau_steps, &row->plateau_spread);
    }
    free(epoch);
    return 0;
}
