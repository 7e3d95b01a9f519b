/* Generation on the CPU: a forward pass over new tokens alone.  All ops but one work on each
 * position by itself.  Attention reads the keys and values of the positions before, so its inputs
 * are kept (a KV cache); everything else is in the workspace, as in any pass. */
#include <string.h>

#include "base/error.h"
#include "node.h"
#include "stage_ref.h"

typedef struct {
    RefStage *stage;
    int first, count; /* the new tokens: positions first .. first + count - 1 */
} Extension;

static int rows_of(const Model *m, const Extension *e, int block) {
    return block == m->blocks - 1 ? 1 : e->count; /* only the last position's logits are wanted */
}

/* Returns where the new rows of a value are.  Values that are kept begin with the old ones. */
static real *rows_at(const Extension *e, int value) {
    RefStage *s = e->stage;
    const size_t width = (size_t)s->base.model->value[value].shape.c;
    return s->kept[value] ? s->kept[value] + (size_t)e->first * width : stage_value(s, value);
}

/* The head reads the last row of its input. */
static const real *input_at(const Extension *e, int value, int block) {
    const Model *m = e->stage->base.model;
    const real *rows = rows_at(e, value);
    if (block != m->blocks - 1 || m->value[value].block == block) return rows;
    return rows + (size_t)(e->count - 1) * (size_t)m->value[value].shape.c;
}

static void run_node(const Extension *e, int index) {
    RefStage *s = e->stage;
    const Model *m = s->base.model;
    Node node = m->node[index];
    const int block = node_block(m, &node);
    NodeIO io = stage_node_io(s, &m->node[index]);
    io.x = input_at(e, node.in, block);
    io.skip = node.skip < 0 ? NULL : input_at(e, node.skip, block);
    io.y = rows_at(e, node.out);
    node.in_shape.w = node.out_shape.w = rows_of(m, e, block);
    if (node.kind == OP_ATTENTION) {
        io.x = s->kept[node.in];
        node.in_shape.w = e->first + e->count;
        node.attention.cached = e->first;
    }
    if (node.kind == OP_EMBEDDING && io.bias) /* learned positions */
        io.bias += (size_t)e->first * (size_t)node.out_shape.c;
    node_forward(&node, &io);
}

/* Allocates what is kept: the values that attentions read. */
static int reserve(RefStage *s) {
    const Model *m = s->base.model;
    for (int i = 0; i < m->nodes; i++) {
        real **kept = &s->kept[m->node[i].in];
        const size_t count = value_count(m, m->node[i].in, 1);
        if (m->node[i].kind != OP_ATTENTION || *kept) continue;
        if (!(*kept = mem_alloc(&s->base.memory, MEM_CACHE, count, sizeof(real)))) return -1;
    }
    return 0;
}

int stage_extend_check(const Model *m, int first, int count) {
    if (!m->tokens) return error_set("stage: %s reads images, not tokens", m->name);
    if (first + count > m->input.w)
        return error_set("stage: %d tokens are more than the %d of %s", first + count, m->input.w,
                         m->name);
    return 0;
}

int stage_ref_extend(Stage *base, int first, const int *tokens, int count, real *logits) {
    RefStage *s = (RefStage *)(void *)base;
    const Model *m = base->model;
    const Extension e = {s, first, count};
    if (stage_extend_check(m, first, count) || reserve(s)) return -1;
    s->batch = (Batch){.n = 1, .tokens = (int *)(uintptr_t)tokens};
    s->mode = MODE_EVALUATE;
    for (int i = 0; i < m->nodes; i++) run_node(&e, i);
    memcpy(logits, stage_value(s, m->values - 1), (size_t)m->outputs * sizeof(real));
    return 0;
}
