#include "simulate_inside.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../ref/error.h"

/* ---- time ---- */

static void sum_blocks(Simulation *s) {
    const Model *m = s->c->model;
    memset(s->chunk, 0, (size_t)s->placement->chunks * sizeof *s->chunk);
    memset(s->trains, 0, (size_t)s->placement->chunks * sizeof *s->trains);
    memset(s->update_s, 0, (size_t)s->placement->ranks * sizeof *s->update_s);
    memset(s->reduced, 0, (size_t)s->placement->ranks * sizeof *s->reduced);
    for (int b = 0; b < m->blocks; b++) {
        int chunk = s->placement->chunk_of[b], rank = s->placement->rank_of[chunk];
        const double *pass = s->block[b].pass_s;
        s->chunk[chunk].forward += pass[PASS_FORWARD];
        s->chunk[chunk].input_gradient += pass[PASS_INPUT_GRADIENT];
        s->chunk[chunk].weight_gradient += pass[PASS_WEIGHT_GRADIENT];
        s->trains[chunk] |= pass[PASS_WEIGHT_GRADIENT] > 0;
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

/* Makes the plan of the schedule: where forward begins, where backward ends, and the costs. */
static void plan_passes(Simulation *s) {
    const Configuration *c = s->c;
    int lowest = 0;
    while (lowest < c->model->blocks - 1 && !s->active[lowest]) lowest++;
    time_transfers(s);
    /* If weight gradients are not deferred, a chunk's gradients are one task. */
    for (int i = 0; i < s->placement->chunks && !c->stage.deferred; i++) {
        s->chunk[i].input_gradient += s->chunk[i].weight_gradient;
        s->chunk[i].weight_gradient = 0;
        s->trains[i] = false;
    }
    s->plan = (SchedulePlan){.kind = c->schedule,
                             .ranks = c->pipeline,
                             .chunks = s->placement->chunks,
                             .micro_batches = c->micro_batches,
                             .rank_of = s->placement->rank_of,
                             .lowest = s->placement->chunk_of[lowest],
                             .trains = s->trains,
                             .cost = s->chunk,
                             .transfer = s->transfer_s,
                             .slack = c->slack};
    if (c->cached) s->plan.first = s->plan.lowest;
    /* Within the first chunk that runs, the blocks below the active ones are cached too. */
    for (int b = 0; c->cached && b < lowest; b++)
        if (s->placement->chunk_of[b] == s->plan.first)
            s->chunk[s->plan.first].forward -= s->block[b].pass_s[PASS_FORWARD];
}

/* Returns the number of nodes that a pipeline is on. */
static int pipeline_nodes(const Configuration *c) {
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
                            efficiency->host_memory_rate * pipeline_nodes(c));
    for (int b = 0; b < c->model->blocks; b++)
        backward +=
            s->block[b].pass_s[PASS_INPUT_GRADIENT] + s->block[b].pass_s[PASS_WEIGHT_GRADIENT];
    double out = 4 * count / rate, hidden = backward * c->micro_batches / c->pipeline;
    double adam = count * update_bytes(&c->stage.optimizer, PRECISION_FP32) / host_rate;
    double back = count * (double)value_bytes(&c->stage) / rate;
    return fmax(0, out - hidden) + adam + back;
}

/* Returns the time to send the gradient of a tied head to the owner, and the new values back. */
static double tied_time(const Simulation *s) {
    int owner, user;
    const Param *param = simulation_tied(s, &owner, &user);
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
        work += s->chunk[chunk].forward;
        if (chunk >= s->plan.lowest)
            work += s->chunk[chunk].input_gradient + s->chunk[chunk].weight_gradient;
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

static int time_step(Simulation *s, Prediction *sum) {
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

/* ---- the whole ---- */

/* Computes costs, memory and the plan of one submodel's schedule. */
static int plan_submodel(Simulation *s, int submodel, const BlockCost *measured) {
    const Configuration *c = s->c;
    size_t blocks = (size_t)c->model->blocks;
    for (size_t b = 0; b < blocks; b++) s->active[b] = s->placement->submodel_of[b] == submodel;
    if (measured)
        memcpy(s->block, measured + (size_t)submodel * blocks, blocks * sizeof *s->block);
    else if (block_costs(s->block, c->model, &c->stage, s->active, c->cluster.gpu,
                         &c->cluster.efficiency))
        return -1;
    if (memory_blocks(s->bytes, c->model, &c->stage, s->active)) return -1;
    sum_blocks(s);
    plan_passes(s);
    return 0;
}

/* Makes the placement, unless it is given.  It balances the work of a full update. */
static int place(Simulation *s) {
    const Configuration *c = s->c;
    const Model *m = c->model;
    s->placement = c->placed ? c->placed : &s->own;
    if (c->placed) return 0;
    double *work = calloc((size_t)m->blocks, sizeof *work);
    int failed = work ? 0 : error_set("simulate: out of memory");
    for (int b = 0; b < m->blocks; b++) s->active[b] = true;
    failed = failed ||
             block_costs(s->block, m, &c->stage, s->active, c->cluster.gpu, &c->cluster.efficiency);
    for (int b = 0; b < m->blocks && !failed; b++)
        for (int pass = 0; pass < PASSES; pass++) work[b] += s->block[b].pass_s[pass];
    failed =
        failed || placement_make(&s->own, m, c->placement, c->pipeline, c->submodels, work, NULL);
    free(work);
    return failed ? -1 : 0;
}

static int check(const Configuration *c) {
    int gpus = c->cluster.per_node * c->cluster.nodes;
    if (c->pipeline < 1 || c->replicas < 1 || c->pipeline * c->replicas > gpus)
        return error_set("plan: %d pipelines of %d ranks on %d GPUs", c->replicas, c->pipeline,
                         gpus);
    if (c->placed && (c->placed->ranks != c->pipeline || c->placed->submodels != c->submodels))
        return error_set("plan: a placement of %d submodels on %d ranks, for %d on %d",
                         c->placed->submodels, c->placed->ranks, c->submodels, c->pipeline);
    if (c->stage.offload && c->submodels > 1)
        return error_set("plan: offload is a full update; use 1 submodel");
    return 0;
}

static int reserve(Simulation *s) {
    size_t blocks = (size_t)s->c->model->blocks, ranks = (size_t)s->c->pipeline;
    size_t chunks = ranks * (size_t)s->c->submodels;
    s->active = calloc(blocks, sizeof *s->active);
    s->block = calloc(blocks, sizeof *s->block);
    s->bytes = calloc(blocks, sizeof *s->bytes);
    s->chunk = calloc(chunks, sizeof *s->chunk);
    s->trains = calloc(chunks, sizeof *s->trains);
    s->transfer_s = calloc(chunks, sizeof *s->transfer_s);
    s->update_s = calloc(ranks, sizeof *s->update_s);
    s->reduced = calloc(ranks, sizeof *s->reduced);
    s->local = calloc(blocks, sizeof *s->local);
    s->in_flight = calloc(blocks, sizeof *s->in_flight);
    return s->active && s->block && s->bytes && s->chunk && s->trains && s->transfer_s &&
                   s->update_s && s->reduced && s->local && s->in_flight
               ? 0
               : error_set("simulate: out of memory");
}

static void simulation_free(Simulation *s) {
    placement_free(&s->own);
    free(s->active);
    free(s->block);
    free(s->bytes);
    free(s->chunk);
    free(s->trains);
    free(s->transfer_s);
    free(s->update_s);
    free(s->reduced);
    free(s->local);
    free(s->in_flight);
}

/* Opens a simulation, for simulation_free to free.  -1 and an error; nothing is left to free
 * then. */
static int simulation_open(Simulation *s, const Configuration *c) {
    *s = (Simulation){.c = c};
    if (check(c) == 0 && reserve(s) == 0 && place(s) == 0) return 0;
    simulation_free(s);
    return -1;
}

static double step_time(const Prediction *p) {
    return p->passes_s + p->reduce_s + p->tied_s + p->update_s;
}

static void finish(const Configuration *c, Prediction *p) {
    double samples = (double)c->stage.batch * c->micro_batches * c->replicas, m = c->submodels;
    p->passes_s /= m;
    p->reduce_s /= m;
    p->tied_s /= m;
    p->update_s /= m;
    p->bubble /= m;
    p->step_s = step_time(p);
    p->samples_per_s = samples / p->step_s;
    p->tokens_per_s = p->samples_per_s * c->model->targets;
    p->fits = p->total_bytes <= gpu_usable_bytes(c->cluster.gpu);
    if (c->stage.offload)
        p->host_bytes = (double)c->model->param_count * 4 *
                        (1 + 1 + optimizer_state_vectors(&c->stage.optimizer)) / pipeline_nodes(c);
}

/* Simulates all submodels and computes their mean. */
static int simulate_all(Simulation *s, Prediction *prediction, double *submodel_s,
                        const BlockCost *measured) {
    for (int k = 0; k < s->c->submodels; k++) {
        double before = step_time(prediction);
        if (plan_submodel(s, k, measured) || time_step(s, prediction)) return -1;
        simulation_memory(s, prediction);
        if (submodel_s) submodel_s[k] = step_time(prediction) - before;
    }
    finish(s->c, prediction);
    return 0;
}

static int simulate_either(Prediction *prediction, double *submodel_s, const Configuration *c,
                           const BlockCost *measured, bool quick) {
    Simulation s;
    memset(prediction, 0, sizeof *prediction);
    if (simulation_open(&s, c)) return -1;
    s.quick = quick;
    int failed = simulate_all(&s, prediction, submodel_s, measured);
    simulation_free(&s);
    return failed;
}

int simulate(Prediction *prediction, double *submodel_s, const Configuration *c,
             const BlockCost *measured) {
    return simulate_either(prediction, submodel_s, c, measured, false);
}

int simulate_bound(Prediction *prediction, const Configuration *c) {
    return simulate_either(prediction, NULL, c, NULL, true);
}

int simulate_timeline(Schedule *schedule, const Configuration *c, int submodel,
                      const BlockCost *measured) {
    Simulation s;
    if (simulation_open(&s, c)) return -1;
    int failed = plan_submodel(&s, submodel, measured) || schedule_make(schedule, &s.plan);
    simulation_free(&s);
    return failed ? -1 : 0;
}
