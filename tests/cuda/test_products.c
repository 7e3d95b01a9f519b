/* Compares matrix products, with everything that may follow them (cuda/matmul.h), with sums in
 * double. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../cuda/matmul.h"
#include "../../ref/base/random.h"
#include "../ref/tolerance.h"
#include "../test.h"
#include "device_array.h"

typedef struct {
    int m, n, k;
    bool transpose_a, transpose_b;
    int pad; /* the numbers between rows */
    bool add, c_float, bias;
    Epilogue epilogue;
    bool saved, sums;
} Row;

static const Row rows[] = {
    {1, 1, 1, .bias = true},
    {1, 17, 5, .transpose_b = true, .bias = true},
    {31, 1, 33, .transpose_a = true},
    {33, 31, 64, .add = true},
    {7, 40, 24, .transpose_b = true, .pad = 3},
    {7, 40, 24, .transpose_b = true, .pad = 8, .bias = true},
    {40, 7, 24, .transpose_a = true, .transpose_b = true, .pad = 1, .add = true},
    {64, 96, 80, .transpose_b = true, .bias = true},
    {16, 24, 40, .transpose_b = true, .bias = true, .epilogue = EPILOGUE_GELU, .saved = true},
    {16, 24, 40, .transpose_b = true, .bias = true, .epilogue = EPILOGUE_GELU},
    {13, 31, 7, .transpose_b = true, .bias = true, .epilogue = EPILOGUE_GELU, .saved = true},
    {13, 31, 7, .epilogue = EPILOGUE_GELU, .saved = true},
    {16, 24, 40, .epilogue = EPILOGUE_GELU_GRADIENT, .saved = true},
    {13, 31, 7, .epilogue = EPILOGUE_GELU_GRADIENT, .saved = true},
    {24, 16, 48, .transpose_a = true, .c_float = true, .sums = true},
    {24, 16, 48, .transpose_a = true, .c_float = true, .sums = true, .add = true},
    {13, 7, 31, .transpose_a = true, .c_float = true, .sums = true},
    {10, 64, 129, .transpose_a = true, .c_float = true, .add = true},
};

typedef enum { A, B, C, BIAS, SAVED, SUMS, ARRAYS_OF } Which;
typedef struct {
    const Row *row;
    Precision precision;
    int lda, ldb, ldc;
    size_t count[ARRAYS_OF];
    float *host[ARRAYS_OF];
    void *device[ARRAYS_OF];
} Data;

static bool is_float(const Data *d, Which which) {
    return which == SUMS || (which == C && d->row->c_float);
}

static Precision type_of(const Data *d, Which which) {
    return is_float(d, which) ? PRECISION_FP32 : d->precision;
}

/* Fills the operands with numbers in (-1, 1), and what must not be read with NaN. */
static void create(Data *d, const Row *r, Precision precision) {
    *d = (Data){.row = r, .precision = precision};
    d->lda = (r->transpose_a ? r->m : r->k) + (r->sums ? 0 : r->pad);
    d->ldb = (r->transpose_b ? r->k : r->n) + r->pad;
    d->ldc = r->n + r->pad;
    d->count[A] = (size_t)(r->transpose_a ? r->k : r->m) * (size_t)d->lda;
    d->count[B] = (size_t)(r->transpose_b ? r->n : r->k) * (size_t)d->ldb;
    d->count[C] = (size_t)r->m * (size_t)d->ldc;
    d->count[BIAS] = r->bias ? (size_t)r->n : 0;
    d->count[SAVED] = r->saved ? d->count[C] : 0;
    d->count[SUMS] = r->sums ? (size_t)r->m : 0;
    for (Which w = A; w < ARRAYS_OF; w++) {
        bool read = w == A || w == B || w == BIAS || (w == C && r->add) ||
                    (w == SAVED && r->epilogue == EPILOGUE_GELU_GRADIENT);
        d->host[w] = malloc((d->count[w] + 1) * sizeof(float));
        if (!d->host[w]) abort();
        for (size_t i = 0; i < d->count[w]; i++) {
            float x = read ? (float)(2 * random_uniform(7, (uint32_t)w, i) - 1) : NAN;
            d->host[w][i] = type_of(d, w) == PRECISION_BF16 ? nearest_bf16(x) : x;
        }
        d->device[w] =
            d->count[w] ? device_put_values(d->host[w], d->count[w], type_of(d, w)) : NULL;
    }
}

static void destroy(Data *d) {
    for (Which w = A; w < ARRAYS_OF; w++) {
        free(d->host[w]);
        device_free(d->device[w]);
    }
}

/* The kernel for products that the library lacks, which takes no more than the product. */
enum { PLAIN = 0 };

static void multiply(const Data *d, int version) {
    const Row *r = d->row;
    size_t needed = cuda_matmul_workspace(), sums = cuda_bias_gradient_workspace(r->k, r->m);
    void *workspace = device_alloc(needed > sums ? needed : sums);
    Run run = {device_test_stream(), d->precision, version, workspace};
    Product product = {.c = d->device[C],
                       .a = d->device[A],
                       .b = d->device[B],
                       .ldc = d->ldc,
                       .lda = d->lda,
                       .ldb = d->ldb,
                       .transpose_a = r->transpose_a,
                       .transpose_b = r->transpose_b,
                       .m = r->m,
                       .n = r->n,
                       .k = r->k,
                       .add = r->add,
                       .c_float = r->c_float,
                       .bias = d->device[BIAS],
                       .epilogue = r->epilogue,
                       .saved = d->device[SAVED],
                       .column_sums = d->device[SUMS]};
    if (version == PLAIN)
        cuda_plain_product(&run, &product);
    else
        cuda_matmul(&run, &product);
    device_test_wait();
    device_free(workspace);
}

/* ---- the truth ---- */

static double a_at(const Data *d, int i, int k) {
    return (double)(d->row->transpose_a ? d->host[A][k * d->lda + i] : d->host[A][i * d->lda + k]);
}

static double b_at(const Data *d, int k, int j) {
    return (double)(d->row->transpose_b ? d->host[B][j * d->ldb + k] : d->host[B][k * d->ldb + j]);
}

static double product_at(const Data *d, int i, int j) {
    double sum = d->row->bias ? (double)d->host[BIAS][j] : 0;
    if (d->row->add) sum += (double)d->host[C][i * d->ldc + j];
    for (int k = 0; k < d->row->k; k++) sum += a_at(d, i, k) * b_at(d, k, j);
    return sum;
}

static double gelu(double x) {
    return x / (1 + exp(-2 * sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
}

static double gelu_slope(double x) { return (gelu(x + 1e-5) - gelu(x - 1e-5)) / 2e-5; }

/* Returns how far the sum may be off before the epilogue: k products of operands that are cut off
 * to tf32 (accuracy.c), summed in float. */
static double product_error(const Data *d, double value) {
    double k = d->row->k, operands = d->precision == PRECISION_TF32 ? 2 * 0x1p-10 * sqrt(k) : 0;
    return operands + tolerance(k + 2, fmax(1, fabs(value)));
}

static double stored_error(const Data *d, Which which, double value) {
    return type_of(d, which) == PRECISION_BF16 ? 0x1p-8 * fabs(value) : 0;
}

/* ---- the checks ---- */

static void check(const char *what, int i, int j, float got, double value, double allowed) {
    double error = fabs((double)got - value);
    CHECK(error <= allowed, "%s[%d][%d] is %.9g, not %.9g (allowed %.3g)", what, i, j, (double)got,
          value, allowed);
}

/* Gelu multiplies an error of its argument by at most 1.13, and the argument may have been
 * rounded. */
static void check_element(const Data *d, int i, int j, const float *c, const float *saved) {
    size_t at = (size_t)i * (size_t)d->ldc + (size_t)j;
    double sum = product_at(d, i, j), error = product_error(d, sum);
    double stored = error + stored_error(d, C, fabs(sum) + error);
    if (d->row->epilogue == EPILOGUE_NONE) {
        check("c", i, j, c[at], sum, stored);
        return;
    }
    bool gradient = d->row->epilogue == EPILOGUE_GELU_GRADIENT;
    double value = gradient ? sum * gelu_slope((double)d->host[SAVED][at]) : gelu(sum);
    double allowed = 1.13 * stored + tolerance(1, fmax(1, fabs(value)));
    check("c", i, j, c[at], value, allowed + stored_error(d, C, fabs(value) + allowed));
    if (!gradient && saved) check("saved", i, j, saved[at], sum, stored);
}

static void check_padding(const Data *d, const float *c) {
    for (int i = 0; i < d->row->m; i++)
        for (int j = d->row->n; j < d->ldc; j++) {
            size_t at = (size_t)i * (size_t)d->ldc + (size_t)j;
            bool kept = d->row->add ? c[at] == d->host[C][at] : isnan(c[at]);
            CHECK(kept, "c[%d][%d], behind a row, was written: %.9g", i, j, (double)c[at]);
        }
}

static void check_sums(const Data *d, const float *sums) {
    for (int i = 0; i < d->row->m; i++) {
        double sum = 0;
        for (int k = 0; k < d->row->k; k++) sum += a_at(d, i, k);
        check("column sums", i, 0, sums[i], sum, tolerance((double)d->row->k, fmax(1, fabs(sum))));
    }
}

typedef struct {
    const Row *row;
    Precision precision;
    int version;
} Turn;

static void meets_sums_in_double(const void *argument) {
    const Turn *turn = argument;
    Data d;
    create(&d, turn->row, turn->precision);
    multiply(&d, turn->version);
    float *c = malloc(d.count[C] * sizeof *c), *saved = malloc(d.count[C] * sizeof *saved);
    float *sums = malloc((size_t)d.row->m * sizeof *sums);
    if (!c || !saved || !sums) abort();
    device_get_values(c, d.device[C], d.count[C], type_of(&d, C));
    if (d.row->saved) device_get_values(saved, d.device[SAVED], d.count[SAVED], d.precision);
    for (int i = 0; i < d.row->m; i++)
        for (int j = 0; j < d.row->n; j++) check_element(&d, i, j, c, d.row->saved ? saved : NULL);
    check_padding(&d, c);
    if (d.row->sums) {
        device_get_values(sums, d.device[SUMS], d.count[SUMS], PRECISION_FP32);
        check_sums(&d, sums);
    }
    free(c);
    free(saved);
    free(sums);
    destroy(&d);
}

void test_products(void) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (Precision p = 0; p < PRECISIONS; p++)
            for (int version = PLAIN; version <= 2; version++) {
                char name[96];
                const Row *r = &rows[i];
                if (version == PLAIN && (r->bias || r->epilogue || r->sums)) continue;
                static const char *const epilogues[] = {"", ", gelu", ", gelu gradient"};
                snprintf(name, sizeof name, "%dx%dx%d%s%s%s%s%s: %s, version %d", r->m, r->n, r->k,
                         r->transpose_a ? ", a'" : "", r->transpose_b ? ", b'" : "",
                         r->add ? ", added" : "", epilogues[r->epilogue], r->sums ? ", sums" : "",
                         precision_names[p], version);
                Turn turn = {r, p, version};
                RUN_ROW(name, meets_sums_in_double, &turn);
            }
}
