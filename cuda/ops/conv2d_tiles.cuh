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

#include "conv2d_fill.cuh"

enum { MAX_PHASES = 4 }; /* of one launch */

/* What a launch does: blockIdx.z chooses the phase. */
typedef struct {
    Correlation phase[MAX_PHASES];
    int chunk, chunks; /* channels at a time */
    Divisor by_chunk;
    int taps;                        /* whose weights are loaded at a time */
    bool gather;                     /* a tap at a time, instead of a halo tile */
    int halo_size;                   /* numbers of a halo tile, its row of zeros included */
    int halos;                       /* buffers: 1 or 2 */
    int weight_size, weight_buffers; /* numbers of a weight tile; its buffers: 1 or 2 */
} ConvWork;

template <typename M, bool G, int M_WARPS, int N_WARPS, int N>
struct CorrelateTile {
    typedef M Mode;
    static constexpr bool GRADIENT = G;
    static constexpr int WM = M_WARPS, WN = N_WARPS, TN = N;
    static constexpr int ROWS = M::TENSOR ? 32 : 64;
    static constexpr int BM = WM * ROWS, BN = WN * TN, THREADS = 32 * WM * WN;
    /* The weights of a tap in shared memory: [BN][chunk] as they are stored, for ldmatrix, or
     * [chunk][BN].  Rows are a little longer, so that they start in different banks. */
    static constexpr bool BY_OUTPUT = M::TENSOR && !G;
    static constexpr int PAD = M::TENSOR ? 8 : 4;
    static constexpr int LINES = M::TENSOR ? 2 : 8; /* pixels that a lane points to */
    /* Blocks of a multiprocessor that registers must leave room for: plain fp32 tends to take more
     * than the 128 or 168 a thread of four or three; the others come to 72 to 127 by themselves. */
    static constexpr int BLOCKS = M::TENSOR ? 1 : (N == 16 ? 512 : 384) / THREADS;
};

template <typename Tile>
static __host__ DEVICE int weight_pitch(int chunk) {
    return Tile::BY_OUTPUT ? chunk + Tile::Mode::GROUP : Tile::BN + Tile::PAD;
}

/* ---- Loading ---- */

/* One round of the main loop: weights of taps [tap, tap + taps) of a chunk of channels. */
struct Round {
    int tap, taps, chunk, halo;
    bool fresh; /* the first with this halo tile */
};

static DEVICE Round round_of(const ConvWork &work, const Correlation &c, int at) {
    const int all = c.rows * c.columns;
    Round round;
    if (work.gather) {
        round.tap = at / work.chunks;
        round.taps = 1;
        round.chunk = at % work.chunks;
        round.halo = at;
        round.fresh = true;
    } else {
        const int each = (all + work.taps - 1) / work.taps;
        round.chunk = round.halo = at / each;
        round.tap = at % each * work.taps;
        round.taps = min(work.taps, all - round.tap);
        round.fresh = round.tap == 0;
    }
    return round;
}

/* Returns which weight belongs to a tap of the input gradient. */
static DEVICE int tap_index(const Correlation &c, int tap) {
    const int r = quotient(tap, c.by_columns), q = tap - r * c.columns;
    return (c.u0 + r * c.tap_step) * c.kernel + c.v0 + q * c.tap_step;
}

/* Fills the tile with forward weights transposed to [tap][chunk][BN], for plain fp32. */
template <typename Tile, typename Source>
static DEVICE void fill_turned(float *tile, int chunk, Divisor by_chunk, int taps,
                               const Source &source, int k0, int end, bool whole) {
    constexpr int PITCH = Tile::BN + Tile::PAD;
    const int groups = chunk / 4, n = (int)threadIdx.x % Tile::BN;
    for (int i = (int)threadIdx.x / Tile::BN; i < taps * groups; i += Tile::THREADS / Tile::BN) {
        const int tap = quotient(i * 4, by_chunk), k = i * 4 - tap * chunk;
        const auto *from = source(tap * Tile::BN + n);
        const float4 v = load_four(from + (from ? k0 + k : 0), from ? end - k0 - k : 0, whole);
        float *to = tile + (tap * chunk + k) * PITCH + n;
        to[0] = v.x;
        to[PITCH] = v.y;
        to[2 * PITCH] = v.z;
        to[3 * PITCH] = v.w;
    }
}

/* Fills the tile with the round's weights, of w[o][taps][c]. */
template <typename Tile, typename T, typename E>
static DEVICE void fill_weights(E *tile, const T *w, const Correlation &c, const ConvWork &work,
                                Round round, int n0) {
    typedef typename Tile::Mode Mode;
    const int k0 = round.chunk * work.chunk, chunk = work.chunk, all = c.kernel * c.kernel;
    const int pitch = weight_pitch<Tile>(chunk);
    if constexpr (Tile::GRADIENT) {
        /* Row r is tap r / chunk, output channel k0 + r % chunk of the layer. */
        const auto source = [&](int r) -> const T * {
            const int step = quotient(r, work.by_chunk), k = k0 + r - step * chunk;
            const size_t row = (size_t)k * all + tap_index(c, round.tap + step);
            return k < c.in_c ? w + row * c.out_c : NULL;
        };
        fill_rows<Tile::THREADS, 4>(Mode(), tile, pitch, round.taps * chunk, Tile::BN / Mode::GROUP,
                                    source, n0, c.out_c, c.out_c % Mode::GROUP == 0);
    } else {
        /* Row r is tap r / BN, output n0 + r % BN. */
        const auto source = [&](int r) -> const T * {
            const int o = n0 + r % Tile::BN;
            const size_t row = (size_t)o * all + (round.tap + r / Tile::BN);
            return o < c.out_c ? w + row * c.in_c : NULL;
        };
        const bool whole = c.in_c % Mode::GROUP == 0;
        if constexpr (Tile::BY_OUTPUT)
            fill_rows<Tile::THREADS, 4>(Mode(), tile, pitch, round.taps * Tile::BN,
                                        chunk / Mode::GROUP, source, k0, c.in_c, whole);
        else
            fill_turned<Tile>(tile, chunk, work.by_chunk, round.taps, source, k0, c.in_c, whole);
    }
}

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
        __syncwarp();
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
