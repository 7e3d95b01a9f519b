/* The sizes of a convolution. */
#ifndef REF_OPS_CONV2D_H
#define REF_OPS_CONV2D_H

/* From x[n][h][w][c] to y[n][oh][ow][o], with weights w[o][kernel][kernel][c], zero padding and no
 * bias. */
typedef struct {
    int n, h, w, c, o, kernel, stride, pad;
} Conv;

#endif
