/* Global average pooling: the mean over all positions of an image, for each channel. */
#include "../ops/ops.h"

static void average(real *restrict y, const real *restrict x, int s, int c) {
    for (int j = 0; j < c; j++) y[j] = 0;
    for (int i = 0; i < s; i++)
        for (int j = 0; j < c; j++) y[j] += x[(size_t)i * (size_t)c + (size_t)j];
    for (int j = 0; j < c; j++) y[j] /= (real)s;
}

void fast_avgpool_forward(real *y, const real *x, int n, int s, int c) {
    const ptrdiff_t image = (ptrdiff_t)s * c;
#pragma omp parallel for if (n * image > WORTH_THREADS)
    for (ptrdiff_t i = 0; i < n; i++) average(y + i * c, x + i * image, s, c);
}

static void spread(real *restrict dx, const real *restrict dy, int s, int c, bool add) {
    for (int i = 0; i < s; i++, dx += c)
        for (int j = 0; j < c; j++) {
            const real d = dy[j] / (real)s;
            dx[j] = add ? dx[j] + d : d;
        }
}

void fast_avgpool_input_gradient(real *dx, const real *dy, int n, int s, int c, bool add) {
    const ptrdiff_t image = (ptrdiff_t)s * c;
#pragma omp parallel for if (n * image > WORTH_THREADS)
    for (ptrdiff_t i = 0; i < n; i++) spread(dx + i * image, dy + i * c, s, c, add);
}
