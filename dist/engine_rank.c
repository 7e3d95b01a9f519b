#include "engine_rank.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../ref/base/error.h"
#include "../ref/layout.h"
#include "rank_inside.h"

static RankEngine *of(Engine *base) { return (RankEngine *)(void *)base; }

void engine_rank_break(Engine *base, const char *why) {
    transport_abort(of(base)->transport, why);
    transport_abort(of(base)->replicas, why);
}

/* Tells the ranks of this pipeline and of its replicas that this rank fails with the current error.
 * Returns -1. */
static int rank_abort(RankEngine *e) {
    char why[400];
    snprintf(why, sizeof why, "%s", error_message());
    engine_rank_break(&e->base, why);
    return error_set("%s", why);
}

/* ---- a submodel becomes active ---- */

/* Makes the schedules of a training step with the prefix, and without it. */
static int make_training(RankEngine *e, SchedulePlan plan) {
    schedule_free(&e->training);
    schedule_free(&e->cached_training);
    if (schedule_make(&e->training, &plan) || messages_reserve(e, &plan)) return -1;
    if (e->cache.lowest < 0) return 0;
    plan.first = e->placement->chunk_of[e->cache.lowest];
    return schedule_make(&e->cached_training, &plan);
}

static int make_evaluation(RankEngine *e) {
    SchedulePlan plan = rank_schedule_plan(e->cost, e->placement, e->base.model, e->settings, NULL);
    return schedule_make(&e->evaluation, &plan) || messages_reserve(e, &plan) ? -1 : 0;
}

static int rank_activate(Engine *base, const bool *active) {
    RankEngine *e = of(base);
    const Model *m = base->model;
    if (memcmp(active, e->active, (size_t)m->blocks) == 0) return 0;
    memcpy(e->active, active, (size_t)m->blocks);
    e->runs_before = 0;
    SchedulePlan plan = rank_schedule_plan(e->cost, e->placement, m, e->settings, active);
    rank_in_flight(&e->blocks, e->placement, m->blocks, &plan);
    rank_infer_close(e);
    int failed =
        stage_activate(e->stage, active) || rank_cache_activate(e) || make_training(e, plan);
    return failed ? rank_abort(e) : 0;
}

/* ---- step and evaluation ---- */

/* Runs a schedule over the samples of this replica, in micro-batches of at most `size`, and adds
 * the loss of all replicas to *loss, which every rank has.  The first replica goes on adding up
 * from there, and the others from 0. */
static int run_batch(RankEngine *e, const Schedule *schedule, Mode mode, int size, double scale,
                     Loss *loss) {
    e->micro_batch_size = size;
    e->mode = mode;
    e->scale = scale;
    e->loss = e->replicas->rank == 0 ? *loss : (Loss){0};
    if (rank_run_schedule(e, schedule)) return -1;
    int last = chunk_rank(e, e->placement->chunks - 1);
    if (transport_broadcast(e->transport, last, &e->loss, sizeof e->loss) ||
        replicas_reduce_loss(e, &e->loss))
        return -1;
    *loss = e->loss;
    return 0;
}

static void take_batch(RankEngine *e, const Batch *batch) {
    int share = replica_samples(e, batch->n), first = e->replicas->rank * share;
    int end = first + share < batch->n ? first + share : batch->n;
    e->global_batch = batch;
    e->batch = batch_slice(batch, e->base.model, first, end);
}

/* Computes the norm of all gradients.  Squares are added in the order of parameters, as on one
 * device. */
static int gradient_norm(RankEngine *e, double *norm) {
    size_t params = (size_t)e->base.model->params, ranks = (size_t)e->transport->ranks;
    double *mine = e->square + (size_t)e->transport->rank * params, sum = 0;
    if (stage_gradient_squares(e->stage, mine) ||
        transport_all_gather(e->transport, e->square, mine, params * sizeof *mine))
        return -1;
    for (size_t p = 0; p < params; p++)
        for (size_t r = 0; r < ranks; r++) sum += e->square[r * params + p];
    *norm = sqrt(sum);
    return 0;
}

/* The outcome of a step.  After an error that all ranks have alike, they are ready for the next
 * call; any other error ends the pipeline. */
typedef enum { DONE, FAILED_TOGETHER, FAILED_ALONE } StepOutcome;

static StepOutcome update(RankEngine *e, double lr) {
    const OptimizerSettings *optimizer = &e->stage->settings.optimizer;
    double norm = 0;
    if (tied_exchange(e, TENSOR_GRADIENT) || replicas_reduce_gradients(e)) return FAILED_ALONE;
    if (optimizer->clip_norm > 0 && gradient_norm(e, &norm)) return FAILED_ALONE;
    if (optimizer_check_norm(norm)) return FAILED_TOGETHER;
    if (replicas_average_buffers(e))
        return FAILED_ALONE; /* from here on no error is common to all */
    stage_update(e->stage, lr, optimizer_clip(optimizer, norm));
    return tied_exchange(e, TENSOR_PARAMETER) ? FAILED_ALONE : DONE;
}

static StepOutcome try_step(RankEngine *e, double lr, Loss *loss) {
    int parts = e->settings.micro_batches, share = replica_samples(e, e->global_batch->n);
    double scale = 1 / batch_target_count(e->global_batch, e->base.model);
    if (rank_cache_look_up(e)) return FAILED_ALONE;
    const Schedule *schedule = e->cache.hit ? &e->cached_training : &e->training;
    if (run_batch(e, schedule, MODE_TRAIN, (share + parts - 1) / parts, scale, loss) ||
        rank_cache_store(e))
        return FAILED_ALONE;
    return optimizer_check_loss(loss->loss_sum) ? FAILED_TOGETHER : update(e, lr);
}

static int rank_step(Engine *base, const Batch *batch, double lr, Loss *loss) {
    RankEngine *e = of(base);
    *loss = (Loss){0};
    rank_infer_close(e);
    take_batch(e, batch);
    StepOutcome outcome = try_step(e, lr, loss);
    if (outcome == DONE) return 0;
    stage_discard(e->stage);
    return outcome == FAILED_ALONE ? rank_abort(e) : -1;
}

static int rank_pre_infer(Engine *base, const Batch *batch) {
    RankEngine *e = of(base);
    take_batch(e, batch);
    return rank_infer(e) ? rank_abort(e) : 0;
}

static int rank_evaluate(Engine *base, const Batch *batch, Loss *loss) {
    RankEngine *e = of(base);
    int size = e->stage->settings.batch;
    int max = size * e->settings.micro_batches * e->replicas->ranks;
    for (int first = 0; first < batch->n; first += max) {
        int end = batch->n - first < max ? batch->n : first + max;
        Batch some = batch_slice(batch, base->model, first, end);
        take_batch(e, &some);
        if (run_batch(e, &e->evaluation, MODE_EVALUATE, size, 1, loss)) return rank_abort(e);
    }
    return 0;
}

/* ---- tensors ---- */

/* Reads a tensor on the rank that has it, in the first replica, and sends it to rank 0 alone; other
 * ranks have nothing to do. */
static size_t rank_read(Engine *base, TensorRole role, int number, real *data) {
    RankEngine *e = of(base);
    int owner = placement_rank(e->placement, tensor_block(base->model, role, number));
    int rank = e->transport->rank;
    size_t count = 0;
    if (e->replicas->rank > 0 || (rank != owner && rank != 0)) return 0;
    if (rank == owner) count = stage_read(e->stage, role, number, data);
    if (count != READ_FAILED && transport_move(e->transport, owner, 0, &count, sizeof count) == 0 &&
        (!data || transport_move(e->transport, owner, 0, data, count * sizeof *data) == 0))
        return count;
    rank_abort(e);
    return READ_FAILED;
}

static int rank_write(Engine *base, TensorRole role, int number, const real *data) {
    RankEngine *e = of(base);
    const Model *m = base->model;
    bool local = e->blocks.local[tensor_block(m, role, number)];
    if (role == TENSOR_PARAMETER) local = param_is_local(m, &e->stage->settings, number);
    return local && stage_write(e->stage, role, number, data) ? rank_abort(e) : 0;
}

static uint64_t rank_optimizer_step(Engine *base, int block) {
    return of(base)->stage->optimizer_step[block];
}

static void rank_set_optimizer_step(Engine *base, int block, uint64_t t) {
    of(base)->stage->optimizer_step[block] = t;
}

static const MemCount *rank_memory(Engine *base) { return &of(base)->stage->memory; }

/* ---- create and destroy ---- */

static void rank_free(Engine *base) {
    RankEngine *e = of(base);
    if (e->transit) messages_drop(e);
    rank_infer_close(e);
    rank_cache_close(e);
    free(e->transit);
    schedule_free(&e->training);
    schedule_free(&e->cached_training);
    schedule_free(&e->evaluation);
    free(e->active);
    free(e->cost);
    free(e->square);
    stage_free(e->stage);
    transport_free(e->replicas);
    transport_free(e->transport);
    rank_blocks_free(&e->blocks);
    free(e);
}

static int reserve(RankEngine *e) {
    size_t blocks = (size_t)e->base.model->blocks, chunks = (size_t)e->placement->chunks;
    size_t params = (size_t)e->base.model->params, ranks = (size_t)e->placement->ranks;
    e->active = calloc(blocks, sizeof *e->active);
    e->cost = calloc(chunks, sizeof *e->cost);
    e->transit = calloc(2 * chunks * (size_t)e->settings.micro_batches, sizeof *e->transit);
    e->square = calloc(ranks * params + 1, sizeof *e->square);
    return e->active && e->cost && e->transit && e->square ? 0
                                                           : error_set("pipeline: out of memory");
}

Engine *engine_rank_create(Stage *stage, Transport *transport, Transport *replicas,
                           const Placement *placement, RankBlocks blocks,
                           PipelineSettings settings) {
    static const EngineClass class = {
        .activate = rank_activate,
        .step = rank_step,
        .pre_infer = rank_pre_infer,
        .evaluate = rank_evaluate,
        .read = rank_read,
        .write = rank_write,
        .optimizer_step = rank_optimizer_step,
        .set_optimizer_step = rank_set_optimizer_step,
        .memory = rank_memory,
        .free = rank_free,
    };
    bool corrects = stage->settings.correct_factor > 0;
    if (!replicas) replicas = transport_group(transport, &transport->rank, 1);
    RankEngine *e = corrects || !replicas ? NULL : calloc(1, sizeof *e);
    if (!e) {
        static const char apart[] =
            "pipeline: blocks above the active ones are corrected on one device alone";
        const char *why = corrects ? apart : "pipeline: out of memory";
        transport_abort(transport, why); /* or freeing it would wait for ranks that go on */
        stage_free(stage);
        if (replicas) transport_free(replicas);
        transport_free(transport);
        rank_blocks_free(&blocks);
        return error_null("%s", why);
    }
    *e = (RankEngine){.base = {&class, stage->model},
                      .stage = stage,
                      .transport = transport,
                      .replicas = replicas,
                      .placement = placement,
                      .blocks = blocks,
                      .settings = settings,
                      .has_messages = stage->device && transport->carries_messages};
    if (reserve(e) || rank_cache_open(e) || make_evaluation(e)) {
        rank_abort(e);
        rank_free(&e->base);
        return NULL;
    }
    return &e->base;
}
