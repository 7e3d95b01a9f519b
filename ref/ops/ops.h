/* The ops: one mathematical operation each, forward and its gradients, one file per op.
 *
 * This folder has them in plain C, as their equations say: the definition.  Each NAME has a twin
 * fast_NAME in ref/fast, with the same contract, which is said here.  Only matmul is not here: it
 * is a part of the fast ones.
 *
 * Shared conventions.  Arrays are dense and row-major; outputs first, then inputs, then sizes.  All
 * sizes are >= 1.  Images are [n][h][w][c].  Forward functions overwrite their outputs.  Gradient
 * functions overwrite, or with `add` accumulate into, dx (or dw).  Outputs must not alias inputs
 * unless it says so.  Nothing fails: shapes were checked when the model was built.  Every result is
 * bitwise independent of the number of threads.  A NaN is never swallowed. */
#ifndef REF_OPS_H
#define REF_OPS_H

#include "../real.h"
#include "attention.h"
#include "conv2d.h"

/* ---- linear.c: y[n][o] = sum_c x[n][c] w[o][c] + b[o] ---- */

/* b may be NULL. */
void linear_forward(real *y, const real *x, const real *w, const real *b, int n, int c, int o);
/* dx[n][c] = sum_o dy[n][o] w[o][c] */
void linear_input_gradient(real *dx, const real *dy, const real *w, int n, int c, int o, bool add);
/* dw[o][c] = sum_n dy[n][o] x[n][c] */
void linear_weight_gradient(real *dw, const real *dy, const real *x, int n, int c, int o, bool add);
/* db[c] = sum_n dy[n][c]: the gradient of any bias or shift over rows. */
void bias_gradient(real *db, const real *dy, int n, int c, bool add);

/* ---- conv2d.c: cross-correlation ---- */

/* oh or ow for an input size h or w. */
int conv2d_out(int size, int kernel, int stride, int pad);
void conv2d_forward(real *y, const real *x, const real *w, Conv conv);
void conv2d_input_gradient(real *dx, const real *dy, const real *w, Conv conv, bool add);
void conv2d_weight_gradient(real *dw, const real *dy, const real *x, Conv conv, bool add);

/* ---- batchnorm.c: Ioffe & Szegedy 2015, eps 1e-5, over rows[n] of c channels ---- */

/* y = g * (x - mean) * rstd + b, then + skip (unless NULL), then relu if asked.
 * use_running false: mean and rstd are those of the batch (variance over n), and the running ones
 * move by momentum towards them (running variance: unbiased, over n - 1; biased if n == 1).
 * use_running true: mean and rstd come from the running statistics, which stay as they are.
 * Overwrites mean[c] and rstd[c] either way.  momentum 0 leaves the running statistics alone. */
void batchnorm_forward(real *y, real *mean, real *rstd, real *running_mean, real *running_var,
                       const real *x, const real *skip, const real *g, const real *b, int n, int c,
                       bool relu, bool use_running, double momentum);
/* sums[0][c] = sum dz, sums[1][c] = sum dz * xhat, where dz = dy, 0 where y <= 0 if relu.  These
 * are the gradients of b and g; the input gradient in batch mode needs them too. */
void batchnorm_sums(real *sums, const real *dy, const real *x, const real *y, const real *mean,
                    const real *rstd, int n, int c, bool relu);
/* Batch mode: dx = g rstd (dz - sums[0]/n - xhat sums[1]/n).  Running mode: dx = g rstd dz, and x
 * and sums may be NULL; y may be NULL unless relu.  dskip = dz.  dx or dskip NULL: not wanted. */
void batchnorm_input_gradient(real *dx, real *dskip, const real *dy, const real *x, const real *y,
                              const real *g, const real *mean, const real *rstd, const real *sums,
                              int n, int c, bool relu, bool use_running, bool add_dx,
                              bool add_dskip);

/* ---- layernorm.c: Ba, Kiros, Hinton 2016, eq. 4 ---- */

/* y[n][c] = g (x - mean) rstd + b, rstd = 1 / sqrt(variance + eps).  Overwrites mean[n] and
 * rstd[n]. */
void layernorm_forward(real *y, real *mean, real *rstd, const real *x, const real *g, const real *b,
                       int n, int c, double eps);
void layernorm_input_gradient(real *dx, const real *dy, const real *x, const real *g,
                              const real *mean, const real *rstd, int n, int c, bool add);
/* dg[c] = sum_n dy xhat; db is bias_gradient's. */
void layernorm_weight_gradient(real *dg, const real *dy, const real *x, const real *mean,
                               const real *rstd, int n, int c, bool add);

/* ---- rmsnorm.c: Zhang & Sennrich 2019, eq. 4 ---- */

/* y[n][c] = g x rrms, rrms = 1 / sqrt(mean(x^2) + eps).  Overwrites rrms[n]. */
void rmsnorm_forward(real *y, real *rrms, const real *x, const real *g, int n, int c, double eps);
void rmsnorm_input_gradient(real *dx, const real *dy, const real *x, const real *g,
                            const real *rrms, int n, int c, bool add);
void rmsnorm_weight_gradient(real *dg, const real *dy, const real *x, const real *rrms, int n,
                             int c, bool add);

/* ---- attention.c: multi-head attention, Vaswani et al. 2017, eq. 1 ---- */

/* qkv[n][t][heads + 2 groups][d] (q, then k, then v) -> y[n][t][heads][d]; softmax(q k / sqrt(d)) v
 * over all positions, or if causal over those <= the query's, each query head with the k and v of
 * its group.  Overwrites lse[n][heads][t], the log-sum-exp of the scores, from which a backward
 * pass can recompute the probabilities instead of storing them (FlashAttention, Dao 2022).  With
 * rope q and k are first turned by position; d must then be even. */
void attention_forward(real *y, real *lse, const real *qkv, int n, int t, Attention attention);
/* Where a query looks at one key only, the gradients of both are exactly 0. */
void attention_input_gradient(real *dqkv, const real *dy, const real *qkv, const real *y,
                              const real *lse, int n, int t, Attention attention, bool add);

/* ---- activations.c: elementwise ---- */

void relu_forward(real *y, const real *x, size_t count);
/* dx = dy, 0 where y <= 0 (so where y is NaN dx is dy, as in PyTorch). */
void relu_input_gradient(real *dx, const real *dy, const real *y, size_t count, bool add);
/* tanh form: Hendrycks & Gimpel 2016: x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))). */
void gelu_forward(real *y, const real *x, size_t count);
void gelu_input_gradient(real *dx, const real *dy, const real *x, size_t count, bool add);
/* SwiGLU, Shazeer 2020: x[n][2][f] = (gate, up) -> y[n][f] = silu(gate) * up. */
void swiglu_forward(real *y, const real *x, int n, int f);
void swiglu_input_gradient(real *dx, const real *dy, const real *x, int n, int f, bool add);
/* y = a + b; y may alias either.  Its gradient is a copy, or with `add` a sum, for each input. */
void add_forward(real *y, const real *a, const real *b, size_t count);
void add_input_gradient(real *dx, const real *dy, size_t count, bool add);

/* ---- avgpool.c: global average over positions: x[n][s][c] -> y[n][c] ---- */

void avgpool_forward(real *y, const real *x, int n, int s, int c);
void avgpool_input_gradient(real *dx, const real *dy, int n, int s, int c, bool add);

/* ---- embedding.c ---- */

/* y[n][t][c] = token[tokens[n][t]][c] + position[t][c]; position may be NULL.  Tokens are in
 * [0, vocabulary): the data set checked them. */
void embedding_forward(real *y, const int *tokens, const real *token, const real *position, int n,
                       int t, int c);
/* dtoken[v][c]: sums dy over every place the token stands, in order of place. */
void embedding_weight_gradient(real *dtoken, const real *dy, const int *tokens, int n, int t, int c,
                               int vocabulary, bool add);
void embedding_position_gradient(real *dposition, const real *dy, int n, int t, int c, bool add);

/* ---- cross_entropy.c: fused with softmax ---- */

/* loss[i] = max + log_sum[i] - logits[i][target[i]], log_sum = log sum exp(logits - max), max the
 * largest logit of the row.  correct[i] = 1 if the target has the largest logit (the first of
 * equals).  A negative target is ignored: loss 0, correct 0. */
void cross_entropy_forward(real *loss, real *log_sum, unsigned char *correct, const real *logits,
                           const int *targets, int rows, int classes);
/* dlogits = scale (softmax - onehot(target)); 0 where ignored.  dlogits may alias logits: the
 * probabilities are never stored. */
void cross_entropy_input_gradient(real *dlogits, const real *logits, const real *log_sum,
                                  const int *targets, real scale, int rows, int classes);

#endif
