/* The table of ops on the device: a row has the launchers and the workspace they need. */
#include "node.h"

#include <assert.h>

/* A function is NULL if the op does not need it. */
typedef struct {
    Launcher *forward;
    Launcher *input_gradient;  /* called if dx or dskip is wanted */
    Launcher *weight_gradient; /* called if dweight or dbias is wanted */
    Workspace *workspace;
} DeviceOp;

static const DeviceOp ops[] = {
    [OP_LINEAR] = {cuda_linear_forward, cuda_linear_input_gradient, cuda_linear_weight_gradient,
                   cuda_linear_workspace},
    [OP_CONV2D] = {cuda_conv2d_forward, cuda_conv2d_input_gradient, cuda_conv2d_weight_gradient,
                   cuda_conv2d_workspace},
    [OP_BATCHNORM] = {cuda_batchnorm_forward, cuda_batchnorm_input_gradient,
                      cuda_batchnorm_weight_gradient, cuda_batchnorm_workspace},
    [OP_LAYERNORM] = {cuda_norm_forward, cuda_norm_input_gradient, cuda_norm_weight_gradient,
                      cuda_norm_workspace},
    [OP_RMSNORM] = {cuda_norm_forward, cuda_norm_input_gradient, cuda_norm_weight_gradient,
                    cuda_norm_workspace},
    [OP_QKNORM] = {cuda_qknorm_forward, cuda_qknorm_input_gradient, cuda_qknorm_weight_gradient,
                   cuda_qknorm_workspace},
    [OP_ATTENTION] = {cuda_attention_forward, cuda_attention_input_gradient, NULL,
                      cuda_attention_workspace},
    [OP_RELU] = {cuda_relu_forward, cuda_relu_input_gradient, NULL, NULL},
    [OP_GELU] = {cuda_gelu_forward, cuda_gelu_input_gradient, NULL, NULL},
    [OP_SWIGLU] = {cuda_swiglu_forward, cuda_swiglu_input_gradient, NULL, NULL},
    [OP_ADD] = {cuda_add_forward, cuda_add_input_gradient, NULL, NULL},
    [OP_AVGPOOL] = {cuda_avgpool_forward, cuda_avgpool_input_gradient, NULL, NULL},
    [OP_EMBEDDING] = {cuda_embedding_forward, NULL, cuda_embedding_weight_gradient,
                      cuda_embedding_workspace},
};

static_assert(sizeof ops / sizeof *ops == OP_KINDS, "a row for every op");

static Call call_of(const Run *run, const Node *node, const DeviceIO *io, int n) {
    Call k = {.run = run, .node = node, .io = io, .n = n, .conv = node_conv(node, n)};
    k.positions = node_positions(node);
    k.rows = n * k.positions;
    k.c = node->in_shape.c;
    k.o = node->out_shape.c;
    k.y_stride = io && io->y_stride ? io->y_stride : k.o;
    k.count = (size_t)k.rows * (size_t)k.c;
    return k;
}

static void launch(Launcher *launcher, const Run *run, const Node *node, const DeviceIO *io) {
    Call call = call_of(run, node, io, io->n);
    launcher(&call);
}

void cuda_node_forward(const Run *run, const Node *node, const DeviceIO *io) {
    launch(ops[node->kind].forward, run, node, io);
}

void cuda_node_input_gradient(const Run *run, const Node *node, const DeviceIO *io) {
    Launcher *launcher = ops[node->kind].input_gradient;
    if (launcher && (io->dx || io->dskip)) launch(launcher, run, node, io);
}

void cuda_node_weight_gradient(const Run *run, const Node *node, const DeviceIO *io) {
    Launcher *launcher = ops[node->kind].weight_gradient;
    if (launcher && (io->dweight || io->dbias)) launch(launcher, run, node, io);
}

size_t cuda_node_workspace(const Node *node, int n, Precision precision) {
    const Run run = {.precision = precision};
    Call call = call_of(&run, node, NULL, n);
    Workspace *workspace = ops[node->kind].workspace;
    return workspace ? workspace(&call) : 0;
}

bool cuda_node_one_pass(OpKind kind) {
    return kind == OP_BATCHNORM || kind == OP_LAYERNORM || kind == OP_RMSNORM;
}

/* Version 1 of a linear layer runs the product and what follows it in separate kernels, version 2
 * in one.  Of the other ops, version 1 is a plain kernel and the later ones are fast.  Version 3 of
 * a convolution uses tensor cores, which fp32 does not have. */
int cuda_node_versions(const Node *node, Precision precision) {
    if (node->kind == OP_ATTENTION) return cuda_attention_versions(precision, node->attention.d);
    return node->kind == OP_CONV2D && precision != PRECISION_FP32 ? 3 : 2;
}
