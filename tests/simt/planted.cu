/* Kernels with one mistake each, which the SIMT layer must find. Each is followed by a line that
 * records its position, from which planted_lines counts back. */
#include "../../cuda/ops/kernel.cuh"
#include "kernels.h"

static const unsigned ALL = 0xffffffffu;
#define ENDS(kernel) enum { END_OF_##kernel = __LINE__ }

static __global__ void missing_barrier(float *y, const float *x) {
    SHARED(float, s, [64]);
    s[threadIdx.x] = x[threadIdx.x];
    y[threadIdx.x] = s[63 - threadIdx.x];
}
ENDS(missing_barrier);

/* The second round overwrites what other threads may still read. */
static __global__ void missing_second_barrier(float *y, const float *x) {
    SHARED(float, s, [64]);
    float sum = 0;
    for (int i = 0; i < 2; i++) {
        s[threadIdx.x] = x[64 * i + (int)threadIdx.x];
        __syncthreads();
        sum += s[63 - threadIdx.x];
    }
    y[threadIdx.x] = sum;
}
ENDS(missing_second_barrier);

static __global__ void missing_syncwarp(float *y, const float *x) {
    SHARED(float, s, [32]);
    s[threadIdx.x] = x[threadIdx.x];
    float other = __shfl_xor_sync(ALL, x[threadIdx.x], 1);
    y[threadIdx.x] = other + s[31 - threadIdx.x];
}
ENDS(missing_syncwarp);

static __global__ void blocks_without_atomic(float *y) {
    if (threadIdx.x == 0) y[0] = 2 * y[0] + (float)blockIdx.x;
}
ENDS(blocks_without_atomic);

static __global__ void missing_wait(float *y, const float *x) {
    SHARED(float4, s, [64]);
    copy_async16(&s[threadIdx.x], x + 4 * threadIdx.x, true);
    copy_async_commit();
    copy_async_wait<1>();
    y[threadIdx.x] = s[threadIdx.x].x;
}
ENDS(missing_wait);

static __global__ void uninitialised(float *y, const float *x) {
    SHARED(float, s, [64]);
    if (threadIdx.x < 63) s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = s[threadIdx.x];
}
ENDS(uninitialised);

static __global__ void leaves_before_barrier(float *y, const float *x, int n) {
    SHARED(float, s, [64]);
    if ((int)threadIdx.x >= n) return;
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = s[0];
}
ENDS(leaves_before_barrier);

static __global__ void divergent_barrier(float *y, int n) {
    if ((int)threadIdx.x < n) {
        y[threadIdx.x] = 1;
        __syncthreads();
    } else {
        y[threadIdx.x] = 2;
        __syncthreads();
    }
}
ENDS(divergent_barrier);

static __global__ void leaves_before_shuffle(float *y, const float *x, int n) {
    if ((int)threadIdx.x >= n) return;
    y[threadIdx.x] = __shfl_xor_sync(ALL, x[threadIdx.x], 1);
}
ENDS(leaves_before_shuffle);

static __global__ void lane_at_barrier(float *y, const float *x, int n) {
    float v = x[threadIdx.x];
    if ((int)threadIdx.x < n) v = __shfl_xor_sync(ALL, v, 1);
    __syncthreads();
    y[threadIdx.x] = v;
}
ENDS(lane_at_barrier);

static __global__ void another_operation(float *y, const float *x, int n) {
    float v = x[threadIdx.x];
    if ((int)threadIdx.x < n)
        v = __shfl_xor_sync(ALL, v, 1);
    else
        __syncwarp();
    y[threadIdx.x] = v;
}
ENDS(another_operation);

static __global__ void mask_without_caller(float *y, const float *x) {
    y[threadIdx.x] = __shfl_xor_sync(0x7fffffffu, x[threadIdx.x], 1);
}
ENDS(mask_without_caller);

static __global__ void misaligned_matrix(float *y, const float *x) {
    SHARED(float, s, [256]);
    for (int i = (int)threadIdx.x; i < 256; i += 32) s[i] = x[i];
    __syncwarp();
    unsigned r[4];
    ldmatrix_x4(r, &s[4 * threadIdx.x + (threadIdx.x == 9 ? 2 : 0)]);
    y[threadIdx.x] = (float)(r[0] + r[1] + r[2] + r[3]);
}
ENDS(misaligned_matrix);

static __global__ void misaligned_copy(float *y, const float *x) {
    SHARED(float4, s, [32]);
    copy_async16(&s[threadIdx.x], x + 3 * threadIdx.x, true);
    copy_async_commit();
    copy_async_wait<0>();
    y[threadIdx.x] = s[threadIdx.x].x;
}
ENDS(misaligned_copy);

static __global__ void product_without_fence(float *y, const float *x) {
    SHARED(float4, s, [512]);
    copy_async16(&s[threadIdx.x], x + 4 * threadIdx.x, true);
    copy_async_commit();
    copy_async_wait<0>();
    __syncwarp();
    const uint64_t matrix = (uint64_t)1 << 62 | shared_address(s) >> 4;
    float d[8][4] = {};
    wgmma_begin(d);
    wgmma_rows(d, matrix, matrix);
    wgmma_end(d);
    y[threadIdx.x] = d[0][0];
}
ENDS(product_without_fence);

static __global__ void product_of_one_warp(float *y) {
    SHARED(float4, s, [1024]);
    for (int i = (int)threadIdx.x; i < 1024; i += 128) s[i] = float4{0, 0, 0, 0};
    async_proxy_fence();
    __syncthreads();
    const uint64_t matrix = (uint64_t)1 << 62 | shared_address(s) >> 4;
    float d[8][4] = {};
    wgmma_begin(d);
    if (threadIdx.x < 32) wgmma_rows(d, matrix, matrix);
    wgmma_end(d);
    if (threadIdx.x < 64) y[threadIdx.x] = d[0][0];
}
ENDS(product_of_one_warp);

/* The compiler does not know these sizes, so it cannot report the overrun itself, and the sanitizer
 * must. */
static __global__ void overrun(float *y, int i_static, int i_dynamic, int i_global) {
    SHARED(float, s, [64]);
    DYNAMIC_SHARED(float, d);
    float *first = s;
    first[threadIdx.x] = d[threadIdx.x] = 1;
    __syncthreads();
    if (threadIdx.x == 0) y[0] = first[i_static] + d[i_dynamic];
    y[i_global] = 1;
}
ENDS(overrun);

static __global__ void misaligned_load(float *y, const float *x, int shift) {
    const float4 *p = reinterpret_cast<const float4 *>(x + shift);
    float4 v = p[threadIdx.x];
    y[threadIdx.x] = v.x + v.w;
}
ENDS(misaligned_load);

extern "C" bool planted_by_clang(void) {
#ifdef __clang__
    return true;
#else
    return false;
#endif
}

extern "C" void planted_lines(Planted planted, int lines[2]) {
    static const struct {
        Planted planted;
        int end, first, second; /* lines before the end */
    } rows[] = {
        {MISSING_BARRIER, END_OF_missing_barrier, 3, 2},
        {MISSING_SECOND_BARRIER, END_OF_missing_second_barrier, 6, 4},
        {MISSING_SYNCWARP, END_OF_missing_syncwarp, 4, 2},
        {BLOCKS_WITHOUT_ATOMIC, END_OF_blocks_without_atomic, 2, 2},
        {LEAVES_BEFORE_BARRIER, END_OF_leaves_before_barrier, 3, 3},
        {DIVERGENT_BARRIER, END_OF_divergent_barrier, 6, 3},
        {LEAVES_BEFORE_SHUFFLE, END_OF_leaves_before_shuffle, 2, 2},
        {LANE_THAT_IS_NOT, END_OF_leaves_before_shuffle, 2, 2},
        {LANE_AT_BARRIER, END_OF_lane_at_barrier, 4, 3},
        {ANOTHER_OPERATION, END_OF_another_operation, 5, 3},
        {MASK_WITHOUT_CALLER, END_OF_mask_without_caller, 2, 2},
        {MISALIGNED_MATRIX, END_OF_misaligned_matrix, 3, 3},
        {MISALIGNED_COPY, END_OF_misaligned_copy, 5, 5},
        {PRODUCT_WITHOUT_FENCE, END_OF_product_without_fence, 4, 4},
        {PRODUCT_OF_ONE_WARP, END_OF_product_of_one_warp, 4, 4},
        {STATIC_OVERRUN, END_OF_overrun, 3, 3},
        {DYNAMIC_OVERRUN, END_OF_overrun, 3, 3},
        {GLOBAL_OVERRUN, END_OF_overrun, 2, 2},
        {MISALIGNED_LOAD, END_OF_misaligned_load, 3, 3},
    };
    lines[0] = lines[1] = 0;
    for (const auto &row : rows)
        if (row.planted == planted) {
            lines[0] = row.end - row.first;
            lines[1] = row.end - row.second;
        }
}

extern "C" void run_planted(Planted planted, float *y, const float *x) {
    const size_t bytes = 64 * sizeof(float);
    switch (planted) {
        case MISSING_BARRIER:
            LAUNCH(missing_barrier, 1, 64, 0, nullptr, y, x);
            break;
        case MISSING_SECOND_BARRIER:
            LAUNCH(missing_second_barrier, 1, 64, 0, nullptr, y, x);
            break;
        case MISSING_SYNCWARP:
            LAUNCH(missing_syncwarp, 1, 32, 0, nullptr, y, x);
            break;
        case BLOCKS_WITHOUT_ATOMIC:
            LAUNCH(blocks_without_atomic, 3, 32, 0, nullptr, y);
            break;
        case MISSING_WAIT:
            LAUNCH(missing_wait, 1, 64, 0, nullptr, y, x);
            break;
        case UNINITIALISED:
            LAUNCH(uninitialised, 1, 64, 0, nullptr, y, x);
            break;
        case LEAVES_BEFORE_BARRIER:
            LAUNCH(leaves_before_barrier, 1, 64, 0, nullptr, y, x, 40);
            break;
        case DIVERGENT_BARRIER:
            LAUNCH(divergent_barrier, 1, 64, 0, nullptr, y, 40);
            break;
        case LEAVES_BEFORE_SHUFFLE:
            LAUNCH(leaves_before_shuffle, 1, 64, 0, nullptr, y, x, 40);
            break;
        case LANE_THAT_IS_NOT:
            LAUNCH(leaves_before_shuffle, 1, 40, 0, nullptr, y, x, 64);
            break;
        case LANE_AT_BARRIER:
            LAUNCH(lane_at_barrier, 1, 64, 0, nullptr, y, x, 40);
            break;
        case ANOTHER_OPERATION:
            LAUNCH(another_operation, 1, 64, 0, nullptr, y, x, 40);
            break;
        case MASK_WITHOUT_CALLER:
            LAUNCH(mask_without_caller, 1, 32, 0, nullptr, y, x);
            break;
        case MISALIGNED_MATRIX:
            LAUNCH(misaligned_matrix, 1, 32, 0, nullptr, y, x);
            break;
        case MISALIGNED_COPY:
            LAUNCH(misaligned_copy, 1, 32, 0, nullptr, y, x);
            break;
        case PRODUCT_WITHOUT_FENCE:
            LAUNCH(product_without_fence, 1, 32, 0, nullptr, y, x);
            break;
        case PRODUCT_OF_ONE_WARP:
            LAUNCH(product_of_one_warp, 1, 128, 0, nullptr, y);
            break;
        case STATIC_OVERRUN:
            LAUNCH(overrun, 1, 64, bytes, nullptr, y, 64, 0, 1);
            break;
        case DYNAMIC_OVERRUN:
            LAUNCH(overrun, 1, 64, bytes, nullptr, y, 0, 64, 1);
            break;
        case GLOBAL_OVERRUN:
            LAUNCH(overrun, 1, 64, bytes, nullptr, y, 0, 0, 64);
            break;
        case MISALIGNED_LOAD:
            LAUNCH(misaligned_load, 1, 32, 0, nullptr, y, x, 2);
            break;
        case TOO_MANY_THREADS:
            LAUNCH(missing_wait, 1, dim3(32, 33), 0, nullptr, y, x);
            break;
        case NO_BLOCKS:
            LAUNCH(missing_wait, dim3(1, 0), 64, 0, nullptr, y, x);
            break;
        case TOO_MUCH_SHARED:
            LAUNCH(overrun, 1, 64, 48 * 1024 + 1, nullptr, y, 0, 0, 1);
            break;
        case LIMIT_TOO_LARGE:
            SHARED_LIMIT(overrun, 227 * 1024 + 1);
            break;
        case LIMIT_LOWERED: /* as by another thread, whose call needs less */
            SHARED_LIMIT(missing_wait, 64);
            LAUNCH(missing_wait, 1, 64, 65, nullptr, y, x);
            break;
        case PLANTED_NOTHING:
        case PLANTED:
            break;
    }
}
