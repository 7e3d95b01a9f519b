#include "simulate_inside.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../ref/error.h"
#include "rank_plan.h"

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
    simulation_plan(s);
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
    s->transfer_s = calloc(chunks, sizeof *s->transfer_s);
    s->update_s = calloc(ranks, sizeof *s->update_s);
    s->reduced = calloc(ranks, sizeof *s->reduced);
    s->local = calloc(blocks, sizeof *s->local);
    s->in_flight = calloc(blocks, sizeof *s->in_flight);
    return s->active && s->block && s->bytes && s->chunk && s->transfer_s && s->update_s &&
                   s->reduced && s->local && s->in_flight
               ? 0
               : error_set("simulate: out of memory");
}

static void simulation_free(Simulation *s) {
    placement_free(&s->own);
    free(s->active);
    free(s->block);
    free(s->bytes);
    free(s->chunk);
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

/* Updates *max if a rank needs more bytes than *max has. */
static void find_memory(Simulation *s, Prediction *max) {
    const Placement *p = s->placement;
    const Model *m = s->c->model;
    StageSettings stage = s->c->stage;
    stage.local = s->local;
    stage.in_flight = s->in_flight;
    for (int rank = 0; rank < p->ranks; rank++) {
        size_t bytes[MEM_ROLES];
        double total = 0;
        for (int b = 0; b < m->blocks; b++) s->local[b] = p->rank_of[p->chunk_of[b]] == rank;
        rank_in_flight(s->in_flight, s->local, p, m->blocks, &s->plan);
        memory_stage(bytes, s->bytes, m, &stage);
        for (int i = 0; i < MEM_ROLES; i++) total += (double)bytes[i];
        if (total <= max->total_bytes) continue;
        max->total_bytes = total;
        for (int i = 0; i < MEM_ROLES; i++) max->bytes[i] = (double)bytes[i];
    }
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
                        (1 + 1 + optimizer_state_vectors(&c->stage.optimizer)) /
                        simulation_nodes(c);
}

/* Simulates all submodels and computes their mean. */
static int simulate_all(Simulation *s, Prediction *prediction, double *submodel_s,
                        const BlockCost *measured) {
    for (int k = 0; k < s->c->submodels; k++) {
        double before = step_time(prediction);
        if (plan_submodel(s, k, measured) || simulation_time(s, prediction)) return -1;
        find_memory(s, prediction);
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

/* Bisects on a logarithmic scale; the step's time falls as the number grows. */
int simulate_calibrate(Configuration *c, double *number, double step_s) {
    enum { BISECTIONS = 40 };
    const double before = *number;
    double low = before * 1e-3, high = before * 1e3, ratio = 0;
    Prediction p;
    int failed = 0;
    for (int i = 0; i < BISECTIONS && !failed; i++) {
        *number = sqrt(low * high);
        failed = simulate(&p, NULL, c, NULL);
        ratio = p.step_s / step_s;
        *(ratio > 1 ? &low : &high) = *number;
    }
    if (!failed && !(fabs(ratio - 1) < 1e-6))
        failed = error_set("calibrate: no value makes the step take %g s", step_s);
    if (failed) *number = before;
    return failed;
}
