/* The ops for the processor, with vectors, cache blocks and threads.  fast_NAME has the signature
 * and the contract of NAME in ref/ops/ops.h, and is tested against it. */
#pragma once

#include "../ops/ops.h"

#define FAST(name) extern __typeof__(name) fast_##name

FAST(linear_forward);
FAST(linear_input_gradient);
FAST(linear_weight_gradient);
FAST(bias_gradient);
FAST(conv2d_forward);
FAST(conv2d_input_gradient);
FAST(conv2d_weight_gradient);
FAST(batchnorm_forward);
FAST(batchnorm_sums);
FAST(batchnorm_input_gradient);
FAST(layernorm_forward);
FAST(layernorm_input_gradient);
FAST(layernorm_weight_gradient);
FAST(rmsnorm_forward);
FAST(rmsnorm_input_gradient);
FAST(rmsnorm_weight_gradient);
FAST(qknorm_forward);
FAST(qknorm_input_gradient);
FAST(qknorm_weight_gradient);
FAST(attention_forward);
FAST(attention_input_gradient);
FAST(relu_forward);
FAST(relu_input_gradient);
FAST(gelu_forward);
FAST(gelu_input_gradient);
FAST(swiglu_forward);
FAST(swiglu_input_gradient);
FAST(add_forward);
FAST(add_input_gradient);
FAST(avgpool_forward);
FAST(avgpool_input_gradient);
FAST(embedding_forward);
FAST(embedding_weight_gradient);
FAST(embedding_position_gradient);
FAST(cross_entropy_forward);
FAST(cross_entropy_input_gradient);

#undef FAST
