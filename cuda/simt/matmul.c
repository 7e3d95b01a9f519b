/* cuda/matmul.h on the CPU: the product as the header defines it, one output row at a time. */
#include "../matmul.h"

#include <math.h>
#include <stdlib.h>

#include "../../ref/base/bf16.h"
#include "engine.h"

/* ---- numbers ---- */

static float load(const void *array, size_t i, bool bf16) {
    return bf16 ? float_of_bf16(((const uint16_t *)array)[i]) : ((const float *)array)[i];
}

static void store(void *array, size_t i, float x, bool bf16) {
    if (bf16)
        ((uint16_t *)array)[i] = bf16_of(x);
    else
        ((float *)array)[i] = x;
}

/* gelu(x) = x s(x), s(x) the logistic function of 2 sqrt(2/pi) (x + 0.044715 x^3). */
static const double ROOT = 1.5957691216057308, CUBE = 0.044715;

static double gelu_sigmoid(double x) { return 1 / (1 + exp(-ROOT * (x + CUBE * x * x * x))); }

static double gelu_slope(double x) {
    double s = gelu_sigmoid(x);
    return s + x * s * (1 - s) * ROOT * (1 + 3 * CUBE * x * x);
}

/* ---- the product ---- */

typedef struct {
    Precision precision;
    Product product;
} Closure;

/* b[k][n] = op(B) as float, rounded as the product's inputs are. */
static void pack(float *b, const Closure *closure) {
    const Product *p = &closure->product;
    bool bf16 = closure->precision == PRECISION_BF16, tf32 = closure->precision == PRECISION_TF32;
    for (size_t k = 0; k < (size_t)p->k; k++)
        for (size_t n = 0; n < (size_t)p->n; n++) {
            size_t from = p->transpose_b ? n * (size_t)p->ldb + k : k * (size_t)p->ldb + n;
            float x = load(p->b, from, bf16);
            b[k * (size_t)p->n + n] = tf32 ? bits_float(tf32_of(x)) : x;
        }
}

static float a_element(const Closure *closure, size_t m, size_t k) {
    const Product *p = &closure->product;
    size_t from = p->transpose_a ? k * (size_t)p->lda + m : m * (size_t)p->lda + k;
    float x = load(p->a, from, closure->precision == PRECISION_BF16);
    return closure->precision == PRECISION_TF32 ? bits_float(tf32_of(x)) : x;
}

static void finish_row(const Closure *closure, size_t m, const float *sum) {
    const Product *p = &closure->product;
    bool bf16 = closure->precision == PRECISION_BF16, c_bf16 = bf16 && !p->c_float;
    for (size_t n = 0; n < (size_t)p->n; n++) {
        size_t at = m * (size_t)p->ldc + n;
        float x = sum[n];
        if (p->bias) x += load(p->bias, n, bf16);
        if (p->epilogue == EPILOGUE_GELU) {
            if (p->saved) store(p->saved, at, x, bf16);
            x = (float)(x * gelu_sigmoid(x));
        }
        if (p->epilogue == EPILOGUE_GELU_GRADIENT)
            x = (float)(x * gelu_slope(load(p->saved, at, bf16)));
        if (p->add) x += load(p->c, at, c_bf16);
        store(p->c, at, x, c_bf16);
    }
}

static void product_row(const Closure *closure, size_t m, const float *b, float *sum) {
    size_t n = (size_t)closure->product.n;
    for (size_t k = 0; k < (size_t)closure->product.k; k++) {
        float a = a_element(closure, m, k);
        for (size_t i = 0; i < n; i++) sum[i] += a * b[k * n + i];
    }
    finish_row(closure, m, sum);
}

static void column_sums(const Closure *closure) {
    const Product *p = &closure->product;
    for (size_t m = 0; m < (size_t)p->m; m++) {
        double sum = 0;
        for (size_t k = 0; k < (size_t)p->k; k++)
            sum += load(p->a, k * (size_t)p->lda + m, closure->precision == PRECISION_BF16);
        p->column_sums[m] = (float)sum;
    }
}

static void multiply(const void *recorded) {
    const Closure *closure = recorded;
    const Product *p = &closure->product;
    size_t n = (size_t)p->n, k = (size_t)p->k;
    float *b = calloc((k + (size_t)p->m) * n, sizeof *b);
    if (!b) {
        simt_note_error("matrix product: no memory");
        return;
    }
    float *sums = b + k * n; /* a row for each of C */
    pack(b, closure);
#pragma omp parallel for if ((double)p->m * p->n * p->k > 1e5)
    for (int m = 0; m < p->m; m++) product_row(closure, (size_t)m, b, sums + (size_t)m * n);
    if (p->column_sums) column_sums(closure);
    free(b);
}

bool library_matmul(const Run *run, const Product *product) {
    Closure closure = {run->precision, *product};
    simt_submit(run->stream, multiply, &closure, sizeof closure);
    return true;
}

size_t cuda_matmul_workspace(void) { return 0; }

/* Does nothing: there is only one algorithm here. */
void library_matmul_tune(bool on) { (void)on; }

int library_matmul_save(const char *path) {
    return error_set("%s: products on the CPU have no algorithms to choose from", path);
}
