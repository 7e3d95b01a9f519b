/* cuBLASLt's functions, each looked up when it is first called.  So the program starts on a machine
 * without the library (half a gigabyte), and says so when a product is asked for.  A function that
 * gpu/matmul.c begins to use needs a line here. */
#include <cublasLt.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define TEXT_OF(macro) #macro
#define NAME_OF(major) "libcublasLt.so." TEXT_OF(major)

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void *library;
static char why[400];

static void open_library(void) {
    library = dlopen(NAME_OF(CUBLAS_VER_MAJOR), RTLD_NOW | RTLD_LOCAL);
    if (!library)
        snprintf(why, sizeof why,
                 "cuBLASLt was not found (%.250s); install CUDA's libraries, or name their "
                 "directory in LD_LIBRARY_PATH",
                 dlerror());
}

/* Returns NULL when there is no library, or when it has no such function. */
static void *find(const char *name) {
    pthread_once(&once, open_library);
    return library ? dlsym(library, name) : NULL;
}

/* POSIX gives pointers to functions and objects the same bytes; ISO C has no cast between them. */
#define FORWARD(type, missing, name, parameters, arguments) \
    type name parameters {                                  \
        static void *_Atomic known;                         \
        if (!known) known = find(#name);                    \
        void *at = known;                                   \
        __typeof__(&name) function;                         \
        memcpy(&function, &at, sizeof function);            \
        return at ? function arguments : missing;           \
    }
#define FORWARD_CALL(name, parameters, arguments) \
    FORWARD(cublasStatus_t, CUBLAS_STATUS_NOT_INITIALIZED, name, parameters, arguments)

FORWARD(size_t, 0, cublasLtGetVersion, (void), ())
FORWARD(const char *, why, cublasLtGetStatusString, (cublasStatus_t status), (status))
FORWARD_CALL(cublasLtCreate, (cublasLtHandle_t * handle), (handle))
FORWARD_CALL(cublasLtMatmulDescInit_internal,
             (cublasLtMatmulDesc_t product, size_t size, cublasComputeType_t compute,
              cudaDataType_t scale),
             (product, size, compute, scale))
FORWARD_CALL(cublasLtMatmulDescSetAttribute,
             (cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t attribute,
              const void *value, size_t size),
             (product, attribute, value, size))
FORWARD_CALL(cublasLtMatrixLayoutInit_internal,
             (cublasLtMatrixLayout_t layout, size_t size, cudaDataType type, uint64_t rows,
              uint64_t columns, int64_t ld),
             (layout, size, type, rows, columns, ld))
FORWARD_CALL(cublasLtMatmulPreferenceInit_internal,
             (cublasLtMatmulPreference_t preference, size_t size), (preference, size))
FORWARD_CALL(cublasLtMatmulPreferenceSetAttribute,
             (cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute,
              const void *value, size_t size),
             (preference, attribute, value, size))
FORWARD_CALL(cublasLtMatmulAlgoGetHeuristic,
             (cublasLtHandle_t handle, cublasLtMatmulDesc_t product, cublasLtMatrixLayout_t a,
              cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
              cublasLtMatmulPreference_t preference, int asked,
              cublasLtMatmulHeuristicResult_t found[], int *count),
             (handle, product, a, b, c, d, preference, asked, found, count))
FORWARD_CALL(cublasLtMatmul,
             (cublasLtHandle_t handle, cublasLtMatmulDesc_t product, const void *alpha,
              const void *a, cublasLtMatrixLayout_t a_layout, const void *b,
              cublasLtMatrixLayout_t b_layout, const void *beta, const void *c,
              cublasLtMatrixLayout_t c_layout, void *d, cublasLtMatrixLayout_t d_layout,
              const cublasLtMatmulAlgo_t *algorithm, void *workspace, size_t workspace_bytes,
              cudaStream_t stream),
             (handle, product, alpha, a, a_layout, b, b_layout, beta, c, c_layout, d, d_layout,
              algorithm, workspace, workspace_bytes, stream))
FORWARD_CALL(cublasLtMatmulAlgoCheck,
             (cublasLtHandle_t handle, cublasLtMatmulDesc_t product, cublasLtMatrixLayout_t a,
              cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
              const cublasLtMatmulAlgo_t *algorithm, cublasLtMatmulHeuristicResult_t *result),
             (handle, product, a, b, c, d, algorithm, result))
FORWARD_CALL(cublasLtMatmulAlgoConfigGetAttribute,
             (const cublasLtMatmulAlgo_t *algorithm, cublasLtMatmulAlgoConfigAttributes_t what,
              void *value, size_t size, size_t *written),
             (algorithm, what, value, size, written))
