/* The launchers: every op of ref/ops/ops.h on the device, one .cu per op in ops/.
 *
 * The mathematics, shapes, layouts and saved numbers are those of ref/ops/ops.h and are
 * not repeated here.  Arrays are device memory.  `void *` arrays hold the run's value type: float,
 * or bf16 under PRECISION_BF16; `float *` arrays are float always (statistics, log-sum-exp,
 * gradients of parameters, running statistics).  Sums are in float or better.  Launchers only put
 * work on run->stream: they allocate nothing, wait for nothing, and may be captured in a graph.
 * Outputs must not alias inputs unless a comment allows it.  Results have the same bits in every
 * run. */
#pragma once

#include "../ref/ops/settings.h"
#include "../ref/real.h"
#include "device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How a launcher runs its op. */
typedef struct {
    Stream stream;
    Precision precision; /* value type, and how products are rounded */
    int version;         /* of the kernel: 0 the best for the shape, 1 the plain one, 2 ... */
    void *workspace; /* device memory, at least what the op's _workspace function says, aligned */
                     /* to 256 bytes; its contents are not kept between calls */
} Run;

static inline size_t value_size(Precision precision) {
    return precision == PRECISION_BF16 ? 2 : sizeof(float);
}

/* ---- linear.c (products: matmul.h) ---- */

/* Rows of y and dy start `stride` >= o numbers apart, so that rows of logits are aligned for any
 * number of classes.  The gaps between rows are neither read nor written. */
void cuda_linear_forward(const Run *run, void *y, const void *x, const void *w, const void *b,
                         int n, int c, int o, int stride);
/* y = gelu(x w + b), and saved = x w + b unless NULL. */
void cuda_linear_gelu_forward(const Run *run, void *y, void *saved, const void *x, const void *w,
                              const void *b, int n, int c, int o);
void cuda_linear_input_gradient(const Run *run, void *dx, const void *dy, const void *w, int n,
                                int c, int o, int stride, bool add);
/* The same through a gelu before this layer: dx = (dy w) gelu'(saved). */
void cuda_linear_gelu_input_gradient(const Run *run, void *dx, const void *dy, const void *w,
                                     const void *saved, int n, int c, int o);
/* dw and db (either may be NULL). */
void cuda_linear_weight_gradient(const Run *run, float *dw, float *db, const void *dy,
                                 const void *x, int n, int c, int o, int stride, bool add_dw,
                                 bool add_db);

/* ---- bias.cu ---- */

/* db[c] = the sums of dy's columns, whose n rows lie `stride` >= c numbers apart. */
void cuda_bias_gradient(const Run *run, float *db, const void *dy, int n, int c, int stride,
                        bool add);
size_t cuda_bias_gradient_workspace(int n, int c);

/* ---- conv2d.cu, conv2d_weight.cu ---- */

void cuda_conv2d_forward(const Run *run, void *y, const void *x, const void *w, Conv conv);
void cuda_conv2d_input_gradient(const Run *run, void *dx, const void *dy, const void *w, Conv conv,
                                bool add);
void cuda_conv2d_weight_gradient(const Run *run, float *dw, const void *dy, const void *x,
                                 Conv conv, bool add);
size_t cuda_conv2d_workspace(Conv conv); /* enough for all three */

/* ---- batchnorm.cu ---- */

void cuda_batchnorm_forward(const Run *run, void *y, float *mean, float *rstd, float *running_mean,
                            float *running_var, const void *x, const void *skip, const void *g,
                            const void *b, int n, int c, bool relu, bool use_running,
                            double momentum);
/* sums[2][c] = the sums over rows of dy (with relu, where y > 0) and of dy times x normalised. They
 * are the gradients of shift and scale too, and are also stored in, or added to, db and dg unless
 * these are NULL. */
void cuda_batchnorm_sums(const Run *run, float *sums, float *dg, float *db, const void *dy,
                         const void *x, const void *y, const float *mean, const float *rstd, int n,
                         int c, bool relu, bool add_dg, bool add_db);
void cuda_batchnorm_input_gradient(const Run *run, void *dx, void *dskip, const void *dy,
                                   const void *x, const void *y, const void *g, const float *mean,
                                   const float *rstd, const float *sums, int n, int c, bool relu,
                                   bool use_running, bool add_dx, bool add_dskip);
size_t cuda_batchnorm_workspace(int n, int c);

/* ---- norm.cu, norm_gradient.cu: layer norm and root mean square norm ---- */

/* n rows of c numbers, and what the forward pass saves of each row: its mean, and r, the reciprocal
 * of its standard deviation.  mean is NULL for the root mean square norm, which has no shift b
 * either; r is then the reciprocal of the root mean square. */
typedef struct {
    int n, c;
    float *mean, *r;
} Norm;

/* With skip (NULL: none) the residual is added first: sum = x + skip, rounded to the value type,
 * and y = norm(sum).  sum may alias x or skip; NULL without skip. */
void cuda_norm_forward(const Run *run, void *y, void *sum, Norm norm, const void *x,
                       const void *skip, const void *g, const void *b, double eps);
/* Computes those of dx, dg and db that are not NULL in one pass over dy and x; the bits of each do
 * not depend on which others are wanted.  dx = addend + gradient, where addend is NULL for zero, dx
 * itself to accumulate, or another array, the gradient of the residual path. */
void cuda_norm_gradient(const Run *run, void *dx, const void *addend, float *dg, float *db,
                        const void *dy, const void *x, const void *g, Norm norm, bool add_dg,
                        bool add_db);
size_t cuda_norm_workspace(int n, int c);

/* ---- attention*.cu, rope.cu ---- */

void cuda_attention_forward(const Run *run, void *y, float *lse, const void *qkv, int n, int t,
                            Attention attention);
void cuda_attention_input_gradient(const Run *run, void *dqkv, const void *dy, const void *qkv,
                                   const void *y, const float *lse, int n, int t,
                                   Attention attention, bool add);
size_t cuda_attention_workspace(Precision precision, int n, int t, Attention attention);
/* Returns the number of versions that differ for heads of d numbers on this device. */
int cuda_attention_versions(Precision precision, int d);

/* ---- activations.cu ---- */

void cuda_relu_forward(const Run *run, void *y, const void *x, size_t count);
void cuda_relu_input_gradient(const Run *run, void *dx, const void *dy, const void *y, size_t count,
                              bool add);
void cuda_gelu_forward(const Run *run, void *y, const void *x, size_t count); /* y may alias x */
void cuda_gelu_input_gradient(const Run *run, void *dx, const void *dy, const void *x, size_t count,
                              bool add); /* dx may alias dy */
void cuda_swiglu_forward(const Run *run, void *y, const void *x, int n, int f);
void cuda_swiglu_input_gradient(const Run *run, void *dx, const void *dy, const void *x, int n,
                                int f, bool add);
void cuda_add_forward(const Run *run, void *y, const void *a, const void *b, size_t count);
/* dx = dy, or dx += dy. */
void cuda_add_input_gradient(const Run *run, void *dx, const void *dy, size_t count, bool add);

/* ---- avgpool.cu ---- */

void cuda_avgpool_forward(const Run *run, void *y, const void *x, int n, int s, int c);
void cuda_avgpool_input_gradient(const Run *run, void *dx, const void *dy, int n, int s, int c,
                                 bool add);

/* ---- embedding.cu ---- */

void cuda_embedding_forward(const Run *run, void *y, const int *tokens, const void *token,
                            const void *position, int n, int t, int c);
void cuda_embedding_weight_gradient(const Run *run, float *dtoken, const void *dy,
                                    const int *tokens, int n, int t, int c, int vocabulary,
                                    bool add);
void cuda_embedding_position_gradient(const Run *run, float *dposition, const void *dy, int n,
                                      int t, int c, bool add);
size_t cuda_embedding_workspace(int n, int t, int vocabulary);

/* ---- cross_entropy.cu ---- */

/* Computes loss[rows] and correct[rows].  Unless `scale` is NULL, also overwrites the logits with
 * their gradient, *scale (softmax - onehot).  Rows start `stride` >= classes numbers apart; the
 * gradient is 0 in the gaps between them. */
void cuda_cross_entropy(const Run *run, float *loss, unsigned char *correct, void *logits,
                        const int *targets, const float *scale, int rows, int classes, int stride);

/* What the host reads back of a micro-batch. */
typedef struct {
    double loss_sum;
    unsigned long long count, correct;
} LossSums;
/* Overwrites *sums (device memory), or adds to it. */
void cuda_loss_sums(const Run *run, LossSums *sums, const float *loss, const unsigned char *correct,
                    const int *targets, int rows, bool add);

/* ---- images.cu ---- */

/* A data set's images on the device, as ImageBytes of ref/dataset.h but without gaps. */
typedef struct {
    const unsigned char *planes; /* [samples][c][h][w] */
    const float *normal;         /* [c][256] */
    int h, w, c, pad;
    bool augmented;
    uint64_t seed;
} DeviceImages;

/* y[n][h][w][c] = the images of samples ids[n], with the same bits as the data set's fetch. */
void cuda_make_images(const Run *run, void *y, const int *ids, int n, DeviceImages images,
                      uint64_t position);

/* ---- convert.cu ---- */

/* y = x rounded to the value type (nearest even). */
void cuda_from_float(const Run *run, void *y, const float *x, size_t count);
/* Copy n rows of `width` numbers from the prefix cache, y[i] = slots[slot[i]], or to it,
 * slots[slot[i]] = x[i].  Rows with a negative slot are skipped. */
void cuda_gather_rows(const Run *run, void *y, const void *slots, const int *slot, int n,
                      size_t width);
void cuda_scatter_rows(const Run *run, void *slots, const void *x, const int *slot, int n,
                       size_t width);

#ifdef __cplusplus
}
#endif
