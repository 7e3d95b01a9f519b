/* The weight gradient of conv2d as products of tiles: dw[o][tap][c] = sum over output pixels m of
 * dy[m][o] x[pixel of m and tap][c].
 *
 * A block sums a tile of BO outputs x up to 9 taps x up to 32 channels over a slice of the pixels,
 * BP at a time: dy of these and the halo tile of x (conv2d.cuh) lie in shared memory, and each tap
 * pairs the same dy with a shift of the halo tile.  Its warps, or groups of threads, take turns at
 * the pixels of a tile; what they have is added up in a fixed order at the end.
 *
 *   plain fp32      a thread has 4 outputs x 3 taps x 4 channels
 *   tensor cores    a warp has 16 MO outputs x 9 taps x 8 NC channels, MO NC = 2; the summed
 *                   dimension of the fragments is the pixels, so bf16 come through transposing
 *                   ldmatrix, and floats one by one */
#pragma once

#include "conv2d_fill.cuh"

enum { BP = 128, TAPS = 9, MAX_CHANNELS = 32 };

typedef struct {
    Correlation c;     /* of the forward pass */
    int slices, tiles; /* of the pixels; tiles of BP pixels, shared out among the slices */
    int channels;      /* of a tile */
    int channel_tiles, tap_groups;
    int group;       /* taps at a time, at most TAPS */
    bool gather;     /* a tap at a time, instead of a halo tile */
    int buffers;     /* 1 or 2 */
    int dy_size;     /* numbers of a tile of dy */
    int buffer_size; /* numbers of a tile of dy and a halo tile */
    bool add;        /* to dw; with one slice only */
} WeightWork;

/* What a block computes: outputs from o0 on, channels from c0 on, and `taps` taps from `tap` on. */
struct Part {
    int o0, c0, tap, taps;
};

/* ---- Multiplying ---- */

/* What a thread, or a lane, sums up of a tile of OUTPUTS outputs. */
template <typename M, int OUTPUTS, bool tensor = M::TENSOR>
struct WeightSums;

template <typename M, int OUTPUTS>
struct WeightSums<M, OUTPUTS, true> {
    typedef M Mode;
    static constexpr int MO = OUTPUTS / 16, NC = 2 / MO;
    static constexpr int THREADS = 256, BO = OUTPUTS, PAD = 8;
    static constexpr int WIDTH = 8 * NC; /* channels of a warp */
    float sums[MO][NC][TAPS][4] = {};
    int split, splits, column;

    DEVICE WeightSums(int channels) {
        const int warp = (int)threadIdx.x / 32, across = channels / WIDTH;
        splits = THREADS / 32 / across;
        split = warp / across;
        column = warp % across * WIDTH;
    }

    /* Loads a fragment of outputs x pixels, which is dy transposed. */
    static DEVICE void load_gradient(unsigned (&a)[4], const float *dy) {
        constexpr int PITCH = BO + PAD;
        const float *at = dy + (int)threadIdx.x % 4 * PITCH + (int)threadIdx.x % 32 / 4;
        a[0] = __float_as_uint(at[0]);
        a[1] = __float_as_uint(at[8]);
        a[2] = __float_as_uint(at[4 * PITCH]);
        a[3] = __float_as_uint(at[4 * PITCH + 8]);
    }
    static DEVICE void load_gradient(unsigned (&a)[4], const __nv_bfloat16 *dy) {
        constexpr int PITCH = BO + PAD;
        const int lane = (int)threadIdx.x % 32;
        ldmatrix_x4_trans(a, dy + (lane / 16 * 8 + lane % 8) * PITCH + lane / 8 % 2 * 8);
    }

    /* Loads fragments of pixels x channels.  A lane points to a pixel, and with floats to a second
     * one, four pixels on. */
    static DEVICE void load_pixels(unsigned (&b)[2 * NC], const float *low, const float *high) {
#pragma unroll
        for (int j = 0; j < NC; j++) {
            b[2 * j] = __float_as_uint(low[j * 8]);
            b[2 * j + 1] = __float_as_uint(high[j * 8]);
        }
    }
    static DEVICE void load_pixels(unsigned (&b)[2 * NC], const __nv_bfloat16 *pixel,
                                   const __nv_bfloat16 *) {
        if constexpr (NC == 2)
            ldmatrix_x4_trans(b, pixel);
        else
            ldmatrix_x2_trans(b, pixel);
    }

    /* Adds the products of STEP pixels. */
    template <typename E>
    DEVICE void multiply_step(const E *dy, const E *halo, const Line *lines, int taps_of_group,
                              const int *shift) {
        constexpr bool floats = sizeof(E) == sizeof(float);
        const int lane = (int)threadIdx.x % 32, pixel = floats ? lane % 4 : lane % 16;
        const Line low = lines[pixel], high = lines[floats ? pixel + 4 : pixel];
        const E *x = halo + column + (floats ? lane / 4 : NC == 2 ? lane / 16 * 8 : 0);
        unsigned a[MO][4];
#pragma unroll
        for (int i = 0; i < MO; i++) load_gradient(a[i], dy + i * 16);
#pragma unroll
        for (int tap = 0; tap < TAPS; tap++) {
            if (tap >= taps_of_group) break;
            unsigned b[2 * NC];
            load_pixels(b, x + low.tap(tap, shift[tap]), x + high.tap(tap, shift[tap]));
#pragma unroll
            for (int j = 0; j < NC; j++)
#pragma unroll
                for (int i = 0; i < MO; i++)
                    mma<M::PRECISION>(sums[i][j][tap], a[i], b[2 * j], b[2 * j + 1]);
        }
    }

    template <typename E>
    DEVICE void multiply(const E *dy, const E *halo, const Line *lines, int taps_of_group,
                         const int *shift) {
#pragma unroll 1
        for (int m = split * Mode::STEP; m < BP && split < splits; m += splits * Mode::STEP)
            multiply_step(dy + m * (BO + PAD), halo, lines + m, taps_of_group, shift);
    }

    /* Calls take(output, tap, channel, sum) for each of the lane's results. */
    template <typename Take>
    DEVICE void results(const Take &take) const {
        const int g = (int)threadIdx.x % 32 / 4, t = (int)threadIdx.x % 4;
#pragma unroll
        for (int i = 0; i < MO; i++)
#pragma unroll
            for (int j = 0; j < NC; j++)
#pragma unroll
                for (int tap = 0; tap < TAPS; tap++)
#pragma unroll
                    for (int k = 0; k < 4; k++)
                        take(i * 16 + k / 2 * 8 + g, tap, column + j * 8 + t * 2 + k % 2,
                             sums[i][j][tap][k]);
    }
};

template <typename M, int OUTPUTS>
struct WeightSums<M, OUTPUTS, false> {
    typedef M Mode;
    static constexpr int THREADS = 192, BO = OUTPUTS, PAD = 4;
    static constexpr int WIDTH = 4;
    float sums[3][4][4] = {};
    int split, splits, row, column, first; /* tap */

    DEVICE WeightSums(int channels) {
        const int across = channels / 4, units = BO / 4 * across * 3, id = (int)threadIdx.x;
        splits = THREADS / units;
        split = id / units;
        column = id % across * 4;
        row = id / across % (BO / 4) * 4;
        first = id % units / (across * (BO / 4)) * 3;
    }

    DEVICE void multiply(const float *dy, const float *halo, const Line *lines, int taps_of_group,
                         const int *shift) {
        if (split >= splits || first >= taps_of_group) return;
        halo += column;
#pragma unroll 2
        for (int m = split; m < BP; m += splits) {
            const float4 a = *(const float4 *)(dy + m * (BO + PAD) + row);
            const Line line = lines[m];
#pragma unroll
            for (int tap = 0; tap < 3; tap++) {
                const float4 b =
                    *(const float4 *)(halo + line.tap(first + tap, shift[first + tap]));
                add_multiple(sums[tap][0], a.x, b);
                add_multiple(sums[tap][1], a.y, b);
                add_multiple(sums[tap][2], a.z, b);
                add_multiple(sums[tap][3], a.w, b);
            }
        }
    }

    template <typename Take>
    DEVICE void results(const Take &take) const {
#pragma unroll
        for (int tap = 0; tap < 3; tap++)
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) take(row + i, first + tap, column + j, sums[tap][i][j]);
    }
};

/* ---- The kernel ---- */

/* Loads dy, the halo tile and the lines of the pixels from m0 on. */
template <typename Product, typename T, typename E>
static DEVICE void fill_tile(E *buffer, Line *lines, const T *dy, const T *x,
                             const WeightWork &work, Part part, int m0) {
    typedef typename Product::Mode Mode;
    constexpr int THREADS = Product::THREADS;
    const Correlation &c = work.c;
    const int pitch = work.channels + Product::PAD;
    const Span span = span_of(c, m0, BP);
    for (int m = (int)threadIdx.x; m < BP; m += THREADS)
        lines[m] = line_of(c, span, m, work.gather, part.tap, pitch);
    const auto gradient = [&](int r) -> const T * {
        return m0 + r < c.pixels ? dy + (size_t)(m0 + r) * c.out_c : NULL;
    };
    fill_rows<THREADS, 2>(Mode(), buffer, Product::BO + Product::PAD, BP, Product::BO / Mode::GROUP,
                          gradient, part.o0, c.out_c, c.out_c % Mode::GROUP == 0);
    fill_halo<THREADS, 2, 1>(Mode(), buffer + work.dy_size, pitch, x, c, span, work.gather ? BP : 0,
                             part.tap, part.c0, work.channels / Mode::GROUP);
}

/* Computes dw or, with several slices, partial[slice][o][tap][c]. */
template <typename Product>
static __global__ void __launch_bounds__(Product::THREADS, 2)
    implicit_gemm_split_k(float *to, const typename Product::Mode::Value *__restrict__ dy,
                          const typename Product::Mode::Value *__restrict__ x,
                          const WeightWork work) {
    typedef typename Product::Mode Mode;
    typedef typename Mode::Element Element;
    DYNAMIC_SHARED(Element, memory);
    SHARED(Line, lines, [2][BP]);
    SHARED(int, shift, [TAPS]);
    const Correlation &c = work.c;
    const int all = c.rows * c.columns, column = (int)blockIdx.x % work.channel_tiles,
              rest = (int)blockIdx.x / work.channel_tiles;
    Part part = {rest / work.tap_groups * Product::BO, column * work.channels,
                 rest % work.tap_groups * work.group, 0};
    part.taps = min(work.group, all - part.tap);
    if (threadIdx.x < TAPS) {
        const int tap = part.tap + (int)threadIdx.x;
        shift[threadIdx.x] = work.gather ? 0 : tap_shift(c, tap) * (work.channels + Product::PAD);
    }
    const int slice = (int)blockIdx.y;
    const int begin = (int)((long long)work.tiles * slice / work.slices);
    const int end = (int)((long long)work.tiles * (slice + 1) / work.slices);
    Product product(work.channels);
    const auto fill = [&](int tile) {
        const int at = (tile - begin) & (work.buffers - 1);
        fill_tile<Product>(memory + at * work.buffer_size, lines[at], dy, x, work, part, tile * BP);
        copy_async_commit();
    };
    if (Mode::AHEAD) fill(begin);
    for (int tile = begin; tile < end; tile++) {
        if (!Mode::AHEAD && tile > begin) __syncthreads();
        if (!Mode::AHEAD) fill(tile);
        copy_async_wait<0>();
        __syncthreads();
        if (Mode::AHEAD && tile + 1 < end) fill(tile + 1);
        __syncwarp();
        const int at = (tile - begin) & (work.buffers - 1);
        const Element *buffer = memory + at * work.buffer_size;
        product.multiply(buffer, buffer + work.dy_size, lines[at], part.taps, shift);
    }

    float *sums = (float *)(void *)memory; /* [tap][BO][channels] */
    for (int split = 0; split < product.splits; split++) {
        __syncthreads();
        if (product.split != split) continue;
        product.results([&](int output, int tap, int channel, float v) {
            put(sums + (tap * Product::BO + output) * work.channels + channel, v, split > 0);
        });
    }
    __syncthreads();
    if (work.slices > 1) to += (size_t)slice * c.out_c * (all * c.in_c);
    for (int i = (int)threadIdx.x; i < part.taps * Product::BO * work.channels;
         i += Product::THREADS) {
        const int k = part.c0 + i % work.channels, row = i / work.channels;
        const int o = part.o0 + row % Product::BO, tap = part.tap + row / Product::BO;
        if (k >= c.in_c || o >= c.out_c) continue;
        put(to + ((size_t)o * all + tap) * c.in_c + k, sums[i], work.add);
    }
}
