/* A correlation as a product of tiles: pixels x (taps, channels) times (taps, channels) x outputs,
 * where the left matrix exists only as shifts of a halo tile (conv2d.cuh).
 *
 * A block computes WM x WN warps' tiles.  A warp's tile is ROWS pixels x TN outputs, in registers:
 *
 *   plain fp32      64 x TN: a lane has 8 pixels (lane / 4 + 8 i) x TN / 4 outputs
 *   tensor cores    32 x TN: two rows of mma tiles of 16 x 8; ldmatrix moves 16 bytes of a pixel to
 *                   four lanes, which is a fragment of four floats as well as of eight bf16
 *
 * Channels come in chunks that fit shared memory; for each chunk the halo tile is loaded once, and
 * the weights of some taps at a time.  With copies that need no registers (bf16) the next taps and
 * the next halo tile are under way while these are multiplied. */
#pragma once

#include "conv2d_load.cuh"

/* ---- Multiplying ---- */

/* Loads the fragments of 16 outputs from n on and STEP channels from k on; b[0] and b[1] are those
 * of the first eight outputs. */
template <typename Tile, typename E>
static DEVICE void load_weights(unsigned (&b)[4], const E *w, int pitch, int n, int k) {
    const int lane = (int)threadIdx.x % 32;
    if constexpr (Tile::BY_OUTPUT) {
        ldmatrix_x4(
            b, w + (n + lane / 16 * 8 + lane % 8) * pitch + k + lane / 8 % 2 * Tile::Mode::GROUP);
    } else if constexpr (sizeof(E) == 2) {
        ldmatrix_x4_trans(b, w + (k + lane % 16) * pitch + n + lane / 16 * 8);
    } else {
        const float *at = w + (k + lane % 4) * pitch + n + lane / 4;
        b[0] = __float_as_uint(at[0]);
        b[1] = __float_as_uint(at[4 * pitch]);
        b[2] = __float_as_uint(at[8]);
        b[3] = __float_as_uint(at[4 * pitch + 8]);
    }
}

template <typename Tile, bool tensor>
struct Warp;

template <typename Tile>
struct Warp<Tile, true> {
    typedef typename Tile::Mode Mode;
    float sums[2][Tile::TN / 8][4] = {};

    static DEVICE int line(int i) { /* of the pixels a lane points to */
        return i * 16 + (int)threadIdx.x % 16;
    }
    template <typename E>
    DEVICE void multiply(const E *const (&pixel)[2], const E *w, int pitch, int n, int chunk) {
        const int half = (int)threadIdx.x % 32 / 16 * Mode::GROUP;
#pragma unroll 2
        for (int k = 0; k < chunk; k += Mode::STEP) {
            unsigned a[2][4];
#pragma unroll
            for (int i = 0; i < 2; i++) ldmatrix_x4(a[i], pixel[i] + k + half);
#pragma unroll
            for (int j = 0; j < Tile::TN / 8; j += 2) {
                unsigned b[4];
                load_weights<Tile>(b, w, pitch, n + j * 8, k);
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    mma<Mode::PRECISION>(sums[i][j], a[i], b[0], b[1]);
                    mma<Mode::PRECISION>(sums[i][j + 1], a[i], b[2], b[3]);
                }
            }
        }
    }
    /* Calls store(pixel, output, v) for each two neighbouring results of the lane. */
    template <typename Store>
    DEVICE void results(const Store &store) const {
        const int lane = (int)threadIdx.x % 32;
#pragma unroll
        for (int i = 0; i < 2; i++)
#pragma unroll
            for (int half = 0; half < 2; half++)
#pragma unroll
                for (int j = 0; j < Tile::TN / 8; j++) {
                    const float v[2] = {sums[i][j][2 * half], sums[i][j][2 * half + 1]};
                    store(i * 16 + half * 8 + lane / 4, j * 8 + lane % 4 * 2, v);
                }
    }
};

template <typename Tile>
struct Warp<Tile, false> {
    static constexpr int FOURS = Tile::TN / 16;
    float sums[8][FOURS][4] = {};

    static DEVICE int line(int i) { return i * 8 + (int)threadIdx.x % 32 / 4; }
    DEVICE void multiply(const float *const (&pixel)[8], const float *w, int pitch, int n,
                         int chunk) {
        w += n + (int)threadIdx.x % 4 * 4;
#pragma unroll 1
        for (int k = 0; k < chunk; k += 4) {
            float4 a[8];
#pragma unroll
            for (int i = 0; i < 8; i++) a[i] = *(const float4 *)(pixel[i] + k);
#pragma unroll
            for (int step = 0; step < 4; step++)
#pragma unroll
                for (int j = 0; j < FOURS; j++) {
                    const float4 b = *(const float4 *)(w + (k + step) * pitch + j * 16);
#pragma unroll
                    for (int i = 0; i < 8; i++) {
                        const float x = step == 0   ? a[i].x
                                        : step == 1 ? a[i].y
                                        : step == 2 ? a[i].z
                                                    : a[i].w;
                        add_multiple(sums[i][j], x, b);
                    }
                }
        }
    }
    /* Calls store(pixel, output, v) for each four neighbouring results of the lane. */
    template <typename Store>
    DEVICE void results(const Store &store) const {
        const int lane = (int)threadIdx.x % 32;
#pragma unroll
        for (int i = 0; i < 8; i++)
#pragma unroll
            for (int j = 0; j < FOURS; j++)
                store(i * 8 + lane / 4, j * 16 + lane % 4 * 4, sums[i][j]);
    }
};

/* ---- The kernel ---- */

/* Stores N neighbouring results, of output pixel m and outputs from n on. */
template <typename T, int N>
static DEVICE void store_results(T *out, const Correlation &c, int m, int n, const float (&v)[N]) {
    if (m >= c.pixels || n >= c.out_c) return;
    T *to = out + (c.step == 1 ? (size_t)m : output_of(c, m)) * c.out_c + n;
    if (c.out_c % N == 0) {
        put(to, v, c.add);
        return;
    }
#pragma unroll
    for (int i = 0; i < N; i++)
        if (n + i < c.out_c) put(to + i, v[i], c.add);
}

template <typename Tile>
static __global__ void __launch_bounds__(Tile::THREADS, Tile::BLOCKS)
    implicit_gemm(typename Tile::Mode::Value *out,
                  const typename Tile::Mode::Value *__restrict__ in,
                  const typename Tile::Mode::Value *__restrict__ w, const ConvWork work) {
    typedef typename Tile::Mode Mode;
    typedef typename Mode::Element Element;
    DYNAMIC_SHARED(Element, memory);
    const Correlation &c = work.phase[blockIdx.z];
    if ((int)blockIdx.x * Tile::BM >= c.pixels) return;
    const Span span = span_of(c, (int)blockIdx.x * Tile::BM, Tile::BM);
    const int n0 = (int)blockIdx.y * Tile::BN, warp = (int)threadIdx.x / 32;
    const int row = warp % Tile::WM * Tile::ROWS, column = warp / Tile::WM * Tile::TN;
    const int pitch = work.chunk + Mode::GROUP, w_pitch = weight_pitch<Tile>(work.chunk);
    const int w_tap = (Tile::BY_OUTPUT ? Tile::BN : work.chunk) * w_pitch;
    Element *const weights = memory + work.halos * work.halo_size;
    Warp<Tile, Mode::TENSOR> tile;
    Line line[Tile::LINES];
#pragma unroll
    for (int i = 0; i < Tile::LINES; i++)
        line[i] = line_of(c, span, row + tile.line(i), work.gather, 0, pitch);

    const int all = c.rows * c.columns;
    const int rounds = work.chunks * (work.gather ? all : (all + work.taps - 1) / work.taps);
    const auto fill = [&](int at) {
        const Round round = round_of(work, c, at);
        if (round.fresh)
            fill_halo<Tile::THREADS, 4, 4>(Mode(),
                                           memory + round.halo % work.halos * work.halo_size, pitch,
                                           in, c, span, work.gather ? Tile::BM : 0, round.tap,
                                           round.chunk * work.chunk, work.chunk / Mode::GROUP);
        fill_weights<Tile>(weights + at % work.weight_buffers * work.weight_size, w, c, work, round,
                           n0);
        copy_async_commit();
    };
    if (Mode::AHEAD && rounds) fill(0);
    for (int at = 0; at < rounds; at++) {
        if (!Mode::AHEAD && at) __syncthreads();
        if (!Mode::AHEAD) fill(at);
        copy_async_wait<0>();
        __syncthreads();
        if (Mode::AHEAD && at + 1 < rounds) fill(at + 1);
        const Round round = round_of(work, c, at);
        const Element *halo = memory + round.halo % work.halos * work.halo_size;
        const Element *at_w = weights + at % work.weight_buffers * work.weight_size;
        for (int tap = round.tap; tap < round.tap + round.taps; tap++, at_w += w_tap) {
            const int shift = work.gather ? 0 : tap_shift(c, tap) * pitch;
            const Element *pixel[Tile::LINES];
#pragma unroll
            for (int i = 0; i < Tile::LINES; i++) pixel[i] = halo + line[i].tap(tap & 31, shift);
            tile.multiply(pixel, at_w, w_pitch, column, work.chunk);
        }
    }
    tile.results([&](int m, int n, const auto &v) {
        store_results(out, c, span.m0 + row + m, n0 + column + n, v);
    });
}
