/* y = x w^T + b and its gradients: three matrix products (Rumelhart, Hinton and Williams 1986). */
#include <string.h>

#include "../ops/ops.h"
#include "matmul.h"

void fast_linear_forward(real *y, const real *x, const real *w, const real *b, int n, int c,
                         int o) {
    matmul(y, o, x, c, false, w, c, true, b, n, o, c, false);
}

void fast_linear_input_gradient(real *dx, const real *dy, const real *w, int n, int c, int o,
                                bool add) {
    matmul(dx, c, dy, o, false, w, c, false, NULL, n, c, o, add);
}

void fast_linear_weight_gradient(real *dw, const real *dy, const real *x, int n, int c, int o,
                                 bool add) {
    matmul(dw, c, dy, o, true, x, c, false, NULL, o, c, n, add);
}

/* Columns [begin, end), every row in order. */
static void sum_rows(real *db, const real *dy, int n, int c, int begin, int end, bool add) {
    if (!add) memset(db + begin, 0, (size_t)(end - begin) * sizeof *db);
    for (int i = 0; i < n; i++)
        for (int j = begin; j < end; j++) db[j] += dy[(ptrdiff_t)i * c + j];
}

/* Threads take columns, so that no sum is divided among them. */
void fast_bias_gradient(real *db, const real *dy, int n, int c, bool add) {
    enum { COLUMNS = 64 }; /* a cache line per row would leave the memory mostly idle */
#pragma omp parallel for schedule(static) if ((size_t)n * (size_t)c > WORTH_THREADS)
    for (int j = 0; j < c; j += COLUMNS)
        sum_rows(db, dy, n, c, j, j + COLUMNS < c ? j + COLUMNS : c, add);
}
