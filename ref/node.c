#include "node.h"

#include "ops/ops.h"

/* Running statistics move a tenth of the way each step, as is usual. */
static const double BATCHNORM_MOMENTUM = 0.1;

static int positions(const Node *node) { return node->in_shape.h * node->in_shape.w; }

static Conv conv_of(const Node *node, int n) {
    return (Conv){.n = n,
                  .h = node->in_shape.h,
                  .w = node->in_shape.w,
                  .c = node->in_shape.c,
                  .o = node->out_shape.c,
                  .kernel = node->kernel,
                  .stride = node->stride,
                  .pad = node->pad};
}

void node_forward(const Node *node, const NodeIO *io) {
    int rows = io->n * positions(node), c = node->in_shape.c, o = node->out_shape.c;
    size_t count = (size_t)rows * (size_t)c;
    switch (node->kind) {
        case OP_LINEAR:
            linear_forward(io->y, io->x, io->weight, io->bias, rows, c, o);
            break;
        case OP_CONV2D:
            conv2d_forward(io->y, io->x, io->weight, conv_of(node, io->n));
            break;
        case OP_BATCHNORM:
            batchnorm_forward(io->y, io->aux, io->aux + c, io->running_mean, io->running_var, io->x,
                              io->skip, io->weight, io->bias, rows, c, node->relu, io->use_running,
                              io->hold_running ? 0 : BATCHNORM_MOMENTUM);
            break;
        case OP_LAYERNORM:
            layernorm_forward(io->y, io->aux, io->aux + rows, io->x, io->weight, io->bias, rows, c,
                              node->eps);
            break;
        case OP_RMSNORM:
            rmsnorm_forward(io->y, io->aux, io->x, io->weight, rows, c, node->eps);
            break;
        case OP_ATTENTION:
            attention_forward(io->y, io->aux, io->x, io->n, positions(node), node->attention);
            break;
        case OP_RELU:
            relu_forward(io->y, io->x, count);
            break;
        case OP_GELU:
            gelu_forward(io->y, io->x, count);
            break;
        case OP_SWIGLU:
            swiglu_forward(io->y, io->x, rows, o);
            break;
        case OP_ADD:
            add_forward(io->y, io->x, io->skip, count);
            break;
        case OP_AVGPOOL:
            avgpool_forward(io->y, io->x, io->n, positions(node), c);
            break;
        case OP_EMBEDDING:
            embedding_forward(io->y, io->tokens, io->weight, io->bias, io->n, positions(node), o);
            break;
        case OP_KINDS:
            break;
    }
}

static void batchnorm_node_sums(const Node *node, const NodeIO *io) {
    int rows = io->n * positions(node), c = node->in_shape.c;
    batchnorm_sums(io->aux + 2 * c, io->dy, io->x, io->y, io->aux, io->aux + c, rows, c,
                   node->relu);
}

static void batchnorm_node_input_gradient(const Node *node, const NodeIO *io) {
    int rows = io->n * positions(node), c = node->in_shape.c;
    if (!io->use_running) batchnorm_node_sums(node, io);
    batchnorm_input_gradient(io->dx, io->dskip, io->dy, io->x, io->y, io->weight, io->aux,
                             io->aux + c, io->aux + 2 * c, rows, c, node->relu, io->use_running,
                             io->add_dx, io->add_dskip);
}

void node_input_gradient(const Node *node, const NodeIO *io) {
    int rows = io->n * positions(node), c = node->in_shape.c, o = node->out_shape.c;
    size_t count = (size_t)rows * (size_t)c;
    if (node->kind == OP_ADD && io->dskip)
        add_input_gradient(io->dskip, io->dy, count, io->add_dskip);
    if (node->kind == OP_BATCHNORM) {
        if (io->dx || io->dskip) batchnorm_node_input_gradient(node, io);
        return;
    }
    if (!io->dx) return;
    switch (node->kind) {
        case OP_LINEAR:
            linear_input_gradient(io->dx, io->dy, io->weight, rows, c, o, io->add_dx);
            break;
        case OP_CONV2D:
            conv2d_input_gradient(io->dx, io->dy, io->weight, conv_of(node, io->n), io->add_dx);
            break;
        case OP_LAYERNORM:
            layernorm_input_gradient(io->dx, io->dy, io->x, io->weight, io->aux, io->aux + rows,
                                     rows, c, io->add_dx);
            break;
        case OP_RMSNORM:
            rmsnorm_input_gradient(io->dx, io->dy, io->x, io->weight, io->aux, rows, c, io->add_dx);
            break;
        case OP_ATTENTION:
            attention_input_gradient(io->dx, io->dy, io->x, io->y, io->aux, io->n, positions(node),
                                     node->attention, io->add_dx);
            break;
        case OP_RELU:
            relu_input_gradient(io->dx, io->dy, io->y, count, io->add_dx);
            break;
        case OP_GELU:
            gelu_input_gradient(io->dx, io->dy, io->x, count, io->add_dx);
            break;
        case OP_SWIGLU:
            swiglu_input_gradient(io->dx, io->dy, io->x, rows, o, io->add_dx);
            break;
        case OP_ADD:
            add_input_gradient(io->dx, io->dy, count, io->add_dx);
            break;
        case OP_AVGPOOL:
            avgpool_input_gradient(io->dx, io->dy, io->n, positions(node), c, io->add_dx);
            break;
        case OP_BATCHNORM: /* above */
        case OP_EMBEDDING: /* tokens have no gradient */
        case OP_KINDS:
            break;
    }
}

void node_weight_gradient(const Node *node, const NodeIO *io) {
    int rows = io->n * positions(node), c = node->in_shape.c, o = node->out_shape.c;
    switch (node->kind) {
        case OP_LINEAR:
            if (io->dweight)
                linear_weight_gradient(io->dweight, io->dy, io->x, rows, c, o, io->add_dweight);
            if (io->dbias) bias_gradient(io->dbias, io->dy, rows, o, io->add_dbias);
            break;
        case OP_CONV2D:
            conv2d_weight_gradient(io->dweight, io->dy, io->x, conv_of(node, io->n),
                                   io->add_dweight);
            break;
        case OP_BATCHNORM:
            if (!io->sums_ready) batchnorm_node_sums(node, io);
            add_input_gradient(io->dbias, io->aux + 2 * c, (size_t)c, io->add_dbias);
            add_input_gradient(io->dweight, io->aux + 3 * c, (size_t)c, io->add_dweight);
            break;
        case OP_LAYERNORM:
            layernorm_weight_gradient(io->dweight, io->dy, io->x, io->aux, io->aux + rows, rows, c,
                                      io->add_dweight);
            bias_gradient(io->dbias, io->dy, rows, c, io->add_dbias);
            break;
        case OP_RMSNORM:
            rmsnorm_weight_gradient(io->dweight, io->dy, io->x, io->aux, rows, c, io->add_dweight);
            break;
        case OP_EMBEDDING:
            embedding_weight_gradient(io->dweight, io->dy, io->tokens, io->n, positions(node), o,
                                      node->vocabulary, io->add_dweight);
            if (io->dbias)
                embedding_position_gradient(io->dbias, io->dy, io->n, positions(node), o,
                                            io->add_dbias);
            break;
        default:
            break; /* nothing to train */
    }
}
