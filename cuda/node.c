#include "node.h"

#include "matmul.h"

static int positions(const Node *node) { return node->in_shape.h * node->in_shape.w; }

static int y_stride(const Node *node, const DeviceIO *io) {
    return io->y_stride ? io->y_stride : node->out_shape.c;
}

static CudaConv conv_of(const Node *node, int n) {
    return (CudaConv){.n = n,
                      .h = node->in_shape.h,
                      .w = node->in_shape.w,
                      .c = node->in_shape.c,
                      .o = node->out_shape.c,
                      .kernel = node->kernel,
                      .stride = node->stride,
                      .pad = node->pad};
}

void cuda_node_forward(const Run *run, const Node *node, const DeviceIO *io) {
    int rows = io->n * positions(node), c = node->in_shape.c, o = node->out_shape.c;
    size_t count = (size_t)rows * (size_t)c;
    switch (node->kind) {
        case OP_LINEAR:
            cuda_linear_forward(run, io->y, io->x, io->weight, io->bias, rows, c, o,
                                y_stride(node, io));
            break;
        case OP_CONV2D:
            cuda_conv2d_forward(run, io->y, io->x, io->weight, conv_of(node, io->n));
            break;
        case OP_BATCHNORM:
            cuda_batchnorm_forward(run, io->y, io->aux, io->aux + c, io->running_mean,
                                   io->running_var, io->x, io->skip, io->weight, io->bias, rows, c,
                                   node->relu, io->use_running,
                                   io->hold_running ? 0 : BATCHNORM_MOMENTUM);
            break;
        case OP_LAYERNORM:
            cuda_layernorm_forward(run, io->y, NULL, io->aux, io->aux + rows, io->x, NULL,
                                   io->weight, io->bias, rows, c, node->eps);
            break;
        case OP_RMSNORM:
            cuda_rmsnorm_forward(run, io->y, NULL, io->aux, io->x, NULL, io->weight, rows, c,
                                 node->eps);
            break;
        case OP_ATTENTION:
            cuda_attention_forward(run, io->y, io->aux, io->x, io->n, positions(node),
                                   node->attention);
            break;
        case OP_RELU:
            cuda_relu_forward(run, io->y, io->x, count);
            break;
        case OP_GELU:
            cuda_gelu_forward(run, io->y, io->x, count);
            break;
        case OP_SWIGLU:
            cuda_swiglu_forward(run, io->y, io->x, rows, o);
            break;
        case OP_ADD:
            cuda_add_forward(run, io->y, io->x, io->skip, count);
            break;
        case OP_AVGPOOL:
            cuda_avgpool_forward(run, io->y, io->x, io->n, positions(node), c);
            break;
        case OP_EMBEDDING:
            cuda_embedding_forward(run, io->y, io->tokens, io->weight, io->bias, io->n,
                                   positions(node), o);
            break;
        case OP_KINDS:
            break;
    }
}

static void batchnorm_sums(const Run *run, const Node *node, const DeviceIO *io) {
    int rows = io->n * positions(node), c = node->in_shape.c;
    cuda_batchnorm_sums(run, io->aux + 2 * c, io->dy, io->x, io->y, io->aux, io->aux + c, rows, c,
                        node->relu);
}

static void batchnorm_input_gradient(const Run *run, const Node *node, const DeviceIO *io) {
    int rows = io->n * positions(node), c = node->in_shape.c;
    if (!io->use_running) batchnorm_sums(run, node, io);
    cuda_batchnorm_input_gradient(run, io->dx, io->dskip, io->dy, io->x, io->y, io->weight, io->aux,
                                  io->aux + c, io->aux + 2 * c, rows, c, node->relu,
                                  io->use_running, io->add_dx, io->add_dskip);
}

void cuda_node_input_gradient(const Run *run, const Node *node, const DeviceIO *io) {
    int rows = io->n * positions(node), c = node->in_shape.c, o = node->out_shape.c;
    size_t count = (size_t)rows * (size_t)c;
    const void *addend = io->add_dx ? io->dx : NULL;
    if (node->kind == OP_ADD && io->dskip)
        cuda_add_input_gradient(run, io->dskip, io->dy, count, io->add_dskip);
    if (node->kind == OP_BATCHNORM) {
        if (io->dx || io->dskip) batchnorm_input_gradient(run, node, io);
        return;
    }
    if (!io->dx) return;
    switch (node->kind) {
        case OP_LINEAR:
            cuda_linear_input_gradient(run, io->dx, io->dy, io->weight, rows, c, o,
                                       y_stride(node, io), io->add_dx);
            break;
        case OP_CONV2D:
            cuda_conv2d_input_gradient(run, io->dx, io->dy, io->weight, conv_of(node, io->n),
                                       io->add_dx);
            break;
        case OP_LAYERNORM:
            cuda_layernorm_input_gradient(run, io->dx, addend, io->dy, io->x, io->weight, io->aux,
                                          io->aux + rows, rows, c);
            break;
        case OP_RMSNORM:
            cuda_rmsnorm_input_gradient(run, io->dx, addend, io->dy, io->x, io->weight, io->aux,
                                        rows, c);
            break;
        case OP_ATTENTION:
            cuda_attention_input_gradient(run, io->dx, io->dy, io->x, io->y, io->aux, io->n,
                                          positions(node), node->attention, io->add_dx);
            break;
        case OP_RELU:
            cuda_relu_input_gradient(run, io->dx, io->dy, io->y, count, io->add_dx);
            break;
        case OP_GELU:
            cuda_gelu_input_gradient(run, io->dx, io->dy, io->x, count, io->add_dx);
            break;
        case OP_SWIGLU:
            cuda_swiglu_input_gradient(run, io->dx, io->dy, io->x, rows, o, io->add_dx);
            break;
        case OP_ADD:
            cuda_add_input_gradient(run, io->dx, io->dy, count, io->add_dx);
            break;
        case OP_AVGPOOL:
            cuda_avgpool_input_gradient(run, io->dx, io->dy, io->n, positions(node), c, io->add_dx);
            break;
        case OP_BATCHNORM: /* above */
        case OP_EMBEDDING: /* tokens have no gradient */
        case OP_KINDS:
            break;
    }
}

/* The sums are the gradients; float whatever the precision. */
static void batchnorm_weight_gradient(const Run *run, const Node *node, const DeviceIO *io) {
    int c = node->in_shape.c;
    Run floats = *run;
    floats.precision = PRECISION_FP32;
    if (!io->sums_ready) batchnorm_sums(run, node, io);
    if (io->dbias)
        cuda_add_input_gradient(&floats, io->dbias, io->aux + 2 * c, (size_t)c, io->add_dbias);
    if (io->dweight)
        cuda_add_input_gradient(&floats, io->dweight, io->aux + 3 * c, (size_t)c, io->add_dweight);
}

void cuda_node_weight_gradient(const Run *run, const Node *node, const DeviceIO *io) {
    int rows = io->n * positions(node), c = node->in_shape.c, o = node->out_shape.c;
    if (!io->dweight && !io->dbias) return;
    switch (node->kind) {
        case OP_LINEAR:
            cuda_linear_weight_gradient(run, io->dweight, io->dbias, io->dy, io->x, rows, c, o,
                                        y_stride(node, io), io->add_dweight, io->add_dbias);
            break;
        case OP_CONV2D:
            cuda_conv2d_weight_gradient(run, io->dweight, io->dy, io->x, conv_of(node, io->n),
                                        io->add_dweight);
            break;
        case OP_BATCHNORM:
            batchnorm_weight_gradient(run, node, io);
            break;
        case OP_LAYERNORM:
            cuda_layernorm_weight_gradient(run, io->dweight, io->dbias, io->dy, io->x, io->aux,
                                           io->aux + rows, rows, c, io->add_dweight, io->add_dbias);
            break;
        case OP_RMSNORM:
            cuda_rmsnorm_weight_gradient(run, io->dweight, io->dy, io->x, io->aux, rows, c,
                                         io->add_dweight);
            break;
        case OP_EMBEDDING:
            if (io->dweight)
                cuda_embedding_weight_gradient(run, io->dweight, io->dy, io->tokens, io->n,
                                               positions(node), o, node->vocabulary,
                                               io->add_dweight);
            if (io->dbias)
                cuda_embedding_position_gradient(run, io->dbias, io->dy, io->n, positions(node), o,
                                                 io->add_dbias);
            break;
        default:
            break; /* nothing to train */
    }
}

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

size_t cuda_node_workspace(const Node *node, int n, Precision precision) {
    int rows = n * positions(node), c = node->in_shape.c, o = node->out_shape.c;
    switch (node->kind) {
        case OP_LINEAR:
            return larger(cuda_matmul_workspace(precision), cuda_bias_gradient_workspace(rows, o));
        case OP_CONV2D:
            return cuda_conv2d_workspace(precision, conv_of(node, n));
        case OP_BATCHNORM:
            return cuda_batchnorm_workspace(rows, c);
        case OP_LAYERNORM:
            return cuda_layernorm_workspace(rows, c);
        case OP_RMSNORM:
            return cuda_rmsnorm_workspace(rows, c);
        case OP_ATTENTION:
            return cuda_attention_workspace(precision, n, positions(node), node->attention);
        case OP_EMBEDDING:
            return cuda_embedding_workspace(n, positions(node), o, node->vocabulary);
        default:
            return 0;
    }
}

/* A linear layer is a product and kernels, or all in one; the others are plain and fast. */
int cuda_node_versions(OpKind kind) { return kind == OP_CONV2D ? 3 : 2; }
