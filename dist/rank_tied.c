/* A tied parameter is owned and updated by the rank of its own block.  Another rank that uses it
 * has a copy, and sends its part of the gradient to the owner. */
#include <stdlib.h>

#include "../ref/error.h"
#include "rank_inside.h"

/* Returns the rank that uses a parameter of another rank's block, or -1 if there is none. */
static int tied_user(const RankEngine *e, int param) {
    const Model *m = e->base.model;
    int own = block_rank(e, m->param[param].block);
    for (int i = 0; i < m->nodes; i++) {
        const Node *node = &m->node[i];
        int user = block_rank(e, m->value[node->out].block);
        if ((node->weight == param || node->bias == param) && user != own) return user;
    }
    return -1;
}

/* Sends a tensor from one rank to another, which with `add` adds it to its own. */
static int move_tensor(RankEngine *e, TensorRole role, int param, int from, int to, bool add) {
    size_t count = e->base.model->param[param].count;
    Stage *stage = e->stage;
    if (e->transport->rank != from && e->transport->rank != to) return 0;
    real *data = malloc(2 * count * sizeof *data), *mine = data + count;
    if (!data) return error_set("pipeline: out of memory for a tied parameter");
    bool send = e->transport->rank == from;
    if (send) stage->is->read(stage, role, param, data);
    Transfer t = {send, send ? to : from, CHANNEL_GRADIENTS, data, count * sizeof *data, NULL};
    int failed = e->transport->is->sendrecv(e->transport, &t, 1);
    if (!failed && !send && add) {
        stage->is->read(stage, role, param, mine);
        for (size_t i = 0; i < count; i++) data[i] += mine[i];
    }
    if (!failed && !send) failed = stage->is->write(stage, role, param, data);
    free(data);
    return failed;
}

int rank_share_tied(RankEngine *e, bool before) {
    const Model *m = e->base.model;
    for (int p = 0; p < m->params; p++) {
        if (!e->active[m->param[p].block]) continue;
        int own = block_rank(e, m->param[p].block), user = tied_user(e, p);
        if (user < 0) continue;
        if (before ? move_tensor(e, TENSOR_GRADIENT, p, user, own, true)
                   : move_tensor(e, TENSOR_PARAMETER, p, own, user, false))
            return -1;
    }
    return 0;
}
