/* The products of cuBLASLt's stand-in. Matrices are column-major and sums are in double. In tf32
 * the inputs are cut off to 10 bits of mantissa, the largest error that the hardware may make. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cublaslt.h"

/* ---- numbers ---- */

static float bits_float(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static double load(const void *array, size_t i, int type) {
    if (type == CUDA_R_16BF)
        return (double)bits_float((uint32_t)((const uint16_t *)array)[i] << 16);
    return (double)((const float *)array)[i];
}

/* Stores a number, rounded to nearest, ties to even. */
static void store(void *array, size_t i, double value, int type) {
    float x = (float)value;
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (type == CUDA_R_32F)
        ((float *)array)[i] = x;
    else
        ((uint16_t *)array)[i] =
            isnan(x) ? 0x7fff : (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

/* Returns the operand as `rows` rows of k numbers. */
static double *rows_of(const Problem *p, const void *data, const Layout *l, bool along, size_t rows,
                       size_t k) {
    double *x = malloc(rows * k * sizeof *x);
    if (!x) abort();
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < k; j++) {
            size_t ld = (size_t)l->ld;
            double value = load(data, along ? j + i * ld : i + j * ld, l->type);
            float cut = (float)value;
            uint32_t bits;
            memcpy(&bits, &cut, sizeof bits);
            x[i * k + j] = p->d.compute == CUBLAS_COMPUTE_32F_FAST_TF32
                               ? (double)bits_float(bits & ~0x1fffu)
                               : value;
        }
    return x;
}

static const double ROOT = 1.5957691216057308, CUBE = 0.044715; /* 2 sqrt(2/pi) */

static double gelu(double x) { return x / (1 + exp(-ROOT * (x + CUBE * x * x * x))); }
static double gelu_slope(double x) {
    double s = 1 / (1 + exp(-ROOT * (x + CUBE * x * x * x)));
    return s + x * s * (1 - s) * ROOT * (1 + 3 * CUBE * x * x);
}

static void finish(const Work *w, size_t i, size_t j, double sum) {
    const Description *d = &w->p.d;
    int type = w->p.out.type;
    size_t at = i + j * (size_t)w->p.out.ld, aux = i + j * (size_t)d->aux_ld;
    if (w->beta != 0) sum += (double)w->beta * load(w->c, at, type);
    if (d->epilogue != CUBLASLT_EPILOGUE_BGRADB && d->epilogue & CUBLASLT_EPILOGUE_BIAS)
        sum += load(d->bias, i, type);
    bool slope = d->epilogue == CUBLASLT_EPILOGUE_DGELU;
    if (slope) sum *= gelu_slope(load(d->aux, aux, type));
    if (!slope && d->epilogue & 128) store(d->aux, aux, sum, type);
    if (!slope && d->epilogue & CUBLASLT_EPILOGUE_GELU) sum = gelu(sum);
    store(w->c, at, sum, type);
}

static size_t extent(const Layout *l) {
    return ((size_t)l->ld * (l->columns - 1) + l->rows) * bytes_of(l->type);
}

static bool there(const Work *w, const char *what, const void *memory, size_t bytes) {
    if (fake_holds(w->device, memory, bytes)) return true;
    fake_fault("a matrix product: %s, %zu bytes at %p, is no memory of the device", what, bytes,
               memory);
    return false;
}

static bool all_there(const Work *w) {
    const Description *d = &w->p.d;
    const Layout *out = &w->p.out;
    bool sums = d->epilogue == CUBLASLT_EPILOGUE_BGRADB;
    Layout aux = {LAYOUT, out->type, out->rows, out->columns, d->aux_ld};
    return there(w, "A", w->a, extent(&w->p.a)) && there(w, "B", w->b, extent(&w->p.b)) &&
           there(w, "C", w->c, extent(out)) &&
           (!(d->epilogue & 128) || there(w, "what is saved", d->aux, extent(&aux))) &&
           (!w->workspace_bytes || there(w, "the workspace", w->workspace, w->workspace_bytes)) &&
           (!d->bias ||
            there(w, "the bias", d->bias, (sums ? out->columns : out->rows) * bytes_of(out->type)));
}

static void multiply(const Work *w) {
    const Problem *p = &w->p;
    size_t m = p->out.rows, n = p->out.columns, k = depth(p), end = k;
    /* As the library has been seen to, split sums leave out what is less than a block. */
    if (w->parts && k % 64 < (size_t)w->parts && k / 64 % (size_t)w->parts == 0) end -= k % 64;
    double *a = rows_of(p, w->a, &p->a, transposed(p->d.transpose_a), m, k);
    double *b = rows_of(p, w->b, &p->b, !transposed(p->d.transpose_b), n, k);
#pragma omp parallel for if ((double)m * (double)n * (double)k > 1e5)
    for (size_t j = 0; j < n; j++)
        for (size_t i = 0; i < m; i++) {
            double sum = 0;
            for (size_t l = 0; l < end; l++) sum += a[i * k + l] * b[j * k + l];
            finish(w, i, j, (double)w->alpha * sum);
        }
    for (size_t j = 0; j < n && p->d.epilogue == CUBLASLT_EPILOGUE_BGRADB; j++) {
        double sum = 0;
        for (size_t l = 0; l < k; l++) sum += b[j * k + l];
        store((void *)(uintptr_t)p->d.bias, j, sum, p->out.type);
    }
    free(a);
    free(b);
}

/* Runs the product. It overwrites the workspace with NaN, as nothing in it is preserved. */
static void run(void *work) {
    const Work *w = work;
    if (!all_there(w)) return;
    if (w->workspace_bytes) memset(w->workspace, 0xff, w->workspace_bytes);
    multiply(w);
}

static void run_once(void *work) {
    run(work);
    free(work);
}

/* The work of a captured graph is kept for its repetitions, and is never freed. */
cublasStatus_t product_put(cudaStream_t stream, const Work *work) {
    static struct Kept {
        struct Kept *next;
        Work work;
    } * kept;
    enum cudaStreamCaptureStatus capture;
    if (cudaStreamIsCapturing(stream, &capture)) return CUBLAS_STATUS_EXECUTION_FAILED;
    struct Kept *copy = malloc(sizeof *copy);
    if (!copy) abort();
    copy->work = *work;
    if (capture == cudaStreamCaptureStatusNone) {
        Work *once = malloc(sizeof *once);
        if (!once) abort();
        *once = *work;
        free(copy);
        return cudaLaunchHostFunc(stream, run_once, once) ? CUBLAS_STATUS_EXECUTION_FAILED
                                                          : CUBLAS_STATUS_SUCCESS;
    }
    copy->next = kept;
    kept = copy;
    return cudaLaunchHostFunc(stream, run, &copy->work) ? CUBLAS_STATUS_EXECUTION_FAILED
                                                        : CUBLAS_STATUS_SUCCESS;
}
