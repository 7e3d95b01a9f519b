/* The table of the CPU's ops: what each of the three passes of a node calls.  An op of ref/ops and
 * its counterpart in ref/fast have the same signature (ops/ops.h), so one row serves both. */
#include "node.h"

#include <assert.h>

#include "fast/fast.h"

/* Calls the op of ref/ops or of ref/fast, as io->plain says. */
#define CPU(name, ...) (io->plain ? name(__VA_ARGS__) : fast_##name(__VA_ARGS__))

static int rows_of(const Node *node, const NodeIO *io) { return io->n * node_positions(node); }

static size_t count_of(const Node *node, const NodeIO *io) {
    return (size_t)io->n * shape_count(node->in_shape);
}

static void linear(const Node *node, const NodeIO *io) {
    CPU(linear_forward, io->y, io->x, io->weight, io->bias, rows_of(node, io), node->in_shape.c,
        node->out_shape.c);
}

static void linear_dx(const Node *node, const NodeIO *io) {
    CPU(linear_input_gradient, io->dx, io->dy, io->weight, rows_of(node, io), node->in_shape.c,
        node->out_shape.c, io->add_dx);
}

static void linear_dw(const Node *node, const NodeIO *io) {
    const int rows = rows_of(node, io), c = node->in_shape.c, o = node->out_shape.c;
    if (io->dweight)
        CPU(linear_weight_gradient, io->dweight, io->dy, io->x, rows, c, o, io->add_dweight);
    if (io->dbias) CPU(bias_gradient, io->dbias, io->dy, rows, o, io->add_dbias);
}

static void conv2d(const Node *node, const NodeIO *io) {
    CPU(conv2d_forward, io->y, io->x, io->weight, node_conv(node, io->n));
}

static void conv2d_dx(const Node *node, const NodeIO *io) {
    CPU(conv2d_input_gradient, io->dx, io->dy, io->weight, node_conv(node, io->n), io->add_dx);
}

static void conv2d_dw(const Node *node, const NodeIO *io) {
    CPU(conv2d_weight_gradient, io->dweight, io->dy, io->x, node_conv(node, io->n),
        io->add_dweight);
}

static void batchnorm(const Node *node, const NodeIO *io) {
    const int c = node->in_shape.c;
    CPU(batchnorm_forward, io->y, io->aux, io->aux + c, io->running_mean, io->running_var, io->x,
        io->skip, io->weight, io->bias, rows_of(node, io), c, node->relu, io->use_running,
        io->hold_running ? 0 : BATCHNORM_MOMENTUM);
}

static void batchnorm_sum(const Node *node, const NodeIO *io) {
    const int c = node->in_shape.c;
    CPU(batchnorm_sums, io->aux + 2 * c, io->dy, io->x, io->y, io->aux, io->aux + c,
        rows_of(node, io), c, node->relu);
}

static void batchnorm_dx(const Node *node, const NodeIO *io) {
    const int c = node->in_shape.c;
    if (!io->use_running) batchnorm_sum(node, io);
    CPU(batchnorm_input_gradient, io->dx, io->dskip, io->dy, io->x, io->y, io->weight, io->aux,
        io->aux + c, io->aux + 2 * c, rows_of(node, io), c, node->relu, io->use_running, io->add_dx,
        io->add_dskip);
}

/* Overwrites a gradient with sums that are there already, or adds them to it. */
static void put(real *gradient, const real *sums, int c, bool add) {
    for (int j = 0; j < c; j++) gradient[j] = add ? gradient[j] + sums[j] : sums[j];
}

/* The sums over all rows are the gradients of shift and scale. */
static void batchnorm_dw(const Node *node, const NodeIO *io) {
    const int c = node->in_shape.c;
    if (!io->sums_ready) batchnorm_sum(node, io);
    put(io->dbias, io->aux + 2 * c, c, io->add_dbias);
    put(io->dweight, io->aux + 3 * c, c, io->add_dweight);
}

static void layernorm(const Node *node, const NodeIO *io) {
    const int rows = rows_of(node, io);
    CPU(layernorm_forward, io->y, io->aux, io->aux + rows, io->x, io->weight, io->bias, rows,
        node->in_shape.c, node->eps);
}

static void layernorm_dx(const Node *node, const NodeIO *io) {
    const int rows = rows_of(node, io);
    CPU(layernorm_input_gradient, io->dx, io->dy, io->x, io->weight, io->aux, io->aux + rows, rows,
        node->in_shape.c, io->add_dx);
}

static void layernorm_dw(const Node *node, const NodeIO *io) {
    const int rows = rows_of(node, io), c = node->in_shape.c;
    CPU(layernorm_weight_gradient, io->dweight, io->dy, io->x, io->aux, io->aux + rows, rows, c,
        io->add_dweight);
    CPU(bias_gradient, io->dbias, io->dy, rows, c, io->add_dbias);
}

static void rmsnorm(const Node *node, const NodeIO *io) {
    CPU(rmsnorm_forward, io->y, io->aux, io->x, io->weight, rows_of(node, io), node->in_shape.c,
        node->eps);
}

static void rmsnorm_dx(const Node *node, const NodeIO *io) {
    CPU(rmsnorm_input_gradient, io->dx, io->dy, io->x, io->weight, io->aux, rows_of(node, io),
        node->in_shape.c, io->add_dx);
}

static void rmsnorm_dw(const Node *node, const NodeIO *io) {
    CPU(rmsnorm_weight_gradient, io->dweight, io->dy, io->x, io->aux, rows_of(node, io),
        node->in_shape.c, io->add_dweight);
}

static void qknorm(const Node *node, const NodeIO *io) {
    CPU(qknorm_forward, io->y, io->aux, io->x, io->weight, io->bias, rows_of(node, io),
        node->attention, node->whole, node->eps);
}

static void qknorm_dx(const Node *node, const NodeIO *io) {
    CPU(qknorm_input_gradient, io->dx, io->dy, io->x, io->weight, io->bias, io->aux,
        rows_of(node, io), node->attention, node->whole, io->add_dx);
}

static void qknorm_dw(const Node *node, const NodeIO *io) {
    CPU(qknorm_weight_gradient, io->dweight, io->dbias, io->dy, io->x, io->aux, rows_of(node, io),
        node->attention, node->whole, io->add_dweight, io->add_dbias);
}

static void attention(const Node *node, const NodeIO *io) {
    CPU(attention_forward, io->y, io->aux, io->x, io->n, node_positions(node), node->attention);
}

static void attention_dx(const Node *node, const NodeIO *io) {
    CPU(attention_input_gradient, io->dx, io->dy, io->x, io->y, io->aux, io->n,
        node_positions(node), node->attention, io->add_dx);
}

static void relu(const Node *node, const NodeIO *io) {
    CPU(relu_forward, io->y, io->x, count_of(node, io));
}

static void relu_dx(const Node *node, const NodeIO *io) {
    CPU(relu_input_gradient, io->dx, io->dy, io->y, count_of(node, io), io->add_dx);
}

static void gelu(const Node *node, const NodeIO *io) {
    CPU(gelu_forward, io->y, io->x, count_of(node, io));
}

static void gelu_dx(const Node *node, const NodeIO *io) {
    CPU(gelu_input_gradient, io->dx, io->dy, io->x, count_of(node, io), io->add_dx);
}

static void swiglu(const Node *node, const NodeIO *io) {
    CPU(swiglu_forward, io->y, io->x, rows_of(node, io), node->out_shape.c);
}

static void swiglu_dx(const Node *node, const NodeIO *io) {
    CPU(swiglu_input_gradient, io->dx, io->dy, io->x, rows_of(node, io), node->out_shape.c,
        io->add_dx);
}

static void add(const Node *node, const NodeIO *io) {
    CPU(add_forward, io->y, io->x, io->skip, count_of(node, io));
}

static void add_dx(const Node *node, const NodeIO *io) {
    const size_t count = count_of(node, io);
    if (io->dskip) CPU(add_input_gradient, io->dskip, io->dy, count, io->add_dskip);
    if (io->dx) CPU(add_input_gradient, io->dx, io->dy, count, io->add_dx);
}

static void avgpool(const Node *node, const NodeIO *io) {
    CPU(avgpool_forward, io->y, io->x, io->n, node_positions(node), node->in_shape.c);
}

static void avgpool_dx(const Node *node, const NodeIO *io) {
    CPU(avgpool_input_gradient, io->dx, io->dy, io->n, node_positions(node), node->in_shape.c,
        io->add_dx);
}

static void embedding(const Node *node, const NodeIO *io) {
    CPU(embedding_forward, io->y, io->tokens, io->weight, io->bias, io->n, node_positions(node),
        node->out_shape.c);
}

static void embedding_dw(const Node *node, const NodeIO *io) {
    const int t = node_positions(node), c = node->out_shape.c;
    if (io->dweight)
        CPU(embedding_weight_gradient, io->dweight, io->dy, io->tokens, io->n, t, c,
            node->vocabulary, io->add_dweight);
    if (io->dbias) CPU(embedding_position_gradient, io->dbias, io->dy, io->n, t, c, io->add_dbias);
}

typedef void NodePass(const Node *node, const NodeIO *io);

/* NULL where there is nothing to compute: tokens have no gradient, and some ops no parameters. */
typedef struct {
    NodePass *forward, *input_gradient, *weight_gradient;
} NodePasses;

static const NodePasses passes[] = {
    [OP_LINEAR] = {linear, linear_dx, linear_dw},
    [OP_CONV2D] = {conv2d, conv2d_dx, conv2d_dw},
    [OP_BATCHNORM] = {batchnorm, batchnorm_dx, batchnorm_dw},
    [OP_LAYERNORM] = {layernorm, layernorm_dx, layernorm_dw},
    [OP_RMSNORM] = {rmsnorm, rmsnorm_dx, rmsnorm_dw},
    [OP_QKNORM] = {qknorm, qknorm_dx, qknorm_dw},
    [OP_ATTENTION] = {attention, attention_dx, NULL},
    [OP_RELU] = {relu, relu_dx, NULL},
    [OP_GELU] = {gelu, gelu_dx, NULL},
    [OP_SWIGLU] = {swiglu, swiglu_dx, NULL},
    [OP_ADD] = {add, add_dx, NULL},
    [OP_AVGPOOL] = {avgpool, avgpool_dx, NULL},
    [OP_EMBEDDING] = {embedding, NULL, embedding_dw},
};
static_assert(sizeof passes / sizeof *passes == OP_KINDS, "a row for every op");

void node_forward(const Node *node, const NodeIO *io) { passes[node->kind].forward(node, io); }

void node_input_gradient(const Node *node, const NodeIO *io) {
    NodePass *pass = passes[node->kind].input_gradient;
    if (pass && (io->dx || io->dskip)) pass(node, io);
}

void node_weight_gradient(const Node *node, const NodeIO *io) {
    NodePass *pass = passes[node->kind].weight_gradient;
    if (pass && (io->dweight || io->dbias)) pass(node, io);
}
