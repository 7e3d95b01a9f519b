/* A tied parameter is owned and updated by the rank of its own block.  Another rank that uses it
 * has a copy, and sends its part of the gradient to the owner. */
#include <stdlib.h>

#include "../ref/error.h"
#include "rank_inside.h"

/* Returns the rank that has a copy of an active parameter of another rank, or -1 if none has. */
static int tied_user(const RankEngine *e, int param) {
    const Model *m = e->base.model;
    if (!e->active[m->param[param].block]) return -1;
    int owner = block_rank(e, m->param[param].block);
    for (int i = 0; i < m->nodes; i++) {
        const Node *node = &m->node[i];
        int user = block_rank(e, m->value[node->out].block);
        if ((node->weight == param || node->bias == param) && user != owner) return user;
    }
    return -1;
}

/* Sends a tensor from one rank to another, which adds a gradient to its own. */
static int move_tensor(RankEngine *e, TensorRole role, int param, int from, int to) {
    size_t count = e->base.model->param[param].count;
    if (e->transport->rank != from && e->transport->rank != to) return 0;
    real *data = malloc(2 * count * sizeof *data), *mine = data + count;
    if (!data) return error_set("pipeline: out of memory for a tied parameter");
    bool send = e->transport->rank == from, add = !send && role == TENSOR_GRADIENT;
    Transfer t = {send, send ? to : from, CHANNEL_GRADIENTS, data, count * sizeof *data, NULL};
    int failed = (send && rank_read_stage(e, role, param, data)) ||
                 e->transport->is->sendrecv(e->transport, &t, 1) ||
                 (add && rank_read_stage(e, role, param, mine));
    for (size_t i = 0; add && !failed && i < count; i++) data[i] += mine[i];
    if (!failed && !send) failed = e->stage->is->write(e->stage, role, param, data);
    free(data);
    return failed ? -1 : 0;
}

int tied_exchange(RankEngine *e, TensorRole role) {
    const Model *m = e->base.model;
    bool new_value = role == TENSOR_PARAMETER;
    for (int p = 0; p < m->params; p++) {
        int owner = block_rank(e, m->param[p].block), user = tied_user(e, p);
        int from = new_value ? owner : user, to = new_value ? user : owner;
        if (user >= 0 && move_tensor(e, role, p, from, to)) return -1;
    }
    return 0;
}
