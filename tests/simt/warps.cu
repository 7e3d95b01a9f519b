/* Shuffles and votes of one warp. */
#include "../../cuda/ops/kernel.cuh"
#include "kernels.h"

static const unsigned ALL = 0xffffffffu;

static __global__ void shuffle(int kind, int *y, const int *x, int amount) {
    int i = (int)threadIdx.x, v = x[i];
    if (kind == SHUFFLE_INDEX) v = __shfl_sync(ALL, v, amount + i);
    if (kind == SHUFFLE_UP) v = __shfl_up_sync(ALL, v, (unsigned)amount);
    if (kind == SHUFFLE_XOR) v = __shfl_xor_sync(ALL, v, amount);
    y[i] = v;
}

extern "C" void run_shuffle(int kind, int *y, const int *x, int amount) {
    LAUNCH(shuffle, 1, 32, 0, nullptr, kind, y, x, amount);
}

static __global__ void shuffle_long(long long *y, const long long *x) {
    y[threadIdx.x] = __shfl_sync(ALL, x[threadIdx.x], 31 - (int)threadIdx.x);
}

extern "C" void run_shuffle_long(long long *y, const long long *x) {
    LAUNCH(shuffle_long, 1, 32, 0, nullptr, y, x);
}

/* The first half of the warp rotates its values eight times, the second adds them up; in between
 * both pass values through shared memory. */
static __global__ void halves(int *y, const int *x) {
    SHARED(int, s, [32]);
    unsigned lane = threadIdx.x, mask = lane < 16 ? 0x0000ffffu : 0xffff0000u;
    int v = x[lane];
    if (lane < 16) {
        for (int i = 0; i < 8; i++) v = __shfl_sync(mask, v, ((int)lane + 1) % 16);
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

static __global__ void votes(int (*y)[2], const int *x, int limit) {
    const bool above = x[threadIdx.x] > limit;
    y[threadIdx.x][0] = __any_sync(ALL, above);
    y[threadIdx.x][1] = threadIdx.x < 8 ? __any_sync(0x000000ffu, above) : 0;
}

extern "C" void run_votes(int y[32][2], const int *x, int limit) {
    LAUNCH(votes, 1, 32, 0, nullptr, y, x, limit);
}
