/* Global average pooling (Lin, Chen, Yan 2014): the mean of each channel over all positions. */
#include "plain.h"

/* y[n][c] = 1/s sum_i x[n][i][c] */
void avgpool_forward(real *y, const real *x, int n, int s, int c) {
    for (ptrdiff_t image = 0; image < n; image++)
        for (ptrdiff_t j = 0; j < c; j++) {
            double sum = 0;
            for (ptrdiff_t i = 0; i < s; i++) sum += x[(image * s + i) * c + j];
            y[image * c + j] = (real)(sum / s);
        }
}

/* dx[n][i][c] = 1/s dy[n][c] */
void avgpool_input_gradient(real *dx, const real *dy, int n, int s, int c, bool add) {
    for (ptrdiff_t image = 0; image < n; image++)
        for (ptrdiff_t i = 0; i < s; i++)
            for (ptrdiff_t j = 0; j < c; j++)
                set_or_add(&dx[(image * s + i) * c + j], (double)dy[image * c + j] / s, add);
}
