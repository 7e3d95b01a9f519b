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
#ifndef CUDA_OPS_CONV2D_WEIGHT_TILES_CUH
#define CUDA_OPS_CONV2D_WEIGHT_TILES_CUH

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

/* Where a pixel's first tap lies in the halo tile (in numbers), and a mask of the group's taps that
 * are inside the image. */
struct Line {
    int at;
    unsigned inside;
};

/* What a block computes: outputs from o0 on, channels from c0 on, and `taps` taps from `tap` on. */
struct Part {
    int o0, c0, tap, taps;
};

/* ---- Multiplying ---- */

template <typename M, int MO, int NC>
struct TensorPart {
    typedef M Mode;
    static constexpr int THREADS = 256, BO = 16 * MO, PAD = 8;
    static constexpr int WIDTH = 8 * NC; /* channels of a warp */
    float sums[MO][NC][TAPS][4] = {};
    int split, splits, column;

    __device__ __forceinline__ TensorPart(int channels) {
        const int warp = (int)threadIdx.x / 32, across = channels / WIDTH;
        splits = THREADS / 32 / across;
        split = warp / across;
        column = warp % across * WIDTH;
    }

    /* Loads a fragment of outputs x pixels, which is dy transposed. */
    static __device__ __forceinline__ void load_gradient(unsigned (&a)[4], const float *dy) {
        constexpr int PITCH = BO + PAD;
        const float *at = dy + (int)threadIdx.x % 4 * PITCH + (int)threadIdx.x % 32 / 4;
        a[0] = __float_as_uint(at[0]);
        a[1] = __float_as_uint(at[8]);
        a[2] = __float_as_uint(at[4 * PITCH]);
        a[3] = __float_as_uint(at[4 * PITCH + 8]);
    }
    static __device__ __forceinline__ void load_gradient(unsigned (&a)[4],
                                                         const __nv_bfloat16 *dy) {
        constexpr int PITCH = BO + PAD;
        const int lane = (int)threadIdx.x % 32;
        ldmatrix_x4_trans(a, dy + (lane / 16 * 8 + lane % 8) * PITCH + lane / 8 % 2 * 8);
    }

    /* Adds the products of STEP pixels, of which a lane needs the lines of two (floats) or of one
     * (bf16). */
    __device__ __forceinline__ void multiply_step(const float *dy, const float *halo,
                                                  const Line *lines, int taps_of_group,
                                                  const int *shift) {
        const int g = (int)threadIdx.x % 32 / 4, t = (int)threadIdx.x % 4;
        unsigned a[MO][4];
#pragma unroll
        for (int i = 0; i < MO; i++) load_gradient(a[i], dy + i * 16);
        const Line low = lines[t], high = lines[t + 4];
        const float *x = halo + column + g;
#pragma unroll
        for (int tap = 0; tap < TAPS; tap++) {
            if (tap >= taps_of_group) break;
            const float *x0 = x + (low.inside >> tap & 1 ? low.at + shift[tap] : 0);
            const float *x1 = x + (high.inside >> tap & 1 ? high.at + shift[tap] : 0);
#pragma unroll
            for (int j = 0; j < NC; j++) {
                const unsigned b0 = __float_as_uint(x0[j * 8]), b1 = __float_as_uint(x1[j * 8]);
#pragma unroll
                for (int i = 0; i < MO; i++) mma(Mode(), sums[i][j][tap], a[i], b0, b1);
            }
        }
    }
    __device__ __forceinline__ void multiply_step(const __nv_bfloat16 *dy,
                                                  const __nv_bfloat16 *halo, const Line *lines,
                                                  int taps_of_group, const int *shift) {
        const int lane = (int)threadIdx.x % 32;
        unsigned a[MO][4];
#pragma unroll
        for (int i = 0; i < MO; i++) load_gradient(a[i], dy + i * 16);
        const Line line = lines[lane % 16];
        const __nv_bfloat16 *x = halo + column + (NC == 2 ? lane / 16 * 8 : 0);
#pragma unroll
        for (int tap = 0; tap < TAPS; tap++) {
            if (tap >= taps_of_group) break;
            const __nv_bfloat16 *at = x + (line.inside >> tap & 1 ? line.at + shift[tap] : 0);
            unsigned b[4];
            if constexpr (NC == 2) {
                ldmatrix_x4_trans(b, at);
            } else {
                unsigned pair[2];
                ldmatrix_x2_trans(pair, at);
                b[0] = pair[0], b[1] = pair[1];
            }
#pragma unroll
            for (int j = 0; j < NC; j++)
#pragma unroll
                for (int i = 0; i < MO; i++)
                    mma(Mode(), sums[i][j][tap], a[i], b[2 * j], b[2 * j + 1]);
        }
    }

    template <typename E>
    __device__ __forceinline__ void multiply(const E *dy, const E *halo, const Line *lines,
                                             int taps_of_group, const int *shift) {
#pragma unroll 1
        for (int m = split * Mode::STEP; m < BP && split < splits; m += splits * Mode::STEP)
            multiply_step(dy + m * (BO + PAD), halo, lines + m, taps_of_group, shift);
    }

    /* Calls take(output, tap, channel, sum) for each of the lane's results. */
    template <typename Take>
    __device__ __forceinline__ void results(const Take &take) const {
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
struct PlainPart {
    typedef M Mode;
    static constexpr int THREADS = 192, BO = OUTPUTS, PAD = 4;
    static constexpr int WIDTH = 4;
    float sums[3][4][4] = {};
    int split, splits, row, column, first; /* tap */

    __device__ __forceinline__ PlainPart(int channels) {
        const int across = channels / 4, units = BO / 4 * across * 3, id = (int)threadIdx.x;
        splits = THREADS / units;
        split = id / units;
        column = id % across * 4;
        row = id / across % (BO / 4) * 4;
        first = id % units / (across * (BO / 4)) * 3;
    }

    __device__ __forceinline__ void multiply(const float *dy, const float *halo, const Line *lines,
                                             int taps_of_group, const int *shift) {
        if (split >= splits || first >= taps_of_group) return;
        halo += column;
#pragma unroll 2
        for (int m = split; m < BP; m += splits) {
            const float4 a = *(const float4 *)(dy + m * (BO + PAD) + row);
            const Line line = lines[m];
#pragma unroll
            for (int tap = 0; tap < 3; tap++) {
                const bool inside = line.inside >> (first + tap) & 1;
                const float4 b =
                    *(const float4 *)(halo + (inside ? line.at + shift[first + tap] : 0));
                multiply_tap(sums[tap], a, b);
            }
        }
    }
    static __device__ __forceinline__ void multiply_tap(float (&sum)[4][4], float4 a, float4 b) {
        const float left[4] = {a.x, a.y, a.z, a.w};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            sum[i][0] = fmaf(left[i], b.x, sum[i][0]);
            sum[i][1] = fmaf(left[i], b.y, sum[i][1]);
            sum[i][2] = fmaf(left[i], b.z, sum[i][2]);
            sum[i][3] = fmaf(left[i], b.w, sum[i][3]);
        }
    }

    template <typename Take>
    __device__ __forceinline__ void results(const Take &take) const {
#pragma unroll
        for (int tap = 0; tap < 3; tap++)
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) take(row + i, first + tap, column + j, sums[tap][i][j]);
    }
};

/* ---- The kernel ---- */

template <typename T>
struct GradientRows { /* of dy, from pixel m on */
    const T *dy;
    int m, pixels, o;
    __device__ __forceinline__ const T *operator()(int r) const {
        return m + r < pixels ? dy + (size_t)(m + r) * (size_t)o : NULL;
    }
};

/* Loads dy, the halo tile and the lines of the pixels from m0 on. */
template <typename Product, typename T, typename E>
static __device__ __forceinline__ void fill_tile(E *buffer, Line *lines, const T *dy, const T *x,
                                                 const WeightWork &work, Part part, int m0) {
    typedef typename Product::Mode Mode;
    constexpr int THREADS = Product::THREADS;
    const Correlation &c = work.c;
    const int pitch = work.channels + Product::PAD;
    const Span span = span_of(c, m0, BP);
    for (int m = (int)threadIdx.x; m < BP; m += THREADS) {
        const Place place = place_of(c, m0 + m);
        Line line;
        line.at = ((work.gather ? m : place.at - span.first) + 1) * pitch;
        line.inside = work.gather ? ~0u : taps_inside(c, place) >> part.tap;
        lines[m] = line;
    }
    const GradientRows<T> gradient = {dy, m0, c.pixels, c.out_c};
    fill_rows<THREADS, 2>(Mode(), buffer, Product::BO + Product::PAD, BP, Product::BO / Mode::GROUP,
                          gradient, part.o0, c.out_c, c.out_c % Mode::GROUP == 0);
    fill_halo<THREADS, 2, 1>(Mode(), buffer + work.dy_size, pitch, x, c, span, work.gather ? BP : 0,
                             part.tap, part.c0, work.channels / Mode::GROUP);
}

/* Adds a number to tile[tap][OUTPUTS][channels] in shared memory, or stores it if it is the first.
 */
template <int OUTPUTS>
struct AddToTile {
    float *tile;
    int channels;
    bool first;
    __device__ __forceinline__ void operator()(int o, int tap, int c, float v) const {
        float *to = tile + (tap * OUTPUTS + o) * channels + c;
        *to = first ? v : *to + v;
    }
};

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
    const int all = c.rows * c.columns, column = (int)blockIdx.y % work.channel_tiles,
              rest = (int)blockIdx.y / work.channel_tiles;
    Part part = {rest / work.tap_groups * Product::BO, column * work.channels,
                 rest % work.tap_groups * work.group, 0};
    part.taps = min(work.group, all - part.tap);
    if (threadIdx.x < TAPS) {
        const int tap = part.tap + (int)threadIdx.x;
        shift[threadIdx.x] = work.gather ? 0 : tap_shift(c, tap) * (work.channels + Product::PAD);
    }
    const int slice = (int)blockIdx.x;
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
        const int at = (tile - begin) & (work.buffers - 1);
        const Element *buffer = memory + at * work.buffer_size;
        product.multiply(buffer, buffer + work.dy_size, lines[at], part.taps, shift);
    }

    float *sums = (float *)(void *)memory;
    for (int split = 0; split < product.splits; split++) {
        __syncthreads();
        const AddToTile<Product::BO> take = {sums, work.channels, split == 0};
        if (product.split == split) product.results(take);
    }
    __syncthreads();
    if (work.slices > 1) to += (size_t)slice * (size_t)c.out_c * (size_t)(all * c.in_c);
    for (int i = (int)threadIdx.x; i < part.taps * Product::BO * work.channels;
         i += Product::THREADS) {
        const int k = part.c0 + i % work.channels, row = i / work.channels;
        const int o = part.o0 + row % Product::BO, tap = part.tap + row / Product::BO;
        if (k >= c.in_c || o >= c.out_c) continue;
        float *at = to + ((size_t)o * (size_t)all + (size_t)tap) * (size_t)c.in_c + k;
        *at = work.add ? *at + sums[i] : sums[i];
    }
}

#endif
