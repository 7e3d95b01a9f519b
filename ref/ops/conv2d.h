/* What a convolution is like, for every device. */
#ifndef REF_OPS_CONV2D_H
#define REF_OPS_CONV2D_H

/* x[n][h][w][c] -> y[n][oh][ow][o], weights [o][kernel][kernel][c], zero padding, no bias. */
typedef struct {
    int n, h, w, c, o, kernel, stride, pad;
} Conv;

#endif
