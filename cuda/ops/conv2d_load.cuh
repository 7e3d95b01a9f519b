/* The correlation of conv2d_tiles.cuh: what a launch does, the shapes of its tiles, and how halo
 * tile and weights come into shared memory. */
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
