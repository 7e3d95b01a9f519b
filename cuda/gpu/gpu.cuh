/* The dialect of kernel.cuh on a GPU.  Fragment layouts: PTX ISA, "Warp-level matrix instructions",
 * m16n8k16 and m16n8k8; with g = lane / 4 and t = lane % 4,
 *   accumulators  d0 d1 at row g, columns 2t 2t+1; d2 d3 at row g + 8
 *   a, bf16       a0 row g, columns 2t 2t+1; a1 row g + 8; a2, a3: the same, columns + 8
 *   b, bf16       b0 rows 2t 2t+1, column g; b1 rows + 8
 *   a, tf32       a0 row g, column t; a1 row g + 8; a2, a3: the same, column + 4
 *   b, tf32       b0 row t, column g; b1 row + 4 */
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <stdint.h>

#include "internal.h"
#include "wgmma.cuh"

#define LAUNCH(kernel, grid, block, shared_bytes, stream, ...)                            \
    do {                                                                                  \
        kernel<<<(grid), (block), (shared_bytes), (cudaStream_t)(stream)>>>(__VA_ARGS__); \
        device_note_launch(cudaGetLastError(), #kernel, __FILE__, __LINE__);              \
    } while (0)

#define SHARED(type, name, dimensions) __shared__ __align__(16) type name dimensions
#define DYNAMIC_SHARED(type, name)                                  \
    extern __shared__ __align__(16) unsigned char dynamic_shared[]; \
    type *const name = (type *)(void *)dynamic_shared

#define SHARED_LIMIT(kernel, bytes)                                                              \
    device_note_launch(                                                                          \
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)(bytes)), \
        #kernel, __FILE__, __LINE__)

/* d += a b, by the instruction of this shape. */
#define MMA(name, shape)                                                                  \
    static DEVICE void name(float(&d)[4], const unsigned(&a)[4], const unsigned(&b)[2]) { \
        asm volatile("mma.sync.aligned." shape                                            \
                     ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"         \
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                     \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1])); \
    }
MMA(mma_bf16, "m16n8k16.row.col.f32.bf16.bf16")
MMA(mma_tf32, "m16n8k8.row.col.f32.tf32.tf32")
#undef MMA

static DEVICE unsigned tf32_round(float x) {
    unsigned bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return bits;
}

static DEVICE float exp2_fast(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

#define LDMATRIX_X4(name, kind)                                                     \
    static DEVICE void name(unsigned(&r)[4], const void *p) {                       \
        asm volatile("ldmatrix.sync.aligned.m8n8." kind ".b16 {%0,%1,%2,%3}, [%4];" \
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])               \
                     : "r"(shared_address(p))                                       \
                     : "memory");                                                   \
    }
LDMATRIX_X4(ldmatrix_x4, "x4.shared")
LDMATRIX_X4(ldmatrix_x4_trans, "x4.trans.shared")
#undef LDMATRIX_X4

static DEVICE void ldmatrix_x2_trans(unsigned (&r)[2], const void *p) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"(shared_address(p))
                 : "memory");
}

#define COPY_ASYNC(bytes, cache)                                                      \
    static DEVICE void copy_async##bytes(void *shared, const void *global, bool ok) { \
        asm volatile("cp.async." cache ".shared.global [%0], [%1], " #bytes           \
                     ", %2;" ::"r"(shared_address(shared)),                           \
                     "l"(global), "r"(ok ? bytes : 0)                                 \
                     : "memory");                                                     \
    }
COPY_ASYNC(16, "cg")
COPY_ASYNC(8, "ca")
COPY_ASYNC(4, "ca")
#undef COPY_ASYNC

static DEVICE void copy_async_commit(void) { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <int pending>
static DEVICE void copy_async_wait(void) {
    asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}
