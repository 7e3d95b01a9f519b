/* Correlation of zero-padded images with some taps of a kernel: what forward and input gradient of
 * conv2d are made of. */
#ifndef REF_FAST_CORRELATE_H
#define REF_FAST_CORRELATE_H

#include "fast.h"

/* One tap at every pixel: a matrix product over pixels, which needs no correlation. */
static inline bool conv2d_is_product(const Conv *conv) {
    return conv->kernel == 1 && conv->stride == 1 && conv->pad == 0;
}

/* How an image lies in the scratch: channel c, row y, column x (both counted with padding) at
 * c * plane + y * row + x % phases * segment + x / phases.  With phases = the stride, the pixels
 * that a tap sees are neighbours. */
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
 * times w. Output pixel (i, j) lies at out_first + i * out_row + j * out_column of its image. */
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

/* Copies x[h][w][c] to its place between the zeros, which must be there and stay as they are. */
void planes_fill(real *to, const Planes *planes, const real *x, int h, int w, int c);

/* Outputs in a tile: the weights are packed, zero-padded, in panels of so many. */
int correlate_width(int outputs);

/* All outputs of `images` images, whose planes are filled and followed by planes_slack numbers: the
 * last tile may reach beyond its image, and reads what is there in vain.  Images of the output
 * are out_image numbers apart. */
void correlate(const CorrelationPass *pass, const real *planes, real *out, ptrdiff_t out_image,
               int images);
size_t planes_slack(const Planes *planes);

#endif
