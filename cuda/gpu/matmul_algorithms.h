/* How the library computes each shape of product.  Algorithms come from a table that was measured
 * once for this GPU and this version of the library, or else from the library's heuristic; never
 * from timing during a training, which would choose differently from run to run, and with it the
 * bits.  For the same reason partial sums may be kept apart and added in float, in a fixed order,
 * but not accumulated in the output.  Only gpu/matmul.c calls these functions, and holds its lock
 * meanwhile. */
#pragma once

#include "../matmul.h"
#include "cublaslt_library.h"

/* All numbers that the choice depends on. */
enum {
    SHAPE_M,
    SHAPE_N,
    SHAPE_K,
    SHAPE_LDC,
    SHAPE_LDA,
    SHAPE_LDB,
    SHAPE_PRECISION,
    SHAPE_TRANSPOSE_A,
    SHAPE_TRANSPOSE_B,
    SHAPE_C_FLOAT,
    SHAPE_BIAS,
    SHAPE_EPILOGUE,
    SHAPE_SAVED,
    SHAPE_COLUMN_SUMS,
    SHAPE_WORKSPACE, /* 0: the run has none */
    SHAPE_ALIGN_A,   /* bytes, at most 16 */
    SHAPE_ALIGN_B,
    SHAPE_ALIGN_C,
    SHAPE_NUMBERS
};
typedef struct {
    int number[SHAPE_NUMBERS];
} MatmulShape;

typedef struct {
    cublasLtMatmulAlgo_t code;
    size_t workspace;
} MatmulAlgorithm;

enum { MATMUL_CANDIDATES = 8 };
typedef struct {
    MatmulShape shape;
    int first, count; /* algorithms before `first` were refused */
    MatmulAlgorithm algorithm[MATMUL_CANDIDATES];
} MatmulChoice;

typedef struct {
    cublasLtMatmulDescOpaque_t product;
    cublasLtMatrixLayoutOpaque_t a, b, c;
} MatmulDescription;

/* A product that is about to run. */
typedef struct {
    cublasLtHandle_t library;
    const Run *run;
    const Product *product;
    MatmulDescription description; /* not const, as the library takes it */
} MatmulCall;

/* Puts the product on the stream.  Returns what the library says. */
cublasStatus_t matmul_launch(MatmulCall *call, const MatmulAlgorithm *algorithm);

/* Returns the choice for a call's shape.  It is made at the first call, and then kept.  If its
 * count is 0, the library has no such product. */
MatmulChoice *matmul_choice(MatmulCall *call, MatmulShape shape);

/* Returns the major compute capability of the thread's device; 9 if it cannot be asked. */
int matmul_capability(void);

/* Logs that the library refused the algorithm at choice->first, or all of the product where there
 * is none. */
void matmul_log_refusal(const MatmulChoice *choice, const char *why);
