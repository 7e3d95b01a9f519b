/* Shuffles and votes of one warp. */
#include "../../cuda/kernel.cuh"
#include "kernels.h"

static const unsigned ALL = 0xffffffffu;

static __global__ void shuffle(int kind, int *y, const int *x, int amount, int width) {
    int i = (int)threadIdx.x, v = x[i];
    if (kind == SHUFFLE_INDEX) v = __shfl_sync(ALL, v, amount + i, width);
    if (kind == SHUFFLE_UP) v = __shfl_up_sync(ALL, v, (unsigned)amount, width);
    if (kind == SHUFFLE_DOWN) v = __shfl_down_sync(ALL, v, (unsigned)amount, width);
    if (kind == SHUFFLE_XOR) v = __shfl_xor_sync(ALL, v, amount, width);
    y[i] = v;
}

extern "C" void run_shuffle(int kind, int *y, const int *x, int amount, int width) {
    LAUNCH(shuffle, 1, 32, 0, nullptr, kind, y, x, amount, width);
}

static __global__ void shuffle_long(long long *y, const long long *x) {
    y[threadIdx.x] = __shfl_sync(ALL, x[threadIdx.x], 31 - (int)threadIdx.x);
}

extern "C" void run_shuffle_long(long long *y, const long long *x) {
    LAUNCH(shuffle_long, 1, 32, 0, nullptr, y, x);
}

/* The first half turns its values round eight times, the second adds them up, in between both pass
 * values through shared memory. */
static __global__ void halves(int *y, const int *x) {
    SHARED(int, s, [32]);
    unsigned lane = threadIdx.x, mask = lane < 16 ? 0x0000ffffu : 0xffff0000u;
    int v = x[lane];
    if (lane < 16) {
        for (int i = 0; i < 8; i++) v = __shfl_sync(mask, v, (int)lane + 1, 16);
    } else {
        for (int d = 8; d; d /= 2) v += __shfl_xor_sync(mask, v, d);
    }
    s[lane] = v;
    __syncwarp(mask);
    v = s[lane ^ 1u];
    __syncwarp();
    s[lane] = v;
    __syncwarp();
    y[lane] = s[31 - lane];
}

extern "C" void run_halves(int *y, const int *x) { LAUNCH(halves, 1, 32, 0, nullptr, y, x); }

static __global__ void votes(int (*y)[VOTES], const int *x) {
    int *to = y[threadIdx.x], v = x[threadIdx.x];
    unsigned u = (unsigned)v, low = 0x000000ffu;
    to[0] = (int)__ballot_sync(ALL, v > 0);
    to[1] = __any_sync(ALL, v > 1000) != 0;
    to[2] = __all_sync(ALL, v > -1000) != 0;
    to[3] = __reduce_add_sync(ALL, v);
    to[4] = __reduce_min_sync(ALL, v);
    to[5] = __reduce_max_sync(ALL, v);
    to[6] = (int)__reduce_and_sync(ALL, u | 12u);
    to[7] = (int)__reduce_or_sync(ALL, u & 48u);
    to[8] = (int)__reduce_xor_sync(ALL, u);
    to[9] = (int)__reduce_max_sync(ALL, u);
    to[10] = (int)__reduce_min_sync(ALL, u);
    to[11] = threadIdx.x < 8 ? (int)__ballot_sync(low, threadIdx.x % 2 == 0) : 0;
}

extern "C" void run_votes(int y[32][VOTES], const int *x) {
    LAUNCH(votes, 1, 32, 0, nullptr, y, x);
}
