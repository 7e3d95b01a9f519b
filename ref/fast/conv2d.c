/* Two-dimensional cross-correlation and its input gradient, directly: no matrix of patches is
 * built.
 *
 *   y[n][i][j][o]  = sum over u, v, c of x[n][i s + u - p][j s + v - p][c] w[o][u][v][c]
 *   dx[n][a][b][c] = sum over u, v, o of dy[n][(a + p - u) / s][(b + p - v) / s][o] w[o][u][v][c]
 *
 * where the second runs over the u, v that make both fractions whole.  The rows a with the same
 * a mod s have the same u, likewise the columns, so the input gradient is s * s correlations of dy,
 * each with its own part of the flipped kernel and with stride 1: no multiplication by inserted
 * zeros.  Forward and input gradient are thus one piece of code:
 *
 *   copy an image into zero-padded planes, one per channel: the pixels that a register tile takes
 *   from a channel are then neighbours, and padding costs no test;
 *   for each tile of pixels x outputs: run over taps and channels. */
#include <omp.h>

#include "../ops/ops.h"
#include "correlate.h"
#include "scratch.h"
#include "tile.h"

enum { GROUP_BYTES = 256 << 10 }; /* images that share a pass over the weights */

/* The size of an image. */
typedef struct {
    int h, w, c;
} ImageSize;

static ImageSize input_of(const Conv *conv) { return (ImageSize){conv->h, conv->w, conv->c}; }

static ImageSize output_of(const Conv *conv) {
    return (ImageSize){conv2d_out(conv->h, conv), conv2d_out(conv->w, conv), conv->o};
}

static Planes forward_planes(const Conv *conv) {
    return planes_of(conv->h + 2 * conv->pad, conv->w + 2 * conv->pad, conv->pad, conv->stride,
                     conv->c);
}

static CorrelationPass forward_pass(const Conv *conv) {
    const ImageSize out = output_of(conv);
    return (CorrelationPass){.taps = {conv->kernel, conv->kernel, 0, 0, 1},
                             .kernel = conv->kernel,
                             .channels = conv->c,
                             .outputs = conv->o,
                             .out_h = out.h,
                             .out_w = out.w,
                             .out_row = (ptrdiff_t)out.w * conv->o,
                             .out_column = conv->o};
}

/* Returns the planes of dy, padded as far as the taps reach past its edges. */
static Planes gradient_planes(const Conv *conv) {
    int k = conv->kernel, s = conv->stride, p = conv->pad;
    int low = k - 1 > p ? (k - 1 - p + s - 1) / s : 0;
    int rows = (conv->h - 1 + p) / s + 1, columns = (conv->w - 1 + p) / s + 1;
    const ImageSize dy = output_of(conv);
    return planes_of(low + (rows > dy.h ? rows : dy.h), low + (columns > dy.w ? columns : dy.w),
                     low, 1, conv->o);
}

/* Sets how many taps reach the rows congruent to a, and the last of these taps.  They are used in
 * descending order, so that the rows of dy ascend. */
static void phase_taps(int *count, int *last, int a, const Conv *conv) {
    int first = (a + conv->pad) % conv->stride;
    *count = first < conv->kernel ? (conv->kernel - 1 - first) / conv->stride + 1 : 0;
    *last = first + (*count - 1) * conv->stride;
}

/* Returns the pass that computes the pixels of dx whose row is congruent to a and whose column is
 * congruent to b modulo the stride. */
static CorrelationPass gradient_pass(const Conv *conv, int a, int b) {
    int s = conv->stride, p = conv->pad;
    Planes planes = gradient_planes(conv);
    CorrelationPass pass = {.taps.step = -s,
                            .kernel = conv->kernel,
                            .channels = conv->o,
                            .outputs = conv->c,
                            .out_h = (conv->h - a + s - 1) / s,
                            .out_w = (conv->w - b + s - 1) / s,
                            .out_first = ((ptrdiff_t)a * conv->w + b) * conv->c,
                            .out_row = (ptrdiff_t)s * conv->w * conv->c,
                            .out_column = (ptrdiff_t)s * conv->c};
    phase_taps(&pass.taps.rows, &pass.taps.u0, a, conv);
    phase_taps(&pass.taps.columns, &pass.taps.v0, b, conv);
    pass.origin = (planes.low + (a + p - pass.taps.u0) / s) * planes.row + planes.low +
                  (b + p - pass.taps.v0) / s;
    return pass;
}

/* The arguments of a forward pass or an input gradient. */
typedef struct {
    const Conv *conv;
    bool gradient, add;
    real *out;
    const real *in;
    ImageSize to, from; /* of an image of `out` and of `in` */
} ConvJob;

/* Packs w[o][kernel][kernel][c] as CorrelationPass needs it, by all threads of the region. */
static void pack_weights(real *to, const ConvJob *job, const real *w) {
    int taps = job->conv->kernel * job->conv->kernel, width = correlate_width(job->to.c);
    ptrdiff_t row = (ptrdiff_t)taps * job->conv->c, panel = (ptrdiff_t)width * job->from.c;
    ptrdiff_t out_step = job->gradient ? 1 : row, in_step = job->gradient ? row : 1;
#pragma omp for schedule(static)
    for (int o = 0; o < job->to.c; o += width)
        for (int t = 0; t < taps; t++) {
            Operand from = {w + (ptrdiff_t)t * job->conv->c, out_step, in_step};
            real *at = to + ((ptrdiff_t)o / width * taps + t) * panel;
            int lines = min(width, job->to.c - o);
            if (width == LANES)
                pack(at, LANES, from, o, lines, 0, job->from.c);
            else
                pack(at, 2 * LANES, from, o, lines, 0, job->from.c);
        }
}

/* Runs images [begin, end) on the calling thread. */
static void run_images(const ConvJob *job, const real *weights, int begin, int end) {
    int phases = job->gradient ? job->conv->stride : 1; /* of the output */
    ptrdiff_t in_image = (ptrdiff_t)job->from.h * job->from.w * job->from.c,
              out_image = (ptrdiff_t)job->to.h * job->to.w * job->to.c;
    Planes planes = job->gradient ? gradient_planes(job->conv) : forward_planes(job->conv);
    int group = (int)(GROUP_BYTES / ((size_t)planes.image * sizeof(real)));
    group = min(group < 1 ? 1 : group, end - begin);
    size_t count = (size_t)(group * planes.image) + planes_slack(&planes);
    real *images = scratch(SCRATCH_IMAGE, count);
    memset(images, 0, count * sizeof(real));
    for (int n = begin; n < end; n += group) {
        group = min(group, end - n);
        for (int i = 0; i < group; i++)
            planes_fill(images + i * planes.image, &planes, job->in + (n + i) * in_image,
                        job->from.h, job->from.w, job->from.c);
        for (int phase = 0; phase < phases * phases; phase++) {
            CorrelationPass pass = job->gradient
                                       ? gradient_pass(job->conv, phase / phases, phase % phases)
                                       : forward_pass(job->conv);
            pass.planes = planes;
            pass.weights = weights;
            pass.add = job->add;
            correlate(&pass, images, job->out + n * out_image, out_image, group);
        }
    }
}

static void run(const ConvJob *job, const real *w) {
    int width = correlate_width(job->to.c);
    size_t taps = (size_t)job->conv->kernel * (size_t)job->conv->kernel;
    size_t outputs = (size_t)(job->to.c + width - 1) / (size_t)width * (size_t)width;
    real *weights = scratch(SCRATCH_WEIGHT, outputs * taps * (size_t)job->from.c + LANES);
    double work =
        (double)job->conv->n * job->to.h * job->to.w * (double)taps * job->from.c * job->to.c;
#pragma omp parallel if (work > WORTH_THREADS_CONV2D)
    {
        pack_weights(weights, job, w);
        int64_t t = omp_get_thread_num(), threads = omp_get_num_threads(), n = job->conv->n;
        run_images(job, weights, (int)(n * t / threads), (int)(n * (t + 1) / threads));
    }
}

void fast_conv2d_forward(real *y, const real *x, const real *w, Conv conv) {
    if (conv2d_is_product(&conv))
        fast_linear_forward(y, x, w, NULL, conv.n * conv.h * conv.w, conv.c, conv.o);
    else
        run(&(ConvJob){&conv, false, false, y, x, output_of(&conv), input_of(&conv)}, w);
}

void fast_conv2d_input_gradient(real *dx, const real *dy, const real *w, Conv conv, bool add) {
    if (conv2d_is_product(&conv))
        fast_linear_input_gradient(dx, dy, w, conv.n * conv.h * conv.w, conv.c, conv.o, add);
    else
        run(&(ConvJob){&conv, true, add, dx, dy, input_of(&conv), output_of(&conv)}, w);
}
