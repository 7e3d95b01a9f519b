/* What is used of NCCL, one function to a line. */
#pragma once

#include <nccl.h>

#include "library.h"

/* clang-format off */
#define NCCL_FUNCTIONS(F) \
    F(ncclGetVersion) \
    F(ncclGetUniqueId) \
    F(ncclCommInitRankConfig) \
    F(ncclCommGetAsyncError) \
    F(ncclCommFinalize) \
    F(ncclCommDestroy) \
    F(ncclCommAbort) \
    F(ncclGroupStart) \
    F(ncclGroupEnd) \
    F(ncclSend) \
    F(ncclRecv) \
    F(ncclGetErrorString) \
    F(ncclGetLastError)
/* clang-format on */

typedef struct {
    NCCL_FUNCTIONS(LIBRARY_MEMBER)
} NcclLibrary;

extern NcclLibrary nccl;

/* Loads `nccl` at the first call.  -1 and an error when that fails or the library is too old to
 * abort several communicators in one group. */
int nccl_open(void);
