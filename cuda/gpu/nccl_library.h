/* NCCL's functions, found when they are first asked for: what was built with nccl.h runs without
 * NCCL, until two GPUs are to be joined. */
#ifndef CUDA_GPU_NCCL_LIBRARY_H
#define CUDA_GPU_NCCL_LIBRARY_H

#include <nccl.h>

/* One to a line. */
/* clang-format off */
#define NCCL_FUNCTIONS(F) \
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
#define NCCL_MEMBER(name) __typeof__(&name) name;
    NCCL_FUNCTIONS(NCCL_MEMBER)
#undef NCCL_MEMBER
} NcclLibrary;

/* Loads libnccl.so.2, once.  NULL and an error. */
const NcclLibrary *nccl_library_open(void);

#endif
