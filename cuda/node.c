/* The table of ops on the device: a row has the launchers, the workspace they need, and which
 * kernels there are. */
#include "node.h"

#include <assert.h>

/* Returns how many versions of its kernels a node has.  Version 1 is a plain kernel, and the later
 * ones are fast; of a linear layer version 1 runs the product and what follows it in separate
 * kernels, version 2 in one. */
typedef int Versions(const Node *node, Precision precision);

static int two_versions(const Node *node, Precision precision) {
    (void)node;
    (void)precision;
    return 2;
}

/* Version 3 uses tensor cores, which fp32 does not have. */
static int conv2d_versions(const Node *node, Precision precision) {
    (void)node;
    return precision == PRECISION_FP32 ? 2 : 3;
}

static int attention_versions(const Node *node, Precision precision) {
    return cuda_attention_versions(precision, node->attention.d);
}

/* Whether the input gradient also computes those of the parameters. */
enum { SEPARATE, ONE_PASS };

/* A launcher, or the workspace, is NULL if the op does not need it.  Every row has the last two. */
typedef struct {
    Launcher *forward;
    Launcher *input_gradient;  /* called if dx or dskip is wanted */
    Launcher *weight_gradient; /* called if dweight or dbias is wanted */
    Workspace *workspace;
    bool one_pass;
    Versions *versions;
} DeviceOp;

static const DeviceOp ops[] = {
    [OP_LINEAR] = {cuda_linear_forward, cuda_linear_input_gradient, cuda_linear_weight_gradient,
                   cuda_linear_workspace, SEPARATE, two_versions},
    [OP_CONV2D] = {cuda_conv2d_forward, cuda_conv2d_input_gradient, cuda_conv2d_weight_gradient,
                   cuda_conv2d_workspace, SEPARATE, conv2d_versions},
    [OP_BATCHNORM] = {cuda_batchnorm_forward, cuda_batchnorm_input_gradient,
                      cuda_batchnorm_weight_gradient, cuda_batchnorm_workspace, ONE_PASS,
                      two_versions},
    [OP_LAYERNORM] = {cuda_norm_forward, cuda_norm_input_gradient, cuda_norm_weight_gradient,
                      cuda_norm_workspace, ONE_PASS, two_versions},
    [OP_RMSNORM] = {cuda_norm_forward, cuda_norm_input_gradient, cuda_norm_weight_gradient,
                    cuda_norm_workspace, ONE_PASS, two_versions},
    [OP_QKNORM] = {cuda_qknorm_forward, cuda_qknorm_input_gradient, cuda_qknorm_weight_gradient,
                   cuda_qknorm_workspace, SEPARATE, two_versions},
    [OP_ATTENTION] = {cuda_attention_forward, cuda_attention_input_gradient, NULL,
                      cuda_attention_workspace, SEPARATE, attention_versions},
    [OP_RELU] = {cuda_relu_forward, cuda_relu_input_gradient, NULL, NULL, SEPARATE, two_versions},
    [OP_GELU] = {cuda_gelu_forward, cuda_gelu_input_gradient, NULL, NULL, SEPARATE, two_versions},
    [OP_SWIGLU] = {cuda_swiglu_forward, cuda_swiglu_input_gradient, NULL, NULL, SEPARATE,
                   two_versions},
    [OP_ADD] = {cuda_add_forward, cuda_add_input_gradient, NULL, NULL, SEPARATE, two_versions},
    [OP_AVGPOOL] = {cuda_avgpool_forward, cuda_avgpool_input_gradient, NULL, NULL, SEPARATE,
                    two_versions},
    [OP_EMBEDDING] = {cuda_embedding_forward, NULL, cuda_embedding_weight_gradient,
                      cuda_embedding_workspace, SEPARATE, two_versions},
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

bool cuda_node_one_pass(OpKind kind) { return ops[kind].one_pass; }

int cuda_node_versions(const Node *node, Precision precision) {
    return ops[node->kind].versions(node, precision);
}
