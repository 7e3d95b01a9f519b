/* The ops for the processor, with vectors, cache blocks and threads.  fast_NAME has the signature
 * and the contract of NAME in ref/ops/ops.h, and is tested against it. */
#pragma once

#include "../ops/ops.h"

extern __typeof__(linear_forward) fast_linear_forward;
extern __typeof__(linear_input_gradient) fast_linear_input_gradient;
extern __typeof__(linear_weight_gradient) fast_linear_weight_gradient;
extern __typeof__(bias_gradient) fast_bias_gradient;
extern __typeof__(conv2d_forward) fast_conv2d_forward;
extern __typeof__(conv2d_input_gradient) fast_conv2d_input_gradient;
extern __typeof__(conv2d_weight_gradient) fast_conv2d_weight_gradient;
extern __typeof__(batchnorm_forward) fast_batchnorm_forward;
extern __typeof__(batchnorm_sums) fast_batchnorm_sums;
extern __typeof__(batchnorm_input_gradient) fast_batchnorm_input_gradient;
extern __typeof__(layernorm_forward) fast_layernorm_forward;
extern __typeof__(layernorm_input_gradient) fast_layernorm_input_gradient;
extern __typeof__(layernorm_weight_gradient) fast_layernorm_weight_gradient;
extern __typeof__(rmsnorm_forward) fast_rmsnorm_forward;
extern __typeof__(rmsnorm_input_gradient) fast_rmsnorm_input_gradient;
extern __typeof__(rmsnorm_weight_gradient) fast_rmsnorm_weight_gradient;
extern __typeof__(qknorm_forward) fast_qknorm_forward;
extern __typeof__(qknorm_input_gradient) fast_qknorm_input_gradient;
extern __typeof__(qknorm_weight_gradient) fast_qknorm_weight_gradient;
extern __typeof__(attention_forward) fast_attention_forward;
extern __typeof__(attention_input_gradient) fast_attention_input_gradient;
extern __typeof__(relu_forward) fast_relu_forward;
extern __typeof__(relu_input_gradient) fast_relu_input_gradient;
extern __typeof__(gelu_forward) fast_gelu_forward;
extern __typeof__(gelu_input_gradient) fast_gelu_input_gradient;
extern __typeof__(swiglu_forward) fast_swiglu_forward;
extern __typeof__(swiglu_input_gradient) fast_swiglu_input_gradient;
extern __typeof__(add_forward) fast_add_forward;
extern __typeof__(add_input_gradient) fast_add_input_gradient;
extern __typeof__(avgpool_forward) fast_avgpool_forward;
extern __typeof__(avgpool_input_gradient) fast_avgpool_input_gradient;
extern __typeof__(embedding_forward) fast_embedding_forward;
extern __typeof__(embedding_weight_gradient) fast_embedding_weight_gradient;
extern __typeof__(embedding_position_gradient) fast_embedding_position_gradient;
extern __typeof__(cross_entropy_forward) fast_cross_entropy_forward;
extern __typeof__(cross_entropy_input_gradient) fast_cross_entropy_input_gradient;
