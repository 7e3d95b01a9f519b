#include "fuse.h"

#include <stdlib.h>

#include "../ref/base/error.h"

static bool is_norm(const Node *node) {
    return node->kind == OP_LAYERNORM || node->kind == OP_RMSNORM;
}

/* Returns how many nodes read each value, or NULL and an error when memory runs out. */
static int *count_readers(const Model *m) {
    int *readers = calloc((size_t)m->values, sizeof *readers);
    if (!readers) error_set("stage: out of memory for the tables of %s", m->name);
    for (int i = 0; readers && i < m->nodes; i++) {
        readers[m->node[i].in]++;
        if (m->node[i].skip >= 0) readers[m->node[i].skip]++;
    }
    return readers;
}

/* Notes what node i and the next one can do in one launch.  The norm after an add may be the first
 * of the next block.  The other pairs lie within a block, and only the second node reads the
 * first's output. */
static void find_pair(Fusion *fusion, const Model *m, int i, const int *readers) {
    const Node *node = &m->node[i], *next = &m->node[i + 1];
    if (next->in != node->out) return;
    if (node->kind == OP_ADD && is_norm(next)) fusion[i].norm_next = true;
    if (readers[node->out] != 1 || node_block(m, node) != node_block(m, next)) return;
    if (node->kind == OP_LINEAR && next->kind == OP_GELU) fusion[i].gelu_next = true;
    if (node->kind == OP_GELU && next->kind == OP_LINEAR && readers[node->in] == 1)
        fusion[i + 1].gelu_before = true;
}

/* Notes an add whose skip is otherwise read only by a norm before it in the block.  The norm can
 * then add the gradient of the residual path to its own. */
static void find_residual(Fusion *fusion, const Model *m, const Block *block, int add,
                          const int *readers) {
    int skip = m->node[add].skip;
    if (m->node[add].kind != OP_ADD || readers[skip] != 2) return;
    for (int i = block->first_node; i < add; i++) {
        if (!is_norm(&m->node[i]) || m->node[i].in != skip) continue;
        fusion[i].residual = m->node[add].out;
        fusion[add].skip_gradient_by_norm = true;
    }
}

void fusion_none(Fusion *fusion, const Model *m) {
    for (int i = 0; i < m->nodes; i++) fusion[i] = (Fusion){.residual = -1};
}

int fusion_find(Fusion *fusion, const Model *m) {
    int *readers = count_readers(m);
    if (!readers) return -1;
    fusion_none(fusion, m);
    for (int b = 0; b < m->blocks; b++) {
        const Block *block = &m->block[b];
        for (int i = block->first_node; i < block->end_node; i++) {
            if (i + 1 < m->nodes) find_pair(fusion, m, i, readers);
            find_residual(fusion, m, block, i, readers);
        }
    }
    free(readers);
    return 0;
}
