/* Batch normalisation (Ioffe & Szegedy 2015), fused with the residual addition and relu that follow
 * it in a ResNet, because memory traffic limits its speed: forward reads x twice and writes y once.
 *
 * Rows of few channels are too short for vectors and threads, so several rows of c channels are
 * processed as one wide row, in which the constants of the channels repeat. */
#include <math.h>
#include <string.h>

#include "../ops/ops.h"
#include "column_sums.h"
#include "vector_math.h"

enum {
    WIDE = 256,      /* elements of a wide row in the elementwise passes */
    SAMPLE_ROWS = 64 /* rows from which the mean is estimated */
};

/* ---- Sums over rows ---- */

typedef struct {
    const real *dy, *x, *y; /* y NULL: no relu */
    const real *mean, *rstd;
    int columns; /* of a wide row */
} SumArguments;

/* Adds x - K to acc[0] and (x - K)^2 to acc[1], where K = mean[] is an estimate of the mean. */
INLINE void shifted_sums(vec *acc, const SumArguments *a, ptrdiff_t at, int column, int left) {
    vec shift = vec_load_part(a->mean + column, left, 0);
    vec d = vec_load_part(a->x + at, left, 0) - shift;
    acc[0] += d;
    acc[1] += d * d;
}

/* Adds dz to acc[0] and dz (x - mean) to acc[1]. */
INLINE void gradient_sums(vec *acc, const SumArguments *a, ptrdiff_t at, int column, int left) {
    vec mean = vec_load_part(a->mean + column, left, 0);
    vec dz = vec_load_part(a->dy + at, left, 0);
    if (a->y) dz = vec_select(vec_load_part(a->y + at, left, 0) <= 0, (vec){0}, dz);
    acc[0] += dz;
    acc[1] += dz * (vec_load_part(a->x + at, left, 0) - mean);
}

typedef void Term(vec *acc, const SumArguments *a, ptrdiff_t at, int column, int left);

/* Adds both sums of `vectors` vectors of columns over rows [first, end) to sums. */
INLINE void sum_columns(double *sums, const SumArguments *a, int first, int end, int column,
                        int width, const int vectors, Term *term) {
    vec acc[8];
    for (int k = 0; k < 2 * vectors; k++) acc[k] = (vec){0};
    for (int row = first; row < end; row++)
        for (int k = 0; k < vectors; k++) {
            int j = column + k * LANES, left = vectors > 1 ? LANES : width;
            term(acc + 2 * k, a, (ptrdiff_t)row * a->columns + j, j, left);
        }
    for (int k = 0; k < vectors; k++)
        for (int i = 0; i < min(LANES, width - k * LANES); i++) {
            sums[k * LANES + i] += (double)acc[2 * k][i];
            sums[SUM_COLUMNS + k * LANES + i] += (double)acc[2 * k + 1][i];
        }
}

INLINE void sum_tile(double *sums, const SumArguments *a, int first, int end, int column, int width,
                     Term *term) {
    int j = 0;
    for (; j + 4 * LANES <= width; j += 4 * LANES)
        sum_columns(sums + j, a, first, end, column + j, width - j, 4, term);
    for (; j < width; j += LANES)
        sum_columns(sums + j, a, first, end, column + j, width - j, 1, term);
}

static void sum_shifted(double *sums, const void *arguments, int first, int end, int column,
                        int width) {
    sum_tile(sums, arguments, first, end, column, width, shifted_sums);
}

static void sum_gradients(double *sums, const void *arguments, int first, int end, int column,
                          int width) {
    sum_tile(sums, arguments, first, end, column, width, gradient_sums);
}

/* Returns [2][c]: both sums over n rows, in scratch. */
static const double *sum_channels(SumArguments a, int n, int c, RowSum *sum) {
    const int fold = c <= SUM_COLUMNS ? SUM_COLUMNS / c : 1;
    a.columns = fold * c;
    if (fold == 1) return column_sums(2, n, c, sum, &a);
    real mean[SUM_COLUMNS];
    for (int j = 0; j < a.columns; j++) mean[j] = a.mean[j % c];
    a.mean = mean;
    double last[2 * SUM_COLUMNS] = {0};
    double *totals = column_sums(2, n / fold, a.columns, sum, &a);
    if (n % fold) sum(last, &a, n / fold, n / fold + 1, 0, n % fold * c);
    for (int q = 0; q < 2; q++)
        for (int j = 0; j < a.columns; j++) {
            double all = totals[q * a.columns + j] + last[q * SUM_COLUMNS + j];
            if (j < c)
                totals[q * c + j] = all;
            else
                totals[q * c + j % c] += all;
        }
    return totals;
}

/* ---- Forward ---- */

/* Estimates the mean from some rows, spread over all.  The sums of x minus this estimate do not
 * cancel badly: even if all m sampled rows were outliers, the variance of the n rows would still be
 * m/n of their squared distance. */
static void estimate_mean(real *mean, const real *x, int n, int c) {
    const int samples = min(n, SAMPLE_ROWS);
    for (int j = 0; j < c; j++) mean[j] = 0;
    for (int i = 0; i < samples; i++) {
        const real *row = x + (ptrdiff_t)n * i / samples * c;
        for (int j = 0; j < c; j++) mean[j] += row[j];
    }
    for (int j = 0; j < c; j++) mean[j] /= (real)samples;
}

static void batch_statistics(real *mean, real *rstd, real *running_mean, real *running_var,
                             const real *x, int n, int c, double momentum) {
    estimate_mean(mean, x, n, c);
    const double *sums = sum_channels((SumArguments){.x = x, .mean = mean}, n, c, sum_shifted);
    for (int j = 0; j < c; j++) {
        const double distance = sums[j] / n;
        double squares = sums[c + j] - distance * sums[j];
        if (squares < 0) squares = 0; /* by rounding */
        const double average = (double)mean[j] + distance;
        mean[j] = (real)average;
        rstd[j] = (real)(1 / sqrt(squares / n + BATCHNORM_EPS));
        if (momentum == 0) continue;
        real *m = &running_mean[j], *v = &running_var[j];
        *m = (real)((1 - momentum) * (double)*m + momentum * average);
        *v = (real)((1 - momentum) * (double)*v + momentum * squares / (n > 1 ? n - 1 : 1));
    }
}

/* The constants of the elementwise passes, repeated over a wide row. */
typedef struct {
    real mean[WIDE], scale[WIDE], shift[WIDE], slope[WIDE];
} Terms;

/* How the elementwise passes see n rows of channels [channel, channel + width). */
typedef struct {
    int rows, stride, width; /* wide rows */
    int last_width;          /* the last may be shorter */
} WideRow;

static WideRow wide_rows(int n, int c, int channel) {
    const int fold = c <= WIDE ? WIDE / c : 1;
    const int width = min(WIDE, c - channel) * fold;
    const int last = n % fold;
    return (WideRow){(n + fold - 1) / fold, c * fold, width, last ? last * c : width};
}

INLINE void normalise_row(real *restrict y, const real *restrict x, const real *restrict skip,
                          const Terms *t, int width, bool relu) {
    const real low = relu ? 0 : (real)-INFINITY;
    for (int j = 0; j < width; j++) {
        real z = (x[j] - t->mean[j]) * t->scale[j] + t->shift[j];
        if (skip) z += skip[j];
        y[j] = z < low ? low : z;
    }
}

void fast_batchnorm_forward(real *y, real *mean, real *rstd, real *running_mean, real *running_var,
                            const real *x, const real *skip, const real *g, const real *b, int n,
                            int c, bool relu, bool use_running, double momentum) {
    if (use_running) {
        for (int j = 0; j < c; j++) {
            mean[j] = running_mean[j];
            rstd[j] = (real)(1 / sqrt((double)running_var[j] + BATCHNORM_EPS));
        }
    } else {
        batch_statistics(mean, rstd, running_mean, running_var, x, n, c, momentum);
    }
    for (int channel = 0; channel < c; channel += WIDE) {
        const WideRow wide = wide_rows(n, c, channel);
        Terms t;
        for (int j = 0; j < wide.width; j++) {
            const int from = channel + j % c;
            t.mean[j] = mean[from];
            t.scale[j] = g[from] * rstd[from];
            t.shift[j] = b[from];
        }
#pragma omp parallel for if ((size_t)n * (size_t)c > WORTH_THREADS)
        for (int row = 0; row < wide.rows; row++) {
            const size_t at = (size_t)row * (size_t)wide.stride + (size_t)channel;
            const int width = row + 1 < wide.rows ? wide.width : wide.last_width;
            normalise_row(y + at, x + at, skip ? skip + at : NULL, &t, width, relu);
        }
    }
}

/* ---- Gradients ---- */

void fast_batchnorm_sums(real *sums, const real *dy, const real *x, const real *y, const real *mean,
                         const real *rstd, int n, int c, bool relu) {
    const SumArguments a = {.dy = dy, .x = x, .y = relu ? y : NULL, .mean = mean};
    const double *totals = sum_channels(a, n, c, sum_gradients);
    for (int j = 0; j < c; j++) {
        sums[j] = (real)totals[j];
        sums[c + j] = (real)(totals[c + j] * (double)rstd[j]);
    }
}

/* Computes dx and dskip of one wide row, unless they are NULL.  y is NULL without a relu, x with
 * running statistics. */
INLINE void gradient_row(real *dx, real *dskip, const real *dy, const real *x, const real *y,
                         const Terms *t, int width, bool add_dx, bool add_dskip) {
    for (int j = 0; j < width; j += LANES) {
        const int left = width - j;
        vec dz = vec_load_part(dy + j, left, 0);
        if (y) dz = vec_select(vec_load_part(y + j, left, 0) <= 0, (vec){0}, dz);
        if (dskip) {
            vec old = add_dskip ? vec_load_part(dskip + j, left, 0) : (vec){0};
            vec_store_part(dskip + j, old + dz, left);
        }
        if (!dx) continue;
        vec d = dz * vec_load(t->scale + j);
        if (x) {
            vec distance = vec_load_part(x + j, left, 0) - vec_load(t->mean + j);
            d += distance * vec_load(t->slope + j) + vec_load(t->shift + j);
        }
        if (add_dx) d += vec_load_part(dx + j, left, 0);
        vec_store_part(dx + j, d, left);
    }
}

/* dx = g rstd dz - (g rstd^2 sums[1] / n) (x - mean) - g rstd sums[0] / n: three constants and the
 * mean for each channel. */
static void gradient_terms(Terms *t, const real *g, const real *mean, const real *rstd,
                           const real *sums, int n, int c, int channel, int width) {
    for (int j = 0; j < width; j++) {
        const int from = channel + j % c;
        t->mean[j] = mean[from];
        t->scale[j] = g[from] * rstd[from];
        t->slope[j] = sums ? -t->scale[j] * rstd[from] * sums[c + from] / (real)n : 0;
        t->shift[j] = sums ? -t->scale[j] * sums[from] / (real)n : 0;
    }
}

void fast_batchnorm_input_gradient(real *dx, real *dskip, const real *dy, const real *x,
                                   const real *y, const real *g, const real *mean, const real *rstd,
                                   const real *sums, int n, int c, bool relu, bool use_running,
                                   bool add_dx, bool add_dskip) {
    for (int channel = 0; channel < c; channel += WIDE) {
        const WideRow wide = wide_rows(n, c, channel);
        Terms t = {0};
        gradient_terms(&t, g, mean, rstd, use_running ? NULL : sums, n, c, channel, wide.width);
#pragma omp parallel for if ((size_t)n * (size_t)c > WORTH_THREADS)
        for (int row = 0; row < wide.rows; row++) {
            const size_t at = (size_t)row * (size_t)wide.stride + (size_t)channel;
            const int width = row + 1 < wide.rows ? wide.width : wide.last_width;
            gradient_row(dx ? dx + at : NULL, dskip ? dskip + at : NULL, dy + at,
                         use_running ? NULL : x + at, relu ? y + at : NULL, &t, width, add_dx,
                         add_dskip);
        }
    }
}
