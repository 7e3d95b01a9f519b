/* Two-dimensional convolution, forward pass and input gradient: see conv2d.cuh for what they have
 * in common.
 *
 *   version 1  one thread per output number
 *   version 2  products of tiles from shared memory and registers in plain fp32
 *   version 3  the same on the tensor cores: tf32 or bf16; fp32 has none and takes version 2 */
#include "../matmul.h"
#include "conv2d_tiles.cuh"

/* ---- Version 1: a thread per output number ---- */

enum { PLAIN_THREADS = 256 };

template <typename T>
static __global__ void forward_plain(T *y, const T *x, const T *w, Conv conv, int oh, int ow) {
    const size_t id = (size_t)blockIdx.x * PLAIN_THREADS + threadIdx.x;
    const size_t pixel = id / conv.o;
    if (pixel >= (size_t)conv.n * oh * ow) return;
    const int o = (int)(id % conv.o), j = (int)(pixel % ow);
    const int i = (int)(pixel / ow % oh);
    const size_t n = pixel / ow / oh;
    float sum = 0;
    for (int u = 0; u < conv.kernel; u++)
        for (int v = 0; v < conv.kernel; v++) {
            const int a = i * conv.stride + u - conv.pad, b = j * conv.stride + v - conv.pad;
            if (a < 0 || a >= conv.h || b < 0 || b >= conv.w) continue;
            const T *from = x + ((n * conv.h + a) * conv.w + b) * conv.c;
            const T *weight = w + (size_t)((o * conv.kernel + u) * conv.kernel + v) * conv.c;
            for (int c = 0; c < conv.c; c++)
                sum = fmaf(to_float(from[c]), to_float(weight[c]), sum);
        }
    y[id] = from_float<T>(sum);
}

template <typename T>
static __global__ void gradient_plain(T *dx, const T *dy, const T *w, Conv conv, int oh, int ow,
                                      bool add) {
    const size_t id = (size_t)blockIdx.x * PLAIN_THREADS + threadIdx.x;
    const size_t pixel = id / conv.c;
    if (pixel >= (size_t)conv.n * conv.h * conv.w) return;
    const int c = (int)(id % conv.c), b = (int)(pixel % conv.w);
    const int a = (int)(pixel / conv.w % conv.h);
    const size_t n = pixel / conv.w / conv.h;
    float sum = 0;
    for (int u = 0; u < conv.kernel; u++)
        for (int v = 0; v < conv.kernel; v++) {
            const int i = a + conv.pad - u, j = b + conv.pad - v;
            if (i < 0 || j < 0 || i % conv.stride || j % conv.stride) continue;
            if (i / conv.stride >= oh || j / conv.stride >= ow) continue;
            const T *from = dy + ((n * oh + i / conv.stride) * ow + j / conv.stride) * conv.o;
            const T *weight = w + (size_t)(u * conv.kernel + v) * conv.c + c;
            const size_t next = (size_t)(conv.kernel * conv.kernel) * conv.c;
            for (int o = 0; o < conv.o; o++)
                sum = fmaf(to_float(from[o]), to_float(weight[o * next]), sum);
        }
    put(dx + id, sum, add);
}

/* ---- Versions 2 and 3: the plan ---- */

enum { MAX_CHUNK = 64, MAX_TAPS = 32 };

/* Returns the correlation that computes the pixels of the input gradient whose row is congruent to
 * a and whose column is congruent to b modulo the stride.  Rows of dy ascend while taps descend,
 * from the last tap that reaches such pixels. */
static Correlation gradient_phase(const Conv *conv, int a, int b, bool add) {
    const int s = conv->stride;
    const int u = (a + conv->pad) % s, v = (b + conv->pad) % s;
    Correlation c = {};
    c.n = conv->n;
    c.out_h = (conv->h - a + s - 1) / s;
    c.out_w = (conv->w - b + s - 1) / s;
    c.in_h = conv2d_out(conv->h, conv);
    c.in_w = conv2d_out(conv->w, conv);
    c.in_c = conv->o;
    c.out_c = conv->c;
    c.rows = u < conv->kernel ? (conv->kernel - 1 - u) / s + 1 : 0;
    c.columns = v < conv->kernel ? (conv->kernel - 1 - v) / s + 1 : 0;
    c.stride = 1;
    c.u0 = u + (c.rows - 1) * s;
    c.v0 = v + (c.columns - 1) * s;
    /* These divisions are exact: a + pad and u are congruent, and so are b + pad and v. */
    c.y0 = (a + conv->pad - c.u0) / s;
    c.x0 = (b + conv->pad - c.v0) / s;
    c.tap_step = -s;
    c.kernel = conv->kernel;
    c.step = s;
    c.to_y = a;
    c.to_x = b;
    c.full_h = conv->h;
    c.full_w = conv->w;
    c.add = add;
    complete(&c);
    return c;
}

/* Chooses between a halo tile and gathering, and how many channels and taps are loaded at a time.
 */
template <typename Tile>
static ConvWork plan_work(const Correlation *phase, int phases) {
    typedef typename Tile::Mode Mode;
    const int size = (int)sizeof(typename Mode::Element), in_c = phase[0].in_c;
    ConvWork work = {};
    int pixels = 0, taps = 1, by_halo = 0, by_tap = 0; /* pixels to load, of all phases */
    for (int p = 0; p < phases; p++) {
        const Correlation &c = work.phase[p] = phase[p];
        const int each = halo_pixels(c, Tile::BM), all = c.rows * c.columns;
        if (!all) continue;
        work.gather |= each < 0 || all > MAX_TAPS;
        by_halo += each;
        by_tap += all * Tile::BM;
        pixels = each > pixels ? each : pixels;
        taps = all > taps ? all : taps;
    }
    work.gather |= by_halo > by_tap;
    const int smallest = 2 * Mode::STEP; /* chunk for which a halo tile pays */
    for (int max_chunk = MAX_CHUNK;; max_chunk /= 2) {
        if (max_chunk < smallest) work.gather = true; /* the image is too wide */
        if (work.gather) pixels = Tile::BM, max_chunk = MAX_CHUNK;
        work.chunks = ceil_div(in_c, max_chunk);
        work.chunk = ceil_div(ceil_div(in_c, work.chunks), Mode::STEP) * Mode::STEP;
        work.halo_size = (pixels + 1) * (work.chunk + Mode::GROUP);
        work.halos = Mode::AHEAD && work.chunks * (work.gather ? taps : 1) > 1 ? 2 : 1;
        if (work.gather || work.halos * work.halo_size * size <= HALO_BYTES) break;
    }
    work.by_chunk = divisor_of(work.chunk);
    const int tap = (Tile::BY_OUTPUT ? Tile::BN : work.chunk) * weight_pitch<Tile>(work.chunk);
    const bool several = work.chunks > 1 || work.gather || taps * tap * size > WEIGHT_BYTES;
    work.weight_buffers = Mode::AHEAD && several ? 2 : 1;
    int max_taps = WEIGHT_BYTES / (work.weight_buffers * tap * size);
    max_taps = work.gather || max_taps < 1 ? 1 : max_taps < taps ? max_taps : taps;
    work.taps = ceil_div(taps, ceil_div(taps, max_taps)); /* nearly as many in each round */
    work.weight_size = work.taps * tap;
    return work;
}

template <typename Tile>
static void launch(const Run *run, void *out, const void *in, const void *w,
                   const Correlation *phase, int phases) {
    typedef typename Tile::Mode::Value T;
    const ConvWork work = plan_work<Tile>(phase, phases);
    const size_t bytes =
        (size_t)(work.halos * work.halo_size + work.weight_buffers * work.weight_size) *
        sizeof(typename Tile::Mode::Element);
    int pixels = 0;
    for (int p = 0; p < phases; p++)
        if (phase[p].pixels > pixels) pixels = phase[p].pixels;
    SHARED_LIMIT(implicit_gemm<Tile>, CONV_BYTES);
    LAUNCH(implicit_gemm<Tile>,
           dim3(ceil_div(pixels, Tile::BM), ceil_div(phase[0].out_c, Tile::BN), phases),
           Tile::THREADS, bytes, run->stream, (T *)out, (const T *)in, (const T *)w, work);
}

/* Chooses the tile. */
template <typename Mode, bool GRADIENT>
static void run_tiles(const Run *run, void *out, const void *in, const void *w,
                      const Correlation *phase, int phases) {
    const int outputs = phase[0].out_c, pixels = ceil_div(phase[0].pixels, 128) * phases;
    if (outputs <= 16) {
        launch<CorrelateTile<Mode, GRADIENT, 4, 1, 16>>(run, out, in, w, phase, phases);
        return;
    }
    if (outputs > 32 && pixels * ceil_div(outputs, 64) >= ENOUGH_BLOCKS) {
        constexpr int WM = Mode::TENSOR ? 4 : 2;
        launch<CorrelateTile<Mode, GRADIENT, WM, 2, 32>>(run, out, in, w, phase, phases);
        return;
    }
    if constexpr (Mode::TENSOR) {
        if (pixels * ceil_div(outputs, 32) >= ENOUGH_BLOCKS) {
            launch<CorrelateTile<Mode, GRADIENT, 4, 1, 32>>(run, out, in, w, phase, phases);
            return;
        }
    }
    launch<CorrelateTile<Mode, GRADIENT, 2, 2, 16>>(run, out, in, w, phase, phases);
}

/* ---- Launchers ---- */

static bool product_at_once(const Call *k) {
    return k->run->version == 0 && conv2d_is_product(&k->conv);
}

void cuda_conv2d_forward(const Call *k) {
    const DeviceIO &io = *k->io;
    const Conv &conv = k->conv;
    const int oh = k->node->out_shape.h, ow = k->node->out_shape.w;
    const size_t numbers = (size_t)conv.n * oh * ow * conv.o;
    if (product_at_once(k)) {
        cuda_linear_forward(k);
    } else if (k->run->version == 1) {
        WITH_VALUES(
            k->run, T,
            LAUNCH(forward_plain<T>, grid_blocks(numbers, PLAIN_THREADS), PLAIN_THREADS, 0,
                   k->run->stream, (T *)io.y, (const T *)io.x, (const T *)io.weight, conv, oh, ow));
    } else {
        const Correlation c = forward_correlation(&conv);
        with_mode(k->run, [&](auto mode) {
            run_tiles<decltype(mode), false>(k->run, io.y, io.x, io.weight, &c, 1);
        });
    }
}

/* Launches up to MAX_PHASES phases at a time. */
static void gradient_in_phases(const Call *k) {
    const DeviceIO &io = *k->io;
    const Conv &conv = k->conv;
    const int all = conv.stride * conv.stride;
    Correlation phase[MAX_PHASES];
    int phases = 0;
    for (int at = 0; at < all; at++) {
        const int a = at / conv.stride, b = at % conv.stride;
        if (a < conv.h && b < conv.w) phase[phases++] = gradient_phase(&conv, a, b, io.add_dx);
        if (phases == MAX_PHASES || (phases && at + 1 == all)) {
            with_mode(k->run, [&](auto mode) {
                run_tiles<decltype(mode), true>(k->run, io.dx, io.dy, io.weight, phase, phases);
            });
            phases = 0;
        }
    }
}

void cuda_conv2d_input_gradient(const Call *k) {
    const DeviceIO &io = *k->io;
    if (product_at_once(k))
        cuda_linear_input_gradient(k);
    else if (k->run->version == 1)
        WITH_VALUES(k->run, T,
                    LAUNCH(gradient_plain<T>, grid_blocks(k->count, PLAIN_THREADS), PLAIN_THREADS,
                           0, k->run->stream, (T *)io.dx, (const T *)io.dy, (const T *)io.weight,
                           k->conv, k->node->out_shape.h, k->node->out_shape.w, io.add_dx));
    else
        gradient_in_phases(k);
}
