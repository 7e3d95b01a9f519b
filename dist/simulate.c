#include "simulate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../ref/base/error.h"
#include "rank_plan.h"

/* The state of a simulation. */
typedef struct {
    const Configuration *c;
    bool quick;    /* for simulate_bound, which makes no schedule */
    Placement own; /* unless the configuration has one */
    const Placement *placement;
    /* Of the present submodel: */
    bool *active;       /* [blocks] */
    BlockCost *block;   /* [blocks] */
    BlockMemory *bytes; /* [blocks] */
    ChunkCost *chunk;   /* [chunks] */
    double *transfer_s; /* [chunks]: of a message between this chunk and the one above */
    SchedulePlan plan;
} Simulation;

/* ---- times: those of the passes by their schedule, the others in closed form ---- */

/* Adds up the blocks' costs by chunk. */
static void sum_blocks(Simulation *s) {
    memset(s->chunk, 0, (size_t)s->placement->chunks * sizeof *s->chunk);
    for (int b = 0; b < s->c->model->blocks; b++)
        for (Pass pass = 0; pass < PASSES; pass++)
            s->chunk[s->placement->chunk_of[b]].pass[pass] += s->block[b].pass_s[pass];
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
    for (int b = 0; b < s->c->model->blocks - 1; b++) {
        int below = placement_rank(s->placement, b), above = placement_rank(s->placement, b + 1);
        if (below != above)
            s->transfer_s[s->placement->chunk_of[b]] =
                message_time(s->c, below, above, s->block[b].out_bytes);
    }
}

/* Makes the plan of the schedule: where forward begins, where backward ends, and the costs. */
static void make_plan(Simulation *s) {
    const Configuration *c = s->c;
    const int lowest = lowest_active(c->model, s->active);
    sum_blocks(s);
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

/* Returns the ranks on the fullest node, of all pipelines, which share its memory. */
static int sharing(const Configuration *c) {
    int all = c->pipeline * c->replicas;
    return all < c->cluster.per_node ? all : c->cluster.per_node;
}

/* Returns the time that offload adds to a step: Adam runs in host memory, on the processors of
 * every node.  Gradients go there during the backward pass, and weights come back after the
 * update.  Each replica updates all of its parameters. */
static double offload_time(const Simulation *s) {
    const Configuration *c = s->c;
    const Efficiency *efficiency = &c->cluster.efficiency;
    double count = (double)c->model->param_count, backward = 0;
    double rate = c->cluster.gpu->host_rate * efficiency->interconnect * c->pipeline;
    double host_rate = c->pipeline * fmin(efficiency->host_process_rate,
                                          efficiency_node_rate(efficiency) / sharing(c));
    for (int b = 0; b < c->model->blocks; b++)
        backward +=
            s->block[b].pass_s[PASS_INPUT_GRADIENT] + s->block[b].pass_s[PASS_WEIGHT_GRADIENT];
    double out = 4 * count / rate, hidden = backward * c->micro_batches / c->pipeline;
    double adam = update_bytes(c->model, &c->stage.optimizer, PRECISION_FP32, 0, c->model->params) /
                  host_rate;
    double back = count * (double)value_bytes(&c->stage) / rate;
    return fmax(0, out - hidden) + adam + back;
}

/* Returns the time to send the gradient of a tied head to the owner, and the new values back; 0 if
 * both are on one rank. */
static double tied_time(const Simulation *s) {
    const Model *m = s->c->model;
    const Node *head = &m->node[m->nodes - 1];
    if (head->weight < 0) return 0;
    const Param *param = &m->param[head->weight];
    int owner = placement_rank(s->placement, param->block);
    int user = placement_rank(s->placement, m->blocks - 1);
    if (owner == user || !s->active[param->block]) return 0;
    double count = (double)param->count;
    return message_time(s->c, user, owner, count * sizeof(float)) +
           message_time(s->c, owner, user, count * sizeof(float));
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

/* Returns the time in which a rank adds up its gradients with those of the other replicas.  Sets
 * *update_s to that in which it updates its parameters. */
static double reduce_time(const Simulation *s, int rank, double *update_s) {
    const Configuration *c = s->c;
    double bytes = 0;
    *update_s = 0;
    for (int b = 0; b < c->model->blocks; b++) {
        if (placement_rank(s->placement, b) != rank) continue;
        bytes += (double)s->bytes[b].gradients;
        *update_s += s->block[b].update_s;
    }
    return cluster_all_reduce_s(&c->cluster, c->replicas, c->pipeline, bytes);
}

/* Adds the times of the present submodel's step to *sum.  -1 and an error when memory runs out. */
static int add_times(const Simulation *s, Prediction *sum) {
    const Configuration *c = s->c;
    double reduce = 0, update = 0, work = 0, busiest = 0;
    for (int r = 0; r < c->pipeline; r++) {
        double own_update, own_work = rank_work(s, r);
        reduce = fmax(reduce, reduce_time(s, r, &own_update));
        update = fmax(update, own_update);
        work += own_work;
        busiest = fmax(busiest, own_work);
    }
    Schedule schedule = {.time = busiest * c->micro_batches};
    if (!s->quick && schedule_make(&schedule, &s->plan)) return -1;
    sum->passes_s += schedule.time;
    sum->reduce_s += reduce;
    sum->tied_s += tied_time(s);
    sum->update_s += c->stage.offload ? offload_time(s) : update;
    sum->bubble += schedule.time - work * c->micro_batches / c->pipeline;
    schedule_free(&schedule);
    return 0;
}

/* ---- a submodel ---- */

/* Computes costs, memory and the plan of one submodel's schedule. */
static int plan_submodel(Simulation *s, int submodel, const BlockCost *measured) {
    const Configuration *c = s->c;
    size_t blocks = (size_t)c->model->blocks;
    const Partition placed = {.of_block = s->placement->submodel_of};
    partition_active(&placed, c->model, submodel, s->active);
    if (block_cache_find(c->cache, s->block, s->bytes, c->model, &c->stage, s->active,
                         c->cluster.gpu, &c->cluster.efficiency))
        return -1;
    if (measured) memcpy(s->block, measured + (size_t)submodel * blocks, blocks * sizeof *s->block);
    make_plan(s);
    return 0;
}

int simulate_full_costs(BlockCost *cost, const Configuration *c) {
    const size_t blocks = (size_t)c->model->blocks;
    bool *active = malloc(blocks * sizeof *active);
    if (!active) return error_set("simulate: out of memory");
    for (size_t b = 0; b < blocks; b++) active[b] = true;
    const int failed = block_cache_find(c->cache, cost, NULL, c->model, &c->stage, active,
                                        c->cluster.gpu, &c->cluster.efficiency);
    free(active);
    return failed;
}

int simulate_place(Placement *placement, const Configuration *c) {
    const Model *m = c->model;
    const bool given = !c->equal_work && c->placement != PLACEMENT_FIGURE2;
    size_t blocks = (size_t)m->blocks;
    BlockCost *cost = calloc(blocks, sizeof *cost);
    double *work = calloc(blocks, sizeof *work);
    Partition partition = {0};
    int failed = cost && work ? simulate_full_costs(cost, c) : error_set("simulate: out of memory");
    for (size_t b = 0; b < blocks && !failed; b++)
        for (int pass = 0; pass < PASSES; pass++) work[b] += cost[b].pass_s[pass];
    failed = failed ||
             (given && partition_balanced(&partition, m, c->submodels, c->always_active)) ||
             placement_make(placement, m, c->placement, c->pipeline, c->submodels, work,
                            partition.of_block);
    partition_free(&partition);
    free(cost);
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
    if (c->always_active && *c->always_active && (c->equal_work || c->placement != PLACEMENT_PLAIN))
        return error_set(
            "plan: blocks that are always active need the plain placement, and submodels of equal "
            "parameters");
    if (c->stage.offload && c->submodels > 1)
        return error_set("plan: offload is a full update; use 1 submodel");
    return 0;
}

static int reserve(Simulation *s) {
    size_t blocks = (size_t)s->c->model->blocks;
    size_t chunks = (size_t)s->c->pipeline * (size_t)s->c->submodels;
    s->active = calloc(blocks, sizeof *s->active);
    s->block = calloc(blocks, sizeof *s->block);
    s->bytes = calloc(blocks, sizeof *s->bytes);
    s->chunk = calloc(chunks, sizeof *s->chunk);
    s->transfer_s = calloc(chunks, sizeof *s->transfer_s);
    return s->active && s->block && s->bytes && s->chunk && s->transfer_s
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
}

/* Opens a simulation, for simulation_free to free.  -1 and an error; nothing is left to free
 * then. */
static int simulation_open(Simulation *s, const Configuration *c) {
    *s = (Simulation){.c = c};
    s->placement = c->placed ? c->placed : &s->own;
    if (check(c) == 0 && reserve(s) == 0 && (c->placed || simulate_place(&s->own, c) == 0))
        return 0;
    simulation_free(s);
    return -1;
}

/* Updates *max if a rank needs more bytes than *max has.  -1 and an error when memory runs out. */
static int find_memory(const Simulation *s, Prediction *max) {
    const Placement *p = s->placement;
    const Model *m = s->c->model;
    StageSettings stage = s->c->stage;
    for (int rank = 0; rank < p->ranks; rank++) {
        RankBlocks blocks;
        size_t bytes[MEM_ROLES];
        double total = 0;
        if (rank_blocks_create(&blocks, p, m, rank)) return -1;
        rank_in_flight(&blocks, p, m->blocks, &s->plan);
        stage.local = blocks.local;
        stage.in_flight = blocks.in_flight;
        memory_stage(bytes, s->bytes, m, &stage);
        rank_blocks_free(&blocks);
        if (p->ranks > 1) bytes[MEM_WORKSPACE] += rank_message_bytes(p, &s->plan, m, &stage, rank);
        for (int i = 0; i < MEM_ROLES; i++) total += (double)bytes[i];
        if (total <= max->total_bytes) continue;
        max->total_bytes = total;
        for (int i = 0; i < MEM_ROLES; i++) max->bytes[i] = (double)bytes[i];
    }
    return 0;
}

static double step_time(const Prediction *p) {
    return p->passes_s + p->reduce_s + p->tied_s + p->update_s;
}

/* Returns the bytes of host memory that the ranks of a pipeline keep together: the parameters in
 * float beside those in bf16; with offload these, gradients and state, too. */
static double host_bytes(const Configuration *c) {
    const double count = (double)c->model->param_count;
    const double state =
        (double)memory_state_count(c->model, &c->stage.optimizer, 0, c->model->params);
    const bool bf16 = c->stage.precision == PRECISION_BF16, offload = c->stage.offload;
    double bytes = bf16 || offload ? 4 * count : 0;
    if (bf16 && offload) bytes += 2 * count;
    if (offload) bytes += 4 * count + 4 * state;
    return bytes;
}

static void finish(const Configuration *c, Prediction *p) {
    double samples = (double)c->stage.batch * c->micro_batches * c->replicas, m = c->submodels;
    p->passes_s /= m;
    p->reduce_s /= m;
    p->tied_s /= m;
    p->update_s /= m;
    p->bubble /= m * p->passes_s; /* a fraction from here on */
    p->step_s = step_time(p);
    p->tokens_per_s = samples / p->step_s * c->model->targets;
    p->host_bytes = host_bytes(c) / c->pipeline * sharing(c);
    const double usable = gpu_usable_bytes(c->cluster.gpu->memory_bytes);
    const double host = c->host_memory > 0 ? c->host_memory : INFINITY;
    p->missing_bytes = fmax(0, p->total_bytes - usable) + fmax(0, p->host_bytes - host);
    p->fits = p->missing_bytes <= 0;
}

/* Simulates all submodels and computes their mean. */
static int simulate_either(Prediction *prediction, double *submodel_s, const Configuration *c,
                           const BlockCost *measured, bool quick) {
    Simulation s;
    int failed = 0;
    *prediction = (Prediction){.fits = false};
    if (simulation_open(&s, c)) return -1;
    s.quick = quick;
    for (int k = 0; k < c->submodels && !failed; k++) {
        double before = step_time(prediction);
        failed = plan_submodel(&s, k, measured) || add_times(&s, prediction) ||
                 find_memory(&s, prediction);
        if (submodel_s) submodel_s[k] = step_time(prediction) - before;
    }
    if (!failed) finish(c, prediction);
    simulation_free(&s);
    return failed ? -1 : 0;
}

int simulate(Prediction *prediction, double *submodel_s, const Configuration *c,
             const BlockCost *measured) {
    return simulate_either(prediction, submodel_s, c, measured, false);
}

int simulate_bound(Prediction *prediction, const Configuration *c) {
    return simulate_either(prediction, NULL, c, NULL, true);
}

int simulate_timeline(Schedule *schedule, const Configuration *c, int submodel) {
    Simulation s;
    if (simulation_open(&s, c)) return -1;
    int failed = plan_submodel(&s, submodel, NULL) || schedule_make(schedule, &s.plan);
    simulation_free(&s);
    return failed ? -1 : 0;
}

/* Bisects on a logarithmic scale; the step's time falls as the number grows.  Where the schedule
 * depends on the times, as that of zero bubble does, it falls in small jumps, and the nearest time
 * is taken. */
int simulate_calibrate(Configuration *c, double *number, double step_s) {
    enum { BISECTIONS = 40 };
    const double before = *number, near = 1e-2;
    const double ends[2] = {before * 1e3, before * 1e-3};
    double low = ends[1], high = ends[0], nearest = INFINITY, found = before, end_s[2] = {0, 0};
    Prediction p;
    int failed = 0;
    for (int i = 0; i < BISECTIONS; i++) {
        *number = sqrt(low * high);
        failed = simulate(&p, NULL, c, NULL);
        if (failed) break;
        const double ratio = p.step_s / step_s;
        if (fabs(ratio - 1) < nearest) {
            nearest = fabs(ratio - 1);
            found = *number;
        }
        *(ratio > 1 ? &low : &high) = *number;
    }
    *number = failed ? before : found;
    if (failed || nearest < near) return failed;
    for (int i = 0; i < 2 && !failed; i++) {
        *number = ends[i];
        failed = simulate(&p, NULL, c, NULL);
        end_s[i] = p.step_s;
    }
    *number = before;
    return failed ? -1
                  : error_set(
                        "calibrate: no value makes the step take %g s; it can take %.3g to %.3g s",
                        step_s, end_s[0], end_s[1]);
}
