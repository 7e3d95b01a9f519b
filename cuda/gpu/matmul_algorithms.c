#include "matmul_algorithms.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

cublasStatus_t matmul_launch(MatmulCall *call, const MatmulAlgorithm *algorithm) {
    const float one = 1, zero = 0;
    const Product *p = call->product;
    MatmulDescription *d = &call->description;
    return cublaslt.cublasLtMatmul(call->library, &d->product, &one, p->b, &d->a, p->a, &d->b,
                                   p->add ? &one : &zero, p->c, &d->c, p->c, &d->c,
                                   &algorithm->code, call->run->workspace, algorithm->workspace,
                                   call->run->stream);
}

/* ---- the log ---- */

static unsigned configured(const cublasLtMatmulAlgo_t *code,
                           cublasLtMatmulAlgoConfigAttributes_t what) {
    uint32_t value =
        0; /* of the cluster's shape, 16 bits, the lower half: hosts are little-endian */
    size_t size = what == CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID ? sizeof(uint16_t) : sizeof value;
    return cublaslt.cublasLtMatmulAlgoConfigGetAttribute(code, what, &value, size, &size) ==
                   CUBLAS_STATUS_SUCCESS
               ? value
               : 0;
}

static void log_choice(const MatmulChoice *choice, int i, const char *what) {
    static const char *const epilogues[] = {"", " gelu", " gelu'"};
    const int *s = choice->shape.number;
    fprintf(stderr, "cublasLt: %d x %d x %d %c%c %s%s, ld %d %d %d,%s%s%s%s: ", s[SHAPE_M],
            s[SHAPE_N], s[SHAPE_K], s[SHAPE_TRANSPOSE_A] ? 'T' : 'N',
            s[SHAPE_TRANSPOSE_B] ? 'T' : 'N', precision_names[s[SHAPE_PRECISION]],
            s[SHAPE_C_FLOAT] ? " to float" : "", s[SHAPE_LDC], s[SHAPE_LDA], s[SHAPE_LDB],
            s[SHAPE_BIAS] ? " bias" : "", epilogues[s[SHAPE_EPILOGUE]],
            s[SHAPE_SAVED] ? " saved" : "", s[SHAPE_COLUMN_SUMS] ? " column sums" : "");
    if (i < choice->count) {
        const cublasLtMatmulAlgo_t *code = &choice->algorithm[i].code;
        fprintf(stderr, "algorithm %u, tile %u, stages %u, split-K %u, cluster %u, %zu bytes, ",
                configured(code, CUBLASLT_ALGO_CONFIG_ID),
                configured(code, CUBLASLT_ALGO_CONFIG_TILE_ID),
                configured(code, CUBLASLT_ALGO_CONFIG_STAGES_ID),
                configured(code, CUBLASLT_ALGO_CONFIG_SPLITK_NUM),
                configured(code, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID),
                choice->algorithm[i].workspace);
        fprintf(stderr, "%d of %d, ", i + 1, choice->count);
    }
    fprintf(stderr, "%s\n", what);
}

void matmul_log_refusal(const MatmulChoice *choice, const char *why) {
    if (matmul_logging()) log_choice(choice, choice->first, why);
}

/* ---- the library's heuristic ---- */

static bool prefer(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t what,
                   const void *value, size_t size) {
    return cublaslt.cublasLtMatmulPreferenceSetAttribute(preference, what, value, size) ==
           CUBLAS_STATUS_SUCCESS;
}

int matmul_capability(void) {
    int device = 0, major = 0;
    if (cudaGetDevice(&device) ||
        cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device))
        major = 9;
    return major;
}

/* Returns what NVIDIA advises: 32 MiB on compute capability 9.0 and later, 4 MiB before. */
size_t cuda_matmul_workspace(void) { return (size_t)(matmul_capability() >= 9 ? 32 : 4) << 20; }

static size_t workspace_of(const MatmulShape *shape) {
    return shape->number[SHAPE_WORKSPACE] ? cuda_matmul_workspace() : 0;
}

static bool set_limits(cublasLtMatmulPreference_t preference, const MatmulShape *shape) {
    uint64_t workspace = workspace_of(shape);
    uint32_t scheme = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    uint32_t a = (uint32_t)shape->number[SHAPE_ALIGN_B], b = (uint32_t)shape->number[SHAPE_ALIGN_A],
             c = (uint32_t)shape->number[SHAPE_ALIGN_C];
    return prefer(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                  sizeof workspace) &&
           prefer(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &scheme, sizeof scheme) &&
           prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &a, sizeof a) &&
           prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &b, sizeof b) &&
           prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &c, sizeof c) &&
           prefer(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &c, sizeof c);
}

static void add_candidate(MatmulChoice *choice, const cublasLtMatmulHeuristicResult_t *found) {
    if (choice->count == MATMUL_CANDIDATES || found->state != CUBLAS_STATUS_SUCCESS ||
        found->workspaceSize > workspace_of(&choice->shape))
        return;
    choice->algorithm[choice->count++] = (MatmulAlgorithm){found->algo, found->workspaceSize};
}

static void ask_heuristic(MatmulChoice *choice, MatmulCall *call) {
    cublasLtMatmulHeuristicResult_t found[MATMUL_CANDIDATES];
    cublasLtMatmulPreferenceOpaque_t preference;
    int count = 0;
    MatmulDescription *d = &call->description;
    if (cublaslt.cublasLtMatmulPreferenceInit_internal(&preference, sizeof preference) !=
            CUBLAS_STATUS_SUCCESS ||
        !set_limits(&preference, &choice->shape) ||
        cublaslt.cublasLtMatmulAlgoGetHeuristic(call->library, &d->product, &d->a, &d->b, &d->c,
                                                &d->c, &preference, MATMUL_CANDIDATES, found,
                                                &count) != CUBLAS_STATUS_SUCCESS)
        return;
    for (int i = 0; i < count; i++) add_candidate(choice, &found[i]);
}

/* ---- measured algorithms ---- */

static void ask_table(MatmulChoice *choice, MatmulCall *call) {
    const cublasLtMatmulAlgo_t *code = matmul_table_find(&choice->shape);
    /* Only the heuristic promises to set the state. */
    cublasLtMatmulHeuristicResult_t found = {.state = CUBLAS_STATUS_SUCCESS};
    MatmulDescription *d = &call->description;
    if (!code) return;
    if (cublaslt.cublasLtMatmulAlgoCheck(call->library, &d->product, &d->a, &d->b, &d->c, &d->c,
                                         code, &found) != CUBLAS_STATUS_SUCCESS)
        return;
    found.algo = *code;
    add_candidate(choice, &found);
}

static bool tuning;

void library_matmul_tune(bool on) { tuning = on; }

/* Returns the milliseconds of one product, the best of ROUNDS averages; INFINITY if the library
 * refuses it.  C is overwritten even where the product adds to it, because repeated sums would grow
 * without end. */
static double measure(MatmulCall *asked, const MatmulAlgorithm *algorithm) {
    enum { ROUNDS = 5, EACH = 8 };
    Product product = *asked->product;
    MatmulCall call = *asked;
    product.add = false;
    call.product = &product;
    double best = INFINITY;
    Event from = event_create(true), to = event_create(true);
    bool good = from && to && matmul_launch(&call, algorithm) == CUBLAS_STATUS_SUCCESS;
    for (int round = 0; round < ROUNDS && good; round++) {
        event_record(from, call.run->stream);
        for (int i = 0; i < EACH && good; i++)
            good = matmul_launch(&call, algorithm) == CUBLAS_STATUS_SUCCESS;
        event_record(to, call.run->stream);
        good = good && event_wait(to) == 0;
        if (good) best = fmin(best, event_ms(from, to) / EACH);
    }
    event_free(from);
    event_free(to);
    return good ? best : INFINITY;
}

/* Puts the fastest candidate first and adds it to the table. */
static void measure_all(MatmulChoice *choice, MatmulCall *call) {
    int best = 0;
    double best_ms = INFINITY;
    for (int i = 0; i < choice->count; i++) {
        double ms = measure(call, &choice->algorithm[i]);
        char text[64];
        snprintf(text, sizeof text, "%.4f ms", ms);
        if (matmul_logging()) log_choice(choice, i, text);
        if (!(ms < best_ms)) continue;
        best = i;
        best_ms = ms;
    }
    if (!(best_ms < INFINITY)) return;
    MatmulAlgorithm first = choice->algorithm[0];
    choice->algorithm[0] = choice->algorithm[best];
    choice->algorithm[best] = first;
    matmul_table_add(&choice->shape, &choice->algorithm[0].code);
}

/* ---- the choices ---- */

static void choose(MatmulChoice *choice, MatmulCall *call) {
    if (!tuning) ask_table(choice, call);
    ask_heuristic(choice, call);
    if (tuning) measure_all(choice, call);
    if (matmul_logging()) log_choice(choice, 0, choice->count ? "chosen" : "the library has none");
}

/* A model has only some dozens of shapes.  Where there is no room, a choice replaces the oldest. */
MatmulChoice *matmul_choice(MatmulCall *call, MatmulShape shape) {
    enum { CHOICES = 1024 };
    static MatmulChoice choices[CHOICES];
    static size_t made;
    for (size_t i = 0; i < made && i < CHOICES; i++)
        if (memcmp(&choices[i].shape, &shape, sizeof shape) == 0) return &choices[i];
    MatmulChoice *choice = &choices[made++ % CHOICES];
    *choice = (MatmulChoice){.shape = shape};
    choose(choice, call);
    return choice;
}
