/* Matrix products by cuBLASLt (facts: cublasLt.h of CUDA 12 and 13).
 *
 * The library's matrices are column-major.  A row-major matrix is the transposed one there, so the
 * product is asked for as C' = B' A': its first operand is our B, its second our A, it has n rows
 * and m columns, and a bias along its rows is one along our columns.
 *
 * Algorithms come from the library's heuristic and not from timing: timing would choose
 * differently from run to run, and with it the bits.  For the same reason partial sums may be kept
 * apart and added in float, in a fixed order, but not accumulated in the output. */
#include "../matmul.h"

#include <cublasLt.h>
#include <pthread.h>
#include <string.h>

/* ---- the library ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what is static here */

/* NULL and a note when there is none. */
static cublasLtHandle_t library(void) {
    static cublasLtHandle_t handle;
    if (!handle) {
        cublasStatus_t status = cublasLtCreate(&handle);
        if (status != CUBLAS_STATUS_SUCCESS) {
            device_note("cublasLtCreate: %s", cublasLtGetStatusString(status));
            handle = NULL;
        }
    }
    return handle;
}

/* What NVIDIA advises: 32 MiB on compute capability 9.0 and later, 4 MiB before. */
size_t cuda_matmul_workspace(Precision precision) {
    int device = 0, major = 0;
    (void)precision;
    if (cudaGetDevice(&device) ||
        cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device))
        major = 9;
    return (size_t)(major >= 9 ? 32 : 4) << 20;
}

/* ---- what is asked for ---- */

/* All that the choice of an algorithm depends on; compared as bytes. */
typedef struct {
    int m, n, k, ldc, lda, ldb;
    unsigned char precision, transpose_a, transpose_b, c_float, bias, epilogue, saved, sums;
    unsigned char workspace;                              /* is there any */
    unsigned char align_a, align_b, align_c, align_extra; /* bytes, at most 16 */
    unsigned char unused[3];
} Key;

/* The largest power of two up to 16 that divides the address. */
static unsigned char alignment(const void *pointer) {
    uintptr_t address = (uintptr_t)pointer | 16;
    return (unsigned char)(address & (0 - address));
}

/* The bias, or what is used in its place, and the saved input. */
static unsigned char alignment_of_extras(const Product *product) {
    const void *vector = product->column_sums ? product->column_sums : product->bias;
    unsigned char a = alignment(vector), b = alignment(product->saved);
    return a < b ? a : b;
}

static Key key_of(const Run *run, const Product *p) {
    Key key;
    memset(&key, 0, sizeof key);
    key.m = p->m, key.n = p->n, key.k = p->k;
    key.ldc = p->ldc, key.lda = p->lda, key.ldb = p->ldb;
    key.precision = (unsigned char)run->precision;
    key.transpose_a = p->transpose_a, key.transpose_b = p->transpose_b;
    key.c_float = p->c_float, key.bias = p->bias != NULL;
    key.epilogue = (unsigned char)p->epilogue;
    key.saved = p->saved != NULL, key.sums = p->column_sums != NULL;
    key.workspace = run->workspace != NULL;
    key.align_a = alignment(p->a), key.align_b = alignment(p->b), key.align_c = alignment(p->c);
    key.align_extra = alignment_of_extras(p);
    return key;
}

typedef struct {
    cublasLtMatmulDescOpaque_t product;
    cublasLtMatrixLayoutOpaque_t a, b, c;
} Description;

static uint32_t epilogue_of(const Product *p) {
    uint32_t bias = p->bias ? CUBLASLT_EPILOGUE_BIAS : 0;
    if (p->column_sums) return CUBLASLT_EPILOGUE_BGRADB; /* of their B, our A */
    if (p->epilogue == EPILOGUE_GELU_GRADIENT) return CUBLASLT_EPILOGUE_DGELU;
    if (p->epilogue == EPILOGUE_GELU)
        return (uint32_t)(p->saved ? CUBLASLT_EPILOGUE_GELU_AUX : CUBLASLT_EPILOGUE_GELU) | bias;
    return bias ? bias : (uint32_t)CUBLASLT_EPILOGUE_DEFAULT;
}

static bool set(Description *description, cublasLtMatmulDescAttributes_t attribute,
                const void *value, size_t size) {
    return cublasLtMatmulDescSetAttribute(&description->product, attribute, value, size) ==
           CUBLAS_STATUS_SUCCESS;
}

/* The transposes, what follows the product, and its pointers (whose alignment is looked at). */
static bool describe_product(Description *to, const Product *p) {
    int32_t a = p->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    int32_t b = p->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    uint32_t epilogue = epilogue_of(p);
    int64_t ld = p->ldc;
    const void *vector = p->column_sums ? (const void *)p->column_sums : p->bias;
    if (!set(to, CUBLASLT_MATMUL_DESC_TRANSA, &a, sizeof a) ||
        !set(to, CUBLASLT_MATMUL_DESC_TRANSB, &b, sizeof b) ||
        !set(to, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue))
        return false;
    if (vector && !set(to, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &vector, sizeof vector)) return false;
    return !p->saved ||
           (set(to, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &p->saved, sizeof p->saved) &&
            set(to, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &ld, sizeof ld));
}

static bool layout(cublasLtMatrixLayout_t to, cudaDataType_t type, bool transposed, int rows,
                   int columns, int ld) {
    int stored_rows = transposed ? columns : rows, stored_columns = transposed ? rows : columns;
    return cublasLtMatrixLayoutInit(to, type, (uint64_t)stored_rows, (uint64_t)stored_columns,
                                    ld) == CUBLAS_STATUS_SUCCESS;
}

static bool describe(Description *to, const Run *run, const Product *p) {
    cudaDataType_t value = run->precision == PRECISION_BF16 ? CUDA_R_16BF : CUDA_R_32F;
    cublasComputeType_t compute =
        run->precision == PRECISION_TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    return cublasLtMatmulDescInit(&to->product, compute, CUDA_R_32F) == CUBLAS_STATUS_SUCCESS &&
           layout(&to->a, value, p->transpose_b, p->n, p->k, p->ldb) &&
           layout(&to->b, value, p->transpose_a, p->k, p->m, p->lda) &&
           layout(&to->c, p->c_float ? CUDA_R_32F : value, false, p->n, p->m, p->ldc) &&
           describe_product(to, p);
}

/* ---- the algorithms ---- */

typedef struct {
    Key key;
    bool used, supported;
    cublasLtMatmulAlgo_t algorithm;
    size_t workspace;
} Choice;

static bool prefer(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t what,
                   const void *value, size_t size) {
    return cublasLtMatmulPreferenceSetAttribute(preference, what, value, size) ==
           CUBLAS_STATUS_SUCCESS;
}

/* The best that the heuristic knows within the limits. */
static bool choose(Choice *choice, cublasLtHandle_t handle, const Description *description,
                   Precision precision) {
    enum { ASKED = 8 };
    cublasLtMatmulHeuristicResult_t found[ASKED];
    cublasLtMatmulPreferenceOpaque_t preference;
    int count = 0;
    uint64_t workspace = choice->key.workspace ? cuda_matmul_workspace(precision) : 0;
    uint32_t scheme = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    uint32_t a = choice->key.align_b, b = choice->key.align_a, c = choice->key.align_c;
    if (cublasLtMatmulPreferenceInit(&preference) != CUBLAS_STATUS_SUCCESS ||
        !prefer(&preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                sizeof workspace) ||
        !prefer(&preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &scheme, sizeof scheme) ||
        !prefer(&preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &a, sizeof a) ||
        !prefer(&preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &b, sizeof b) ||
        !prefer(&preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &c, sizeof c) ||
        !prefer(&preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &c, sizeof c))
        return false;
    Description d = *description; /* the library takes pointers to what it does not change */
    if (cublasLtMatmulAlgoGetHeuristic(handle, &d.product, &d.a, &d.b, &d.c, &d.c, &preference,
                                       ASKED, found, &count) != CUBLAS_STATUS_SUCCESS)
        return false;
    for (int i = 0; i < count; i++)
        if (found[i].state == CUBLAS_STATUS_SUCCESS && found[i].workspaceSize <= workspace) {
            choice->algorithm = found[i].algo;
            choice->workspace = found[i].workspaceSize;
            return true;
        }
    return false;
}

static size_t hash(const Key *key) {
    const unsigned char *bytes = (const unsigned char *)key;
    uint64_t value = 0xcbf29ce484222325u; /* FNV-1a */
    for (size_t i = 0; i < sizeof *key; i++) value = (value ^ bytes[i]) * 0x100000001b3u;
    return (size_t)(value >> 32);
}

/* The choice for this product; under the lock.  A full table forgets: a model has some dozens of
 * shapes. */
static const Choice *choice_for(cublasLtHandle_t handle, const Run *run, const Product *product,
                                const Description *description) {
    enum { CHOICES = 1024, NEAR = 16 };
    static Choice table[CHOICES];
    Key key = key_of(run, product);
    size_t start = hash(&key);
    Choice *choice = &table[start % CHOICES];
    for (size_t i = 0; i < NEAR; i++) {
        Choice *at = &table[(start + i) % CHOICES];
        if (at->used && memcmp(&at->key, &key, sizeof key) == 0) return at;
        if (!at->used) {
            choice = at;
            break;
        }
    }
    *choice = (Choice){.key = key, .used = true};
    choice->supported = choose(choice, handle, description, run->precision);
    return choice;
}

/* ---- the product ---- */

/* Asked in the header: the rows of what is saved must be multiples of 8 values, and vectors lie at
 * multiples of 16 bytes where the library moves 16 bytes at once. */
static bool may_fuse(const Product *p) {
    bool extras = p->bias || p->column_sums || p->epilogue != EPILOGUE_NONE;
    return (!p->saved || p->ldc % 8 == 0) && (!extras || alignment_of_extras(p) == 16);
}

bool library_matmul(const Run *run, const Product *product) {
    const float one = 1, zero = 0;
    Description d;
    pthread_mutex_lock(&lock);
    cublasLtHandle_t handle = library();
    Choice choice = {.used = false};
    if (handle && may_fuse(product) && describe(&d, run, product))
        choice = *choice_for(handle, run, product, &d);
    pthread_mutex_unlock(&lock);
    if (!choice.supported) return false;
    cublasStatus_t status =
        cublasLtMatmul(handle, &d.product, &one, product->b, &d.a, product->a, &d.b,
                       product->add ? &one : &zero, product->c, &d.c, product->c, &d.c,
                       &choice.algorithm, run->workspace, choice.workspace, run->stream);
    if (status != CUBLAS_STATUS_SUCCESS)
        device_note("matrix product %d x %d x %d: %s", product->m, product->n, product->k,
                    cublasLtGetStatusString(status));
    return true;
}
