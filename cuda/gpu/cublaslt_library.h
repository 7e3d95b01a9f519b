/* What is used of cuBLASLt, one function to a line.  The header's Init functions are inline; each
 * calls the one named _internal, which the library has. */
#pragma once

#include <cublasLt.h>

#include "library.h"

/* clang-format off */
#define CUBLASLT_FUNCTIONS(F) \
    F(cublasLtGetVersion) \
    F(cublasLtGetStatusString) \
    F(cublasLtCreate) \
    F(cublasLtMatmulDescInit_internal) \
    F(cublasLtMatmulDescSetAttribute) \
    F(cublasLtMatrixLayoutInit_internal) \
    F(cublasLtMatmulPreferenceInit_internal) \
    F(cublasLtMatmulPreferenceSetAttribute) \
    F(cublasLtMatmulAlgoGetHeuristic) \
    F(cublasLtMatmul) \
    F(cublasLtMatmulAlgoCheck) \
    F(cublasLtMatmulAlgoConfigGetAttribute)
/* clang-format on */

typedef struct {
    CUBLASLT_FUNCTIONS(LIBRARY_MEMBER)
} CublasLt;

extern CublasLt cublaslt;

/* Loads `cublaslt` at the first call.  -1 and an error when that fails. */
int cublaslt_open(void);
