#include "builder.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../ops/ops.h"

/* Appends a zeroed element to an array and returns it, or NULL when memory runs out.  The capacity
 * doubles, so that n elements take O(n) time. */
static void *append(Builder *b, void *array_address, int *count, size_t size) {
    void **array = array_address;
    if ((*count & (*count - 1)) == 0) {
        size_t capacity = *count ? 2 * (size_t)*count : 1;
        void *grown = b->failed ? NULL : realloc(*array, capacity * size);
        if (!grown) {
            b->failed = true;
            return NULL;
        }
        *array = grown;
    }
    void *element = (char *)*array + (size_t)*count * size;
    memset(element, 0, size);
    ++*count;
    return element;
}

static int last_block(const Builder *b) { return b->model->blocks - 1; }

static int add_value(Builder *b, Shape shape) {
    Model *m = b->model;
    Value *value = append(b, &m->value, &m->values, sizeof *value);
    if (!value) return 0;
    *value = (Value){shape, last_block(b)};
    if (m->blocks) {
        Block *block = &m->block[last_block(b)];
        block->end_value = m->values;
        block->out = m->values - 1;
    }
    return m->values - 1;
}

static int add_param(Builder *b, const char *name, const char *suffix, int rank, const int *dim,
                     Init init, double deviation) {
    Model *m = b->model;
    Param *param = append(b, &m->param, &m->params, sizeof *param);
    if (!param) return 0;
    Block *block = &m->block[last_block(b)];
    block->end_param = m->params;
    snprintf(param->name, sizeof param->name, "%s.%s%s%s", block->name, name, *name ? "." : "",
             suffix);
    param->rank = rank;
    param->count = 1;
    for (int i = 0; i < rank; i++) {
        param->dim[i] = dim[i];
        param->count *= (size_t)dim[i];
    }
    param->block = last_block(b);
    param->init = init;
    param->deviation = deviation;
    m->param_count += param->count;
    return m->params - 1;
}

static int add_buffer(Builder *b, const char *name, const char *suffix, int count, Init init) {
    Model *m = b->model;
    Buffer *buffer = append(b, &m->buffer, &m->buffers, sizeof *buffer);
    if (!buffer) return 0;
    snprintf(buffer->name, sizeof buffer->name, "%s.%s.%s", m->block[last_block(b)].name, name,
             suffix);
    buffer->count = count;
    buffer->block = last_block(b);
    buffer->init = init;
    return m->buffers - 1;
}

/* Appends a node and its output value, and returns the value. */
static int add_node(Builder *b, Node node, Shape out) {
    Model *m = b->model;
    Node *place = append(b, &m->node, &m->nodes, sizeof *place);
    if (!place) return 0;
    node.in_shape = m->value[node.in].shape;
    node.out_shape = out;
    node.out = add_value(b, out);
    *place = node;
    m->block[last_block(b)].end_node = m->nodes;
    return node.out;
}

/* Returns a node that has neither skip nor parameters nor buffers yet. */
static Node node_of(OpKind kind, int in) {
    return (Node){.kind = kind, .in = in, .skip = -1, .weight = -1, .bias = -1, .running = -1};
}

static Shape shape_at(const Builder *b, int value) {
    return b->failed ? (Shape){1, 1, 1} : b->model->value[value].shape;
}

static Shape with_channels(Shape shape, int c) { return (Shape){shape.h, shape.w, c}; }

int build_input(Builder *b, Shape shape, bool tokens) {
    b->model->input = shape;
    b->model->tokens = tokens;
    b->model->targets = tokens ? shape.w : 1;
    int value = add_value(b, shape);
    if (!b->failed) b->model->value[0].block = -1;
    return value;
}

void build_block(Builder *b, const char *format, ...) {
    Model *m = b->model;
    int in = m->blocks ? m->block[last_block(b)].out : 0;
    Block *block = append(b, &m->block, &m->blocks, sizeof *block);
    if (!block) return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(block->name, sizeof block->name, format, arguments);
    va_end(arguments);
    block->first_node = block->end_node = m->nodes;
    block->first_param = block->end_param = m->params;
    block->first_value = block->end_value = m->values;
    block->in = block->out = in;
}

int build_linear(Builder *b, const char *name, int in, int outputs, bool bias, double deviation) {
    if (b->failed) return 0;
    Shape shape = shape_at(b, in);
    Node node = node_of(OP_LINEAR, in);
    node.weight =
        add_param(b, name, "weight", 2, (int[]){outputs, shape.c}, INIT_NORMAL, deviation);
    if (bias) node.bias = add_param(b, name, "bias", 1, &outputs, INIT_ZEROS, 0);
    return add_node(b, node, with_channels(shape, outputs));
}

int build_linear_tied(Builder *b, int in, int weight) {
    if (b->failed) return 0;
    Node node = node_of(OP_LINEAR, in);
    node.weight = weight;
    return add_node(b, node, with_channels(shape_at(b, in), b->model->param[weight].dim[0]));
}

int build_conv2d(Builder *b, const char *name, int in, int outputs, int kernel, int stride) {
    if (b->failed) return 0;
    Shape shape = shape_at(b, in);
    Node node = node_of(OP_CONV2D, in);
    node.kernel = kernel;
    node.stride = stride;
    node.pad = kernel / 2;
    node.weight = add_param(b, name, "weight", 4, (int[]){outputs, kernel, kernel, shape.c},
                            INIT_NORMAL, sqrt(2.0 / (kernel * kernel * (double)outputs)));
    Shape out = {conv2d_out(shape.h, kernel, stride, node.pad),
                 conv2d_out(shape.w, kernel, stride, node.pad), outputs};
    return add_node(b, node, out);
}

static int norm(Builder *b, const char *name, Node node, bool shift) {
    if (b->failed) return 0;
    Shape shape = shape_at(b, node.in);
    node.weight = add_param(b, name, "weight", 1, &shape.c, INIT_ONES, 0);
    if (shift) node.bias = add_param(b, name, "bias", 1, &shape.c, INIT_ZEROS, 0);
    return add_node(b, node, shape);
}

int build_batchnorm(Builder *b, const char *name, int in, int skip, bool relu) {
    if (b->failed) return 0;
    Node node = node_of(OP_BATCHNORM, in);
    node.skip = skip;
    node.relu = relu;
    node.running = add_buffer(b, name, "running_mean", shape_at(b, in).c, INIT_ZEROS);
    add_buffer(b, name, "running_var", shape_at(b, in).c, INIT_ONES);
    return norm(b, name, node, true);
}

int build_layernorm(Builder *b, const char *name, int in, double eps) {
    Node node = node_of(OP_LAYERNORM, in);
    node.eps = eps;
    return norm(b, name, node, true);
}

int build_rmsnorm(Builder *b, const char *name, int in, double eps) {
    Node node = node_of(OP_RMSNORM, in);
    node.eps = eps;
    return norm(b, name, node, false);
}

int build_attention(Builder *b, int in, Attention attention) {
    Node node = node_of(OP_ATTENTION, in);
    node.attention = attention;
    Shape out = with_channels(shape_at(b, in), attention.heads * attention.d);
    return b->failed ? 0 : add_node(b, node, out);
}

static int elementwise(Builder *b, Node node, int divide_channels) {
    Shape shape = shape_at(b, node.in);
    return b->failed ? 0 : add_node(b, node, with_channels(shape, shape.c / divide_channels));
}

int build_relu(Builder *b, int in) { return elementwise(b, node_of(OP_RELU, in), 1); }
int build_gelu(Builder *b, int in) { return elementwise(b, node_of(OP_GELU, in), 1); }
int build_swiglu(Builder *b, int in) { return elementwise(b, node_of(OP_SWIGLU, in), 2); }

int build_add(Builder *b, int in, int skip) {
    Node node = node_of(OP_ADD, in);
    node.skip = skip;
    return elementwise(b, node, 1);
}

int build_avgpool(Builder *b, int in) {
    if (b->failed) return 0;
    return add_node(b, node_of(OP_AVGPOOL, in), (Shape){1, 1, shape_at(b, in).c});
}

int build_embedding(Builder *b, int in, int vocabulary, int width, int context) {
    if (b->failed) return 0;
    const double deviation = 0.02; /* Radford et al. 2019 */
    Node node = node_of(OP_EMBEDDING, in);
    node.vocabulary = vocabulary;
    node.weight =
        add_param(b, "token", "weight", 2, (int[]){vocabulary, width}, INIT_NORMAL, deviation);
    if (context)
        node.bias =
            add_param(b, "position", "weight", 2, (int[]){context, width}, INIT_NORMAL, deviation);
    return add_node(b, node, with_channels(shape_at(b, in), width));
}
