/* Two-dimensional cross-correlation with zero padding (LeCun et al. 1989).  With stride s, padding
 * p, and (u, v) running over the kernel:
 *
 *   y[n][i][j][o] = sum over u, v, c of x[n][i s + u - p][j s + v - p][c] w[o][u][v][c]
 *
 * where x is 0 outside of the image.  Each gradient collects the same products in another way. */
#include "plain.h"

/* Returns the channels of a pixel of images[n][h][w][c], or NULL if it lies in the padding. */
static const real *pixel(const real *images, ptrdiff_t image, int row, int column, int h, int w,
                         int c) {
    if (row < 0 || row >= h || column < 0 || column >= w) return NULL;
    return images + ((image * h + row) * w + column) * c;
}

/* Returns the weights w[output][row][column][c] of all channels c. */
static const real *tap(const real *weights, Conv conv, ptrdiff_t output, int row, int column) {
    return weights + ((output * conv.kernel + row) * conv.kernel + column) * conv.c;
}

void conv2d_forward(real *y, const real *x, const real *w, Conv conv) {
    const int oh = conv2d_out(conv.h, &conv);
    const int ow = conv2d_out(conv.w, &conv);
    for (int n = 0; n < conv.n; n++)
        for (int i = 0; i < oh; i++)
            for (int j = 0; j < ow; j++)
                for (int o = 0; o < conv.o; o++) {
                    double sum = 0;
                    for (int u = 0; u < conv.kernel; u++)
                        for (int v = 0; v < conv.kernel; v++) {
                            const real *in =
                                pixel(x, n, i * conv.stride + u - conv.pad,
                                      j * conv.stride + v - conv.pad, conv.h, conv.w, conv.c);
                            const real *weight = tap(w, conv, o, u, v);
                            if (!in) continue;
                            for (int c = 0; c < conv.c; c++) sum += (double)in[c] * weight[c];
                        }
                    y[(((ptrdiff_t)n * oh + i) * ow + j) * conv.o + o] = (real)sum;
                }
}

/* Returns the output position i for which i s + offset - p is the input position `at`, or -1 if
 * there is none. */
static int output_of(int at, int offset, Conv conv) {
    const int moved = at + conv.pad - offset;
    return moved >= 0 && moved % conv.stride == 0 ? moved / conv.stride : -1;
}

/* dx[n][i][j][c] = sum over u, v, o of dy[n][i'][j'][o] w[o][u][v][c], where i' s + u - p = i and
 * j' s + v - p = j; terms without such an output (i', j') are 0. */
void conv2d_input_gradient(real *dx, const real *dy, const real *w, Conv conv, bool add) {
    const int oh = conv2d_out(conv.h, &conv);
    const int ow = conv2d_out(conv.w, &conv);
    for (int n = 0; n < conv.n; n++)
        for (int i = 0; i < conv.h; i++)
            for (int j = 0; j < conv.w; j++)
                for (int c = 0; c < conv.c; c++) {
                    double sum = 0;
                    for (int u = 0; u < conv.kernel; u++)
                        for (int v = 0; v < conv.kernel; v++) {
                            const real *out = pixel(dy, n, output_of(i, u, conv),
                                                    output_of(j, v, conv), oh, ow, conv.o);
                            if (!out) continue;
                            for (int o = 0; o < conv.o; o++)
                                sum += (double)out[o] * tap(w, conv, o, u, v)[c];
                        }
                    set_or_add(&dx[(((ptrdiff_t)n * conv.h + i) * conv.w + j) * conv.c + c], sum,
                               add);
                }
}

/* dw[o][u][v][c] = sum over n, i, j of dy[n][i][j][o] x[n][i s + u - p][j s + v - p][c] */
void conv2d_weight_gradient(real *dw, const real *dy, const real *x, Conv conv, bool add) {
    const int oh = conv2d_out(conv.h, &conv);
    const int ow = conv2d_out(conv.w, &conv);
    for (int o = 0; o < conv.o; o++)
        for (int u = 0; u < conv.kernel; u++)
            for (int v = 0; v < conv.kernel; v++)
                for (int c = 0; c < conv.c; c++) {
                    double sum = 0;
                    for (int n = 0; n < conv.n; n++)
                        for (int i = 0; i < oh; i++)
                            for (int j = 0; j < ow; j++) {
                                const real *in =
                                    pixel(x, n, i * conv.stride + u - conv.pad,
                                          j * conv.stride + v - conv.pad, conv.h, conv.w, conv.c);
                                if (!in) continue;
                                sum += (double)in[c] * pixel(dy, n, i, j, oh, ow, conv.o)[o];
                            }
                    set_or_add(
                        &dw[(((ptrdiff_t)o * conv.kernel + u) * conv.kernel + v) * conv.c + c], sum,
                        add);
                }
}
