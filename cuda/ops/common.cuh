/* What the kernels share: values as floats, 128-bit packs, reductions in a fixed order, and the
 * choice of a kernel by the run's value type.
 *
 * The value type T is float or __nv_bfloat16.  All arithmetic is in float; T is how it is stored.
 */
#pragma once

#include "../kernels.h"
#include "kernel.cuh"

/* ---- values ---- */

static DEVICE float to_float(float x) { return x; }
static DEVICE float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }

/* from_float<T>(x) rounds to nearest even. */
template <typename T>
static DEVICE T from_float(float x);
template <>
DEVICE float from_float<float>(float x) {
    return x;
}
template <>
DEVICE __nv_bfloat16 from_float<__nv_bfloat16>(float x) {
    return __float2bfloat16_rn(x);
}

/* ---- packs: V neighbouring values, moved by one instruction ----
 * V is pack_width<T>(), 128 bits, where a launcher found `packable`, else 1.  A kernel is a
 * template on V, so that the ragged path is the same code. */

template <typename T>
static constexpr __host__ __device__ int pack_width() {
    return 16 / (int)sizeof(T);
}

/* A pack of more than 128 bits (floats that go with packs of bf16) takes several instructions.  It
 * has may_alias because arrays of T are read and written through it. */
template <typename T, int V>
struct alignas(V * sizeof(T) < 16 ? V * sizeof(T) : 16) [[gnu::may_alias]] Pack {
    T at[V];
};
/* Pairs of bf16 in words, the first in the low half. */
template <>
struct alignas(16) [[gnu::may_alias]] Pack<__nv_bfloat16, 8> {
    unsigned word[4];
};

template <int V, typename T>
static DEVICE Pack<T, V> load_pack(const T *from) {
    return *reinterpret_cast<const Pack<T, V> *>(from);
}
template <typename T, int V>
static DEVICE void store_pack(T *to, Pack<T, V> pack) {
    *reinterpret_cast<Pack<T, V> *>(to) = pack;
}

template <typename T, int V>
static DEVICE void unpack(float (&x)[V], const Pack<T, V> &pack) {
#pragma unroll
    for (int i = 0; i < V; i++) x[i] = to_float(pack.at[i]);
}
static DEVICE void unpack(float (&x)[8], const Pack<__nv_bfloat16, 8> &pack) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
        x[2 * i] = __uint_as_float(pack.word[i] << 16);
        x[2 * i + 1] = __uint_as_float(pack.word[i] & 0xffff0000u);
    }
}

template <typename T, int V>
static DEVICE void pack_floats(Pack<T, V> *pack, const float (&x)[V]) {
#pragma unroll
    for (int i = 0; i < V; i++) pack->at[i] = from_float<T>(x[i]);
}
static DEVICE void pack_floats(Pack<__nv_bfloat16, 8> *pack, const float (&x)[8]) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
        __nv_bfloat162 pair = __floats2bfloat162_rn(x[2 * i], x[2 * i + 1]);
        pack->word[i] = (unsigned)__bfloat16_as_ushort(__low2bfloat16(pair)) |
                        (unsigned)__bfloat16_as_ushort(__high2bfloat16(pair)) << 16;
    }
}

/* V values at `from` as floats, and back. */
template <typename T, int V>
static DEVICE void load_floats(float (&x)[V], const T *from) {
    unpack(x, load_pack<V>(from));
}
template <typename T, int V>
static DEVICE void store_floats(T *to, const float (&x)[V]) {
    Pack<T, V> pack;
    pack_floats(&pack, x);
    store_pack(to, pack);
}

/* Store a value or V of them: to[] = x, or with `add` to[] += x. */
template <typename T>
static DEVICE void put(T *to, float x, bool add) {
    *to = from_float<T>(add ? __fadd_rn(to_float(*to), x) : x);
}
template <typename T, int V>
static DEVICE void put(T *to, const float (&x)[V], bool add) {
    float sum[V] = {};
    if (add) load_floats(sum, to);
#pragma unroll
    for (int i = 0; i < V; i++) sum[i] = add ? __fadd_rn(sum[i], x[i]) : x[i];
    store_floats(to, sum);
}

/* Host: returns true when rows of `width` values in these arrays can be read and written in packs
 * of V. NULL stands for an array that is not used. */
static inline bool packable(size_t width, int V) { return width % (size_t)V == 0; }
template <typename... P>
static inline bool packable(size_t width, int V, const void *array, P... more) {
    return (uintptr_t)array % 16 == 0 && packable(width, V, more...);
}

/* Host: runs the statement with V as `width` if `packed`, which may use V, else with V as 1.
 *
 *   WITH_PACKS(V, pack_width<T>(), packable(count, V, y, x),
 *              LAUNCH((copy<T, V>), grid_blocks(count / V, 256), 256, 0, stream, y, x, count / V));
 */
#define WITH_PACKS(V, width, packed, ...)             \
    do {                                              \
        bool wide;                                    \
        {                                             \
            [[maybe_unused]] constexpr int V = width; \
            wide = packed;                            \
        }                                             \
        if (wide) {                                   \
            constexpr int V = width;                  \
            __VA_ARGS__;                              \
        } else {                                      \
            constexpr int V = 1;                      \
            __VA_ARGS__;                              \
        }                                             \
    } while (0)

/* A constant as a value: a function that chooses among kernels hands it to a lambda, which may use
 * it as a template's argument. */
template <auto N>
struct Constant {
    constexpr operator decltype(N)() const { return N; }
};

/* ---- reductions ----
 * Their order depends on the shape alone, and every thread gets the result. */

/* Returns the larger, or NaN if either is NaN, which fmaxf would hide. */
static DEVICE float max_nan(float a, float b) { return a > b || a != a ? a : b; }

template <typename T> /* float or double */
static DEVICE T warp_sum(T x) {
#pragma unroll
    for (int flip = 16; flip > 0; flip /= 2) x += __shfl_xor_sync(0xffffffffu, x, flip);
    return x;
}
static DEVICE float warp_max(float x) {
#pragma unroll
    for (int flip = 16; flip > 0; flip /= 2) x = max_nan(x, __shfl_xor_sync(0xffffffffu, x, flip));
    return x;
}

/* These reduce over threadIdx.x of a block that is whole warps wide in x, and all its threads must
 * call them.  `scratch` holds 32 numbers in shared memory, and may be used again at once. */
template <typename T>
static DEVICE T block_sum(T x, T *scratch) {
    x = warp_sum(x);
    if (blockDim.x <= 32) return x;
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (lane == 0) scratch[warp] = x;
    __syncthreads();
    x = lane < blockDim.x / 32 ? scratch[lane] : T(0);
    x = warp_sum(x);
    __syncthreads();
    return x;
}
static DEVICE float block_max(float x, float *scratch) {
    x = warp_max(x);
    if (blockDim.x <= 32) return x;
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (lane == 0) scratch[warp] = x;
    __syncthreads();
    x = scratch[lane < blockDim.x / 32 ? lane : 0];
    x = warp_max(x);
    __syncthreads();
    return x;
}

static DEVICE bool is_finite(double x) { return x - x == 0; }

#define LOG2_E 1.44269504f /* for exp2_fast */

/* Blocks that fill a large device: 132 multiprocessors, two each. */
enum { ENOUGH_BLOCKS = 264 };

/* ---- indices ---- */

static constexpr __host__ __device__ int ceil_div(int x, int by) { return (x + by - 1) / by; }
static constexpr __host__ __device__ int round_up(int x, int to) { return ceil_div(x, to) * to; }

/* for (size_t i = grid_thread(); i < count; i += grid_threads()) ... of a one-dimensional grid */
static DEVICE size_t grid_thread(void) { return (size_t)blockIdx.x * blockDim.x + threadIdx.x; }
static DEVICE size_t grid_threads(void) { return (size_t)gridDim.x * blockDim.x; }

/* Calls body(k, i) for i = first, first + step, ... before `end`, but at most K of them, and
 * unrolls the calls, so that k may be the index of an array in registers. */
template <int K, typename Index, typename Body>
static DEVICE void each_of(Index first, Index step, Index end, const Body &body) {
#pragma unroll
    for (int k = 0; k < K; k++) {
        const Index i = first + (Index)k * step;
        if (i >= end) break;
        body(k, i);
    }
}

/* Host: returns the blocks for `count` items, `each` per block, but at least 1 and at most what a
 * grid can have; for more items the kernel must stride. */
static inline unsigned grid_blocks(size_t count, size_t each) {
    const size_t blocks = (count + each - 1) / each;
    return blocks < 1 ? 1 : blocks > 0x7fffffff ? 0x7fffffff : (unsigned)blocks;
}

/* ---- the kernel of a value type ----
 *
 *   void cuda_relu_forward(const Run *run, void *y, const void *x, size_t count) {
 *       WITH_VALUES(run, T, relu<T>(run, (T *)y, (const T *)x, count));
 *   }
 *
 * The macro expands to the statement twice, with T as float and as __nv_bfloat16. */
#define WITH_VALUES(run, T, ...)                  \
    do {                                          \
        if ((run)->precision == PRECISION_BF16) { \
            typedef __nv_bfloat16 T;              \
            __VA_ARGS__;                          \
        } else {                                  \
            typedef float T;                      \
            __VA_ARGS__;                          \
        }                                         \
    } while (0)

/* Both choices at once: four times, with the width of 128 bits of T as V and with V as 1. */
#define WITH_VALUE_PACKS(run, T, V, packed, ...) \
    WITH_VALUES(run, T, WITH_PACKS(V, pack_width<T>(), packed, __VA_ARGS__))
