/* The facts about each op that memory.c and all devices share.  The functions that run an op are in
 * a table of each device: node.c, cuda/node.c. */
#include <assert.h>

#include "model.h"

QkVectors qk_vectors(Attention a, bool whole) {
    return whole ? (QkVectors){.q = 1, .k = 1, .q_size = a.heads * a.d, .k_size = a.groups * a.d}
                 : (QkVectors){.q = a.heads, .k = a.groups, .q_size = a.d, .k_size = a.d};
}

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

/* ---- the table ---- */

enum { NOTHING = 0, INPUT = 1, OUTPUT = 2, BOTH = INPUT | OUTPUT };

/* What an op's input gradient and weight gradient read of its input and output, the numbers it
 * saves besides its output, and its operations.  NULL: it saves none, or they are not counted. */
static const struct {
    const char *name;
    int input_gradient, weight_gradient; /* NOTHING ... BOTH */
    size_t (*aux)(const Node *node, int n);
    double (*flops)(const Node *node, Pass pass);
} ops[] = {
    [OP_LINEAR] = {"linear", NOTHING, INPUT, NULL, flops_linear},
    [OP_CONV2D] = {"conv2d", NOTHING, INPUT, NULL, flops_conv2d},
    [OP_BATCHNORM] = {"batchnorm", INPUT, INPUT, aux_batchnorm, NULL}, /* see saved_for_backward */
    [OP_LAYERNORM] = {"layernorm", INPUT, INPUT, aux_layernorm, NULL},
    [OP_RMSNORM] = {"rmsnorm", INPUT, INPUT, aux_rmsnorm, NULL},
    [OP_QKNORM] = {"qknorm", INPUT, INPUT, aux_qknorm, NULL},
    [OP_ATTENTION] = {"attention", BOTH, NOTHING, aux_attention, flops_attention},
    [OP_RELU] = {"relu", OUTPUT, NOTHING, NULL, NULL},
    [OP_GELU] = {"gelu", INPUT, NOTHING, NULL, NULL},
    [OP_SWIGLU] = {"swiglu", INPUT, NOTHING, NULL, NULL},
    [OP_ADD] = {"add", NOTHING, NOTHING, NULL, NULL},
    [OP_AVGPOOL] = {"avgpool", NOTHING, NOTHING, NULL, NULL},
    [OP_EMBEDDING] = {"embedding", NOTHING, NOTHING, NULL, NULL},
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
