/* Matrix products by cuBLASLt (facts: cublasLt.h of CUDA 12 and 13).
 *
 * The library's matrices are column-major.  A row-major matrix is a transposed one there, so the
 * product is asked for as C' = B' A': its first operand is our B and its second our A, it has n
 * rows and m columns, and a bias along its rows is one along our columns.
 *
 * matmul_algorithms.c chooses how the library computes a shape; the choice is kept. */
#include "../matmul.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

#include "internal.h"
#include "matmul_algorithms.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the library and the choices */

/* Returns the library's handle; NULL, with a note, when there is none. */
static cublasLtHandle_t library(void) {
    static cublasLtHandle_t handle;
    if (!handle && cublaslt_open()) {
        device_note("%s", error_message());
    } else if (!handle) {
        cublasStatus_t status = cublaslt.cublasLtCreate(&handle);
        if (status != CUBLAS_STATUS_SUCCESS) {
            device_note("cublasLtCreate: %s", cublaslt.cublasLtGetStatusString(status));
            handle = NULL;
        }
    }
    return handle;
}

/* ---- the shape ---- */

/* Returns the largest power of two up to 16 that divides the address. */
static int alignment(const void *pointer) {
    uintptr_t address = (uintptr_t)pointer | 16;
    return (int)(address & (0 - address));
}

/* Returns the bias, or the column sums, for which the library uses the same pointer. */
static const void *vector_of(const Product *p) {
    return p->column_sums ? (const void *)p->column_sums : p->bias;
}

static MatmulShape shape_of(const Run *run, const Product *p) {
    return (MatmulShape){.number = {[SHAPE_M] = p->m,
                                    [SHAPE_N] = p->n,
                                    [SHAPE_K] = p->k,
                                    [SHAPE_LDC] = p->ldc,
                                    [SHAPE_LDA] = p->lda,
                                    [SHAPE_LDB] = p->ldb,
                                    [SHAPE_PRECISION] = (int)run->precision,
                                    [SHAPE_TRANSPOSE_A] = p->transpose_a,
                                    [SHAPE_TRANSPOSE_B] = p->transpose_b,
                                    [SHAPE_C_FLOAT] = p->c_float,
                                    [SHAPE_BIAS] = p->bias != NULL,
                                    [SHAPE_EPILOGUE] = (int)p->epilogue,
                                    [SHAPE_SAVED] = p->saved != NULL,
                                    [SHAPE_COLUMN_SUMS] = p->column_sums != NULL,
                                    [SHAPE_WORKSPACE] = run->workspace != NULL,
                                    [SHAPE_ALIGN_A] = alignment(p->a),
                                    [SHAPE_ALIGN_B] = alignment(p->b),
                                    [SHAPE_ALIGN_C] = alignment(p->c)}};
}

/* ---- the description of the product ---- */

static uint32_t epilogue_of(const Product *p) {
    uint32_t bias = p->bias ? CUBLASLT_EPILOGUE_BIAS : 0;
    if (p->column_sums) return CUBLASLT_EPILOGUE_BGRADB; /* of the library's B, our A */
    if (p->epilogue == EPILOGUE_GELU_GRADIENT) return CUBLASLT_EPILOGUE_DGELU;
    if (p->epilogue == EPILOGUE_GELU)
        return (uint32_t)(p->saved ? CUBLASLT_EPILOGUE_GELU_AUX : CUBLASLT_EPILOGUE_GELU) | bias;
    return bias ? bias : (uint32_t)CUBLASLT_EPILOGUE_DEFAULT;
}

static bool set(MatmulDescription *description, cublasLtMatmulDescAttributes_t attribute,
                const void *value, size_t size) {
    return cublaslt.cublasLtMatmulDescSetAttribute(&description->product, attribute, value, size) ==
           CUBLAS_STATUS_SUCCESS;
}

/* Sets the bias or column sums.  A bias is of the value type and column sums are float; without a
 * type the library would take that of C for either. */
static bool describe_vector(MatmulDescription *to, const Product *p, cudaDataType_t value) {
    const void *vector = vector_of(p);
    int32_t type = (int32_t)(p->column_sums ? CUDA_R_32F : value);
    return !vector || (set(to, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &vector, sizeof vector) &&
                       set(to, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &type, sizeof type));
}

/* Sets the transposes, the epilogue and its pointers, whose alignment the library looks at. */
static bool describe_product(MatmulDescription *to, const Product *p, cudaDataType_t value) {
    int32_t a = p->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    int32_t b = p->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    uint32_t epilogue = epilogue_of(p);
    int64_t ld = p->ldc;
    if (!set(to, CUBLASLT_MATMUL_DESC_TRANSA, &a, sizeof a) ||
        !set(to, CUBLASLT_MATMUL_DESC_TRANSB, &b, sizeof b) ||
        !set(to, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue) ||
        !describe_vector(to, p, value))
        return false;
    return !p->saved ||
           (set(to, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &p->saved, sizeof p->saved) &&
            set(to, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &ld, sizeof ld));
}

static bool layout(cublasLtMatrixLayout_t to, cudaDataType_t type, bool transposed, int rows,
                   int columns, int ld) {
    int stored_rows = transposed ? columns : rows, stored_columns = transposed ? rows : columns;
    return cublaslt.cublasLtMatrixLayoutInit_internal(to, sizeof *to, type, (uint64_t)stored_rows,
                                                      (uint64_t)stored_columns,
                                                      ld) == CUBLAS_STATUS_SUCCESS;
}

static bool describe(MatmulDescription *to, const Run *run, const Product *p) {
    cudaDataType_t value = run->precision == PRECISION_BF16 ? CUDA_R_16BF : CUDA_R_32F;
    cublasComputeType_t compute =
        run->precision == PRECISION_TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    return cublaslt.cublasLtMatmulDescInit_internal(&to->product, sizeof to->product, compute,
                                                    CUDA_R_32F) == CUBLAS_STATUS_SUCCESS &&
           layout(&to->a, value, p->transpose_b, p->n, p->k, p->ldb) &&
           layout(&to->b, value, p->transpose_a, p->k, p->m, p->lda) &&
           layout(&to->c, p->c_float ? CUDA_R_32F : value, false, p->n, p->m, p->ldc) &&
           describe_product(to, p, value);
}

/* Returns true when the library should run all of the product in one call.  It has gelu, its
 * gradient and column sums for half precision only, and gelu is part of the product's kernel on
 * Hopper alone; elsewhere it is a second, slower kernel than ours (llm.c, pull requests 591 and
 * 653).  The rows of `saved` must be multiples of 8 values, and vectors must lie at multiples of 16
 * bytes, which the library moves at once. */
static bool may_fuse(const Run *run, const Product *p) {
    bool half_only = p->column_sums || p->epilogue != EPILOGUE_NONE;
    if (half_only && run->precision != PRECISION_BF16) return false;
    if (p->epilogue != EPILOGUE_NONE && matmul_capability() != 9) return false;
    return (!p->saved || p->ldc % 8 == 0) &&
           (!(half_only || p->bias) ||
            (alignment(vector_of(p)) == 16 && alignment(p->saved) == 16));
}

/* ---- the product ---- */

/* Runs the product by the first algorithm that the library does not refuse, and drops those before
 * it for good, so that the next call takes the same one.  A refusal is any status that leaves the
 * device sound: an algorithm's kernel may find no memory to be loaded into, or fail for large
 * matrices.  Returns false when it refuses all.  The lock must be held. */
static bool multiply(MatmulCall *call, MatmulChoice *choice) {
    while (choice->first < choice->count) {
        cublasStatus_t status = matmul_launch(call, &choice->algorithm[choice->first]);
        if (status == CUBLAS_STATUS_SUCCESS) return true;
        const char *why = cublaslt.cublasLtGetStatusString(status);
        matmul_log_refusal(choice, why);
        /* The library also fails where it only meets the fault of an earlier kernel, noted here. */
        if (!device_is_sound(call->run->stream)) return true;
        /* The algorithm ran before the capture, so the capture is what failed: as a whole. */
        if (device_captures(call->run->stream)) {
            device_note("matrix product %d x %d x %d while captured: %s", call->product->m,
                        call->product->n, call->product->k, why);
            return true;
        }
        choice->first++;
    }
    return false;
}

/* Says once on stderr that our own loops compute a product, since they give the same and take many
 * times as long. */
static void tell_of_own_loops(const Product *p) {
    static bool told;
    if (!told)
        fprintf(
            stderr,
            "bcd: cuBLASLt refuses a matrix product of %d x %d x %d: a slow kernel computes it, "
            "and others that are refused (BCD_LT_LOG=1 lists them)\n",
            p->m, p->n, p->k);
    told = true;
}

bool library_matmul(const Run *run, const Product *product) {
    MatmulCall call = {.run = run, .product = product};
    MatmulChoice none = {.shape = shape_of(run, product)};
    bool done = false;
    pthread_mutex_lock(&lock);
    call.library = library();
    if (!call.library) {
        done = true; /* library() has noted why */
    } else if (may_fuse(run, product)) {
        if (describe(&call.description, run, product))
            done = multiply(&call, matmul_choice(&call, none.shape));
        else
            matmul_log_refusal(&none, "its description was refused");
    }
    if (!done && !vector_of(product) && product->epilogue == EPILOGUE_NONE)
        tell_of_own_loops(product);
    pthread_mutex_unlock(&lock);
    return done;
}
