/* The language the kernels are written in: CUDA C, and a few macros and functions by which the same
 * source also runs on a CPU (simt/).  Only this file asks which compiler reads it.
 *
 *   DEVICE                                     before a function: it becomes part of each kernel
 *   LAUNCH(kernel, grid, block, shared_bytes, stream, arguments...)   instead of <<< >>>; a kernel
 *           template with a comma in its arguments goes in parentheses
 *   SHARED(float, tile, [32][33]);             static shared memory, at the head of a function
 *   DYNAMIC_SHARED(float, tile);               the launch's shared_bytes, 16-byte aligned
 *   SHARED_LIMIT(kernel, bytes);               before a launch with more than 48 KiB; every
 *           call for a kernel gives the same bytes, because host threads share the setting
 *
 * and these warp-wide pieces, in PTX on a GPU, defined by their documented layouts on a CPU:
 *
 *   mma_bf16(d, a, b)      d[4] += a[4] b[2]: 16x8x16, bf16 pairs in, fp32 accumulators
 *   mma_tf32(d, a, b)      d[4] += a[4] b[2]: 16x8x8, tf32 in, fp32 accumulators
 *   tf32_round(x)          the bits of a float rounded to tf32, for mma_tf32
 *   exp2_fast(x)           2^x to 2^-22 relative, results below 2^-126 are 0; NaN stays NaN
 *   ldmatrix_x4(r, p), ldmatrix_x4_trans(r, p), ldmatrix_x2_trans(r, p)
 *                          8x8 matrices of bf16 from shared memory, one row address per lane.
 *                          As mma, the lanes of a warp must run it together, and a loop that copies
 *                          lane by lane may part them: __syncwarp comes between
 *   copy_async16(s, g, ok) 16 bytes global -> shared without registers; zeros unless ok
 *   copy_async8(s, g, ok), copy_async4(s, g, ok)   the same for rows less aligned
 *   copy_async_commit(), copy_async_wait<N>()
 *
 * and on compute capability 9.0 products of a warpgroup, four warps from a multiple of four on.
 * They run while the warps go on, until wgmma_end.  Matrices of bf16 in shared memory are given by
 * descriptors (ops/wgmma_tiles.cuh), the same ones in all warps of the group:
 *
 *   wgmma_begin(d)         makes what was written to registers, d included, visible to what follows
 *   wgmma_pin(r)           before begin and after end: r[N][4] are left sides of wgmma_sums, or
 *                          another accumulator than that of wgmma_end
 *   wgmma_rows(d, a, b)    d[N][4] += a b^T: 64 rows of a, 8 N rows of b, of 16 numbers each
 *   wgmma_sums(d, r, b)    d[N][4] += r b: r[4] as mma_bf16's a, 16 rows of b of 8 N numbers
 *   wgmma_end(d)           waits until all of them are done; d is the result
 *                          d as that of mma_bf16, 16 rows each warp; N = 8 or 16
 *   async_proxy_fence()    lets products see what this thread wrote or copied to shared memory
 *   shared_address(p)      the address in shared memory that descriptors use
 *
 * Everything else is CUDA's own: __global__, __syncthreads, __syncwarp, __shfl_xor_sync, atomicAdd
 * on int, float4, __nv_bfloat16, __ldg, fmaf ...  simt/ has of it what the kernels use; a kernel
 * that needs more of CUDA adds it there, in numbers.h or warp.h. */
#pragma once

#define DEVICE __device__ __forceinline__

#ifdef __CUDACC__
#include "../gpu/gpu.cuh"
#else
#include "../simt/simt.h"
#endif
