/* The stand-in for cuBLASLt: a libcublasLt.so of its own, which needs the stand-in runtime only. It
 * supports what NVIDIA's table under cublasLtMatmul lists. */
#include "cublaslt.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../ref/base/checksum.h"
#include "../simt/nccl_fake.h"

/* Only the tests of NCCL have it. */
extern int nccl_fake_waiting(void) __attribute__((weak));

/* The alignment in bytes that each algorithm needs of B and of the other operands, and how many
 * partial sums it keeps in the workspace. */
static const struct {
    unsigned align, align_b, parts;
} algorithms[] = {{16, 16, 0}, {16, 16, 4}, {16, 8, 0}, {8, 16, 0},
                  {8, 8, 2},   {8, 8, 0},   {4, 4, 0},  {2, 2, 0}};
enum { ALGORITHMS = sizeof algorithms / sizeof *algorithms };

static size_t needed(const Problem *p, unsigned number) {
    return (size_t)algorithms[number].parts * p->out.rows * p->out.columns * sizeof(float);
}

/* ---- what is allowed ---- */

static bool fits(const Layout *l, bool transpose, uint64_t rows, uint64_t columns) {
    return l->what == LAYOUT && l->rows == (transpose ? columns : rows) &&
           l->columns == (transpose ? rows : columns) && l->ld >= (int64_t)l->rows;
}

/* Returns false if sizes and attributes contradict each other, which is an invalid value. */
static bool consistent(const Problem *p) {
    const Description *d = &p->d;
    uint64_t m = p->out.rows, n = p->out.columns, k = depth(p);
    bool vector = d->epilogue & (CUBLASLT_EPILOGUE_BIAS | CUBLASLT_EPILOGUE_BGRADB);
    bool aux = d->epilogue & 128;
    return d->what == PRODUCT && m && n && k && fits(&p->a, transposed(d->transpose_a), m, k) &&
           fits(&p->b, transposed(d->transpose_b), k, n) && fits(&p->c, false, m, n) &&
           fits(&p->out, false, m, n) && p->c.type == p->out.type && p->c.ld == p->out.ld &&
           (!vector || d->bias) &&
           (!aux || (d->aux && d->aux_ld % 8 == 0 && d->aux_ld >= (int64_t)m));
}

static bool types_supported(const Problem *p) {
    const Description *d = &p->d;
    bool half = p->a.type == CUDA_R_16BF, whole = p->a.type == CUDA_R_32F;
    int bias = d->bias_type == -1 ? p->out.type : d->bias_type;
    bool vector = d->epilogue & (CUBLASLT_EPILOGUE_BIAS | CUBLASLT_EPILOGUE_BGRADB);
    if (p->a.type != p->b.type || d->scale != CUDA_R_32F || (vector && bias != p->out.type))
        return false;
    if (d->compute == CUBLAS_COMPUTE_32F)
        return (half && (p->out.type == CUDA_R_16BF || p->out.type == CUDA_R_32F)) ||
               (whole && p->out.type == CUDA_R_32F);
    return d->compute == CUBLAS_COMPUTE_32F_FAST_TF32 && whole && p->out.type == CUDA_R_32F;
}

/* Returns true if this epilogue is supported. All but a bias need half precision, and vectors must
 * be aligned to 16 bytes. */
static bool epilogue_supported(const Problem *p) {
    const Description *d = &p->d;
    bool half = p->a.type == CUDA_R_16BF;
    uintptr_t extras = (uintptr_t)d->bias | (uintptr_t)d->aux;
    switch (d->epilogue) {
        case CUBLASLT_EPILOGUE_DEFAULT:
            return true;
        case CUBLASLT_EPILOGUE_BIAS:
            return extras % 16 == 0;
        case CUBLASLT_EPILOGUE_GELU:
        case CUBLASLT_EPILOGUE_GELU_AUX:
        case CUBLASLT_EPILOGUE_GELU_BIAS:
        case CUBLASLT_EPILOGUE_GELU_AUX_BIAS:
        case CUBLASLT_EPILOGUE_DGELU:
            return half && p->out.type == CUDA_R_16BF && extras % 16 == 0;
        case CUBLASLT_EPILOGUE_BGRADB:
            return half && extras % 16 == 0;
        default:
            return false;
    }
}

static cublasStatus_t judge(const Problem *p) {
    if (!consistent(p)) return CUBLAS_STATUS_INVALID_VALUE;
    return types_supported(p) && epilogue_supported(p) ? CUBLAS_STATUS_SUCCESS
                                                       : CUBLAS_STATUS_NOT_SUPPORTED;
}

static Problem problem_of(const void *d, const void *a, const void *b, const void *c,
                          const void *out) {
    Problem p = {.d = {0}};
    read_opaque(&p.d, d, sizeof p.d);
    read_opaque(&p.a, a, sizeof p.a);
    read_opaque(&p.b, b, sizeof p.b);
    read_opaque(&p.c, c, sizeof p.c);
    read_opaque(&p.out, out, sizeof p.out);
    return p;
}

/* Returns a number for the problem that an algorithm was found for. It serves that problem at any
 * address. */
static uint64_t identity(const Problem *p) {
    uint64_t numbers[] = {p->out.rows,
                          p->out.columns,
                          depth(p),
                          (uint64_t)p->a.type,
                          (uint64_t)p->out.type,
                          p->d.epilogue,
                          (uint64_t)p->d.compute,
                          (uint64_t)p->d.transpose_a,
                          (uint64_t)p->d.transpose_b};
    uint64_t sum = 0;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sum = checksum_add(sum, numbers[i]);
    return sum;
}

static bool rows_aligned(const Layout *l, size_t align) {
    return (size_t)l->ld * bytes_of(l->type) % align == 0;
}

/* Returns true if the operands have the alignment that the algorithm needs. */
static bool aligned_for(const Problem *p, unsigned number, const size_t align[4]) {
    const Layout *l[4] = {&p->a, &p->b, &p->c, &p->out};
    for (int i = 0; i < 4; i++) {
        size_t asked = i == 1 ? algorithms[number].align_b : algorithms[number].align;
        if (asked < bytes_of(l[i]->type)) asked = bytes_of(l[i]->type);
        if (align[i] % asked || !rows_aligned(l[i], asked)) return false;
    }
    return true;
}

/* ---- descriptions ---- */

size_t cublasLtGetVersion(void) { return CUBLAS_VERSION; }

const char *cublasLtGetStatusString(cublasStatus_t status) {
    return status == CUBLAS_STATUS_SUCCESS          ? "success"
           : status == CUBLAS_STATUS_NOT_SUPPORTED  ? "CUBLAS_STATUS_NOT_SUPPORTED"
           : status == CUBLAS_STATUS_INVALID_VALUE  ? "CUBLAS_STATUS_INVALID_VALUE"
           : status == CUBLAS_STATUS_INTERNAL_ERROR ? "CUBLAS_STATUS_INTERNAL_ERROR"
                                                    : "CUBLAS_STATUS_EXECUTION_FAILED";
}

/* The handle belongs to the device of the thread that creates it. */
struct cublasLtContext {
    int device;
};
cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
    struct cublasLtContext *made = malloc(sizeof *made);
    if (!made || cudaGetDevice(&made->device)) return CUBLAS_STATUS_NOT_INITIALIZED;
    *handle = made;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t to, size_t size,
                                               cublasComputeType_t compute, cudaDataType_t scale) {
    Description d = {.what = PRODUCT,
                     .bias_type = -1,
                     .compute = (int)compute,
                     .scale = (int)scale,
                     .epilogue = CUBLASLT_EPILOGUE_DEFAULT};
    if (!to || size < sizeof *to) return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(to, &d, sizeof d);
    return CUBLAS_STATUS_SUCCESS;
}

#define FIELD(type, name) \
    { offsetof(type, name), sizeof((type){0}.name) }
typedef struct {
    size_t offset, size; /* 0: the product has none */
} Field;

static cublasStatus_t put(void *to, Field field, const void *value, size_t size) {
    if (!to || !value || !field.size || size != field.size) return CUBLAS_STATUS_INVALID_VALUE;
    memcpy((char *)to + field.offset, value, size);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t to,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t size) {
    static const Field fields[] = {
        [CUBLASLT_MATMUL_DESC_TRANSA] = FIELD(Description, transpose_a),
        [CUBLASLT_MATMUL_DESC_TRANSB] = FIELD(Description, transpose_b),
        [CUBLASLT_MATMUL_DESC_EPILOGUE] = FIELD(Description, epilogue),
        [CUBLASLT_MATMUL_DESC_BIAS_POINTER] = FIELD(Description, bias),
        [CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER] = FIELD(Description, aux),
        [CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD] = FIELD(Description, aux_ld),
        [CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE] = FIELD(Description, bias_type),
    };
    if ((size_t)attribute >= sizeof fields / sizeof *fields) return CUBLAS_STATUS_INVALID_VALUE;
    return put(to, fields[attribute], value, size);
}

cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t to, size_t size,
                                                 cudaDataType type, uint64_t rows, uint64_t columns,
                                                 int64_t ld) {
    Layout l = {LAYOUT, (int)type, rows, columns, ld};
    if (!to || size < sizeof *to) return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(to, &l, sizeof l);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t to, size_t size) {
    Preference p = {PREFERENCE, 0, CUBLASLT_REDUCTION_SCHEME_MASK, {256, 256, 256, 256}};
    if (!to || size < sizeof *to) return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(to, &p, sizeof p);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t to,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void *value, size_t size) {
    static const Field fields[] = {
        [CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES] = FIELD(Preference, workspace),
        [CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK] = FIELD(Preference, schemes),
        [CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES] = FIELD(Preference, align[0]),
        [CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES] = FIELD(Preference, align[1]),
        [CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES] = FIELD(Preference, align[2]),
        [CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES] = FIELD(Preference, align[3]),
    };
    if ((size_t)attribute >= sizeof fields / sizeof *fields) return CUBLAS_STATUS_INVALID_VALUE;
    return put(to, fields[attribute], value, size);
}

/* ---- algorithms ---- */

static void write_algorithm(cublasLtMatmulAlgo_t *to, const Problem *p, unsigned number) {
    Algorithm a = {ALGORITHM, number, identity(p)};
    memset(to, 0, sizeof *to);
    memcpy(to, &a, sizeof a);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t product,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t out,
                                              cublasLtMatmulPreference_t preference, int asked,
                                              cublasLtMatmulHeuristicResult_t found[], int *count) {
    /* The library loads the kernels of an algorithm when it first needs them, which waits for the
     * device, and so for kernels there that wait for another GPU. */
    if (nccl_fake_waiting && nccl_fake_waiting())
        fake_fault("kernels are loaded while a message waits for its receiver");
    Problem p = problem_of(product, a, b, c, out);
    Preference want = {0};
    read_opaque(&want, preference, sizeof want);
    *count = 0;
    if (!handle || want.what != PREFERENCE || asked < 1) return CUBLAS_STATUS_INVALID_VALUE;
    cublasStatus_t status = judge(&p);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    const size_t align[4] = {want.align[0], want.align[1], want.align[2], want.align[3]};
    for (unsigned i = 0; i < ALGORITHMS && *count < asked; i++) {
        bool parts = algorithms[i].parts;
        if (!aligned_for(&p, i, align) || needed(&p, i) > want.workspace ||
            (parts && !(want.schemes & CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE)))
            continue;
        cublasLtMatmulHeuristicResult_t *to = &found[(*count)++];
        *to = (cublasLtMatmulHeuristicResult_t){.workspaceSize = needed(&p, i),
                                                .state = CUBLAS_STATUS_SUCCESS};
        write_algorithm(&to->algo, &p, i);
    }
    return *count ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

static cublasStatus_t judge_algorithm(const Problem *p, const Algorithm *algorithm) {
    cublasStatus_t status = judge(p);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    if (algorithm->what != ALGORITHM || algorithm->number >= ALGORITHMS)
        return CUBLAS_STATUS_INVALID_VALUE;
    return algorithm->problem == identity(p) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t product,
                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                       cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t out,
                                       const cublasLtMatmulAlgo_t *algo,
                                       cublasLtMatmulHeuristicResult_t *result) {
    Problem p = problem_of(product, a, b, c, out);
    Algorithm algorithm = {0};
    read_opaque(&algorithm, algo, sizeof algorithm);
    if (!handle) return CUBLAS_STATUS_INVALID_VALUE;
    /* As the real one may, this does not set result->state. */
    cublasStatus_t status = judge_algorithm(&p, &algorithm);
    if (status == CUBLAS_STATUS_SUCCESS)
        result->workspaceSize = needed(&p, (unsigned)algorithm.number);
    return status;
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *algo,
                                                    cublasLtMatmulAlgoConfigAttributes_t what,
                                                    void *value, size_t size, size_t *written) {
    Algorithm algorithm = {0};
    read_opaque(&algorithm, algo, sizeof algorithm);
    bool half = what == CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID;
    uint32_t number = what == CUBLASLT_ALGO_CONFIG_ID ? (uint32_t)algorithm.number : 1;
    if (what == CUBLASLT_ALGO_CONFIG_SPLITK_NUM && algorithms[algorithm.number].parts)
        number = algorithms[algorithm.number].parts;
    if (size != (half ? sizeof(uint16_t) : sizeof number)) return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(value, &number, size);
    *written = size;
    return CUBLAS_STATUS_SUCCESS;
}

/* ---- the product ---- */

static int setting(const char *name) {
    const char *value = getenv(name);
    return value ? atoi(value) : 0;
}

/* Does what FAKE_LT_TRAP wants of this product. Returns true if it fails. */
static bool trapped(const Problem *p) {
    const char *trap = getenv("FAKE_LT_TRAP");
    unsigned long long m, n, k;
    char what[8];
    if (!trap || sscanf(trap, "%llu %llu %llu %7s", &m, &n, &k, what) != 4 || m != p->c.columns ||
        n != p->c.rows || k != depth(p))
        return false;
    if (!strcmp(what, "abort")) abort();
    while (!strcmp(what, "hang")) pause();
    if (!strcmp(what, "lost")) fake_lose(true);
    if (!strcmp(what, "fails")) fake_fault("a matrix product");
    return true;
}

static size_t alignment(const void *pointer) {
    size_t address = (uintptr_t)pointer | 256;
    return address & (0 - address);
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t product,
                              const void *alpha, const void *a, cublasLtMatrixLayout_t a_layout,
                              const void *b, cublasLtMatrixLayout_t b_layout, const void *beta,
                              const void *c, cublasLtMatrixLayout_t c_layout, void *d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *algo,
                              void *workspace, size_t workspace_bytes, cudaStream_t stream) {
    Work w = {.p = problem_of(product, a_layout, b_layout, c_layout, d_layout),
              .a = a,
              .b = b,
              .c = d,
              .workspace = workspace};
    Algorithm algorithm = {0};
    read_opaque(&algorithm, algo, sizeof algorithm);
    if (!handle || !a || !b || !c || !d || c != d || !alpha || !beta || !algo)
        return CUBLAS_STATUS_INVALID_VALUE;
    cublasStatus_t status = judge_algorithm(&w.p, &algorithm);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    unsigned number = (unsigned)algorithm.number;
    const size_t align[4] = {alignment(a), alignment(b), alignment(c), alignment(d)};
    w.workspace_bytes = needed(&w.p, number);
    w.parts = (int)algorithms[number].parts;
    if (w.workspace_bytes > workspace_bytes || (uintptr_t)workspace % 16)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (!aligned_for(&w.p, number, align) || (int)number < setting("FAKE_LT_REFUSES"))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    enum cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    if ((int)number < setting("FAKE_LT_BREAKS") ||
        (setting("FAKE_LT_NO_CAPTURE") && !cudaStreamIsCapturing(stream, &capture) &&
         capture != cudaStreamCaptureStatusNone))
        return CUBLAS_STATUS_INTERNAL_ERROR;
    if (cudaGetDevice(&w.device) || w.device != handle->device ||
        (int)number < setting("FAKE_LT_FAILS") || trapped(&w.p))
        return CUBLAS_STATUS_EXECUTION_FAILED;
    memcpy(&w.alpha, alpha, sizeof w.alpha);
    memcpy(&w.beta, beta, sizeof w.beta);
    return product_put(stream, &w);
}
