/* Compares matrix products, with everything that may follow them (cuda/matmul.h), with sums in
 * double: small ones in every number; those of GPT-2, for which a library has other kernels, in
 * some, and as a whole with the product that fuses nothing. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../cuda/matmul.h"
#include "../../cuda/stage/plan.h"
#include "../../ref/base/random.h"
#include "../ref/tolerance.h"
#include "../test.h"
#include "device_case.h"
#include "pool.h"

typedef struct {
    int m, n, k;
    bool transpose_a, transpose_b;
    int pad;                 /* the numbers between rows */
    bool logits_a, logits_c; /* rows of A or C lie as those of logits (cuda/stage/plan.h) */
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

/* The products of GPT-2, and small ones in their place where a GPU is not there. */
typedef struct {
    Row row;
    int m, n, k; /* small */
} LargeRow;

/* clang-format off */
static const LargeRow large_rows[] = {
    {{32768, 3072, 768, .transpose_b = true, .bias = true, .epilogue = EPILOGUE_GELU, .saved = true}, 112, 96, 40},
    {{32768, 3072, 768, .epilogue = EPILOGUE_GELU_GRADIENT, .saved = true}, 112, 96, 40},
    {{3072, 768, 32768, .transpose_a = true, .c_float = true, .sums = true}, 112, 80, 136},
    {{3072, 768, 32768, .transpose_a = true, .c_float = true, .sums = true, .add = true}, 112, 80, 136},
    {{32768, 2304, 768, .transpose_b = true, .bias = true}, 112, 80, 40},
    {{8192, 50257, 768, .transpose_b = true, .logits_c = true}, 80, 113, 40},
    {{8192, 768, 50257, .logits_a = true}, 80, 104, 113},
    {{50257, 768, 8192, .transpose_a = true, .logits_a = true, .c_float = true}, 113, 80, 72},
};
/* clang-format on */

typedef enum { A, B, C, BIAS, SAVED, SUMS, ARRAYS_OF } Which;
typedef struct {
    const Row *row;
    Precision precision;
    int lda, ldb, ldc;
    size_t rows[ARRAYS_OF], width[ARRAYS_OF], stride[ARRAYS_OF];
    void *device[ARRAYS_OF];
    float *host[ARRAYS_OF]; /* what the device has computed, if it is small */
} Data;

static bool is_float(const Data *d, Which which) {
    return which == SUMS || (which == C && d->row->c_float);
}

static Precision type_of(const Data *d, Which which) {
    return is_float(d, which) ? PRECISION_FP32 : d->precision;
}

static bool is_output(const Row *r, Which which) {
    return which == C || which == SUMS || (which == SAVED && r->epilogue == EPILOGUE_GELU);
}

static void shape(Data *d, Which which, int count, int width, int stride) {
    d->rows[which] = (size_t)count;
    d->width[which] = (size_t)width;
    d->stride[which] = (size_t)stride;
}

static int logits(int width, bool are) {
    return are ? (width + LOGITS_ALIGN - 1) / LOGITS_ALIGN * LOGITS_ALIGN : width;
}

/* Fills the operands with numbers in (-1, 1), and all else, which must not be read, with NaN. */
static void create(Data *d, const Row *r, Precision precision) {
    const int a = r->transpose_a ? r->m : r->k, b = r->transpose_b ? r->k : r->n;
    *d = (Data){.row = r, .precision = precision};
    d->lda = logits(a, r->logits_a) + (r->sums ? 0 : r->pad);
    d->ldb = b + r->pad;
    d->ldc = logits(r->n, r->logits_c) + r->pad;
    shape(d, A, r->transpose_a ? r->k : r->m, a, d->lda);
    shape(d, B, r->transpose_b ? r->n : r->k, b, d->ldb);
    shape(d, C, r->m, r->n, d->ldc);
    shape(d, BIAS, r->bias, r->n, r->n);
    shape(d, SAVED, r->saved ? r->m : 0, r->n, d->ldc);
    shape(d, SUMS, r->sums, r->m, r->m);
    for (Which w = A; w < ARRAYS_OF; w++) {
        if (!d->rows[w]) continue;
        d->device[w] = is_output(r, w) && !(w == C && r->add)
                           ? pool_put_nan(d->rows[w] * d->stride[w], type_of(d, w))
                           : pool_put((int)w, d->rows[w], d->width[w], d->stride[w], type_of(d, w));
    }
}

static void destroy(Data *d) {
    for (Which w = A; w < ARRAYS_OF; w++) {
        free(d->host[w]);
        device_free(d->device[w]);
    }
}

/* Copies what was computed to the host, if all of it is to be looked at. */
enum { SMALL = 8192 };

static void download(Data *d) {
    for (Which w = C; w < ARRAYS_OF; w++) {
        const size_t count = d->rows[w] * d->stride[w];
        if (!count || count > SMALL || !is_output(d->row, w)) continue;
        d->host[w] = malloc(count * sizeof(float));
        if (!d->host[w]) abort();
        device_get_values(d->host[w], d->device[w], count, type_of(d, w));
    }
}

static double got(const Data *d, Which w, int row, int column) {
    const size_t i = (size_t)row * d->stride[w] + (size_t)column;
    return (double)(d->host[w] ? d->host[w][i] : pool_read(d->device[w], i, type_of(d, w)));
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

static double operand(const Data *d, Which w, int row, int column) {
    const size_t i = (size_t)row * d->stride[w] + (size_t)column;
    return (double)pool_number((int)w, i, type_of(d, w));
}

static double a_at(const Data *d, int i, int k) {
    return d->row->transpose_a ? operand(d, A, k, i) : operand(d, A, i, k);
}

static double b_at(const Data *d, int k, int j) {
    return d->row->transpose_b ? operand(d, B, j, k) : operand(d, B, k, j);
}

static double product_at(const Data *d, int i, int j) {
    double sum = d->row->bias ? operand(d, BIAS, 0, j) : 0;
    if (d->row->add) sum += operand(d, C, i, j);
    for (int k = 0; k < d->row->k; k++) sum += a_at(d, i, k) * b_at(d, k, j);
    return sum;
}

static double gelu(double x) {
    return x / (1 + exp(-2 * sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
}

static double gelu_slope(double x) { return (gelu(x + 1e-5) - gelu(x - 1e-5)) / 2e-5; }

/* Returns how far a sum of k terms in float may be off.  Tensor cores may cut the partial sums off,
 * each time by a share of what these are: about sqrt(k) / 3, also where the whole sum ends near 0.
 * In sums of 50257 products, cut off after every eighth, the worst of 1024 used 0.81 of this. */
static double sum_error(int k, double value) {
    const double length = k + 2;
    if (k <= 256) return tolerance(length, fmax(1, fabs(value)));
    return 2 * tolerance(length, fmax(sqrt(k), fabs(value)));
}

/* Returns how far the sum may be off before the epilogue: products of operands that are cut off to
 * tf32 (accuracy.c), summed in float. */
static double product_error(const Data *d, double value) {
    const int k = d->row->k;
    double operands = d->precision == PRECISION_TF32 ? 2 * 0x1p-10 * sqrt(k) : 0;
    return operands + sum_error(k, value);
}

static double stored_error(const Data *d, Which which, double value) {
    return type_of(d, which) == PRECISION_BF16 ? 0x1p-8 * fabs(value) : 0;
}

/* ---- the checks ---- */

static void check(const Data *d, Which w, int i, int j, double value, double allowed) {
    static const char *const names[ARRAYS_OF] = {
        [C] = "c", [SAVED] = "saved", [SUMS] = "column sums"};
    const double number = got(d, w, i, j);
    CHECK(fabs(number - value) <= allowed, "%s[%d][%d] is %.9g, not %.9g (allowed %.3g)", names[w],
          i, j, number, value, allowed);
}

/* Gelu multiplies an error of its argument by at most 1.13, and the argument may have been
 * rounded. */
static void check_element(const Data *d, int i, int j) {
    double sum = product_at(d, i, j), error = product_error(d, sum);
    double stored = error + stored_error(d, C, fabs(sum) + error);
    if (d->row->epilogue == EPILOGUE_NONE) {
        check(d, C, i, j, sum, stored);
        return;
    }
    bool gradient = d->row->epilogue == EPILOGUE_GELU_GRADIENT;
    double value = gradient ? sum * gelu_slope(operand(d, SAVED, i, j)) : gelu(sum);
    double allowed = 1.13 * stored + tolerance(1, fmax(1, fabs(value)));
    check(d, C, i, j, value, allowed + stored_error(d, C, fabs(value) + allowed));
    if (!gradient && d->row->saved) check(d, SAVED, i, j, sum, stored);
}

static void check_padding(const Data *d, int i) {
    float behind[LOGITS_ALIGN];
    const int n = d->row->n, count = d->ldc - n;
    const size_t first = (size_t)i * d->stride[C] + (size_t)n;
    const char *row = (const char *)d->device[C] + first * precision_bytes(type_of(d, C));
    if (!count) return;
    device_get_values(behind, row, (size_t)count, type_of(d, C));
    for (int j = 0; j < count; j++)
        CHECK(isnan(behind[j]), "c[%d][%d], behind a row, was written: %.9g", i, n + j,
              (double)behind[j]);
}

static void check_sum(const Data *d, int i) {
    double sum = 0;
    for (int k = 0; k < d->row->k; k++) sum += a_at(d, i, k);
    check(d, SUMS, 0, i, sum, sum_error(d->row->k, sum));
}

/* Of a large product some numbers are looked at, and some rows, among them the first and the last.
 */
enum { SOME = 256 };
static size_t samples(size_t count, bool all) { return all || count < SOME ? count : SOME; }
static size_t sample(size_t count, bool all, size_t s) {
    if (samples(count, all) == count || s == 0) return s;
    return s == 1 ? count - 1 : random_below(3, STREAM_SYNTHETIC, s, (uint32_t)count);
}

static void check_numbers(const Data *d) {
    const size_t m = (size_t)d->row->m, n = (size_t)d->row->n;
    const bool all = m * n <= SMALL;
    for (size_t s = 0; s < samples(m * n, all); s++) {
        const size_t at = sample(m * n, all, s);
        check_element(d, (int)(at / n), (int)(at % n));
    }
    for (size_t s = 0; s < samples(m, all); s++) {
        const int row = (int)sample(m, all, s);
        check_padding(d, row);
        if (d->row->sums) check_sum(d, row);
    }
}

typedef struct {
    const Row *row;
    Precision precision;
    int version;
} Turn;

static void compute(Data *d, const Row *row, Precision precision, int version) {
    create(d, row, precision);
    multiply(d, version);
    download(d);
}

static void meets_sums_in_double(const void *argument) {
    const Turn *turn = argument;
    Data d;
    compute(&d, turn->row, turn->precision, turn->version);
    check_numbers(&d);
    destroy(&d);
}

/* ---- the table ---- */

static void run_row(const Row *r, Precision p, int version, void (*holds)(const void *)) {
    static const char *const epilogues[] = {"", ", gelu", ", gelu gradient"};
    char name[96];
    snprintf(name, sizeof name, "%dx%dx%d%s%s%s%s%s: %s, version %d", r->m, r->n, r->k,
             r->transpose_a ? ", a'" : "", r->transpose_b ? ", b'" : "", r->add ? ", added" : "",
             epilogues[r->epilogue], r->sums ? ", sums" : "", precision_names[p], version);
    Turn turn = {r, p, version};
    RUN_ROW(name, holds, &turn);
}

void test_products(void) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (Precision p = 0; p < PRECISIONS; p++)
            for (int version = PLAIN; version <= 2; version++) {
                const Row *r = &rows[i];
                if (version == PLAIN && (r->bias || r->epilogue || r->sums)) continue;
                run_row(r, p, version, meets_sums_in_double);
            }
}

/* ---- large ones ---- */

/* A second time the bits are the same; and all numbers are near those of version 1, whose epilogues
 * are our own kernels.  In bf16 it rounds up to twice more; tf32 rounds the same operands, and sums
 * in another order differ by far less than this. */
static void meets_version_1(const void *argument) {
    static const double allowed[PRECISIONS] = {0x1p-16, 0x1p-9, 0x1p-7};
    static const int versions[] = {2, 2, 1};
    const Turn *turn = argument;
    const Precision p = turn->precision;
    Data d[3];
    for (int i = 0; i < 3; i++) compute(&d[i], turn->row, p, versions[i]);
    check_numbers(&d[0]);
    for (Which w = C; w < ARRAYS_OF; w++) {
        double apart[3];
        if (!d[0].rows[w] || !is_output(turn->row, w)) continue;
        for (int i = 1; i < 3; i++)
            apart[i] = pool_apart(d[0].device[w], d[i].device[w], d[0].rows[w], d[0].width[w],
                                  d[0].stride[w], type_of(&d[0], w));
        CHECK(apart[1] == 0, "a second time it is %.3g apart", apart[1]);
        CHECK(apart[2] <= allowed[p], "version 1 is %.3g apart (allowed %.3g)", apart[2],
              allowed[p]);
        test_note("version 1 is %.3g apart", apart[2]);
    }
    for (int i = 0; i < 3; i++) destroy(&d[i]);
}

void test_large_products(void) {
    static const Precision order[] = {PRECISION_BF16, PRECISION_TF32, PRECISION_FP32};
    for (int k = 0; k < PRECISIONS; k++)
        for (size_t i = 0; i < sizeof large_rows / sizeof *large_rows; i++) {
            const LargeRow *large = &large_rows[i];
            Row row = large->row;
            if (device_is_slow()) row.m = large->m, row.n = large->n, row.k = large->k;
            run_row(&row, order[k], 2, meets_version_1);
        }
}
