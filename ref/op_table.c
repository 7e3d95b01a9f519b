/* The facts about each op that memory.c and all devices share.  The functions that run an op are in
 * a table of each device: node.c, cuda/node.c. */
#include <assert.h>
#include <stdlib.h>

#include "model.h"

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

/* ---- what the backward pass reads ---- */

typedef struct {
    bool input_gradient, weight_gradient;
    bool running; /* batchnorm: it normalised with the running statistics */
} GradientsWanted;

/* y = f(x, w) is linear in x and in w: dx needs only w, dw needs x. */
static SavedForBackward save_bilinear(const Node *node, GradientsWanted wanted) {
    (void)node;
    return (SavedForBackward){.input = wanted.weight_gradient};
}

/* With running statistics dx is dy times a constant per channel; with the batch's it depends on x.
 * The mask of a fused relu is read from the output. */
static SavedForBackward save_batchnorm(const Node *node, GradientsWanted wanted) {
    bool any = wanted.input_gradient || wanted.weight_gradient;
    bool input = wanted.weight_gradient || (wanted.input_gradient && !wanted.running);
    return (SavedForBackward){.input = input, .output = any && node->relu};
}

static SavedForBackward save_norm(const Node *node, GradientsWanted wanted) {
    (void)node;
    return (SavedForBackward){.input = wanted.input_gradient || wanted.weight_gradient};
}

static SavedForBackward save_input(const Node *node, GradientsWanted wanted) {
    (void)node;
    return (SavedForBackward){.input = wanted.input_gradient};
}

static SavedForBackward save_output(const Node *node, GradientsWanted wanted) {
    (void)node;
    return (SavedForBackward){.output = wanted.input_gradient};
}

static SavedForBackward save_both(const Node *node, GradientsWanted wanted) {
    (void)node;
    return (SavedForBackward){.input = wanted.input_gradient, .output = wanted.input_gradient};
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
 * Causal scores are half of each. */
static double flops_attention(const Node *node, Pass pass) {
    if (pass == PASS_WEIGHT_GRADIENT) return 0;
    double product = (double)shape_count(node->out_shape) * node->out_shape.w;
    return (pass == PASS_FORWARD ? 2 : 5) * (node->attention.causal ? 1 : 2) * product;
}

/* ---- the table ---- */

/* NULL: the op saves nothing, has no aux, or its operations are not counted. */
static const struct {
    const char *name;
    SavedForBackward (*saved)(const Node *node, GradientsWanted wanted);
    size_t (*aux)(const Node *node, int n);
    double (*flops)(const Node *node, Pass pass);
} ops[] = {
    [OP_LINEAR] = {"linear", save_bilinear, NULL, flops_linear},
    [OP_CONV2D] = {"conv2d", save_bilinear, NULL, flops_conv2d},
    [OP_BATCHNORM] = {"batchnorm", save_batchnorm, aux_batchnorm, NULL},
    [OP_LAYERNORM] = {"layernorm", save_norm, aux_layernorm, NULL},
    [OP_RMSNORM] = {"rmsnorm", save_norm, aux_rmsnorm, NULL},
    [OP_ATTENTION] = {"attention", save_both, aux_attention, flops_attention},
    [OP_RELU] = {"relu", save_output, NULL, NULL},
    [OP_GELU] = {"gelu", save_input, NULL, NULL},
    [OP_SWIGLU] = {"swiglu", save_input, NULL, NULL},
    [OP_ADD] = {"add", NULL, NULL, NULL},
    [OP_AVGPOOL] = {"avgpool", NULL, NULL, NULL},
    [OP_EMBEDDING] = {"embedding", NULL, NULL, NULL},
};
static_assert(sizeof ops / sizeof *ops == OP_KINDS, "a row for every op");

/* Aborts if an op has no row, which is a mistake in the program. */
static OpKind kind_of(OpKind kind) {
    if (kind >= OP_KINDS || !ops[kind].name) abort();
    return kind;
}

const char *op_name(OpKind kind) { return ops[kind_of(kind)].name; }

SavedForBackward saved_for_backward(const Node *node, bool input_gradient, bool weight_gradient,
                                    bool running) {
    const OpKind kind = kind_of(node->kind);
    const GradientsWanted wanted = {input_gradient, weight_gradient, running};
    return ops[kind].saved ? ops[kind].saved(node, wanted) : (SavedForBackward){false, false};
}

size_t node_aux_count(const Node *node, int n) {
    const OpKind kind = kind_of(node->kind);
    return ops[kind].aux ? ops[kind].aux(node, n) : 0;
}

double node_flops(const Node *node, Pass pass) {
    const OpKind kind = kind_of(node->kind);
    return ops[kind].flops ? ops[kind].flops(node, pass) : 0;
}
