/* What the convolution kernels share: the geometry of a correlation, and the ways to multiply.
 *
 * Forward pass and input gradient are both correlations (ref/fast/conv2d.c has the equations):
 *
 *   out[n][i][j] += in[n][i stride + y0 + r][j stride + x0 + q] times a weight, over taps (r, q)
 *
 * the input gradient in stride^2 phases, one for the pixels with the same row and the same column
 * modulo the stride: each phase has its own taps and stride 1, and nothing is multiplied by zeros
 * in between.  The weight gradient pairs the same pixels as the forward pass.
 *
 * A block takes consecutive output pixels, counted over the whole batch.  The input pixels that
 * their taps reach are then one piece of memory too, the halo tile: it is loaded once, with 16-byte
 * accesses, and every tap is a shift within it.  A tap that falls outside the image reads a row of
 * zeros instead, which a bit per pixel and tap decides.  Where a halo tile would be larger than
 * loading each tap by itself (1x1, large strides), taps are gathered one after the other instead.
 */
#pragma once

#include "tiles.cuh"

/* Shared memory of a block, at most: halo tiles, weights, and both.  Of the devices that this is
 * built for the smallest have SHARED_MAX, and the larger ones room for several blocks. */
enum { HALO_BYTES = 52 << 10, WEIGHT_BYTES = 40 << 10, CONV_BYTES = HALO_BYTES + WEIGHT_BYTES };
static_assert((int)CONV_BYTES <= (int)SHARED_MAX, "shared memory");

/* Division of 0 <= m < 2^31 by a number known to the host: a product and a shift instead of some
 * twenty instructions (Granlund and Montgomery 1994, figure 4.1). */
typedef struct {
    unsigned multiplier;
    int shift;
} Divisor;

static inline Divisor divisor_of(int d) {
    const uint64_t divisor = d > 1 ? (uint64_t)d : 1;
    Divisor by = {0, 0};
    while ((uint64_t)1 << by.shift < divisor) by.shift++;
    by.multiplier = (unsigned)(((((uint64_t)1 << by.shift) - divisor) << 32) / divisor + 1);
    return by;
}

static DEVICE int quotient(int m, Divisor by) {
    return (int)((__umulhi((unsigned)m, by.multiplier) + (unsigned)m) >> by.shift);
}

typedef struct {
    int n, out_h, out_w, in_h, in_w, in_c, out_c;
    int pixels;           /* n out_h out_w */
    int rows, columns;    /* taps */
    int stride, y0, x0;   /* input row and column of the first tap */
    int u0, v0, tap_step; /* tap (r, q) is [u0 + r tap_step][v0 + q tap_step] */
    int kernel;           /* of the weights */
    int step, to_y, to_x; /* output pixel (i, j) lies at (i step + to_y, j step + to_x) */
    int full_h, full_w;   /* of the whole output */
    bool add;             /* into the output */
    Divisor by_width, by_height, by_columns; /* of the output, of the taps */
} Correlation;

/* Computes the numbers that follow from the sizes. */
static inline void complete(Correlation *c) {
    c->pixels = c->n * c->out_h * c->out_w;
    c->by_width = divisor_of(c->out_w);
    c->by_height = divisor_of(c->out_h);
    c->by_columns = divisor_of(c->columns);
}

static inline Correlation forward_correlation(const Conv *conv) {
    Correlation c = {};
    c.n = conv->n;
    c.out_h = c.full_h = conv2d_out(conv->h, conv);
    c.out_w = c.full_w = conv2d_out(conv->w, conv);
    c.in_h = conv->h;
    c.in_w = conv->w;
    c.in_c = conv->c;
    c.out_c = conv->o;
    c.rows = c.columns = c.kernel = conv->kernel;
    c.stride = conv->stride;
    c.y0 = c.x0 = -conv->pad;
    c.tap_step = c.step = 1;
    complete(&c);
    return c;
}

/* On the host: returns the maximum number of input pixels that the taps of `tile` consecutive
 * output pixels reach, or -1 if these are not one ascending piece.  From output pixel m to m' the
 * first tap moves by stride (m' - m), by `row` more for each end of a row in between, and by
 * `image` more for each end of an image. */
static inline int halo_pixels(const Correlation &c, int tile) {
    int row = c.stride * (c.in_w - c.out_w), image = c.in_w * (c.in_h - c.stride * c.out_h);
    if (c.stride + row < 0 || c.stride + row + image < 0) return -1;
    int size = c.out_h * c.out_w, last = tile - 1;
    int rows = row > 0 ? (last + c.out_w - 1) / c.out_w : last / c.out_w;
    int images = image > 0 ? (last + size - 1) / size : last / size;
    return c.stride * last + row * rows + image * images + (c.rows - 1) * c.in_w + c.columns;
}

/* ---- Pixels ---- */

/* Row, column, and image of an output pixel. */
struct Pixel {
    int i, j, n;
};

static DEVICE Pixel pixel_of(const Correlation &c, int m) {
    const int row = quotient(m, c.by_width), n = quotient(row, c.by_height);
    Pixel pixel = {row - n * c.out_h, m - row * c.out_w, n};
    return pixel;
}

/* Where the first tap of an output pixel lies: row, column, and pixel over the whole batch.  May
 * lie outside the image. */
struct Place {
    int at, y, x;
};

/* A pixel past the last one gets a place where no tap is inside the image. */
static DEVICE Place place_of(const Correlation &c, int m) {
    const Pixel pixel = pixel_of(c, m);
    Place place;
    place.y = m < c.pixels ? pixel.i * c.stride + c.y0 : -(1 << 14);
    place.x = pixel.j * c.stride + c.x0;
    place.at = (pixel.n * c.in_h + place.y) * c.in_w + place.x;
    return place;
}

static DEVICE size_t output_of(const Correlation &c, int m) {
    const Pixel pixel = pixel_of(c, m);
    const size_t row = (size_t)pixel.n * c.full_h + (pixel.i * c.step + c.to_y);
    return row * c.full_w + (pixel.j * c.step + c.to_x);
}

/* Returns how far a tap lies from the first one, in pixels. */
static DEVICE int tap_shift(const Correlation &c, int tap) {
    const int r = quotient(tap, c.by_columns);
    return r * (c.in_w - c.columns) + tap;
}

static DEVICE bool tap_inside(const Correlation &c, Place place, int r, int q) {
    return (unsigned)(place.y + r) < (unsigned)c.in_h && (unsigned)(place.x + q) < (unsigned)c.in_w;
}

/* Returns a mask in which bit r * columns + q says that tap (r, q) is inside the image.  There are
 * at most 32 taps. */
static DEVICE unsigned taps_inside(const Correlation &c, Place place) {
    unsigned line = 0, taps = 0;
    for (int q = 0; q < c.columns; q++)
        line |= (unsigned)((unsigned)(place.x + q) < (unsigned)c.in_w) << q;
    for (int r = 0; r < c.rows; r++)
        if ((unsigned)(place.y + r) < (unsigned)c.in_h) taps |= line << (r * c.columns);
    return taps;
}

/* ---- Ways to multiply ---- */

/* GROUP numbers are 16 bytes of shared memory; products run over STEP channels at a time.  DIRECT:
 * elements are values as they are, and come by asynchronous copies; AHEAD: the next ones come while
 * these are multiplied, which takes twice the memory. */
template <typename T>
struct Ffma { /* plain fp32, whatever the values are stored in */
    typedef T Value;
    typedef float Element;
    static constexpr int GROUP = 4, STEP = 4;
    static constexpr bool TENSOR = false, DIRECT = sizeof(T) == sizeof(float), AHEAD = false;
};
struct Tf32 { /* rounded once, on the way into shared memory */
    typedef float Value, Element;
    static constexpr Precision PRECISION = PRECISION_TF32;
    static constexpr int GROUP = 4, STEP = 8;
    static constexpr bool TENSOR = true, DIRECT = false, AHEAD = false;
};
struct Bf16 {
    typedef __nv_bfloat16 Value, Element;
    static constexpr Precision PRECISION = PRECISION_BF16;
    static constexpr int GROUP = 8, STEP = 16;
    static constexpr bool TENSOR = true, DIRECT = true, AHEAD = true;
};

/* Calls launch(mode) with the way to multiply of this version and precision; it is compiled four
 * times.  fp32 has no tensor cores. */
template <typename Launch>
static void with_mode(const Run *run, const Launch &launch) {
    const bool plain = run->version == 2;
    if (run->precision == PRECISION_BF16)
        plain ? launch(Ffma<__nv_bfloat16>()) : launch(Bf16());
    else
        plain || run->precision == PRECISION_FP32 ? launch(Ffma<float>()) : launch(Tf32());
}

/* sum += x b */
static DEVICE void add_multiple(float (&sum)[4], float x, float4 b) {
    sum[0] = fmaf(x, b.x, sum[0]);
    sum[1] = fmaf(x, b.y, sum[1]);
    sum[2] = fmaf(x, b.z, sum[2]);
    sum[3] = fmaf(x, b.w, sum[3]);
}
