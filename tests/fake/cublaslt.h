/* What the two files of cuBLASLt's stand-in share: cublaslt.c checks the arguments, and
 * cublaslt_product.c computes the product. */
#pragma once

#include <cublasLt.h>
#include <string.h>

#include "fake.h"

/* ---- what the stand-in keeps in NVIDIA's opaque structs ---- */

enum { PRODUCT = 0x4d31, LAYOUT, PREFERENCE, ALGORITHM };

typedef struct {
    int what, transpose_a, transpose_b, bias_type, compute, scale;
    unsigned epilogue;
    const void *bias;
    void *aux;
    int64_t aux_ld;
} Description;
typedef struct {
    int what, type;
    uint64_t rows, columns;
    int64_t ld;
} Layout;
typedef struct {
    int what;
    uint64_t workspace;
    uint32_t schemes, align[4]; /* align: of A, B, C, D */
} Preference;
typedef struct {
    uint64_t what, number, problem;
} Algorithm;

_Static_assert(sizeof(Description) <= sizeof(cublasLtMatmulDescOpaque_t), "");
_Static_assert(sizeof(Layout) <= sizeof(cublasLtMatrixLayoutOpaque_t), "");
_Static_assert(sizeof(Preference) <= sizeof(cublasLtMatmulPreferenceOpaque_t), "");
_Static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t), "");

/* Copies one of our structs out of the opaque struct of NVIDIA's; leaves it alone if that is
 * NULL. */
static inline void read_opaque(void *to, const void *from, size_t size) {
    if (from) memcpy(to, from, size);
}

typedef struct {
    Description d;
    Layout a, b, c, out;
} Problem;

/* Returns the bytes of a number of type CUDA_R_16BF or CUDA_R_32F. */
static inline size_t bytes_of(int type) { return type == CUDA_R_16BF ? 2 : 4; }
static inline bool transposed(int operation) { return operation == CUBLAS_OP_T; }
/* Returns the number of terms in each sum. */
static inline uint64_t depth(const Problem *p) {
    return transposed(p->d.transpose_a) ? p->a.rows : p->a.columns;
}

/* A product that has been put on a stream. */
typedef struct {
    Problem p;
    const void *a, *b;
    void *c, *workspace;
    size_t workspace_bytes;
    float alpha, beta;
    int device, parts; /* partial sums of each number; 0: none */
} Work;
cublasStatus_t product_put(cudaStream_t stream, const Work *work);
