#include "builder.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/error.h"
#include "../ops/ops.h"

int build_tables(Model *m, int blocks, Shape input, bool tokens) {
    const size_t count = (size_t)blocks;
    m->block = calloc(count, sizeof *m->block);
    m->node = calloc(count * BLOCK_NODES, sizeof *m->node);
    m->value = calloc(count * BLOCK_NODES + 1, sizeof *m->value);
    m->param = calloc(count * BLOCK_PARAMS, sizeof *m->param);
    m->buffer = calloc(count * BLOCK_BUFFERS, sizeof *m->buffer);
    if (!m->block || !m->node || !m->value || !m->param || !m->buffer)
        return error_set("model: out of memory for the tables of %s", m->spec);
    m->input = input;
    m->tokens = tokens;
    m->targets = tokens ? input.w : 1;
    m->value[0] = (Value){input, -1};
    m->values = 1;
    return 0;
}

void build_block(Model *m, const char *format, ...) {
    Block *block = &m->block[m->blocks];
    *block = (Block){.first_node = m->nodes,
                     .first_param = m->params,
                     .end_param = m->params,
                     .first_value = m->values,
                     .in = m->values - 1};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(block->name, sizeof block->name, format, arguments);
    va_end(arguments);
    m->blocks++;
}

static Block *last_block(const Model *m) { return &m->block[m->blocks - 1]; }

static int add_param(Model *m, const char *name, const char *suffix, int rank, const int *dim,
                     Init init, double deviation) {
    Block *block = last_block(m);
    Param *param = &m->param[m->params];
    assert(m->params - block->first_param < BLOCK_PARAMS);
    *param = (Param){
        .rank = rank, .count = 1, .block = m->blocks - 1, .init = init, .deviation = deviation};
    snprintf(param->name, sizeof param->name, "%s.%s%s%s", block->name, name, *name ? "." : "",
             suffix);
    param->parts = 1;
    param->part_rows[0] = dim[0];
    for (int i = 0; i < rank; i++) {
        param->dim[i] = dim[i];
        param->count *= (size_t)dim[i];
    }
    m->param_count += param->count;
    block->end_param = m->params + 1;
    return m->params++;
}

static int add_buffer(Model *m, const char *name, const char *suffix, int count, Init init) {
    Buffer *buffer = &m->buffer[m->buffers];
    assert(m->buffers < m->blocks * BLOCK_BUFFERS);
    *buffer = (Buffer){.count = count, .block = m->blocks - 1, .init = init};
    snprintf(buffer->name, sizeof buffer->name, "%s.%s.%s", last_block(m)->name, name, suffix);
    return m->buffers++;
}

/* Appends a node and its output value, and returns the value. */
static int add_node(Model *m, Node node, Shape out) {
    Block *block = last_block(m);
    assert(m->nodes - block->first_node < BLOCK_NODES);
    node.in_shape = m->value[node.in].shape;
    node.out_shape = out;
    node.out = block->out = m->values;
    m->node[m->nodes++] = node;
    m->value[m->values++] = (Value){out, m->blocks - 1};
    block->end_node = m->nodes;
    block->end_value = m->values;
    return node.out;
}

/* Returns a node that has neither skip nor parameters nor buffers yet. */
static Node node_of(OpKind kind, int in) {
    return (Node){.kind = kind, .in = in, .skip = -1, .weight = -1, .bias = -1, .running = -1};
}

static Shape with_channels(Shape shape, int c) { return (Shape){shape.h, shape.w, c}; }

int build_linear(Model *m, const char *name, int in, int outputs, bool bias, double deviation) {
    Shape shape = m->value[in].shape;
    Node node = node_of(OP_LINEAR, in);
    node.weight =
        add_param(m, name, "weight", 2, (int[]){outputs, shape.c}, INIT_NORMAL, deviation);
    if (bias) node.bias = add_param(m, name, "bias", 1, &outputs, INIT_ZEROS, 0);
    return add_node(m, node, with_channels(shape, outputs));
}

static void divide(Param *param, int parts, const int *rows) {
    param->parts = parts;
    memcpy(param->part_rows, rows, (size_t)parts * sizeof *rows);
}

int build_linear_packed(Model *m, const char *name, int in, int parts, const int *rows, bool bias,
                        double deviation) {
    int outputs = 0;
    for (int i = 0; i < parts; i++) outputs += rows[i];
    const int out = build_linear(m, name, in, outputs, bias, deviation);
    const Node *node = &m->node[m->nodes - 1];
    divide(&m->param[node->weight], parts, rows);
    if (bias) divide(&m->param[node->bias], parts, rows);
    return out;
}

int build_linear_tied(Model *m, int in, int weight) {
    Node node = node_of(OP_LINEAR, in);
    node.weight = weight;
    return add_node(m, node, with_channels(m->value[in].shape, m->param[weight].dim[0]));
}

/* The weights start as in torchvision's ResNets: He et al. 2015, by the number of outputs. */
int build_conv2d(Model *m, const char *name, int in, int outputs, int kernel, int stride) {
    Shape shape = m->value[in].shape;
    Node node = node_of(OP_CONV2D, in);
    node.kernel = kernel;
    node.stride = stride;
    node.pad = kernel / 2;
    node.weight = add_param(m, name, "weight", 4, (int[]){outputs, kernel, kernel, shape.c},
                            INIT_NORMAL, sqrt(2.0 / (kernel * kernel * (double)outputs)));
    const Conv conv = {.kernel = kernel, .stride = stride, .pad = node.pad};
    Shape out = {conv2d_out(shape.h, &conv), conv2d_out(shape.w, &conv), outputs};
    return add_node(m, node, out);
}

static int norm(Model *m, const char *name, Node node, bool shift) {
    Shape shape = m->value[node.in].shape;
    node.weight = add_param(m, name, "weight", 1, &shape.c, INIT_ONES, 0);
    if (shift) node.bias = add_param(m, name, "bias", 1, &shape.c, INIT_ZEROS, 0);
    return add_node(m, node, shape);
}

int build_batchnorm(Model *m, const char *name, int in, int skip, bool relu) {
    Node node = node_of(OP_BATCHNORM, in);
    node.skip = skip;
    node.relu = relu;
    node.running = add_buffer(m, name, "running_mean", m->value[in].shape.c, INIT_ZEROS);
    add_buffer(m, name, "running_var", m->value[in].shape.c, INIT_ONES);
    return norm(m, name, node, true);
}

int build_layernorm(Model *m, const char *name, int in, double eps) {
    Node node = node_of(OP_LAYERNORM, in);
    node.eps = eps;
    return norm(m, name, node, true);
}

int build_rmsnorm(Model *m, const char *name, int in, double eps) {
    Node node = node_of(OP_RMSNORM, in);
    node.eps = eps;
    return norm(m, name, node, false);
}

int build_qknorm(Model *m, int in, Attention attention, bool whole, double eps) {
    const QkVectors v = qk_vectors(attention, whole);
    Node node = node_of(OP_QKNORM, in);
    node.attention = attention;
    node.whole = whole;
    node.eps = eps;
    node.weight = add_param(m, "attention.q_norm", "weight", 1, &v.q_size, INIT_ONES, 0);
    node.bias = add_param(m, "attention.k_norm", "weight", 1, &v.k_size, INIT_ONES, 0);
    return add_node(m, node, m->value[in].shape);
}

int build_attention(Model *m, int in, Attention attention) {
    Node node = node_of(OP_ATTENTION, in);
    node.attention = attention;
    assert(attention.causal || !attention.window);
    return add_node(m, node, with_channels(m->value[in].shape, attention.heads * attention.d));
}

static int elementwise(Model *m, Node node, int divide_channels) {
    Shape shape = m->value[node.in].shape;
    return add_node(m, node, with_channels(shape, shape.c / divide_channels));
}

int build_relu(Model *m, int in) { return elementwise(m, node_of(OP_RELU, in), 1); }
int build_gelu(Model *m, int in) { return elementwise(m, node_of(OP_GELU, in), 1); }
int build_swiglu(Model *m, int in) { return elementwise(m, node_of(OP_SWIGLU, in), 2); }

int build_add(Model *m, int in, int skip) {
    Node node = node_of(OP_ADD, in);
    node.skip = skip;
    return elementwise(m, node, 1);
}

int build_avgpool(Model *m, int in) {
    return add_node(m, node_of(OP_AVGPOOL, in), (Shape){1, 1, m->value[in].shape.c});
}

int build_embedding(Model *m, int in, int vocabulary, int width, int context) {
    /* For tokens and positions that of Hugging Face's GPT-2; the code of Radford et al. 2019 has
     * 0.02 for tokens and 0.01 for positions. */
    const double deviation = 0.02;
    Node node = node_of(OP_EMBEDDING, in);
    node.vocabulary = vocabulary;
    node.weight =
        add_param(m, "token", "weight", 2, (int[]){vocabulary, width}, INIT_NORMAL, deviation);
    if (context)
        node.bias =
            add_param(m, "position", "weight", 2, (int[]){context, width}, INIT_NORMAL, deviation);
    return add_node(m, node, with_channels(m->value[in].shape, width));
}

void build_end(Model *m) {
    const Node *last = &m->node[m->nodes - 1];
    /* The gradient of the loss overwrites the logits, so nothing may read or compute them again. */
    assert(last->kind == OP_LINEAR && !last->relu && last->out == m->values - 1);
    m->outputs = m->value[last->out].shape.c;
    for (int p = 0; p < m->params; p++)
        m->param[p].kind = m->param[p].rank == 1 ? PARAM_VECTOR : PARAM_MATRIX;
    for (int i = 0; i < m->nodes; i++) {
        const Node *node = &m->node[i];
        if (node->kind != OP_EMBEDDING && node != last) continue;
        if (node->weight >= 0) m->param[node->weight].kind = PARAM_EMBEDDING;
        if (node->kind == OP_EMBEDDING && node->bias >= 0)
            m->param[node->bias].kind = PARAM_EMBEDDING;
    }
}
