#include "engine_rank.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../ref/error.h"
#include "../ref/layout.h"
#include "rank_inside.h"

static RankEngine *of(Engine *base) { return (RankEngine *)(void *)base; }

static int owner(const RankEngine *e, int block) {
    return chunk_rank(e, e->placement->chunk_of[block]);
}

/* ---- a submodel becomes active ------------------------------------------------------------------
 */

static int make_schedules(RankEngine *e) {
    const Placement *p = e->placement;
    const Model *m = e->base.model;
    SchedulePlan evaluation = rank_schedule_plan(e->cost, e->trains, p, m, e->settings, NULL);
    schedule_free(&e->evaluation);
    if (schedule_make(&e->evaluation, &evaluation)) return -1;
    SchedulePlan training = rank_schedule_plan(e->cost, e->trains, p, m, e->settings, e->active);
    schedule_free(&e->training);
    return schedule_make(&e->training, &training) ||
                   rank_blocks_set_slots(&e->blocks, p, m, e->settings, e->active)
               ? -1
               : 0;
}

static int rank_activate(Engine *base, const bool *active) {
    RankEngine *e = of(base);
    size_t blocks = (size_t)base->model->blocks;
    if (memcmp(active, e->active, blocks) == 0) return 0;
    memcpy(e->active, active, blocks);
    return make_schedules(e) || e->stage->is->activate(e->stage, active) ? -1 : 0;
}

/* ---- tied parameters ----------------------------------------------------------------------------
 */

/* The rank that uses a parameter of another rank's block; -1: none. */
static int tied_user(const RankEngine *e, int param) {
    const Model *m = e->base.model;
    int own = owner(e, m->param[param].block);
    for (int i = 0; i < m->nodes; i++) {
        const Node *node = &m->node[i];
        int user = owner(e, m->value[node->out].block);
        if ((node->weight == param || node->bias == param) && user != own) return user;
    }
    return -1;
}

/* Sends a tensor from one rank to another; `add`: the receiver adds it to its own. */
static int move_tensor(RankEngine *e, TensorRole role, int param, int from, int to, bool add) {
    size_t count = e->base.model->param[param].count;
    Stage *stage = e->stage;
    if (e->link->rank != from && e->link->rank != to) return 0;
    real *data = malloc(2 * count * sizeof *data), *mine = data + count;
    if (!data) return error_set("pipeline: out of memory for a tied parameter");
    bool send = e->link->rank == from;
    if (send) stage->is->read(stage, role, param, data);
    Transfer t = {send, send ? to : from, CHANNEL_GRADIENTS, data, count * sizeof *data, NULL};
    int failed = e->link->is->exchange(e->link, &t, 1);
    if (!failed && !send && add) {
        stage->is->read(stage, role, param, mine);
        for (size_t i = 0; i < count; i++) data[i] += mine[i];
    }
    if (!failed && !send) failed = stage->is->write(stage, role, param, data);
    free(data);
    return failed;
}

/* Before the update the user's share of the gradient goes to the owner; after it the new values
 * come back. */
static int share_tied(RankEngine *e, bool before) {
    const Model *m = e->base.model;
    for (int p = 0; p < m->params; p++) {
        if (!e->active[m->param[p].block]) continue;
        int own = owner(e, m->param[p].block), user = tied_user(e, p);
        if (user < 0) continue;
        if (before ? move_tensor(e, TENSOR_GRADIENT, p, user, own, true)
                   : move_tensor(e, TENSOR_PARAMETER, p, own, user, false))
            return -1;
    }
    return 0;
}

/* ---- step and evaluation ------------------------------------------------------------------------
 */

static double counted_targets(const Model *m, const Batch *batch) {
    size_t all = (size_t)batch->n * (size_t)m->targets, count = 0;
    for (size_t i = 0; i < all; i++) count += batch->targets[i] >= 0;
    return count ? (double)count : 1;
}

/* Runs the lists over a batch in parts of at most `size` samples; every rank gets the loss. */
static int run_batch(RankEngine *e, const Schedule *schedule, Pass pass, const Batch *batch,
                     int size, double scale, Loss *loss) {
    e->batch = batch;
    e->part_size = size;
    e->pass = pass;
    e->scale = scale;
    e->loss = *loss;
    if (rank_run(e, schedule)) return -1;
    int last = chunk_rank(e, e->placement->chunks - 1);
    if (link_broadcast(e->link, last, &e->loss, sizeof e->loss)) return -1;
    *loss = e->loss;
    return 0;
}

/* The global norm, its squares added in the order of parameters as one device does. */
static int gradient_norm(RankEngine *e, double *norm) {
    size_t params = (size_t)e->base.model->params, ranks = (size_t)e->link->ranks;
    double *mine = e->square + ranks * params, sum = 0;
    e->stage->is->gradient_squares(e->stage, mine);
    if (link_gather(e->link, e->square, mine, params * sizeof *mine)) return -1;
    for (size_t p = 0; p < params; p++)
        for (size_t r = 0; r < ranks; r++) sum += e->square[r * params + p];
    *norm = sqrt(sum);
    return 0;
}

static int update(RankEngine *e, double lr) {
    double clip = e->stage->settings.optimizer.clip_norm, scale = 1, norm;
    if (share_tied(e, true)) return -1;
    if (clip > 0) {
        if (gradient_norm(e, &norm)) return -1;
        if (!isfinite(norm)) return error_set("bcd: the gradient's norm is %g; lower --lr", norm);
        if (norm > clip) scale = clip / norm;
    }
    e->stage->is->update(e->stage, lr, scale);
    return share_tied(e, false);
}

static int rank_step(Engine *base, const Batch *batch, double lr, Loss *loss) {
    RankEngine *e = of(base);
    int parts = e->settings.micro_batches, size = (batch->n + parts - 1) / parts;
    double scale = 1 / counted_targets(base->model, batch);
    *loss = (Loss){0};
    int failed = run_batch(e, &e->training, PASS_TRAIN, batch, size, scale, loss);
    if (!failed && !isfinite(loss->loss_sum))
        failed = error_set("bcd: the loss is %g; lower --lr, or set --clip", loss->loss_sum);
    failed = failed || update(e, lr);
    if (failed) e->stage->is->discard(e->stage);
    return failed ? -1 : 0;
}

static int rank_evaluate(Engine *base, const Batch *batch, Loss *loss) {
    RankEngine *e = of(base);
    const Model *m = base->model;
    int size = e->stage->settings.batch, most = size * e->settings.micro_batches;
    size_t input = shape_count(m->input);
    *loss = (Loss){0};
    for (int first = 0; first < batch->n; first += most) {
        size_t skip = (size_t)first;
        Batch some = {.n = batch->n - first < most ? batch->n - first : most,
                      .ids = batch->ids + skip,
                      .images = batch->images ? batch->images + skip * input : NULL,
                      .tokens = batch->tokens ? batch->tokens + skip * input : NULL,
                      .targets = batch->targets + skip * (size_t)m->targets};
        if (run_batch(e, &e->evaluation, PASS_EVALUATE, &some, size, 1, loss)) return -1;
    }
    return 0;
}

/* ---- tensors ------------------------------------------------------------------------------------
 */

static int tensor_block(const Model *m, TensorRole role, int number) {
    if (role == TENSOR_BUFFER) return m->buffer[number].block;
    if (role == TENSOR_VALUE || role == TENSOR_VALUE_GRADIENT) return number;
    return m->param[number].block;
}

/* From the rank that has it, to all. */
static size_t rank_read(Engine *base, TensorRole role, int number, real *data) {
    RankEngine *e = of(base);
    int root = owner(e, tensor_block(base->model, role, number));
    size_t count = 0;
    if (root == e->link->rank) count = e->stage->is->read(e->stage, role, number, data);
    if (link_broadcast(e->link, root, &count, sizeof count)) return 0;
    if (data && count && link_broadcast(e->link, root, data, count * sizeof *data)) return 0;
    return count;
}

static int rank_write(Engine *base, TensorRole role, int number, const real *data) {
    RankEngine *e = of(base);
    const Model *m = base->model;
    bool here = e->blocks.here[tensor_block(m, role, number)];
    if (role == TENSOR_PARAMETER) here = param_here(m, &e->stage->settings, number);
    return here ? e->stage->is->write(e->stage, role, number, data) : 0;
}

static uint64_t rank_age(Engine *base, int block) {
    return of(base)->stage->is->age(of(base)->stage, block);
}

static void rank_set_age(Engine *base, int block, uint64_t age) {
    of(base)->stage->is->set_age(of(base)->stage, block, age);
}

static const MemCount *rank_memory(Engine *base) {
    return of(base)->stage->is->memory(of(base)->stage);
}

/* ---- life ---------------------------------------------------------------------------------------
 */

static void rank_free(Engine *base) {
    RankEngine *e = of(base);
    if (e->value && e->gradient) rank_drop(e);
    free(e->value);
    free(e->gradient);
    schedule_free(&e->training);
    schedule_free(&e->evaluation);
    free(e->active);
    free(e->trains);
    free(e->cost);
    free(e->square);
    e->stage->is->free(e->stage);
    e->link->is->free(e->link);
    if (e->copies) e->copies->is->free(e->copies);
    rank_blocks_free(&e->blocks);
    free(e);
}

static int reserve(RankEngine *e) {
    size_t blocks = (size_t)e->base.model->blocks, chunks = (size_t)e->placement->chunks;
    size_t params = (size_t)e->base.model->params, ranks = (size_t)e->placement->ranks;
    size_t ways = chunks * (size_t)e->settings.micro_batches;
    e->active = calloc(blocks, sizeof *e->active);
    e->trains = calloc(chunks, sizeof *e->trains);
    e->cost = calloc(chunks, sizeof *e->cost);
    e->value = calloc(ways, sizeof *e->value);
    e->gradient = calloc(ways, sizeof *e->gradient);
    e->square = calloc((ranks + 1) * params + 1, sizeof *e->square);
    return e->active && e->trains && e->cost && e->value && e->gradient && e->square
               ? 0
               : error_set("pipeline: out of memory");
}

Engine *engine_rank_create(Stage *stage, Link *link, Link *copies, const Placement *placement,
                           RankBlocks blocks, PipelineSettings settings) {
    static const EngineClass class = {
        .activate = rank_activate,
        .step = rank_step,
        .evaluate = rank_evaluate,
        .read = rank_read,
        .write = rank_write,
        .age = rank_age,
        .set_age = rank_set_age,
        .memory = rank_memory,
        .free = rank_free,
    };
    RankEngine *e = calloc(1, sizeof *e);
    if (!e) {
        stage->is->free(stage);
        link->is->free(link);
        if (copies) copies->is->free(copies);
        rank_blocks_free(&blocks);
        error_set("pipeline: out of memory");
        return NULL;
    }
    *e = (RankEngine){.base = {&class, stage->model},
                      .stage = stage,
                      .link = link,
                      .copies = copies,
                      .placement = placement,
                      .blocks = blocks,
                      .settings = settings};
    if (reserve(e) || make_schedules(e)) {
        rank_free(&e->base);
        return NULL;
    }
    return &e->base;
}

int engine_rank_capacity(const Placement *p, PipelineSettings settings) {
    return p->chunks * (p->chunks + 3 + settings.slack);
}
