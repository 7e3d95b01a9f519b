#include "correlate.h"

#include "tile.h"

enum {
    TILE = TILE_VECTORS * 2 / 3, /* accumulators: a power of two, to fit images of 4, 8, 16 */
    LINE = 64 / sizeof(real),
};

Planes planes_of(int rows, int columns, int low, int phases, int channels) {
    Planes planes = {.low = low, .phases = phases};
    planes.segment = (columns + phases - 1) / phases;
    planes.row = planes.segment * phases;
    /* Room for the vectors that planes_fill stores past the end.  An odd number of cache lines
     * keeps the channels of a pixel from falling into the same set of the cache. */
    ptrdiff_t lines = (rows * planes.row + LANES + LINE - 1) / LINE;
    planes.plane = (lines | 1) * LINE;
    planes.image = channels * planes.plane;
    return planes;
}

size_t planes_slack(const Planes *planes) {
    return (size_t)(4 * planes->row * planes->phases) + TILE; /* tiles have at most four rows */
}

/* What transpose_tile stores past the end of a row is zero, or is stored again with the rows
 * below. */
void planes_fill(real *to, const Planes *planes, const real *x, int h, int w, int c) {
    int phases = planes->phases;
    for (int y = 0; y < h; y++) {
        prefetch_ahead(x + (ptrdiff_t)y * w * c, (ptrdiff_t)w * c);
        for (int phase = 0; phase < phases; phase++) {
            /* the first column of the image in this phase */
            int first = ((phase - planes->low) % phases + phases) % phases;
            const real *from = x + ((ptrdiff_t)y * w + first) * c;
            real *row = to + (y + planes->low) * planes->row + phase * planes->segment +
                        (first + planes->low) / phases;
            int count = (w - first + phases - 1) / phases;
            for (int k = 0; k < c; k += LANES)
                for (int j = 0; j < count; j += LANES)
                    transpose_tile(row + k * planes->plane + j, planes->plane,
                                   from + (ptrdiff_t)j * phases * c + k, (ptrdiff_t)phases * c,
                                   min(LANES, count - j), min(LANES, c - k));
        }
    }
}

/* Computes a tile of runs x run pixels at row i, column j, and `vectors` vectors of outputs. */
INLINE void correlate_tile(const CorrelationPass *pass, const int runs, const int run,
                           const int vectors, const real *image, const real *w, real *out, int i,
                           int j, int columns) {
    const Planes *planes = &pass->planes;
    const Taps *taps = &pass->taps;
    ptrdiff_t i_step = planes->row * planes->phases,
              panel = (ptrdiff_t)vectors * LANES * pass->channels;
    const real *corner = image + pass->origin + i * i_step + j;
    vec acc[TILE];
    tile_zero(acc, runs * run * vectors);
    for (int u = 0; u < taps->rows; u++, corner += planes->row) {
        const real *w_row = w + (taps->u0 + u * taps->step) * pass->kernel * panel;
        for (int phase = 0; phase < planes->phases; phase++) {
            const real *x = corner + phase * planes->segment;
            for (int v = phase; v < taps->columns; v += planes->phases, x++)
                tile_multiply(acc, runs, run, vectors, x, i_step, planes->plane,
                              w_row + (taps->v0 + v * taps->step) * panel, vectors * LANES,
                              pass->channels);
        }
    }
    TileTarget to = {.at = out + i * pass->out_row + j * pass->out_column,
                     .step = pass->out_column,
                     .run_step = pass->out_row,
                     .runs = min(runs, pass->out_h - i),
                     .run = min(run, pass->out_w - j),
                     .columns = columns,
                     .add = pass->add};
    tile_store(&to, acc, runs, run, vectors);
}

INLINE void correlate_shape(const CorrelationPass *pass, const int runs, const int run,
                            const int vectors, const real *image, const real *w, real *out,
                            int columns) {
    for (int i = 0; i < pass->out_h; i += runs)
        for (int j = 0; j < pass->out_w; j += run)
            correlate_tile(pass, runs, run, vectors, image, w, out, i, j, columns);
}

static int tiles(int h, int w, int runs, int run) {
    return ((h + runs - 1) / runs) * ((w + run - 1) / run);
}

/* Computes one image and one tile of outputs, with the shape of tile that fits the image best. */
INLINE void correlate_image(const CorrelationPass *pass, const int vectors, const real *image,
                            const real *w, real *out, int columns) {
    const int wide = TILE / vectors;
    int h = pass->out_h, width = pass->out_w;
    int one = tiles(h, width, 1, wide), two = tiles(h, width, 2, wide / 2),
        four = tiles(h, width, 4, wide / 4);
    if (one <= two && one <= four)
        correlate_shape(pass, 1, wide, vectors, image, w, out, columns);
    else if (two <= four)
        correlate_shape(pass, 2, wide / 2, vectors, image, w, out, columns);
    else
        correlate_shape(pass, 4, wide / 4, vectors, image, w, out, columns);
}

static int vectors_for(int outputs) { return outputs <= LANES ? 1 : 2; }

int correlate_width(int outputs) { return vectors_for(outputs) * LANES; }

void correlate(const CorrelationPass *pass, const real *planes, real *out, ptrdiff_t out_image,
               int images) {
    int vectors = vectors_for(pass->outputs), width = correlate_width(pass->outputs);
    ptrdiff_t step = (ptrdiff_t)pass->kernel * pass->kernel * pass->channels * width;
    const real *w = pass->weights;
    for (int o = 0; o < pass->outputs; o += width, w += step)
        for (int n = 0; n < images; n++) {
            const real *image = planes + n * pass->planes.image;
            real *to = out + n * out_image + pass->out_first + o;
            int columns = min(width, pass->outputs - o);
            if (vectors == 1)
                correlate_image(pass, 1, image, w, to, columns);
            else
                correlate_image(pass, 2, image, w, to, columns);
        }
}
