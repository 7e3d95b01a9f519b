/* The launchers: every op of ref/ops/ops.h on the device, a .cu or more per op in ops/.
 *
 * The mathematics, shapes, layouts and saved numbers are those of ref/ops/ops.h and are
 * not repeated here.  Arrays are device memory.  `void *` arrays hold the run's value type: float,
 * or bf16 under PRECISION_BF16; `float *` arrays are float always (statistics, log-sum-exp,
 * gradients of parameters, running statistics).  Sums are in float or better.  Launchers only put
 * work on run->stream: they allocate nothing, wait for nothing, and may be captured in a graph.
 * Outputs must not alias inputs unless a comment allows it.  Results have the same bits in every
 * run. */
#pragma once

#include "../ref/model.h"
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

/* Shared memory that a block may have on every device of compute capability 8.0 or more (8.6
 * and 8.9 have the least), and what of it is left for sizes that a shape decides, next to what such
 * kernels declare. */
enum { SHARED_MAX = 99 << 10, DYNAMIC_MAX = SHARED_MAX - 256 };

/* The arrays and options of one call, as NodeIO of ref/node.h: for n samples; what an op does not
 * have, or what is not wanted, is NULL. */
typedef struct {
    int n;
    const void *x, *skip; /* norm: skip is added to x first, their sum goes to `sum` */
    const int *tokens;
    void *y, *sum; /* sum is rounded to the value type, and may alias x or skip */
    /* Of a linear layer: numbers from one row of y and dy to the next, so that rows of logits are
     * aligned for any number of classes.  0: its outputs.  The gaps between rows are neither read
     * nor written. */
    int y_stride;
    /* Linear: a gelu runs with it.  Forward, the one after it: y = gelu(x w + b), and
     * saved = x w + b unless NULL.  Input gradient, the one before it: dx = (dy w) gelu'(saved). */
    bool gelu;
    void *saved;
    float *aux; /* node_aux_count numbers */
    const void *weight, *bias;
    float *running_mean, *running_var;
    bool use_running, hold_running, sums_ready;
    const void *dy, *residual; /* norm: dx = residual + gradient, unless it is NULL */
    void *dx, *dskip;
    bool add_dx, add_dskip;
    float *dweight, *dbias;
    bool add_dweight, add_dbias;
} DeviceIO;

/* A node of a model with its arrays, and the sizes that follow from it. */
typedef struct {
    const Run *run;
    const Node *node;
    const DeviceIO *io;
    int n, positions, rows; /* samples; positions in each; rows = n * positions */
    int c, o;               /* numbers in a row of x, and of y */
    int y_stride;
    size_t count; /* numbers in x: rows * c */
    Conv conv;    /* conv2d */
} Call;

/* An input gradient is dx and dskip, a weight gradient dweight and dbias.  A workspace function,
 * for which call->io is NULL, returns the maximum of the bytes that launchers of the op use. */
typedef void Launcher(const Call *call);
typedef size_t Workspace(const Call *call);

/* linear.c (products: matmul.h) */
Launcher cuda_linear_forward, cuda_linear_input_gradient, cuda_linear_weight_gradient;
Workspace cuda_linear_workspace;

/* conv2d.cu, conv2d_weight.cu */
Launcher cuda_conv2d_forward, cuda_conv2d_input_gradient, cuda_conv2d_weight_gradient;
Workspace cuda_conv2d_workspace;

/* batchnorm.cu, batchnorm_gradient.cu.  aux[4][c] is mean, the reciprocal of the deviation, and the
 * sums over rows of dy (with relu, where y > 0) and of dy times x normalised.  The sums are the
 * gradients of shift and scale too: the input gradient also stores these where dx is wanted. */
Launcher cuda_batchnorm_forward, cuda_batchnorm_input_gradient, cuda_batchnorm_weight_gradient;
Workspace cuda_batchnorm_workspace;

/* norm.cu, norm_gradient.cu: layer norm, whose aux[2][rows] is each row's mean and r, the
 * reciprocal of its standard deviation; and root mean square norm, whose aux[rows] is r, the
 * reciprocal of the root mean square, and which has no shift.  The input gradient computes those of
 * dx, dweight and dbias that are not NULL in one pass over dy and x; the bits of each do not depend
 * on which others are wanted. */
Launcher cuda_norm_forward, cuda_norm_input_gradient, cuda_norm_weight_gradient;
Workspace cuda_norm_workspace;

/* qknorm.cu: weight and bias are the scales of queries and keys, and dweight and dbias their
 * gradients; aux is the reciprocal root mean square of each vector. */
Launcher cuda_qknorm_forward, cuda_qknorm_input_gradient, cuda_qknorm_weight_gradient;
Workspace cuda_qknorm_workspace;

/* attention*.cu, rope.cu.  aux is the log-sum-exp of each row of scores. */
Launcher cuda_attention_forward, cuda_attention_input_gradient;
Workspace cuda_attention_workspace;
/* The numbers of the largest head: version 1, which takes the large ones, keeps two rows of floats
 * in shared memory. */
enum { ATTENTION_MAX_HEAD = DYNAMIC_MAX / (2 * (int)sizeof(float)) };
/* Returns the number of versions that differ for heads of d numbers on this device. */
int cuda_attention_versions(Precision precision, int d);

/* activations.cu.  They read run, io and count alone, or rows and o (SwiGLU).  gelu: y may alias x,
 * and dx dy. */
Launcher cuda_relu_forward, cuda_relu_input_gradient, cuda_gelu_forward, cuda_gelu_input_gradient;
Launcher cuda_swiglu_forward, cuda_swiglu_input_gradient, cuda_add_forward, cuda_add_input_gradient;

/* avgpool.cu */
Launcher cuda_avgpool_forward, cuda_avgpool_input_gradient;

/* embedding.cu: weight has a row for each token, bias one for each position, or is NULL. */
Launcher cuda_embedding_forward, cuda_embedding_weight_gradient;
Workspace cuda_embedding_workspace;

/* ---- bias.cu ---- */

/* db[c] = the sums of dy's columns, whose n rows lie `stride` >= c numbers apart. */
void cuda_bias_gradient(const Run *run, float *db, const void *dy, int n, int c, int stride,
                        bool add);
size_t cuda_bias_gradient_workspace(int n, int c);

/* ---- cross_entropy.cu ---- */

/* Computes loss[rows] and correct[rows].  Unless `scale` is NULL, also overwrites the logits with
 * their gradient, *scale (softmax - onehot).  Rows start `stride` >= classes numbers apart; the
 * gradient is 0 in the gaps between them.  Rows that are not aligned to 16 bytes take version 1. */
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
/* Copies n rows of `width` numbers: to[i] = from[slot[i]] with `gather`, else to[slot[i]] =
 * from[i]. Rows with a negative slot are skipped. */
void cuda_move_rows(const Run *run, void *to, const void *from, const int *slot, int n,
                    size_t width, bool gather);

#ifdef __cplusplus
}
#endif
