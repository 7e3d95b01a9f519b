/* Cross-entropy of softmax(logits), without storing the softmax: the loss needs only the largest
 * logit of a row and the log of sum exp(x - max).  The gradient finds the largest logit again,
 * which costs little next to the exponentials, and computes x - max - log_sum.  With a rounded
 * log-sum-exp, x - lse would lose digits where all logits have a large offset in common. */
#include <math.h>

#include "../ops/ops.h"
#include "vector_math.h"

/* Returns the largest of x[count], or -infinity if count is 0. */
static real largest(const real *x, ptrdiff_t count) {
    vec max = vec_all((real)-INFINITY);
    for (ptrdiff_t j = 0; j < count; j += LANES)
        max = vec_max(vec_load_part(x + j, count - j, (real)-INFINITY), max);
    return vec_largest(max);
}

/* Returns the sum of exp(x - shift), in blocks whose sums are added in double. */
static double sum_exp(const real *x, ptrdiff_t count, real shift) {
    enum { BLOCK = 4096 };
    double total = 0;
    for (ptrdiff_t at = 0; at < count; at += BLOCK) {
        const ptrdiff_t end = count - at < BLOCK ? count : at + BLOCK;
        vec sum = {0};
        for (ptrdiff_t j = at; j < end; j += LANES)
            sum += vec_exp(vec_load_part(x + j, end - j, (real)-INFINITY) - shift);
        total += (double)vec_sum(sum);
    }
    return total;
}

static void forward_row(real *loss, real *log_sum, unsigned char *correct, const real *logits,
                        int target, ptrdiff_t classes) {
    *loss = *log_sum = 0;
    *correct = 0;
    if (target < 0) return;
    const real before = largest(logits, target);
    const real after = largest(logits + target, classes - target);
    const real max = before > after ? before : after, own = logits[target];
    const double log_of_sum = log(sum_exp(logits, classes, max));
    *log_sum = (real)log_of_sum;
    *loss = (real)((double)max - (double)own + log_of_sum);
    *correct = own >= after && (target == 0 || own > before) && !isnan(*loss);
}

void fast_cross_entropy_forward(real *loss, real *log_sum, unsigned char *correct,
                                const real *logits, const int *targets, int rows, int classes) {
#pragma omp parallel for if ((ptrdiff_t)rows * classes > WORTH_THREADS)
    for (ptrdiff_t row = 0; row < rows; row++)
        forward_row(loss + row, log_sum + row, correct + row, logits + row * classes, targets[row],
                    classes);
}

/* dlogits may be logits: each vector is read before it is written. */
static void gradient_row(real *dlogits, const real *logits, real log_sum, int target, real scale,
                         ptrdiff_t classes) {
    if (target < 0) {
        for (ptrdiff_t j = 0; j < classes; j++) dlogits[j] = 0;
        return;
    }
    const real max = largest(logits, classes);
    /* The target's probability minus 1, without cancellation where it is near 1. */
    const real own = scale * (real)expm1((double)logits[target] - (double)max - (double)log_sum);
    for (ptrdiff_t j = 0; j < classes; j += LANES) {
        vec x = vec_load_part(logits + j, classes - j, 0);
        vec_store_part(dlogits + j, scale * vec_exp(x - max - log_sum), classes - j);
    }
    dlogits[target] = own;
}

void fast_cross_entropy_input_gradient(real *dlogits, const real *logits, const real *log_sum,
                                       const int *targets, real scale, int rows, int classes) {
#pragma omp parallel for if ((ptrdiff_t)rows * classes > WORTH_THREADS)
    for (ptrdiff_t row = 0; row < rows; row++)
        gradient_row(dlogits + row * classes, logits + row * classes, log_sum[row], targets[row],
                     scale, classes);
}
