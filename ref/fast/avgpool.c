/* Global average pooling: the mean over all positions of an image, for each channel. */
#include "fast.h"
#include "rows.h"

static void average(real *restrict y, const real *restrict x, int s, int c) {
    for (int j = 0; j < c; j++) y[j] = 0;
    for (int i = 0; i < s; i++)
        for (int j = 0; j < c; j++) y[j] += x[(size_t)i * (size_t)c + (size_t)j];
    for (int j = 0; j < c; j++) y[j] /= (real)s;
}

void fast_avgpool_forward(real *y, const real *x, int n, int s, int c) {
    const size_t image = (size_t)s * (size_t)c;
#pragma omp parallel for if ((size_t)n * image > WORTH_THREADS)
    for (int i = 0; i < n; i++) average(y + (size_t)i * (size_t)c, x + (size_t)i * image, s, c);
}

static void spread(real *restrict dx, const real *restrict dy, int s, int c, bool add) {
    for (int i = 0; i < s; i++, dx += c) {
        if (add)
            for (int j = 0; j < c; j++) dx[j] += dy[j] / (real)s;
        else
            for (int j = 0; j < c; j++) dx[j] = dy[j] / (real)s;
    }
}

void fast_avgpool_input_gradient(real *dx, const real *dy, int n, int s, int c, bool add) {
    const size_t image = (size_t)s * (size_t)c;
#pragma omp parallel for if ((size_t)n * image > WORTH_THREADS)
    for (int i = 0; i < n; i++)
        spread(dx + (size_t)i * image, dy + (size_t)i * (size_t)c, s, c, add);
}
