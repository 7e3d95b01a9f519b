/* The weight gradient of conv2d: dw[o][u][v][c] = sum over n, i, j of dy[n][i][j][o] times
 * x[n][i s + u - p][j s + v - p][c].
 *
 * A register tile holds some (v, c) of one u, which are neighbours in a zero-padded image, times a
 * vector or two of outputs, and is summed over all pixels of a group of images.
 *
 * The batch is cut into chunks whose number depends on the shape alone.  Each has its own partial
 * sum, and these are added in order at the end: the bits do not depend on the threads. */
#include "../ops/ops.h"
#include "correlate.h"
#include "scratch.h"
#include "tile.h"

enum {
    ROWS = TILE_VECTORS * 2 / 3,
    CHUNKS = 16,              /* at most: enough for as many threads */
    PARTIAL_BYTES = 16 << 20, /* at most, of all chunks together */
    GROUP_BYTES = 256 << 10   /* images in the scratch at a time */
};

typedef struct {
    Conv conv;
    int oh, ow;
    int row;            /* of a padded image */
    ptrdiff_t image;    /* numbers of a padded image */
    int vectors, width; /* of a tile of outputs */
    int line;           /* outputs, rounded up to whole tiles */
    int taps_row;       /* kernel * c: the (v, c) of one u */
    int chunks, pieces; /* the work: chunks of the batch x pieces of the outputs */
    ptrdiff_t partial;  /* numbers of a partial sum [kernel][taps_row][line] */
} WeightGradientPlan;

static WeightGradientPlan plan_of(Conv conv) {
    WeightGradientPlan plan = {.conv = conv};
    plan.oh = conv2d_out(conv.h, &conv);
    plan.ow = conv2d_out(conv.w, &conv);
    plan.row = (conv.w + 2 * conv.pad) * conv.c;
    plan.image = (ptrdiff_t)(conv.h + 2 * conv.pad) * plan.row;
    plan.vectors = conv.o <= LANES ? 1 : 2;
    plan.width = plan.vectors * LANES;
    plan.line = (conv.o + plan.width - 1) / plan.width * plan.width;
    plan.taps_row = conv.kernel * conv.c;
    plan.partial = (ptrdiff_t)conv.kernel * plan.taps_row * plan.line;
    ptrdiff_t max = PARTIAL_BYTES / ((ptrdiff_t)sizeof(real) * plan.partial);
    plan.chunks = min(min(CHUNKS, conv.n), max < 1 ? 1 : (int)min(CHUNKS, (int)max));
    plan.pieces = min((CHUNKS + plan.chunks - 1) / plan.chunks, plan.line / plan.width);
    return plan;
}

/* Copies images n .. n + count - 1 into the middle of their zero padding. */
static void copy_images(real *to, const WeightGradientPlan *plan, const real *x, int n, int count) {
    const Conv *conv = &plan->conv;
    size_t row = (size_t)conv->w * (size_t)conv->c;
    for (int i = 0; i < count; i++)
        for (int y = 0; y < conv->h; y++)
            memcpy(
                to + i * plan->image + (ptrdiff_t)(y + conv->pad) * plan->row + conv->pad * conv->c,
                x + ((ptrdiff_t)(n + i) * conv->h + y) * (ptrdiff_t)row, row * sizeof *to);
}

/* Copies pixels of dy, with room for the outputs to be a multiple of a tile. */
static void copy_gradient(real *to, const WeightGradientPlan *plan, const real *dy,
                          ptrdiff_t pixels) {
    for (ptrdiff_t i = 0; i < pixels; i++)
        memcpy(to + i * plan->line, dy + i * plan->conv.o, (size_t)plan->conv.o * sizeof *to);
}

/* A group of images: x with padding, dy with dy_line numbers a pixel. */
typedef struct {
    const real *x, *dy;
    int images, dy_line;
    bool first; /* of its chunk: overwrites the partial sum */
} Group;

INLINE void sum_tile(real *partial, const WeightGradientPlan *plan, const Group *group,
                     const int rows, const int vectors, int u, int f, int o) {
    const Conv *conv = &plan->conv;
    ptrdiff_t dy_row = (ptrdiff_t)plan->ow * group->dy_line;
    vec acc[ROWS];
    tile_zero(acc, rows * vectors);
    for (int n = 0; n < group->images; n++) {
        const real *x = group->x + n * plan->image + (ptrdiff_t)u * plan->row + f;
        const real *dy = group->dy + n * plan->oh * dy_row + o;
        for (int i = 0; i < plan->oh; i++)
            tile_multiply(acc, 1, rows, vectors, x + (ptrdiff_t)i * conv->stride * plan->row, 0,
                          (ptrdiff_t)conv->stride * conv->c, dy + i * dy_row, group->dy_line,
                          plan->ow);
    }
    TileTarget to = {.at = partial + ((ptrdiff_t)u * plan->taps_row + f) * plan->line + o,
                     .step = plan->line,
                     .runs = 1,
                     .run = min(rows, plan->taps_row - f),
                     .columns = plan->width,
                     .add = !group->first};
    tile_store(&to, acc, 1, rows, vectors);
}

/* Outputs [begin, end) of a group. */
INLINE void sum_group(real *partial, const WeightGradientPlan *plan, const Group *group,
                      const int vectors, int begin, int end) {
    const int rows = ROWS / vectors;
    for (int u = 0; u < plan->conv.kernel; u++)
        for (int f = 0; f < plan->taps_row; f += rows)
            for (int o = begin; o < end; o += plan->width) {
                int left = plan->taps_row - f;
                if (left > rows / 2)
                    sum_tile(partial, plan, group, rows, vectors, u, f, o);
                else
                    sum_tile(partial, plan, group, rows / 2, vectors, u, f, o);
            }
}

/* Images [n0, n1), outputs [begin, end), on the calling thread. */
static void sum_chunk(real *partial, const WeightGradientPlan *plan, const real *dy, const real *x,
                      int n0, int n1, int begin, int end) {
    const Conv *conv = &plan->conv;
    ptrdiff_t pixels = (ptrdiff_t)plan->oh * plan->ow;
    ptrdiff_t bytes = (plan->image + pixels * plan->line) * (ptrdiff_t)sizeof(real);
    int max = GROUP_BYTES > bytes ? min((int)(GROUP_BYTES / bytes), n1 - n0) : 1;
    bool whole = conv->o == plan->line;                  /* dy can be read where it is */
    size_t x_count = (size_t)(max * plan->image + ROWS); /* the last tile reads past the end */
    size_t dy_count = whole ? 0 : (size_t)(max * pixels * plan->line);
    real *x_copy = scratch(SCRATCH_IMAGE, x_count);
    real *dy_copy = scratch(SCRATCH_IMAGE_GRADIENT, dy_count);
    memset(x_copy, 0, x_count * sizeof(real));
    if (dy_count) memset(dy_copy, 0, dy_count * sizeof(real));
    for (int n = n0; n < n1; n += max) {
        Group group = {.x = x_copy,
                       .dy = whole ? dy + n * pixels * conv->o : dy_copy,
                       .images = min(max, n1 - n),
                       .dy_line = plan->line,
                       .first = n == n0};
        copy_images(x_copy, plan, x, n, group.images);
        if (!whole) copy_gradient(dy_copy, plan, dy + n * pixels * conv->o, group.images * pixels);
        if (plan->vectors == 1)
            sum_group(partial, plan, &group, 1, begin, end);
        else
            sum_group(partial, plan, &group, 2, begin, end);
    }
}

/* dw[o][k] = sum over chunks of partial[chunk][k][o], for LANES of k and of o at a time. */
static void reduce_block(real *dw, const WeightGradientPlan *plan, const real *partials, int k,
                         int o, bool add) {
    int taps = plan->conv.kernel * plan->taps_row;
    real sums[LANES * LANES] = {0}, turned[LANES * LANES];
    int rows = min(LANES, taps - k), outputs = min(LANES, plan->conv.o - o);
    for (int i = 0; i < rows; i++) {
        const real *from = partials + (ptrdiff_t)(k + i) * plan->line + o;
        vec sum = vec_load(from);
        for (int chunk = 1; chunk < plan->chunks; chunk++)
            sum += vec_load(from + chunk * plan->partial);
        vec_store(sums + i * LANES, sum);
    }
    transpose_tile(turned, LANES, sums, LANES, rows, LANES);
    for (int j = 0; j < outputs; j++)
        for (int i = 0; i < rows; i++) {
            real *to = dw + (ptrdiff_t)(o + j) * taps + k + i;
            *to = turned[j * LANES + i] + (add ? *to : 0);
        }
}

void fast_conv2d_weight_gradient(real *dw, const real *dy, const real *x, Conv conv, bool add) {
    if (conv2d_is_product(&conv)) {
        fast_linear_weight_gradient(dw, dy, x, conv.n * conv.h * conv.w, conv.c, conv.o, add);
        return;
    }
    WeightGradientPlan plan = plan_of(conv);
    real *partials = scratch(SCRATCH_PARTIAL, (size_t)plan.chunks * (size_t)plan.partial);
    int taps = conv.kernel * plan.taps_row, tiles = plan.line / plan.width;
    double work = (double)conv.n * plan.oh * plan.ow * taps * conv.o;
#pragma omp parallel if (work > WORTH_THREADS_CONV2D)
    {
#pragma omp for schedule(dynamic)
        for (int job = 0; job < plan.chunks * plan.pieces; job++) {
            int64_t chunk = job / plan.pieces, piece = job % plan.pieces;
            sum_chunk(partials + chunk * plan.partial, &plan, dy, x,
                      (int)(conv.n * chunk / plan.chunks),
                      (int)(conv.n * (chunk + 1) / plan.chunks),
                      (int)(tiles * piece / plan.pieces) * plan.width,
                      (int)(tiles * (piece + 1) / plan.pieces) * plan.width);
        }
#pragma omp for schedule(static)
        for (int k = 0; k < taps; k += LANES)
            for (int o = 0; o < conv.o; o += LANES) reduce_block(dw, &plan, partials, k, o, add);
    }
}
