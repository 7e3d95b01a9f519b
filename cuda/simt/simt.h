/* The dialect of kernel.cuh on a CPU: the same kernels, compiled by g++ or clang++, with CUDA's
 * semantics, to be tested and not to be fast.
 *
 * Each thread of a block is a fiber; blocks run one after the other; barriers, shuffles and votes
 * switch fibers (engine.c).  Threads run in an order that the host chooses (control.h).  Shared
 * memory holds NaN when a block starts; an asynchronous copy leaves NaN until it is waited for.
 *
 * simt_error (control.h) reports: a barrier that some thread never reaches, or that threads reach
 * at different lines; a warp-wide operation whose named lanes do not all come; a launch that is
 * empty or too large; a misaligned ldmatrix or asynchronous copy.  A thread that has left the
 * kernel, or a lane that the block does not have, counts as missing, even where some GPUs would go
 * on.
 *
 * What this cannot show: speed; the order in which memory becomes visible between threads beyond
 * the race checker's rules (tests/simt/race); approximate functions (exp2_fast and the like are
 * exact here) and the bits of mma and wgmma sums, which a GPU adds in an order and a rounding of
 * its own; errors in the PTX of gpu.cuh, which is not what runs here; registers, __launch_bounds__,
 * occupancy, bank conflicts, local memory; misaligned vector loads (the race checker sees them);
 * forward progress: a thread that spins until another writes hangs. */
#pragma once

#ifdef __clang__
/* As with g++ and nvcc, int and unsigned may mix, because threadIdx is unsigned; and it does not
 * matter on a CPU when a loop cannot be unrolled. */
#pragma clang diagnostic ignored "-Wsign-conversion"
#pragma clang diagnostic ignored "-Wpass-failed"
#endif

#define __global__
#define __device__
#define __host__
#define __launch_bounds__(...)
#define __forceinline__ inline __attribute__((always_inline))
#define __align__(bytes) __attribute__((aligned(bytes)))

#include <stddef.h>
#include <stdint.h>

#include "fragments.h"
#include "launch.h"
#include "numbers.h"
#include "warp.h"
