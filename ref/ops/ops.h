/* The ops: one mathematical operation each with its gradients, in a file per op or kind of op.
 *
 * The functions of this folder are the definition: plain loops under their equations.  Each NAME
 * has a counterpart fast_NAME in ref/fast, with vectors, cache blocks and threads, which has the
 * same contract and is tested against it.
 *
 * Shared conventions.  Arrays are dense and row-major.  Arguments are outputs, then inputs, then
 * sizes, and all sizes are >= 1.  Images are [n][h][w][c].  Forward functions overwrite their
 * outputs.  Gradient functions overwrite dx (or dw), or with `add` accumulate into it.  Outputs
 * must not alias inputs unless the comment says so.  No function fails, since shapes are checked
 * when the model is built; where a plain attention finds no memory, the process ends.  Results have
 * the same bits on any number of threads.  A NaN in an input shows in the outputs that depend on
 * it. */
#pragma once

#include "../base/real.h"
#include "settings.h"

/* What a node of a model computes; in this order below.  The loss, at the end, is of no node.  A
 * new one becomes the last, so that no table compiles without its row. */
typedef enum {
    OP_LINEAR,
    OP_CONV2D,
    OP_BATCHNORM,
    OP_LAYERNORM,
    OP_RMSNORM,
    OP_QKNORM,
    OP_ATTENTION,
    OP_RELU,
    OP_GELU,
    OP_SWIGLU,
    OP_ADD,
    OP_AVGPOOL,
    OP_EMBEDDING,
    OP_KINDS
} OpKind;

/* ---- linear.c: y[n][o] = sum_c x[n][c] w[o][c] + b[o] ---- */

/* b may be NULL. */
void linear_forward(real *y, const real *x, const real *w, const real *b, int n, int c, int o);
/* dx[n][c] = sum_o dy[n][o] w[o][c] */
void linear_input_gradient(real *dx, const real *dy, const real *w, int n, int c, int o, bool add);
/* dw[o][c] = sum_n dy[n][o] x[n][c] */
void linear_weight_gradient(real *dw, const real *dy, const real *x, int n, int c, int o, bool add);
/* db[c] = sum_n dy[n][c], the gradient of any bias or shift that is added to every row. */
void bias_gradient(real *db, const real *dy, int n, int c, bool add);

extern __typeof__(linear_forward) fast_linear_forward;
extern __typeof__(linear_input_gradient) fast_linear_input_gradient;
extern __typeof__(linear_weight_gradient) fast_linear_weight_gradient;
extern __typeof__(bias_gradient) fast_bias_gradient;

/* ---- conv2d.c: cross-correlation, LeCun et al. 1989 ----
 *
 * With kernel k, stride s and padding p:  y[n][i][j][o] = sum over u, v < k and c of
 * x[n][i s + u - p][j s + v - p][c] w[o][u][v][c], where x is 0 outside of the image. */

void conv2d_forward(real *y, const real *x, const real *w, Conv conv);
void conv2d_input_gradient(real *dx, const real *dy, const real *w, Conv conv, bool add);
void conv2d_weight_gradient(real *dw, const real *dy, const real *x, Conv conv, bool add);

extern __typeof__(conv2d_forward) fast_conv2d_forward;
extern __typeof__(conv2d_input_gradient) fast_conv2d_input_gradient;
extern __typeof__(conv2d_weight_gradient) fast_conv2d_weight_gradient;

/* ---- batchnorm.c: Ioffe & Szegedy 2015, over rows[n] of c channels ---- */

/* y = g (x - mean) rstd + b, then + skip unless that is NULL, then relu if `relu`.  Overwrites
 * mean[c] and rstd[c].  With use_running these are the running statistics, which do not change.
 * Otherwise they are those of the batch, with the variance over n, and the running statistics move
 * towards them by the fraction `momentum` (0: not at all); the running variance is over n - 1, or
 * over n if n == 1. */
void batchnorm_forward(real *y, real *mean, real *rstd, real *running_mean, real *running_var,
                       const real *x, const real *skip, const real *g, const real *b, int n, int c,
                       bool relu, bool use_running, double momentum);
/* sums[0][c] = sum_n dz and sums[1][c] = sum_n dz xhat, where xhat = (x - mean) rstd, and dz is dy,
 * or with `relu` 0 where y <= 0.  These are the gradients of b and g, and with the batch's
 * statistics the input gradient needs them as well. */
void batchnorm_sums(real *sums, const real *dy, const real *x, const real *y, const real *mean,
                    const real *rstd, int n, int c, bool relu);
/* With the batch's statistics dx = g rstd (dz - sums[0]/n - xhat sums[1]/n); with running ones
 * dx = g rstd dz, and x and sums may be NULL.  dskip = dz.  y may be NULL unless `relu`.  dx or
 * dskip may be NULL, and is then not computed. */
void batchnorm_input_gradient(real *dx, real *dskip, const real *dy, const real *x, const real *y,
                              const real *g, const real *mean, const real *rstd, const real *sums,
                              int n, int c, bool relu, bool use_running, bool add_dx,
                              bool add_dskip);

extern __typeof__(batchnorm_forward) fast_batchnorm_forward;
extern __typeof__(batchnorm_sums) fast_batchnorm_sums;
extern __typeof__(batchnorm_input_gradient) fast_batchnorm_input_gradient;

/* ---- layernorm.c: Ba, Kiros, Hinton 2016, eq. 4 ---- */

/* y[n][c] = g (x - mean) rstd + b, rstd = 1 / sqrt(variance + eps).  Overwrites mean[n] and
 * rstd[n]. */
void layernorm_forward(real *y, real *mean, real *rstd, const real *x, const real *g, const real *b,
                       int n, int c, double eps);
/* dx = rstd (d - mean(d) - xhat mean(d xhat)), where d = dy g, xhat = (x - mean) rstd, and means
 * are over the channels of a row. */
void layernorm_input_gradient(real *dx, const real *dy, const real *x, const real *g,
                              const real *mean, const real *rstd, int n, int c, bool add);
/* dg[c] = sum_n dy xhat.  The gradient of b is bias_gradient. */
void layernorm_weight_gradient(real *dg, const real *dy, const real *x, const real *mean,
                               const real *rstd, int n, int c, bool add);

extern __typeof__(layernorm_forward) fast_layernorm_forward;
extern __typeof__(layernorm_input_gradient) fast_layernorm_input_gradient;
extern __typeof__(layernorm_weight_gradient) fast_layernorm_weight_gradient;

/* ---- rmsnorm.c: Zhang & Sennrich 2019, eq. 4 ---- */

/* y[n][c] = g x rrms, rrms = 1 / sqrt(mean(x^2) + eps).  Overwrites rrms[n]. */
void rmsnorm_forward(real *y, real *rrms, const real *x, const real *g, int n, int c, double eps);
/* dx = rrms (d - xhat mean(d xhat)), where d = dy g and xhat = x rrms. */
void rmsnorm_input_gradient(real *dx, const real *dy, const real *x, const real *g,
                            const real *rrms, int n, int c, bool add);
/* dg[c] = sum_n dy xhat. */
void rmsnorm_weight_gradient(real *dg, const real *dy, const real *x, const real *rrms, int n,
                             int c, bool add);

extern __typeof__(rmsnorm_forward) fast_rmsnorm_forward;
extern __typeof__(rmsnorm_input_gradient) fast_rmsnorm_input_gradient;
extern __typeof__(rmsnorm_weight_gradient) fast_rmsnorm_weight_gradient;

/* ---- qknorm.c: root mean square norms of queries and keys, Henry et al. 2020 ---- */

/* x and y [n][heads + 2 groups][d] hold q, then k, then v, as attention reads them.  Each vector of
 * qk_vectors (settings.h) is normalised as by rmsnorm, with the scale gq[q_size] or gk[k_size]; v
 * is copied.  Overwrites rrms[n][q + k]. */
void qknorm_forward(real *y, real *rrms, const real *x, const real *gq, const real *gk, int n,
                    Attention attention, bool whole, double eps);
/* Of each vector dx = rrms (d - xhat mean(d xhat)), as of rmsnorm; of v, dx = dy. */
void qknorm_input_gradient(real *dx, const real *dy, const real *x, const real *gq, const real *gk,
                           const real *rrms, int n, Attention attention, bool whole, bool add);
/* The sums over positions and vectors.  dgq or dgk may be NULL, and is then not computed. */
void qknorm_weight_gradient(real *dgq, real *dgk, const real *dy, const real *x, const real *rrms,
                            int n, Attention attention, bool whole, bool add_q, bool add_k);

extern __typeof__(qknorm_forward) fast_qknorm_forward;
extern __typeof__(qknorm_input_gradient) fast_qknorm_input_gradient;
extern __typeof__(qknorm_weight_gradient) fast_qknorm_weight_gradient;

/* ---- attention.c: multi-head attention, Vaswani et al. 2017, eq. 1 ---- */

/* y[n][t][heads][d] = softmax(q k / sqrt(d)) v from qkv[n][t][heads + 2 groups][d], which holds q,
 * then k, then v.  The softmax is over all positions, or if causal over those <= the query's, of
 * these with a window only the last ones (which needs `causal`); each query head
 * uses the k and v of its group.  With rope, q and k are first rotated by their positions, and d
 * must be even.  Overwrites lse[n][heads][t] with the log-sum-exp of the scores, from which a
 * backward pass can recompute the probabilities instead of storing them (FlashAttention, Dao et al.
 * 2022).  Of t positions those before attention.cached have been computed before, and y and lse
 * have the t - cached others. */
void attention_forward(real *y, real *lse, const real *qkv, int n, int t, Attention attention);
/* Reads y and lse of the forward pass, of which attention.cached was 0.  Where a query attends to a
 * single key, whose probability is always 1, the gradients of both through the score are exactly 0.
 *
 * A key that is masked has probability 0.  The fast version multiplies tiles, and so an inf or NaN
 * in a masked value may reach earlier queries of its tile, as 0 times inf is NaN; the plain one
 * leaves masked keys out. */
void attention_input_gradient(real *dqkv, const real *dy, const real *qkv, const real *y,
                              const real *lse, int n, int t, Attention attention, bool add);

extern __typeof__(attention_forward) fast_attention_forward;
extern __typeof__(attention_input_gradient) fast_attention_input_gradient;

/* ---- activations.c: elementwise ---- */

/* y = max(x, 0) (Nair & Hinton 2010). */
void relu_forward(real *y, const real *x, size_t count);
/* dx = dy, but 0 where y <= 0.  Where y is NaN dx is dy, as in PyTorch. */
void relu_input_gradient(real *dx, const real *dy, const real *y, size_t count, bool add);
/* y = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), the tanh form of Hendrycks & Gimpel 2016; that
 * of PyTorch with approximate="tanh". */
void gelu_forward(real *y, const real *x, size_t count);
void gelu_input_gradient(real *dx, const real *dy, const real *x, size_t count, bool add);
/* y[n][f] = silu(gate) up, silu(x) = x / (1 + e^-x), where x[n][2][f] holds gate, then up (Shazeer
 * 2020, eq. 5). */
void swiglu_forward(real *y, const real *x, int n, int f);
void swiglu_input_gradient(real *dx, const real *dy, const real *x, int n, int f, bool add);
/* y = a + b; y may alias either.  The gradient of each input is dy. */
void add_forward(real *y, const real *a, const real *b, size_t count);
void add_input_gradient(real *dx, const real *dy, size_t count, bool add);

extern __typeof__(relu_forward) fast_relu_forward;
extern __typeof__(relu_input_gradient) fast_relu_input_gradient;
extern __typeof__(gelu_forward) fast_gelu_forward;
extern __typeof__(gelu_input_gradient) fast_gelu_input_gradient;
extern __typeof__(swiglu_forward) fast_swiglu_forward;
extern __typeof__(swiglu_input_gradient) fast_swiglu_input_gradient;
extern __typeof__(add_forward) fast_add_forward;
extern __typeof__(add_input_gradient) fast_add_input_gradient;

/* ---- avgpool.c: y[n][c] = the mean of x[n][s][c] over the s positions ---- */

void avgpool_forward(real *y, const real *x, int n, int s, int c);
void avgpool_input_gradient(real *dx, const real *dy, int n, int s, int c, bool add);

extern __typeof__(avgpool_forward) fast_avgpool_forward;
extern __typeof__(avgpool_input_gradient) fast_avgpool_input_gradient;

/* ---- embedding.c: tokens and learned positions, Vaswani et al. 2017, section 3.4 ---- */

/* y[n][t][c] = token[tokens[n][t]][c] + position[t][c]; position may be NULL.  Tokens are in
 * [0, vocabulary): the data set checked them. */
void embedding_forward(real *y, const int *tokens, const real *token, const real *position, int n,
                       int t, int c);
/* dtoken[v][c] = the sum of dy[n][t][c] over the (n, t) with tokens[n][t] = v, in their order. */
void embedding_weight_gradient(real *dtoken, const real *dy, const int *tokens, int n, int t, int c,
                               int vocabulary, bool add);
/* dposition[t][c] = sum_n dy[n][t][c] */
void embedding_position_gradient(real *dposition, const real *dy, int n, int t, int c, bool add);

extern __typeof__(embedding_forward) fast_embedding_forward;
extern __typeof__(embedding_weight_gradient) fast_embedding_weight_gradient;
extern __typeof__(embedding_position_gradient) fast_embedding_position_gradient;

/* ---- cross_entropy.c: fused with softmax ---- */

/* loss[i] = max + log_sum[i] - logits[i][target[i]], where max is the largest logit of the row and
 * log_sum[i] = log sum exp(logits[i] - max).  correct[i] = 1 if the target has the largest logit
 * (on a tie, if it is the first).  Where the loss is NaN, correct is 0.  Targets are below
 * `classes`. A negative one is ignored: its loss and correct are 0. */
void cross_entropy_forward(real *loss, real *log_sum, unsigned char *correct, const real *logits,
                           const int *targets, int rows, int classes);
/* dlogits = scale (softmax(logits) - onehot(target)), or 0 where the target is ignored.  dlogits
 * may alias logits. */
void cross_entropy_input_gradient(real *dlogits, const real *logits, const real *log_sum,
                                  const int *targets, real scale, int rows, int classes);

extern __typeof__(cross_entropy_forward) fast_cross_entropy_forward;
extern __typeof__(cross_entropy_input_gradient) fast_cross_entropy_input_gradient;
