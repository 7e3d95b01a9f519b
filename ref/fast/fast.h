/* The ops for the processor, with vectors, cache blocks and threads.  fast_NAME has the contract of
 * NAME in ref/ops/ops.h and is tested against it. */
#ifndef REF_FAST_H
#define REF_FAST_H

#include "../ops/ops.h"

void fast_linear_forward(real *y, const real *x, const real *w, const real *b, int n, int c, int o);
void fast_linear_input_gradient(real *dx, const real *dy, const real *w, int n, int c, int o,
                                bool add);
void fast_linear_weight_gradient(real *dw, const real *dy, const real *x, int n, int c, int o,
                                 bool add);
void fast_bias_gradient(real *db, const real *dy, int n, int c, bool add);
void fast_conv2d_forward(real *y, const real *x, const real *w, Conv conv);
void fast_conv2d_input_gradient(real *dx, const real *dy, const real *w, Conv conv, bool add);
void fast_conv2d_weight_gradient(real *dw, const real *dy, const real *x, Conv conv, bool add);
void fast_batchnorm_forward(real *y, real *mean, real *rstd, real *running_mean, real *running_var,
                            const real *x, const real *skip, const real *g, const real *b, int n,
                            int c, bool relu, bool use_running, double momentum);
void fast_batchnorm_sums(real *sums, const real *dy, const real *x, const real *y, const real *mean,
                         const real *rstd, int n, int c, bool relu);
void fast_batchnorm_input_gradient(real *dx, real *dskip, const real *dy, const real *x,
                                   const real *y, const real *g, const real *mean, const real *rstd,
                                   const real *sums, int n, int c, bool relu, bool use_running,
                                   bool add_dx, bool add_dskip);
void fast_layernorm_forward(real *y, real *mean, real *rstd, const real *x, const real *g,
                            const real *b, int n, int c, double eps);
void fast_layernorm_input_gradient(real *dx, const real *dy, const real *x, const real *g,
                                   const real *mean, const real *rstd, int n, int c, bool add);
void fast_layernorm_weight_gradient(real *dg, const real *dy, const real *x, const real *mean,
                                    const real *rstd, int n, int c, bool add);
void fast_rmsnorm_forward(real *y, real *rrms, const real *x, const real *g, int n, int c,
                          double eps);
void fast_rmsnorm_input_gradient(real *dx, const real *dy, const real *x, const real *g,
                                 const real *rrms, int n, int c, bool add);
void fast_rmsnorm_weight_gradient(real *dg, const real *dy, const real *x, const real *rrms, int n,
                                  int c, bool add);
void fast_attention_forward(real *y, real *lse, const real *qkv, int n, int t, Attention attention);
void fast_attention_input_gradient(real *dqkv, const real *dy, const real *qkv, const real *y,
                                   const real *lse, int n, int t, Attention attention, bool add);
void fast_relu_forward(real *y, const real *x, size_t count);
void fast_relu_input_gradient(real *dx, const real *dy, const real *y, size_t count, bool add);
void fast_gelu_forward(real *y, const real *x, size_t count);
void fast_gelu_input_gradient(real *dx, const real *dy, const real *x, size_t count, bool add);
void fast_swiglu_forward(real *y, const real *x, int n, int f);
void fast_swiglu_input_gradient(real *dx, const real *dy, const real *x, int n, int f, bool add);
void fast_add_forward(real *y, const real *a, const real *b, size_t count);
void fast_add_input_gradient(real *dx, const real *dy, size_t count, bool add);
void fast_avgpool_forward(real *y, const real *x, int n, int s, int c);
void fast_avgpool_input_gradient(real *dx, const real *dy, int n, int s, int c, bool add);
void fast_embedding_forward(real *y, const int *tokens, const real *token, const real *position,
                            int n, int t, int c);
void fast_embedding_weight_gradient(real *dtoken, const real *dy, const int *tokens, int n, int t,
                                    int c, int vocabulary, bool add);
void fast_embedding_position_gradient(real *dposition, const real *dy, int n, int t, int c,
                                      bool add);
void fast_cross_entropy_forward(real *loss, real *log_sum, unsigned char *correct,
                                const real *logits, const int *targets, int rows, int classes);
void fast_cross_entropy_input_gradient(real *dlogits, const real *logits, const real *log_sum,
                                       const int *targets, real scale, int rows, int classes);

/* The weight gradient of layernorm and rmsnorm: dg[c] = sum_n dy[n][c] (x[n][c] - mean[n]) r[n], or
 * += with `add`.  mean NULL counts as 0. */
void norm_scale_gradient(real *dg, const real *dy, const real *x, const real *mean, const real *r,
                         int n, int c, bool add);

#endif
