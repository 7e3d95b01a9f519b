/* The memory of the ranks, added up from that of the blocks (ref/memory.h) as their stages would
 * allocate it. */
#include <string.h>

#include "rank_plan.h"
#include "simulate_inside.h"

const Param *simulation_tied(const Simulation *s, int *owner, int *user) {
    const Model *m = s->c->model;
    const Node *head = &m->node[m->nodes - 1];
    if (head->weight < 0) return NULL;
    const Param *param = &m->param[head->weight];
    *owner = s->placement->rank_of[s->placement->chunk_of[param->block]];
    *user = s->placement->rank_of[s->placement->chunk_of[m->blocks - 1]];
    return *owner == *user ? NULL : param;
}

/* Adds the copy of a tied embedding on the rank of the head. */
static void add_tied(const Simulation *s, int rank, double bytes[MEM_ROLES]) {
    int owner, user;
    const Param *param = simulation_tied(s, &owner, &user);
    if (!param || rank != user) return;
    double share = (double)param->count;
    bytes[MEM_PARAMETERS] += share * (double)value_bytes(&s->c->stage);
    if (s->active[param->block]) bytes[MEM_GRADIENTS] += share * sizeof(float);
}

/* Adds the blocks of a rank, and of each block below them on another rank the output, which the
 * rank receives, and its gradient, which it sends back. */
static void add_blocks(const Simulation *s, double bytes[MEM_ROLES]) {
    size_t scratch = 0, out = 0, out_gradient = 0, loss = 0;
    int blocks = s->c->model->blocks;
    for (int b = 0; b < blocks; b++) {
        const BlockMemory *m = &s->bytes[b];
        const BlockWorkspace *w = &m->workspace;
        bool received = !s->local[b] && b + 1 < blocks && s->local[b + 1];
        if (!s->local[b] && !received) continue;
        out = size_max(out, w->boundary);
        out_gradient = size_max(out_gradient, received ? w->sent_gradient : w->boundary_gradient);
        bytes[MEM_ACTIVATIONS] +=
            s->in_flight[b] * (double)(received ? m->stored_output : m->activations);
        if (received) continue;
        bytes[MEM_PARAMETERS] += (double)m->parameters;
        bytes[MEM_BUFFERS] += (double)m->buffers;
        bytes[MEM_GRADIENTS] += (double)m->gradients;
        bytes[MEM_STATE] += (double)m->state;
        scratch = size_max(scratch, w->scratch);
        loss += m->loss;
    }
    bytes[MEM_WORKSPACE] += (double)(scratch + 2 * (out + out_gradient) + loss);
}

void simulation_memory(Simulation *s, Prediction *max) {
    const Placement *p = s->placement;
    int blocks = s->c->model->blocks;
    for (int rank = 0; rank < p->ranks; rank++) {
        double bytes[MEM_ROLES] = {0}, total = 0;
        for (int b = 0; b < blocks; b++) s->local[b] = p->rank_of[p->chunk_of[b]] == rank;
        rank_in_flight(s->in_flight, s->local, p, blocks, &s->plan);
        add_blocks(s, bytes);
        add_tied(s, rank, bytes);
        for (int i = 0; i < MEM_ROLES; i++) total += bytes[i];
        if (total <= max->total_bytes) continue;
        max->total_bytes = total;
        memcpy(max->bytes, bytes, sizeof bytes);
    }
}
