/* Generation on the device: ref/stage_extend.c with device arrays.  Nodes run one by one, without
 * fusion or graphs. */
#include <stdint.h>

#include "../node.h"
#include "stage_internal.h"

typedef struct {
    const CudaStage *stage;
    int first, count; /* the new tokens: positions first .. first + count - 1 */
} DeviceExtension;

static size_t row_bytes(const CudaStage *s, int value) {
    return (size_t)s->base.model->value[value].shape.c * value_bytes(&s->base.settings);
}

/* Returns where the new rows of a value are.  Values that are kept begin with the old ones. */
static char *rows_at(const DeviceExtension *e, int value) {
    const CudaStage *s = e->stage;
    char *const kept = s->kept_at[value];
    return kept ? kept + (size_t)e->first * row_bytes(s, value) : value_at(s, value);
}

static bool is_head(const DeviceExtension *e, int block) {
    return block == e->stage->base.model->blocks - 1;
}

/* The head reads the last row of its input: only the last position's logits are wanted. */
static const char *input_at(const DeviceExtension *e, int value, int block) {
    const char *rows = rows_at(e, value);
    if (!is_head(e, block) || e->stage->base.model->value[value].block == block) return rows;
    return rows + (size_t)(e->count - 1) * row_bytes(e->stage, value);
}

static void run_node(const DeviceExtension *e, int index) {
    const CudaStage *s = e->stage;
    Node node = s->base.model->node[index];
    const int block = node_block(s->base.model, &node);
    DeviceIO io = pass_node_io(s, index);
    io.x = input_at(e, node.in, block);
    io.skip = node.skip < 0 ? NULL : input_at(e, node.skip, block);
    io.y = rows_at(e, node.out);
    node.in_shape.w = node.out_shape.w = is_head(e, block) ? 1 : e->count;
    if (node.kind == OP_ATTENTION) {
        io.x = s->kept_at[node.in];
        node.in_shape.w = e->first + e->count;
        node.attention.cached = e->first;
    }
    if (node.kind == OP_EMBEDDING && io.bias) /* learned positions */
        io.bias = (const char *)io.bias + (size_t)e->first * row_bytes(s, node.out);
    cuda_node_forward(&s->run, &node, &io);
}

/* Finds room for what is kept, the values that attentions read: returns its bytes, without the gaps
 * in *requested.  With a base it also sets the addresses. */
static size_t place_kept(CudaStage *s, char *base, size_t *requested) {
    const Model *m = s->base.model;
    size_t bytes = 0;
    *requested = 0;
    for (int i = 0; i < m->nodes; i++) {
        if (m->node[i].kind != OP_ATTENTION) continue;
        const size_t size = (size_t)m->input.w * row_bytes(s, m->node[i].in);
        if (base) s->kept_at[m->node[i].in] = base + bytes;
        *requested += size;
        bytes += align_bytes(size);
    }
    return bytes;
}

static int reserve(CudaStage *s) {
    if (s->kept.base) return 0;
    size_t requested;
    const size_t bytes = place_kept(s, NULL, &requested);
    if (arena_open(s, &s->kept, MEM_CACHE, bytes, requested)) return -1;
    place_kept(s, s->kept.base, &requested);
    return 0;
}

int extend_run(Stage *base, int first, const int *tokens, int count, real *logits) {
    CudaStage *s = cuda_stage(base);
    const Model *m = base->model;
    const DeviceExtension e = {s, first, count};
    const Batch batch = {.n = 1, .tokens = (int *)(uintptr_t)tokens};
    if (stage_extend_check(m, first, count) || reserve(s)) return -1;
    batch_begin(base, &batch, MODE_EVALUATE);
    batch_send_tokens(s, (size_t)count);
    for (int i = 0; i < m->nodes; i++) run_node(&e, i);
    return transfer_to_host(s, logits, value_at(s, m->values - 1), value_bytes(&base->settings),
                            (size_t)m->outputs);
}
