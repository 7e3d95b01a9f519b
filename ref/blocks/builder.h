/* Builds a model's tables, one node at a time.  Each call appends a node that reads value `in`, the
 * parameters it needs, named BLOCK.NAME.weight and BLOCK.NAME.bias, and the value it writes, and
 * returns the index of that value. */
#pragma once

#include "../model.h"

/* The maxima of a block; only memory is lost if they are more than a family needs. */
enum { BLOCK_NODES = 12, BLOCK_PARAMS = 12, BLOCK_BUFFERS = 8 };

/* Comes first: allocates the tables for `blocks` blocks and adds the input, value 0: images of this
 * shape, or 1 x t x 1 tokens.  -1 and an error when memory runs out; the other calls cannot fail.
 */
int build_tables(Model *model, int blocks, Shape input, bool tokens);

/* Comes last, after the linear layer that writes the logits: says which parameters are vectors,
 * matrices and embeddings, and sets model->outputs. */
void build_end(Model *model);

/* Starts a block with a name in printf format; the nodes that follow belong to it. */
void build_block(Model *m, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* `deviation` is the standard deviation of the normal distribution the weight starts from. */
int build_linear(Model *m, const char *name, int in, int outputs, bool bias, double deviation);
/* Several linear layers in one, of `rows` outputs each: q, k and v, or gate and up. */
int build_linear_packed(Model *m, const char *name, int in, int parts, const int *rows, bool bias,
                        double deviation);
/* Appends a linear layer whose weight is another block's parameter (a tied head). */
int build_linear_tied(Model *m, int in, int weight);
/* The weight starts as in He et al. 2015, with the fan-out. */
int build_conv2d(Model *m, const char *name, int in, int outputs, int kernel, int stride);
/* y = bn(in) + skip, unless skip is -1, then relu if `relu`. */
int build_batchnorm(Model *m, const char *name, int in, int skip, bool relu);
int build_layernorm(Model *m, const char *name, int in, double eps);
int build_rmsnorm(Model *m, const char *name, int in, double eps);
/* Norms of q and of k, before attention: of each head or, with `whole`, of all heads. */
int build_qknorm(Model *m, int in, Attention attention, bool whole, double eps);
/* `in` has q, k and v in (heads + 2 groups) d channels; the output has heads * d. */
int build_attention(Model *m, int in, Attention attention);
int build_relu(Model *m, int in);
int build_gelu(Model *m, int in);
/* `in` has gate and up in 2 f channels; the output has f. */
int build_swiglu(Model *m, int in);
int build_add(Model *m, int in, int skip);
int build_avgpool(Model *m, int in);
/* There is no position embedding if context is 0. */
int build_embedding(Model *m, int in, int vocabulary, int width, int context);
