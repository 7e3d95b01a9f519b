/* Cross-entropy of p = softmax(x): loss = -log p[target].  The largest x is subtracted before the
 * exponential, which changes only the rounding: no sum overflows, and an offset that all x have in
 * common costs the gradient no digits (Goodfellow, Bengio, Courville 2016, section 4.1). */
#include <math.h>

#include "plain.h"

/* Returns the index of the largest x, the first on a tie; a NaN counts as largest. */
static int first_largest(const real *x, int classes) {
    int best = 0;
    for (int j = 1; j < classes; j++)
        if (x[j] > x[best] || isnan(x[j])) best = j;
    return best;
}

void cross_entropy_forward(real *loss, real *log_sum, unsigned char *correct, const real *logits,
                           const int *targets, int rows, int classes) {
    for (ptrdiff_t row = 0; row < rows; row++) {
        const real *x = logits + row * classes;
        loss[row] = log_sum[row] = 0;
        correct[row] = 0;
        if (targets[row] < 0) continue;
        const int best = first_largest(x, classes);
        double sum = 0;
        for (int j = 0; j < classes; j++) sum += exp((double)x[j] - x[best]);
        log_sum[row] = (real)log(sum);
        loss[row] = (real)((double)x[best] - x[targets[row]] + log(sum));
        correct[row] = best == targets[row] && !isnan(loss[row]);
    }
}

/* dx[j] = scale (p[j] - [j = target]),  p[j] = exp(x[j] - max - log_sum) */
void cross_entropy_input_gradient(real *dlogits, const real *logits, const real *log_sum,
                                  const int *targets, real scale, int rows, int classes) {
    for (ptrdiff_t row = 0; row < rows; row++) {
        const real *x = logits + row * classes;
        const double max = x[first_largest(x, classes)];
        for (int j = 0; j < classes; j++) {
            const double log_p = x[j] - max - log_sum[row];
            /* p - 1 without cancellation where p is near 1 */
            const double d = j == targets[row] ? expm1(log_p) : exp(log_p);
            dlogits[row * classes + j] = targets[row] < 0 ? 0 : (real)(scale * d);
        }
    }
}
