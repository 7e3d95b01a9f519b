/* Products of tiles in shared memory, one warp at a time, in each precision.
 *
 * A warp owns M x 16 rows and keeps its results in accumulators of N x 8 columns, laid out as
 * mma's (gpu/gpu.cuh): with g = lane / 4 and t = lane % 4, c[m][j][0], [1] are row 16 m + g,
 * columns 8 j + 2 t and + 1; c[m][j][2], [3] the same of row + 8.  There are two products:
 *
 *   multiply_qkt   c += a b^T    a[16 M][D], b[8 N][D]: dot products of rows
 *   multiply_pv    c += p b      p in accumulators [M][N], b[8 N][D], c [M][D / 8]: sums of rows
 *
 * bf16 and tf32 use the tensor cores, fp32 plain FMAs with the same layout: a lane then computes
 * 2 M rows by 2 N columns from registers, which is what an FMA kernel wants anyway.  Accumulators
 * of the first product are the left side of the second as they are: no trip through memory.
 *
 * Rows of a tile are D numbers and 16 bytes apart: eight rows then start in different banks, so
 * that neither ldmatrix nor 16-byte copies meet conflicts, and addresses stay base + constant. */
#pragma once

#include <string.h>

#include "common.cuh"

template <Precision P>
struct ValueOf {
    typedef float type;
};
template <>
struct ValueOf<PRECISION_BF16> {
    typedef __nv_bfloat16 type;
};

template <typename T>
constexpr int CHUNK = pack_width<T>(); /* numbers in 16 bytes */
template <typename T, int D>
constexpr int ROW = D + CHUNK<T>; /* numbers from one row of a tile to the next */

/* ---- Fragments ---- */

static DEVICE unsigned pack_bf16(float low, float high) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    unsigned bits;
    memcpy(&bits, &pair, sizeof bits);
    return bits;
}

template <Precision P>
static DEVICE void mma(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    const unsigned b[2] = {b0, b1};
    if constexpr (P == PRECISION_BF16)
        mma_bf16(c, a, b);
    else
        mma_tf32(c, a, b);
}

/* A fragment of floats, read as if it were one of bf16: ldmatrix moves 16 bytes of a row to four
 * lanes, four floats as well as eight bf16.  For tf32 they are still to be rounded. */
template <Precision P>
static DEVICE void load_fragment(unsigned (&r)[4], const void *row) {
    ldmatrix_x4(r, row);
    if constexpr (P == PRECISION_TF32) {
#pragma unroll
        for (int i = 0; i < 4; i++) r[i] = tf32_round(__uint_as_float(r[i]));
    }
}

/* The left side of multiply_qkt: rows in shared memory, or, where there are registers for them,
 * fragments that were loaded once. */
template <Precision P, int D, int M, bool HELD>
struct LeftSide {
    typedef typename ValueOf<P>::type T;
    const T *rows;

    DEVICE void take(const T *tile) { rows = tile; }
    DEVICE void fragment(unsigned (&a)[4], int m, int step) const {
        const int lane = (int)threadIdx.x % 32;
        load_fragment<P>(
            a, rows + (16 * m + lane % 16) * ROW<T, D> + (2 * step + lane / 16) * CHUNK<T>);
    }
};

template <Precision P, int D, int M>
struct LeftSide<P, D, M, true> {
    typedef typename ValueOf<P>::type T;
    unsigned held[D / (2 * CHUNK<T>)][M][4];

    DEVICE void take(const T *tile) {
        LeftSide<P, D, M, false> left;
        left.take(tile);
#pragma unroll
        for (int step = 0; step < D / (2 * CHUNK<T>); step++)
#pragma unroll
            for (int m = 0; m < M; m++) left.fragment(held[step][m], m, step);
    }
    DEVICE void fragment(unsigned (&a)[4], int m, int step) const {
#pragma unroll
        for (int i = 0; i < 4; i++) a[i] = held[step][m][i];
    }
};

/* ---- c += a b^T ---- */

template <Precision P, int D, int M, int N, typename Left, typename T>
static DEVICE void multiply_qkt_mma(float (&c)[M][N][4], const Left &left, const T *b) {
    const int lane = (int)threadIdx.x % 32;
    /* Four 8x8 matrices: both halves of a step for eight rows of b, then for the next eight. */
    const T *mine = b + (lane % 8 + lane / 16 * 8) * ROW<T, D> + lane / 8 % 2 * CHUNK<T>;
#pragma unroll
    for (int step = 0; step < D / (2 * CHUNK<T>); step++) {
        unsigned a[M][4];
#pragma unroll
        for (int m = 0; m < M; m++) left.fragment(a[m], m, step);
#pragma unroll
        for (int j = 0; j < N; j += 2) {
            unsigned r[4];
            load_fragment<P>(r, mine + 8 * j * ROW<T, D> + 2 * step * CHUNK<T>);
#pragma unroll
            for (int m = 0; m < M; m++) {
                mma<P>(c[m][j], a[m], r[0], r[1]);
                mma<P>(c[m][j + 1], a[m], r[2], r[3]);
            }
        }
    }
}

static DEVICE void add_dot(float &sum, float4 a, float4 b) {
    sum = fmaf(a.x, b.x, sum);
    sum = fmaf(a.y, b.y, sum);
    sum = fmaf(a.z, b.z, sum);
    sum = fmaf(a.w, b.w, sum);
}

template <int D, int M, int N>
static DEVICE void multiply_qkt_fma(float (&c)[M][N][4], const float *a, const float *b) {
    const int lane = (int)threadIdx.x % 32;
    const float *a_mine = a + lane / 4 * ROW<float, D>;
    const float *b_mine = b + lane % 4 * 2 * ROW<float, D>;
#pragma unroll 1
    for (int k = 0; k < D; k += 4) {
        float4 rows[2 * M];
#pragma unroll
        for (int m = 0; m < 2 * M; m++)
            rows[m] = *(const float4 *)(a_mine + 8 * m * ROW<float, D> + k);
#pragma unroll
        for (int j = 0; j < 2 * N; j++) {
            const float4 column =
                *(const float4 *)(b_mine + (j / 2 * 8 + j % 2) * ROW<float, D> + k);
#pragma unroll
            for (int m = 0; m < 2 * M; m++)
                add_dot(c[m / 2][j / 2][m % 2 * 2 + j % 2], rows[m], column);
        }
    }
}

template <Precision P, int D, int M, int N, typename Left, typename T>
static DEVICE void multiply_qkt(float (&c)[M][N][4], const Left &left, const T *b) {
    if constexpr (P == PRECISION_FP32)
        multiply_qkt_fma<D, M, N>(c, left.rows, b);
    else
        multiply_qkt_mma<P, D, M, N>(c, left, b);
}

/* ---- c += p b ---- */

/* Two accumulators side by side are a fragment of 16 columns; b comes transposed out of ldmatrix.
 */
template <int D, int M, int N>
static DEVICE void multiply_pv_bf16(float (&c)[M][D / 8][4], const float (&p)[M][N][4],
                                    const __nv_bfloat16 *b) {
    typedef __nv_bfloat16 T;
    const int lane = (int)threadIdx.x % 32;
    const T *mine = b + lane % 16 * ROW<T, D> + lane / 16 * 8;
#pragma unroll
    for (int j = 0; j < N; j += 2) {
        unsigned a[M][4];
#pragma unroll
        for (int m = 0; m < M; m++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                a[m][i] = pack_bf16(p[m][j + i / 2][i % 2 * 2], p[m][j + i / 2][i % 2 * 2 + 1]);
#pragma unroll
        for (int k = 0; k < D / 8; k += 2) {
            unsigned r[4];
            ldmatrix_x4_trans(r, mine + 8 * j * ROW<T, D> + 8 * k);
#pragma unroll
            for (int m = 0; m < M; m++) {
                mma<PRECISION_BF16>(c[m][k], a[m], r[0], r[1]);
                mma<PRECISION_BF16>(c[m][k + 1], a[m], r[2], r[3]);
            }
        }
    }
}

/* A tf32 fragment wants columns t and t + 4 where an accumulator has 2t and 2t + 1.  A sum does
 * not mind the order of its terms: column 2t counts as t, 2t + 1 as t + 4, and the rows of b are
 * taken in the same order. */
template <int D, int M, int N>
static DEVICE void multiply_pv_tf32(float (&c)[M][D / 8][4], const float (&p)[M][N][4],
                                    const float *b) {
    const int lane = (int)threadIdx.x % 32;
    const float *mine = b + lane % 4 * 2 * ROW<float, D> + lane / 4;
#pragma unroll
    for (int j = 0; j < N; j++) {
        unsigned a[M][4];
#pragma unroll
        for (int m = 0; m < M; m++)
#pragma unroll
            for (int i = 0; i < 4; i++) a[m][i] = tf32_round(p[m][j][i % 2 * 2 + i / 2]);
#pragma unroll
        for (int k = 0; k < D / 8; k++) {
            const float *at = mine + 8 * j * ROW<float, D> + 8 * k;
            const unsigned low = tf32_round(at[0]), high = tf32_round(at[ROW<float, D>]);
#pragma unroll
            for (int m = 0; m < M; m++) mma<PRECISION_TF32>(c[m][k], a[m], low, high);
        }
    }
}

/* A lane gets the columns that the other three lanes of its rows hold by shuffles. */
template <int D, int M, int N>
static DEVICE void multiply_pv_fma(float (&c)[M][D / 8][4], const float (&p)[M][N][4],
                                   const float *b) {
    const int lane = (int)threadIdx.x % 32;
#pragma unroll 1
    for (int source = 0; source < 4; source++) {
        const float *mine = b + source * 2 * ROW<float, D> + lane % 4 * 2;
#pragma unroll
        for (int j = 0; j < 2 * N; j++) {
            float left[2 * M];
#pragma unroll
            for (int m = 0; m < 2 * M; m++)
                left[m] = __shfl_sync(0xffffffffu, p[m / 2][j / 2][m % 2 * 2 + j % 2],
                                      lane / 4 * 4 + source);
#pragma unroll
            for (int k = 0; k < D / 8; k++) {
                const float2 x =
                    *(const float2 *)(mine + (j / 2 * 8 + j % 2) * ROW<float, D> + 8 * k);
#pragma unroll
                for (int m = 0; m < 2 * M; m++) {
                    float *at = c[m / 2][k] + m % 2 * 2;
                    at[0] = fmaf(left[m], x.x, at[0]);
                    at[1] = fmaf(left[m], x.y, at[1]);
                }
            }
        }
    }
}

template <Precision P, int D, int M, int N, typename T>
static DEVICE void multiply_pv(float (&c)[M][D / 8][4], const float (&p)[M][N][4], const T *b) {
    if constexpr (P == PRECISION_BF16)
        multiply_pv_bf16<D, M, N>(c, p, b);
    else if constexpr (P == PRECISION_TF32)
        multiply_pv_tf32<D, M, N>(c, p, b);
    else
        multiply_pv_fma<D, M, N>(c, p, b);
}

/* ---- Accumulators ---- */

/* Calls body(m, j, i) for every number of accumulators [M][N][4]. */
template <int M, int N, typename Body>
static DEVICE void each_number(const Body &body) {
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int j = 0; j < N; j++)
#pragma unroll
            for (int i = 0; i < 4; i++) body(m, j, i);
}

template <int M, int N>
static DEVICE void clear(float (&c)[M][N][4]) {
    each_number<M, N>([&](int m, int j, int i) { c[m][j][i] = 0; });
}

/* rows[16 M][D + 4] of a warp = c, times factor of each row. */
template <int D, int M>
static DEVICE void stage_rows(float *rows, const float (&c)[M][D / 8][4],
                              const float (&factor)[M][2]) {
    const int lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int m = 0; m < 2 * M; m++) {
        float *mine = rows + (8 * m + lane / 4) * ROW<float, D> + lane % 4 * 2;
#pragma unroll
        for (int k = 0; k < D / 8; k++) {
            const float *from = c[m / 2][k] + m % 2 * 2, by = factor[m / 2][m % 2];
            *(float2 *)(mine + 8 * k) = make_float2(from[0] * by, from[1] * by);
        }
    }
}
