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

#include "correlate.h"
#include "fast.h"
#include "scratch.h"
#include "tile.h"

enum { GROUP_BYTES = 256 << 10 }; /* images that share a pass over the weights */

static Planes forward_planes(const Conv *conv) {
    return planes_of(conv->h + 2 * conv->pad, conv->w + 2 * conv->pad, conv->pad, conv->stride,
                     conv->c);
}

static CorrelationPass forward_pass(const Conv *conv) {
    int oh = conv2d_out(conv->h, conv->kernel, conv->stride, conv->pad),
        ow = conv2d_out(conv->w, conv->kernel, conv->stride, conv->pad);
    return (CorrelationPass){.taps = {conv->kernel, conv->kernel, 0, 0, 1},
                             .kernel = conv->kernel,
                             .channels = conv->c,
                             .outputs = conv->o,
                             .out_h = oh,
                             .out_w = ow,
                             .out_row = (ptrdiff_t)ow * conv->o,
                             .out_column = conv->o};
}

/* Returns the planes of dy, padded as far as the taps reach past its edges. */
static Planes gradient_planes(const Conv *conv) {
    int k = conv->kernel, s = conv->stride, p = conv->pad;
    int low = k - 1 > p ? (k - 1 - p + s - 1) / s : 0;
    int rows = (conv->h - 1 + p) / s + 1, columns = (conv->w - 1 + p) / s + 1;
    int oh = conv2d_out(conv->h, k, s, p), ow = conv2d_out(conv->w, k, s, p);
    return planes_of(low + (rows > oh ? rows : oh), low + (columns > ow ? columns : ow), low, 1,
                     conv->o);
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
    int out_h, out_w, out_c, in_h, in_w, in_c;
} ConvJob;

/* Packs w[o][kernel][kernel][c] as CorrelationPass needs it, by all threads of the region. */
static void pack_weights(real *to, const ConvJob *job, const real *w) {
    int taps = job->conv->kernel * job->conv->kernel, width = correlate_width(job->out_c);
    ptrdiff_t row = (ptrdiff_t)taps * job->conv->c, panel = (ptrdiff_t)width * job->in_c;
    ptrdiff_t out_step = job->gradient ? 1 : row, in_step = job->gradient ? row : 1;
#pragma omp for schedule(static)
    for (int o = 0; o < job->out_c; o += width)
        for (int t = 0; t < taps; t++) {
            Operand from = {w + (ptrdiff_t)t * job->conv->c, out_step, in_step};
            real *at = to + ((ptrdiff_t)o / width * taps + t) * panel;
            int lines = min(width, job->out_c - o);
            if (width == LANES)
                pack(at, LANES, from, o, lines, 0, job->in_c);
            else
                pack(at, 2 * LANES, from, o, lines, 0, job->in_c);
        }
}

/* Runs images [begin, end) on the calling thread. */
static void run_images(const ConvJob *job, const real *weights, int begin, int end) {
    int phases = job->gradient ? job->conv->stride : 1; /* of the output */
    ptrdiff_t in_image = (ptrdiff_t)job->in_h * job->in_w * job->in_c,
              out_image = (ptrdiff_t)job->out_h * job->out_w * job->out_c;
    Planes planes = job->gradient ? gradient_planes(job->conv) : forward_planes(job->conv);
    int group = (int)(GROUP_BYTES / ((size_t)planes.image * sizeof(real)));
    group = min(group < 1 ? 1 : group, end - begin);
    size_t count = (size_t)(group * planes.image) + planes_slack(&planes);
    real *images = scratch(SCRATCH_IMAGE, count);
    memset(images, 0, count * sizeof(real));
    for (int n = begin; n < end; n += group) {
        group = min(group, end - n);
        for (int i = 0; i < group; i++)
            planes_fill(images + i * planes.image, &planes, job->in + (n + i) * in_image, job->in_h,
                        job->in_w, job->in_c);
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
    int width = correlate_width(job->out_c);
    size_t taps = (size_t)job->conv->kernel * (size_t)job->conv->kernel;
    size_t outputs = (size_t)(job->out_c + width - 1) / (size_t)width * (size_t)width;
    real *weights = scratch(SCRATCH_WEIGHT, outputs * taps * (size_t)job->in_c + LANES);
    double work =
        (double)job->conv->n * job->out_h * job->out_w * (double)taps * job->in_c * job->out_c;
#pragma omp parallel if (work > WORTH_THREADS_CONV2D)
    {
        pack_weights(weights, job, w);
        int64_t t = omp_get_thread_num(), threads = omp_get_num_threads(), n = job->conv->n;
        run_images(job, weights, (int)(n * t / threads), (int)(n * (t + 1) / threads));
    }
}

void fast_conv2d_forward(real *y, const real *x, const real *w, Conv conv) {
    if (conv2d_is_product(&conv)) {
        fast_linear_forward(y, x, w, NULL, conv.n * conv.h * conv.w, conv.c, conv.o);
        return;
    }
    run(&(ConvJob){.conv = &conv,
                   .out = y,
                   .in = x,
                   .out_h = conv2d_out(conv.h, conv.kernel, conv.stride, conv.pad),
                   .out_w = conv2d_out(conv.w, conv.kernel, conv.stride, conv.pad),
                   .out_c = conv.o,
                   .in_h = conv.h,
                   .in_w = conv.w,
                   .in_c = conv.c},
        w);
}

void fast_conv2d_input_gradient(real *dx, const real *dy, const real *w, Conv conv, bool add) {
    if (conv2d_is_product(&conv)) {
        fast_linear_input_gradient(dx, dy, w, conv.n * conv.h * conv.w, conv.c, conv.o, add);
        return;
    }
    run(&(ConvJob){.conv = &conv,
                   .gradient = true,
                   .add = add,
                   .out = dx,
                   .in = dy,
                   .out_h = conv.h,
                   .out_w = conv.w,
                   .out_c = conv.c,
                   .in_h = conv2d_out(conv.h, conv.kernel, conv.stride, conv.pad),
                   .in_w = conv2d_out(conv.w, conv.kernel, conv.stride, conv.pad),
                   .in_c = conv.o},
        w);
}
