/* Correlation of zero-padded images with some taps of a kernel, of which the forward pass and the
 * input gradient of conv2d are made. */
#pragma once

#include "../ops/ops.h"

/* How an image is stored for the correlation: channel c, row y, column x (both counted with
 * padding) is at c * plane + y * row + x % phases * segment + x / phases.  With phases = the
 * stride, pixels that one tap reads are neighbours. */
typedef struct {
    int low;    /* rows of zeros above the image, and columns on its left */
    int phases; /* columns x with the same x mod phases lie together */
    ptrdiff_t segment, row, plane, image;
} Planes;

/* Some taps of the kernel, in the order of the planes: (u, v) stands for the kernel's tap
 * (u0 + u * step, v0 + v * step). */
typedef struct {
    int rows, columns, u0, v0, step;
} Taps;

/* One pass: out(i, j)[o] (+)= sum over taps (u, v) and channels of plane c at (i, j) + (u, v),
 * times w.  Output pixel (i, j) lies at out_first + i * out_row + j * out_column of its image. */
typedef struct {
    Planes planes;
    ptrdiff_t origin; /* in the planes, of output pixel (0, 0), tap (0, 0) */
    Taps taps;
    int channels, outputs;
    int kernel;
    const real *weights; /* [tiles of outputs][kernel][kernel][channels][outputs of the tile] */
    int out_h, out_w;
    ptrdiff_t out_first, out_row, out_column;
    bool add;
} CorrelationPass;

/* Planes of rows x columns pixels, padding included. */
Planes planes_of(int rows, int columns, int low, int phases, int channels);

/* Copies x[h][w][c] into planes whose padding the caller has set to zero. */
void planes_fill(real *to, const Planes *planes, const real *x, int h, int w, int c);

/* Returns the outputs in a tile; weights are packed, zero-padded, in panels of this many. */
int correlate_width(int outputs);

/* Computes all outputs of `images` images.  Their planes must be followed by planes_slack numbers,
 * because the last tile may reach beyond its image; it ignores what it reads there.  Images of the
 * output are out_image numbers apart. */
void correlate(const CorrelationPass *pass, const real *planes, real *out, ptrdiff_t out_image,
               int images);
size_t planes_slack(const Planes *planes);
