/* Builds a model's tables, one node at a time.  Each call appends a node that reads value `in`, the
 * parameters it needs, named BLOCK.NAME.weight and BLOCK.NAME.bias, and the value it writes, and
 * returns the index of that value.  When memory runs out `failed` is set and later calls do
 * nothing, so that the caller checks once, at the end. */
#pragma once

#include "../model.h"

typedef struct {
    Model *model;
    bool failed;
} Builder;

/* Adds the model's input value: images of this shape, or 1 x t x 1 tokens. */
int build_input(Builder *b, Shape shape, bool tokens);

/* Starts a block with a name in printf format; the nodes that follow belong to it. */
void build_block(Builder *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* `deviation` is the standard deviation of the normal distribution the weight starts from. */
int build_linear(Builder *b, const char *name, int in, int outputs, bool bias, double deviation);
/* Appends a linear layer whose weight is another block's parameter (a tied head). */
int build_linear_tied(Builder *b, int in, int weight);
/* The weight starts as in He et al. 2015, with the fan-out. */
int build_conv2d(Builder *b, const char *name, int in, int outputs, int kernel, int stride);
/* y = bn(in) + skip, unless skip is -1, then relu if `relu`. */
int build_batchnorm(Builder *b, const char *name, int in, int skip, bool relu);
int build_layernorm(Builder *b, const char *name, int in, double eps);
int build_rmsnorm(Builder *b, const char *name, int in, double eps);
/* `in` has q, k and v in (heads + 2 groups) d channels; the output has heads * d. */
int build_attention(Builder *b, int in, Attention attention);
int build_relu(Builder *b, int in);
int build_gelu(Builder *b, int in);
/* `in` has gate and up in 2 f channels; the output has f. */
int build_swiglu(Builder *b, int in);
int build_add(Builder *b, int in, int skip);
int build_avgpool(Builder *b, int in);
/* There is no position embedding if context is 0. */
int build_embedding(Builder *b, int in, int vocabulary, int width, int context);
