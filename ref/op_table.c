/* The table of ops.  A row has the facts that memory.c and all devices share, and the calls of the
 * CPU: an op of ref/ops and its counterpart in ref/fast have the same signature (ops/ops.h), so one
 * call serves both.  Those of a GPU are in cuda/node.c. */
#include <assert.h>

#include "node.h"
#include "ops/ops.h"

int node_positions(const Node *node) { return node->in_shape.h * node->in_shape.w; }

Conv node_conv(const Node *node, int n) {
    return (Conv){.n = n,
                  .h = node->in_shape.h,
                  .w = node->in_shape.w,
                  .c = node->in_shape.c,
                  .o = node->out_shape.c,
                  .kernel = node->kernel,
                  .stride = node->stride,
                  .pad = node->pad};
}

/* ---- aux: numbers saved besides the output ---- */

static size_t rows_of(const Node *node, int n) { return (size_t)n * (size_t)node_positions(node); }

/* mean, rstd, two sums */
static size_t aux_batchnorm(const Node *node, int n) {
    (void)n;
    return 4 * (size_t)node->in_shape.c;
}

/* mean, rstd */
static size_t aux_layernorm(const Node *node, int n) { return 2 * rows_of(node, n); }

/* rrms */
static size_t aux_rmsnorm(const Node *node, int n) { return rows_of(node, n); }

/* rrms of each vector */
static size_t aux_qknorm(const Node *node, int n) {
    const QkVectors v = qk_vectors(node->attention, node->whole);
    return rows_of(node, n) * (size_t)(v.q + v.k);
}

/* log-sum-exp */
static size_t aux_attention(const Node *node, int n) {
    return rows_of(node, n) * (size_t)node->attention.heads;
}

/* ---- operations ---- */

static double flops_linear(const Node *node, Pass pass) {
    (void)pass;
    return 2 * (double)shape_count(node->in_shape) * node->out_shape.c;
}

static double flops_conv2d(const Node *node, Pass pass) {
    (void)pass;
    double out = (double)shape_count(node->out_shape);
    return 2 * out * node->in_shape.c * node->kernel * node->kernel;
}

/* Forward has two products of t x t scores, backward five, because it recomputes the scores.
 * Causal scores are half of each, without those that a window leaves out. */
static double flops_attention(const Node *node, Pass pass) {
    if (pass == PASS_WEIGHT_GRADIENT) return 0;
    const double t = node->out_shape.w, w = node->attention.window;
    const double left_out = w > 0 && w < t ? (t - w) * (t - w) / (t * t) : 0;
    const double product = (double)shape_count(node->out_shape) * t * (1 - left_out);
    return (pass == PASS_FORWARD ? 2 : 5) * (node->attention.causal ? 1 : 2) * product;
}

/* ---- calls ---- */

/* A plain stage calls the textbook loops, another their counterparts. */
#define CALL(op, ...) (io->plain ? op : fast_##op)(__VA_ARGS__)

static int rows_in(const Node *node, const NodeIO *io) { return io->n * node_positions(node); }

static size_t count_of(const Node *node, const NodeIO *io) {
    return (size_t)io->n * shape_count(node->in_shape);
}

static void linear(const Node *node, const NodeIO *io) {
    CALL(linear_forward, io->y, io->x, io->weight, io->bias, rows_in(node, io), node->in_shape.c,
         node->out_shape.c);
}

static void linear_dx(const Node *node, const NodeIO *io) {
    CALL(linear_input_gradient, io->dx, io->dy, io->weight, rows_in(node, io), node->in_shape.c,
         node->out_shape.c, io->add_dx);
}

static void linear_dw(const Node *node, const NodeIO *io) {
    const int rows = rows_in(node, io), c = node->in_shape.c, o = node->out_shape.c;
    if (io->dweight)
        CALL(linear_weight_gradient, io->dweight, io->dy, io->x, rows, c, o, io->add_dweight);
    if (io->dbias) CALL(bias_gradient, io->dbias, io->dy, rows, o, io->add_dbias);
}

static void conv2d(const Node *node, const NodeIO *io) {
    CALL(conv2d_forward, io->y, io->x, io->weight, node_conv(node, io->n));
}

static void conv2d_dx(const Node *node, const NodeIO *io) {
    CALL(conv2d_input_gradient, io->dx, io->dy, io->weight, node_conv(node, io->n), io->add_dx);
}

static void conv2d_dw(const Node *node, const NodeIO *io) {
    CALL(conv2d_weight_gradient, io->dweight, io->dy, io->x, node_conv(node, io->n),
         io->add_dweight);
}

static void batchnorm(const Node *node, const NodeIO *io) {
    const int c = node->in_shape.c;
    CALL(batchnorm_forward, io->y, io->aux, io->aux + c, io->running_mean, io->running_var, io->x,
         io->skip, io->weight, io->bias, rows_in(node, io), c, node->relu, io->use_running,
         io->hold_running ? 0 : BATCHNORM_MOMENTUM);
}

static void batchnorm_sum(const Node *node, const NodeIO *io) {
    const int c = node->in_shape.c;
    CALL(batchnorm_sums, io->aux + 2 * c, io->dy, io->x, io->y, io->aux, io->aux + c,
         rows_in(node, io), c, node->relu);
}

static void batchnorm_dx(const Node *node, const NodeIO *io) {
    const int c = node->in_shape.c;
    if (!io->use_running) batchnorm_sum(node, io);
    CALL(batchnorm_input_gradient, io->dx, io->dskip, io->dy, io->x, io->y, io->weight, io->aux,
         io->aux + c, io->aux + 2 * c, rows_in(node, io), c, node->relu, io->use_running,
         io->add_dx, io->add_dskip);
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
    const int rows = rows_in(node, io);
    CALL(layernorm_forward, io->y, io->aux, io->aux + rows, io->x, io->weight, io->bias, rows,
         node->in_shape.c, node->eps);
}

static void layernorm_dx(const Node *node, const NodeIO *io) {
    const int rows = rows_in(node, io);
    CALL(layernorm_input_gradient, io->dx, io->dy, io->x, io->weight, io->aux, io->aux + rows, rows,
         node->in_shape.c, io->add_dx);
}

static void layernorm_dw(const Node *node, const NodeIO *io) {
    const int rows = rows_in(node, io), c = node->in_shape.c;
    CALL(layernorm_weight_gradient, io->dweight, io->dy, io->x, io->aux, io->aux + rows, rows, c,
         io->add_dweight);
    CALL(bias_gradient, io->dbias, io->dy, rows, c, io->add_dbias);
}

static void rmsnorm(const Node *node, const NodeIO *io) {
    CALL(rmsnorm_forward, io->y, io->aux, io->x, io->weight, rows_in(node, io), node->in_shape.c,
         node->eps);
}

static void rmsnorm_dx(const Node *node, const NodeIO *io) {
    CALL(rmsnorm_input_gradient, io->dx, io->dy, io->x, io->weight, io->aux, rows_in(node, io),
         node->in_shape.c, io->add_dx);
}

static void rmsnorm_dw(const Node *node, const NodeIO *io) {
    CALL(rmsnorm_weight_gradient, io->dweight, io->dy, io->x, io->aux, rows_in(node, io),
         node->in_shape.c, io->add_dweight);
}

static void qknorm(const Node *node, const NodeIO *io) {
    CALL(qknorm_forward, io->y, io->aux, io->x, io->weight, io->bias, rows_in(node, io),
         node->attention, node->whole, node->eps);
}

static void qknorm_dx(const Node *node, const NodeIO *io) {
    CALL(qknorm_input_gradient, io->dx, io->dy, io->x, io->weight, io->bias, io->aux,
         rows_in(node, io), node->attention, node->whole, io->add_dx);
}

static void qknorm_dw(const Node *node, const NodeIO *io) {
    CALL(qknorm_weight_gradient, io->dweight, io->dbias, io->dy, io->x, io->aux, rows_in(node, io),
         node->attention, node->whole, io->add_dweight, io->add_dbias);
}

static void attention(const Node *node, const NodeIO *io) {
    CALL(attention_forward, io->y, io->aux, io->x, io->n, node_positions(node), node->attention);
}

static void attention_dx(const Node *node, const NodeIO *io) {
    CALL(attention_input_gradient, io->dx, io->dy, io->x, io->y, io->aux, io->n,
         node_positions(node), node->attention, io->add_dx);
}

static void relu(const Node *node, const NodeIO *io) {
    CALL(relu_forward, io->y, io->x, count_of(node, io));
}

static void relu_dx(const Node *node, const NodeIO *io) {
    CALL(relu_input_gradient, io->dx, io->dy, io->y, count_of(node, io), io->add_dx);
}

static void gelu(const Node *node, const NodeIO *io) {
    CALL(gelu_forward, io->y, io->x, count_of(node, io));
}

static void gelu_dx(const Node *node, const NodeIO *io) {
    CALL(gelu_input_gradient, io->dx, io->dy, io->x, count_of(node, io), io->add_dx);
}

static void swiglu(const Node *node, const NodeIO *io) {
    CALL(swiglu_forward, io->y, io->x, rows_in(node, io), node->out_shape.c);
}

static void swiglu_dx(const Node *node, const NodeIO *io) {
    CALL(swiglu_input_gradient, io->dx, io->dy, io->x, rows_in(node, io), node->out_shape.c,
         io->add_dx);
}

static void add(const Node *node, const NodeIO *io) {
    CALL(add_forward, io->y, io->x, io->skip, count_of(node, io));
}

static void add_dx(const Node *node, const NodeIO *io) {
    const size_t count = count_of(node, io);
    if (io->dskip) CALL(add_input_gradient, io->dskip, io->dy, count, io->add_dskip);
    if (io->dx) CALL(add_input_gradient, io->dx, io->dy, count, io->add_dx);
}

static void avgpool(const Node *node, const NodeIO *io) {
    CALL(avgpool_forward, io->y, io->x, io->n, node_positions(node), node->in_shape.c);
}

static void avgpool_dx(const Node *node, const NodeIO *io) {
    CALL(avgpool_input_gradient, io->dx, io->dy, io->n, node_positions(node), node->in_shape.c,
         io->add_dx);
}

static void embedding(const Node *node, const NodeIO *io) {
    CALL(embedding_forward, io->y, io->tokens, io->weight, io->bias, io->n, node_positions(node),
         node->out_shape.c);
}

static void embedding_dw(const Node *node, const NodeIO *io) {
    const int t = node_positions(node), c = node->out_shape.c;
    if (io->dweight)
        CALL(embedding_weight_gradient, io->dweight, io->dy, io->tokens, io->n, t, c,
             node->vocabulary, io->add_dweight);
    if (io->dbias) CALL(embedding_position_gradient, io->dbias, io->dy, io->n, t, c, io->add_dbias);
}

/* ---- the table ---- */

enum { NOTHING = 0, INPUT = 1, OUTPUT = 2, BOTH = INPUT | OUTPUT };

typedef void NodePass(const Node *node, const NodeIO *io);

/* What an op's input gradient and weight gradient read of its input and output; the numbers it
 * saves besides its output, and its operations (NULL: none, or not counted); and its three calls.
 * NULL where there is nothing to compute: tokens have no gradient, and some ops no parameters. */
static const struct {
    const char *name;
    int input_gradient, weight_gradient; /* NOTHING ... BOTH */
    size_t (*aux)(const Node *node, int n);
    double (*flops)(const Node *node, Pass pass);
    NodePass *forward, *dx, *dw;
} ops[] = {
    /* clang-format off */
    [OP_LINEAR] = {"linear", NOTHING, INPUT, NULL, flops_linear, linear, linear_dx, linear_dw},
    [OP_CONV2D] = {"conv2d", NOTHING, INPUT, NULL, flops_conv2d, conv2d, conv2d_dx, conv2d_dw},
    [OP_BATCHNORM] = {"batchnorm", INPUT, INPUT, aux_batchnorm, NULL, batchnorm, batchnorm_dx, batchnorm_dw}, /* see saved_for_backward */
    [OP_LAYERNORM] = {"layernorm", INPUT, INPUT, aux_layernorm, NULL, layernorm, layernorm_dx, layernorm_dw},
    [OP_RMSNORM] = {"rmsnorm", INPUT, INPUT, aux_rmsnorm, NULL, rmsnorm, rmsnorm_dx, rmsnorm_dw},
    [OP_QKNORM] = {"qknorm", INPUT, INPUT, aux_qknorm, NULL, qknorm, qknorm_dx, qknorm_dw},
    [OP_ATTENTION] = {"attention", BOTH, NOTHING, aux_attention, flops_attention, attention, attention_dx, NULL},
    [OP_RELU] = {"relu", OUTPUT, NOTHING, NULL, NULL, relu, relu_dx, NULL},
    [OP_GELU] = {"gelu", INPUT, NOTHING, NULL, NULL, gelu, gelu_dx, NULL},
    [OP_SWIGLU] = {"swiglu", INPUT, NOTHING, NULL, NULL, swiglu, swiglu_dx, NULL},
    [OP_ADD] = {"add", NOTHING, NOTHING, NULL, NULL, add, add_dx, NULL},
    [OP_AVGPOOL] = {"avgpool", NOTHING, NOTHING, NULL, NULL, avgpool, avgpool_dx, NULL},
    [OP_EMBEDDING] = {"embedding", NOTHING, NOTHING, NULL, NULL, embedding, NULL, embedding_dw},
    /* clang-format on */
};
static_assert(sizeof ops / sizeof *ops == OP_KINDS, "a row for every op");

const char *op_name(OpKind kind) { return ops[kind].name; }

SavedForBackward saved_for_backward(const Node *node, bool input_gradient, bool weight_gradient,
                                    bool running) {
    const OpKind kind = node->kind;
    int reads = NOTHING;
    /* With running statistics dx is dy times a constant per channel. */
    if (input_gradient && !(kind == OP_BATCHNORM && running)) reads |= ops[kind].input_gradient;
    if (weight_gradient) reads |= ops[kind].weight_gradient;
    /* The mask of a fused relu is read from the output. */
    if (node->relu && (input_gradient || weight_gradient)) reads |= OUTPUT;
    return (SavedForBackward){reads & INPUT, reads & OUTPUT};
}

size_t node_aux_count(const Node *node, int n) {
    return ops[node->kind].aux ? ops[node->kind].aux(node, n) : 0;
}

double node_flops(const Node *node, Pass pass) {
    return ops[node->kind].flops ? ops[node->kind].flops(node, pass) : 0;
}

void node_forward(const Node *node, const NodeIO *io) { ops[node->kind].forward(node, io); }

void node_input_gradient(const Node *node, const NodeIO *io) {
    NodePass *pass = ops[node->kind].dx;
    if (pass && (io->dx || io->dskip)) pass(node, io);
}

void node_weight_gradient(const Node *node, const NodeIO *io) {
    NodePass *pass = ops[node->kind].dw;
    if (pass && (io->dweight || io->dbias)) pass(node, io);
}
