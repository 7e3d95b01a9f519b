/* NCCL's functions, looked up when they are first needed: a program that was built with nccl.h runs
 * without NCCL as long as it uses one GPU. */
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

/* Loads libnccl.so.2 at the first call.  Returns NULL, with an error, when that fails. */
const NcclLibrary *nccl_library_open(void);

#endif
