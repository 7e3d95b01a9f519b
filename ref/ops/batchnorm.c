/* Batch normalisation (Ioffe & Szegedy 2015, algorithm 1), with the residual addition and relu that
 * follow it in a ResNet:
 *
 *   y = relu(g xhat + b + skip),  xhat = (x - mean) rstd,  rstd = 1 / sqrt(variance + eps)
 *
 * where mean and variance are those of a channel over all n rows, or the running ones. */
#include <math.h>

#include "plain.h"

/* Computes the statistics of one channel: x[row * c] for each row. */
static void batch_statistics(double *mean, double *variance, const real *x, int n, int c) {
    double sum = 0, squares = 0;
    for (ptrdiff_t row = 0; row < n; row++) sum += x[row * c];
    *mean = sum / n;
    for (ptrdiff_t row = 0; row < n; row++) squares += (x[row * c] - *mean) * (x[row * c] - *mean);
    *variance = squares / n;
}

void batchnorm_forward(real *y, real *mean, real *rstd, real *running_mean, real *running_var,
                       const real *x, const real *skip, const real *g, const real *b, int n, int c,
                       bool relu, bool use_running, double momentum) {
    for (ptrdiff_t j = 0; j < c; j++) {
        double m, variance;
        if (use_running) {
            m = running_mean[j];
            variance = running_var[j];
        } else {
            batch_statistics(&m, &variance, x + j, n, c);
        }
        if (!use_running && momentum > 0) {
            const double unbiased = n > 1 ? variance * n / (n - 1) : variance;
            running_mean[j] = (real)((1 - momentum) * running_mean[j] + momentum * m);
            running_var[j] = (real)((1 - momentum) * running_var[j] + momentum * unbiased);
        }
        const double r = 1 / sqrt(variance + BATCHNORM_EPS);
        for (ptrdiff_t row = 0; row < n; row++) {
            double z = g[j] * (x[row * c + j] - m) * r + b[j];
            if (skip) z += skip[row * c + j];
            y[row * c + j] = relu && z <= 0 ? 0 : (real)z; /* NaN passes through */
        }
        mean[j] = (real)m;
        rstd[j] = (real)r;
    }
}

/* Returns dz, the gradient before the relu. */
static double relu_gradient(const real *dy, const real *y, ptrdiff_t i, bool relu) {
    return relu && y[i] <= 0 ? 0 : dy[i];
}

void batchnorm_sums(real *sums, const real *dy, const real *x, const real *y, const real *mean,
                    const real *rstd, int n, int c, bool relu) {
    for (ptrdiff_t j = 0; j < c; j++) {
        double sum = 0, product = 0;
        for (ptrdiff_t i = j; i < (ptrdiff_t)n * c; i += c) {
            const double dz = relu_gradient(dy, y, i, relu);
            sum += dz;
            product += dz * ((double)x[i] - mean[j]) * rstd[j];
        }
        sums[j] = (real)sum;
        sums[c + j] = (real)product;
    }
}

void batchnorm_input_gradient(real *dx, real *dskip, const real *dy, const real *x, const real *y,
                              const real *g, const real *mean, const real *rstd, const real *sums,
                              int n, int c, bool relu, bool use_running, bool add_dx,
                              bool add_dskip) {
    for (ptrdiff_t i = 0; i < (ptrdiff_t)n * c; i++) {
        const ptrdiff_t j = i % c;
        const double dz = relu_gradient(dy, y, i, relu), r = rstd[j];
        if (dskip) set_or_add(&dskip[i], dz, add_dskip);
        if (!dx) continue;
        double d = dz;
        if (!use_running) {
            const double xhat = ((double)x[i] - mean[j]) * r;
            d -= (sums[j] + xhat * sums[c + j]) / n;
        }
        set_or_add(&dx[i], g[j] * r * d, add_dx);
    }
}
