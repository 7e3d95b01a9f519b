#include "work.h"

#include <stdio.h>
#include <string.h>

#include "../../ref/base/error.h"
#include "../../ref/base/random.h"

const char *const part_names[PARTS] = {"full", "bottom third", "middle third", "top third"};

void work_active(bool *active, const Model *model, int part) {
    int body = model->blocks - 2;
    for (int b = 0; b < model->blocks; b++)
        active[b] = part == 0 || (b > 0 && b <= body && (b - 1) * THIRDS / body == part - 1);
}

void work_fill(Batch *batch, const Model *m) {
    size_t n = (size_t)batch->n, inputs = n * shape_count(m->input);
    for (size_t i = 0; i < inputs; i++)
        if (m->tokens)
            batch->tokens[i] = (int)random_below(1, STREAM_SYNTHETIC, i, (uint32_t)m->outputs);
        else
            batch->images[i] = (real)random_normal(1, STREAM_SYNTHETIC, i);
    for (size_t i = 0; i < n * (size_t)m->targets; i++)
        batch->targets[i] = (int)random_below(2, STREAM_SYNTHETIC, i, (uint32_t)m->outputs);
    for (int i = 0; i < batch->n; i++) batch->ids[i] = i;
}

int work_optimizer(OptimizerSettings *settings, const char *name) {
    int kind = 0;
    while (kind < OPTIMIZER_KINDS && strcmp(optimizer_names[kind], name)) kind++;
    if (kind == OPTIMIZER_KINDS) return error_set("no optimizer %s", name);
    *settings = optimizer_defaults((OptimizerKind)kind);
    return 0;
}

bool work_alike(const Node *a, const Node *b) {
    return a->kind == b->kind && !memcmp(&a->in_shape, &b->in_shape, sizeof a->in_shape) &&
           !memcmp(&a->out_shape, &b->out_shape, sizeof a->out_shape) && a->kernel == b->kernel &&
           a->stride == b->stride && a->relu == b->relu && (a->skip < 0) == (b->skip < 0) &&
           (a->bias < 0) == (b->bias < 0) && a->attention.d == b->attention.d &&
           (a->attention.rope.base > 0) == (b->attention.rope.base > 0);
}

static void shape_text(char *text, size_t size, Shape shape) {
    if (shape.h > 1)
        snprintf(text, size, "%dx%dx%d", shape.h, shape.w, shape.c);
    else
        snprintf(text, size, "%dx%d", shape.w, shape.c);
}

void work_name(char *text, size_t size, const Node *node) {
    char from[40], to[40], extra[24] = "";
    shape_text(from, sizeof from, node->in_shape);
    shape_text(to, sizeof to, node->out_shape);
    if (node->kind == OP_CONV2D)
        snprintf(extra, sizeof extra, " %dx%d/%d", node->kernel, node->kernel, node->stride);
    if (node->kind == OP_BATCHNORM)
        snprintf(extra, sizeof extra, "%s%s", node->skip < 0 ? "" : "+skip",
                 node->relu ? "+relu" : "");
    if (node->kind == OP_ATTENTION)
        snprintf(extra, sizeof extra, " %d/%d%s", node->attention.heads, node->attention.groups,
                 node->attention.rope.base > 0 ? "+rope" : "");
    snprintf(text, size, "%s%s %s -> %s", op_name(node->kind), extra, from, to);
}
