/* The times of a step's parts: those of the passes by their schedule, the others in closed form. */
#include <math.h>
#include <string.h>

#include "simulate_inside.h"

/* Adds up the blocks' costs by chunk and by rank. */
static void sum_blocks(Simulation *s) {
    const Model *m = s->c->model;
    memset(s->chunk, 0, (size_t)s->placement->chunks * sizeof *s->chunk);
    memset(s->update_s, 0, (size_t)s->placement->ranks * sizeof *s->update_s);
    memset(s->reduced, 0, (size_t)s->placement->ranks * sizeof *s->reduced);
    for (int b = 0; b < m->blocks; b++) {
        int chunk = s->placement->chunk_of[b], rank = s->placement->rank_of[chunk];
        for (Pass pass = 0; pass < PASSES; pass++)
            s->chunk[chunk].pass[pass] += s->block[b].pass_s[pass];
        s->update_s[rank] += s->block[b].update_s;
        s->reduced[rank] += (double)s->bytes[b].gradients;
    }
}

/* Returns the time of a message between two ranks of a pipeline.  Replicas may lie on the nodes in
 * different ways; this is the time of the slowest. */
static double message_time(const Configuration *c, int from, int to, double bytes) {
    double max = 0;
    for (int first = 0; first < c->replicas * c->pipeline; first += c->pipeline)
        max = fmax(max, cluster_message_s(&c->cluster, first + from, first + to, bytes));
    return max;
}

static void time_transfers(Simulation *s) {
    const int *chunk_of = s->placement->chunk_of, *rank_of = s->placement->rank_of;
    for (int b = 0; b < s->c->model->blocks - 1; b++) {
        int below = chunk_of[b], above = chunk_of[b + 1];
        if (rank_of[below] != rank_of[above])
            s->transfer_s[below] =
                message_time(s->c, rank_of[below], rank_of[above], s->block[b].out_bytes);
    }
}

void simulation_plan(Simulation *s) {
    const Configuration *c = s->c;
    int lowest = 0;
    sum_blocks(s);
    while (lowest < c->model->blocks - 1 && !s->active[lowest]) lowest++;
    time_transfers(s);
    /* If weight gradients are not deferred, a chunk's gradients are one task. */
    for (int i = 0; i < s->placement->chunks && !c->stage.deferred; i++) {
        double *pass = s->chunk[i].pass;
        pass[PASS_INPUT_GRADIENT] += pass[PASS_WEIGHT_GRADIENT];
        pass[PASS_WEIGHT_GRADIENT] = 0;
    }
    s->plan = (SchedulePlan){.kind = c->schedule,
                             .ranks = c->pipeline,
                             .chunks = s->placement->chunks,
                             .micro_batches = c->micro_batches,
                             .rank_of = s->placement->rank_of,
                             .lowest = s->placement->chunk_of[lowest],
                             .cost = s->chunk,
                             .transfer = s->transfer_s,
                             .slack = c->slack};
    if (c->cached) s->plan.first = s->plan.lowest;
    /* Within the first chunk that runs, the blocks below the active ones are cached too. */
    for (int b = 0; c->cached && b < lowest; b++)
        if (s->placement->chunk_of[b] == s->plan.first)
            s->chunk[s->plan.first].pass[PASS_FORWARD] -= s->block[b].pass_s[PASS_FORWARD];
}

int simulation_nodes(const Configuration *c) {
    return (c->pipeline + c->cluster.per_node - 1) / c->cluster.per_node;
}

/* Returns the time that offload adds to a step: Adam runs in host memory, on the processors of
 * every node.  Gradients go there during the backward pass, and weights come back after the
 * update. */
static double offload_time(const Simulation *s) {
    const Configuration *c = s->c;
    const Efficiency *efficiency = &c->cluster.efficiency;
    double count = (double)c->model->param_count, backward = 0;
    double rate = c->cluster.gpu->host_rate * efficiency->interconnect * c->pipeline;
    double host_rate = fmin(efficiency->host_process_rate * c->pipeline,
                            efficiency->host_memory_rate * simulation_nodes(c));
    for (int b = 0; b < c->model->blocks; b++)
        backward +=
            s->block[b].pass_s[PASS_INPUT_GRADIENT] + s->block[b].pass_s[PASS_WEIGHT_GRADIENT];
    double out = 4 * count / rate, hidden = backward * c->micro_batches / c->pipeline;
    double adam = count * update_bytes(&c->stage.optimizer, PRECISION_FP32) / host_rate;
    double back = count * (double)value_bytes(&c->stage) / rate;
    return fmax(0, out - hidden) + adam + back;
}

/* Returns the parameter that the head shares with a block of another rank, and sets both ranks;
 * NULL if there is none. */
static const Param *tied_head(const Simulation *s, int *owner, int *user) {
    const Model *m = s->c->model;
    const Node *head = &m->node[m->nodes - 1];
    if (head->weight < 0) return NULL;
    const Param *param = &m->param[head->weight];
    *owner = s->placement->rank_of[s->placement->chunk_of[param->block]];
    *user = s->placement->rank_of[s->placement->chunk_of[m->blocks - 1]];
    return *owner == *user ? NULL : param;
}

/* Returns the time to send the gradient of a tied head to the owner, and the new values back. */
static double tied_time(const Simulation *s) {
    int owner, user;
    const Param *param = tied_head(s, &owner, &user);
    if (!param || !s->active[param->block]) return 0;
    double count = (double)param->count;
    return message_time(s->c, user, owner, count * sizeof(float)) +
           message_time(s->c, owner, user, count * (double)value_bytes(&s->c->stage));
}

/* Returns the time that a rank computes for one micro-batch. */
static double rank_work(const Simulation *s, int rank) {
    double work = 0;
    for (int chunk = s->plan.first; chunk < s->plan.chunks; chunk++) {
        if (s->plan.rank_of[chunk] != rank) continue;
        const double *pass = s->chunk[chunk].pass;
        work += pass[PASS_FORWARD];
        if (chunk >= s->plan.lowest) work += pass[PASS_INPUT_GRADIENT] + pass[PASS_WEIGHT_GRADIENT];
    }
    return work;
}

/* Sets *passes_s to the time of all forward and backward passes. */
static int time_passes(const Simulation *s, double busiest, double *passes_s) {
    *passes_s = busiest * s->c->micro_batches;
    if (s->quick) return 0;
    Schedule schedule;
    if (schedule_make(&schedule, &s->plan)) return -1;
    *passes_s = schedule.time;
    schedule_free(&schedule);
    return 0;
}

int simulation_time(const Simulation *s, Prediction *sum) {
    const Configuration *c = s->c;
    double reduce = 0, update = 0, work = 0, busiest = 0, passes;
    for (int r = 0; r < c->pipeline; r++) {
        reduce =
            fmax(reduce, cluster_reduce_s(&c->cluster, c->replicas, c->pipeline, s->reduced[r]));
        update = fmax(update, s->update_s[r]);
        work += rank_work(s, r);
        busiest = fmax(busiest, rank_work(s, r));
    }
    if (time_passes(s, busiest, &passes)) return -1;
    if (c->stage.offload) update = offload_time(s);
    sum->passes_s += passes;
    sum->reduce_s += reduce;
    sum->tied_s += tied_time(s);
    sum->update_s += update;
    sum->bubble += 1 - work * c->micro_batches / (c->pipeline * passes);
    return 0;
}
