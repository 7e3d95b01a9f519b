/* The table of ops on the device: a row has the launchers and the workspace they need. */
#include "node.h"

#include "matmul.h"

/* The arguments of a call on a node, and its sizes. */
typedef struct {
    const Run *run;
    const Node *node;
    const DeviceIO *io;
    int n, positions, rows; /* rows = n * positions */
    int c, o;               /* numbers in a row of x, and of y */
    int y_stride;           /* numbers from one row of y to the next */
    size_t count;           /* numbers in x: rows * c */
} Call;

static Call call_of(const Run *run, const Node *node, const DeviceIO *io, int n) {
    Call k = {.run = run, .node = node, .io = io, .n = n};
    k.positions = node_positions(node);
    k.rows = n * k.positions;
    k.c = node->in_shape.c;
    k.o = node->out_shape.c;
    k.y_stride = io && io->y_stride ? io->y_stride : k.o;
    k.count = (size_t)k.rows * (size_t)k.c;
    return k;
}

/* ---- linear ---- */

static void linear_forward(Call k) {
    cuda_linear_forward(k.run, k.io->y, k.io->x, k.io->weight, k.io->bias, k.rows, k.c, k.o,
                        k.y_stride);
}
static void linear_input_gradient(Call k) {
    cuda_linear_input_gradient(k.run, k.io->dx, k.io->dy, k.io->weight, k.rows, k.c, k.o,
                               k.y_stride, k.io->add_dx);
}
static void linear_weight_gradient(Call k) {
    cuda_linear_weight_gradient(k.run, k.io->dweight, k.io->dbias, k.io->dy, k.io->x, k.rows, k.c,
                                k.o, k.y_stride, k.io->add_dweight, k.io->add_dbias);
}
static size_t linear_workspace(Call k) {
    size_t product = cuda_matmul_workspace();
    size_t bias = cuda_bias_gradient_workspace(k.rows, k.o);
    return product > bias ? product : bias;
}

/* ---- conv2d ---- */

static Conv conv_of(Call k) { return node_conv(k.node, k.n); }
static void conv2d_forward(Call k) {
    cuda_conv2d_forward(k.run, k.io->y, k.io->x, k.io->weight, conv_of(k));
}
static void conv2d_input_gradient(Call k) {
    cuda_conv2d_input_gradient(k.run, k.io->dx, k.io->dy, k.io->weight, conv_of(k), k.io->add_dx);
}
static void conv2d_weight_gradient(Call k) {
    cuda_conv2d_weight_gradient(k.run, k.io->dweight, k.io->dy, k.io->x, conv_of(k),
                                k.io->add_dweight);
}
static size_t conv2d_workspace(Call k) { return cuda_conv2d_workspace(conv_of(k)); }

/* ---- batchnorm: aux is mean, rstd, and the sums over rows of dy and of dy x_hat ---- */

static void batchnorm_forward(Call k) {
    cuda_batchnorm_forward(k.run, k.io->y, k.io->aux, k.io->aux + k.c, k.io->running_mean,
                           k.io->running_var, k.io->x, k.io->skip, k.io->weight, k.io->bias, k.rows,
                           k.c, k.node->relu, k.io->use_running,
                           k.io->hold_running ? 0 : BATCHNORM_MOMENTUM);
}
static void batchnorm_sums(Call k, float *dweight, float *dbias) {
    cuda_batchnorm_sums(k.run, k.io->aux + 2 * k.c, dweight, dbias, k.io->dy, k.io->x, k.io->y,
                        k.io->aux, k.io->aux + k.c, k.rows, k.c, k.node->relu, k.io->add_dweight,
                        k.io->add_dbias);
}
static void batchnorm_input_gradient(Call k) {
    float *dweight = k.io->dx ? k.io->dweight : NULL, *dbias = k.io->dx ? k.io->dbias : NULL;
    if (!k.io->use_running || dweight || dbias) batchnorm_sums(k, dweight, dbias);
    cuda_batchnorm_input_gradient(k.run, k.io->dx, k.io->dskip, k.io->dy, k.io->x, k.io->y,
                                  k.io->weight, k.io->aux, k.io->aux + k.c, k.io->aux + 2 * k.c,
                                  k.rows, k.c, k.node->relu, k.io->use_running, k.io->add_dx,
                                  k.io->add_dskip);
}
/* The sums in aux are the gradients.  They are float whatever the precision. */
static void batchnorm_weight_gradient(Call k) {
    Run floats = *k.run;
    size_t c = (size_t)k.c;
    floats.precision = PRECISION_FP32;
    if (!k.io->sums_ready) {
        batchnorm_sums(k, k.io->dweight, k.io->dbias);
        return;
    }
    if (k.io->dbias)
        cuda_add_input_gradient(&floats, k.io->dbias, k.io->aux + 2 * c, c, k.io->add_dbias);
    if (k.io->dweight)
        cuda_add_input_gradient(&floats, k.io->dweight, k.io->aux + 3 * c, c, k.io->add_dweight);
}
static size_t batchnorm_workspace(Call k) { return cuda_batchnorm_workspace(k.rows, k.c); }

/* ---- layernorm: aux is mean, r; rmsnorm: aux is r ---- */

static Norm norm_of(Call k) {
    const bool centred = k.node->kind == OP_LAYERNORM;
    return (Norm){k.rows, k.c, centred ? k.io->aux : NULL, k.io->aux + (centred ? k.rows : 0)};
}
static void norm_forward(Call k) {
    cuda_norm_forward(k.run, k.io->y, k.io->sum, norm_of(k), k.io->x, k.io->skip, k.io->weight,
                      k.io->bias, k.node->eps);
}
static void norm_gradient(Call k, void *dx) {
    const void *addend = k.io->residual ? k.io->residual : k.io->add_dx ? k.io->dx : NULL;
    cuda_norm_gradient(k.run, dx, dx ? addend : NULL, k.io->dweight, k.io->dbias, k.io->dy, k.io->x,
                       k.io->weight, norm_of(k), k.io->add_dweight, k.io->add_dbias);
}
static void norm_gradients(Call k) { norm_gradient(k, k.io->dx); }
static void norm_weight_gradient(Call k) { norm_gradient(k, NULL); }
static size_t norm_workspace(Call k) { return cuda_norm_workspace(k.rows, k.c); }

/* ---- attention ---- */

static void attention_forward(Call k) {
    cuda_attention_forward(k.run, k.io->y, k.io->aux, k.io->x, k.n, k.positions, k.node->attention);
}
static void attention_input_gradient(Call k) {
    cuda_attention_input_gradient(k.run, k.io->dx, k.io->dy, k.io->x, k.io->y, k.io->aux, k.n,
                                  k.positions, k.node->attention, k.io->add_dx);
}
static size_t attention_workspace(Call k) {
    return cuda_attention_workspace(k.run->precision, k.n, k.positions, k.node->attention);
}

/* ---- without parameters ---- */

static void relu_forward(Call k) { cuda_relu_forward(k.run, k.io->y, k.io->x, k.count); }
static void relu_input_gradient(Call k) {
    cuda_relu_input_gradient(k.run, k.io->dx, k.io->dy, k.io->y, k.count, k.io->add_dx);
}

static void gelu_forward(Call k) { cuda_gelu_forward(k.run, k.io->y, k.io->x, k.count); }
static void gelu_input_gradient(Call k) {
    cuda_gelu_input_gradient(k.run, k.io->dx, k.io->dy, k.io->x, k.count, k.io->add_dx);
}

static void swiglu_forward(Call k) { cuda_swiglu_forward(k.run, k.io->y, k.io->x, k.rows, k.o); }
static void swiglu_input_gradient(Call k) {
    cuda_swiglu_input_gradient(k.run, k.io->dx, k.io->dy, k.io->x, k.rows, k.o, k.io->add_dx);
}

static void add_forward(Call k) { cuda_add_forward(k.run, k.io->y, k.io->x, k.io->skip, k.count); }
static void add_input_gradient(Call k) {
    if (k.io->dskip)
        cuda_add_input_gradient(k.run, k.io->dskip, k.io->dy, k.count, k.io->add_dskip);
    if (k.io->dx) cuda_add_input_gradient(k.run, k.io->dx, k.io->dy, k.count, k.io->add_dx);
}

static void avgpool_forward(Call k) {
    cuda_avgpool_forward(k.run, k.io->y, k.io->x, k.n, k.positions, k.c);
}
static void avgpool_input_gradient(Call k) {
    cuda_avgpool_input_gradient(k.run, k.io->dx, k.io->dy, k.n, k.positions, k.c, k.io->add_dx);
}

/* ---- embedding: tokens have no gradient ---- */

static void embedding_forward(Call k) {
    cuda_embedding_forward(k.run, k.io->y, k.io->tokens, k.io->weight, k.io->bias, k.n, k.positions,
                           k.o);
}
static void embedding_weight_gradient(Call k) {
    if (k.io->dweight)
        cuda_embedding_weight_gradient(k.run, k.io->dweight, k.io->dy, k.io->tokens, k.n,
                                       k.positions, k.o, k.node->vocabulary, k.io->add_dweight);
    if (k.io->dbias)
        cuda_embedding_position_gradient(k.run, k.io->dbias, k.io->dy, k.n, k.positions, k.o,
                                         k.io->add_dbias);
}
static size_t embedding_workspace(Call k) {
    return cuda_embedding_workspace(k.n, k.positions, k.node->vocabulary);
}

/* ---- the table ---- */

/* A function is NULL if the op does not need it. */
typedef struct {
    void (*forward)(Call);
    void (*input_gradient)(Call);  /* called if dx or dskip is wanted */
    void (*weight_gradient)(Call); /* called if dweight or dbias is wanted */
    size_t (*workspace)(Call);
} DeviceOp;

static const DeviceOp ops[OP_KINDS] = {
    [OP_LINEAR] = {linear_forward, linear_input_gradient, linear_weight_gradient, linear_workspace},
    [OP_CONV2D] = {conv2d_forward, conv2d_input_gradient, conv2d_weight_gradient, conv2d_workspace},
    [OP_BATCHNORM] = {batchnorm_forward, batchnorm_input_gradient, batchnorm_weight_gradient,
                      batchnorm_workspace},
    [OP_LAYERNORM] = {norm_forward, norm_gradients, norm_weight_gradient, norm_workspace},
    [OP_RMSNORM] = {norm_forward, norm_gradients, norm_weight_gradient, norm_workspace},
    [OP_ATTENTION] = {attention_forward, attention_input_gradient, NULL, attention_workspace},
    [OP_RELU] = {relu_forward, relu_input_gradient, NULL, NULL},
    [OP_GELU] = {gelu_forward, gelu_input_gradient, NULL, NULL},
    [OP_SWIGLU] = {swiglu_forward, swiglu_input_gradient, NULL, NULL},
    [OP_ADD] = {add_forward, add_input_gradient, NULL, NULL},
    [OP_AVGPOOL] = {avgpool_forward, avgpool_input_gradient, NULL, NULL},
    [OP_EMBEDDING] = {embedding_forward, NULL, embedding_weight_gradient, embedding_workspace},
};

void cuda_node_forward(const Run *run, const Node *node, const DeviceIO *io) {
    ops[node->kind].forward(call_of(run, node, io, io->n));
}

void cuda_node_input_gradient(const Run *run, const Node *node, const DeviceIO *io) {
    const DeviceOp *op = &ops[node->kind];
    if (op->input_gradient && (io->dx || io->dskip))
        op->input_gradient(call_of(run, node, io, io->n));
}

void cuda_node_weight_gradient(const Run *run, const Node *node, const DeviceIO *io) {
    const DeviceOp *op = &ops[node->kind];
    if (op->weight_gradient && (io->dweight || io->dbias))
        op->weight_gradient(call_of(run, node, io, io->n));
}

size_t cuda_node_workspace(const Node *node, int n, Precision precision) {
    const DeviceOp *op = &ops[node->kind];
    const Run run = {.precision = precision};
    return op->workspace ? op->workspace(call_of(&run, node, NULL, n)) : 0;
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
