/* Carries out a schedule: brings what a task needs into the stage, runs its blocks, and takes out
 * what the next chunk needs. */
#include <stdlib.h>

#include "../ref/error.h"
#include "../ref/layout.h"
#include "rank_inside.h"

int chunk_first_block(const RankEngine *e, int chunk) {
    int b = 0;
    while (e->placement->chunk_of[b] != chunk) b++;
    return b;
}

int chunk_end_block(const RankEngine *e, int chunk) {
    int b = chunk_first_block(e, chunk);
    while (b < e->base.model->blocks && e->placement->chunk_of[b] == chunk) b++;
    return b;
}

/* ---- what is on its way -------------------------------------------------------------------------
 */

/* A value on its way up into a chunk, or the gradient of a chunk's output on its way down to it. */
typedef struct {
    bool gradient;
    int to, micro;
} Way;

static real **place(RankEngine *e, Way way) {
    return (way.gradient ? e->gradient : e->value) + way.to * e->settings.micro_batches + way.micro;
}

/* The block whose output it is, or is the gradient of. */
static int boundary(const RankEngine *e, Way way) {
    return way.gradient ? chunk_end_block(e, way.to) - 1 : chunk_first_block(e, way.to) - 1;
}

static TensorRole role(Way way) { return way.gradient ? TENSOR_VALUE_GRADIENT : TENSOR_VALUE; }

/* Samples of a part; the last ones may have none. */
static int part_samples(const RankEngine *e, int micro) {
    int left = e->batch->n - micro * e->part_size;
    return left < 0 ? 0 : left < e->part_size ? left : e->part_size;
}

static size_t way_count(const RankEngine *e, Way way) {
    const Model *m = e->base.model;
    return value_count(m, m->block[boundary(e, way)].out, part_samples(e, way.micro));
}

static int reserve(RankEngine *e, Way way) {
    *place(e, way) = malloc((way_count(e, way) + 1) * sizeof(real));
    return *place(e, way) ? 0 : error_set("pipeline: out of memory for a message");
}

static void drop(RankEngine *e, Way way) {
    free(*place(e, way));
    *place(e, way) = NULL;
}

static int take_from_stage(RankEngine *e, Way way) {
    if (reserve(e, way)) return -1;
    e->stage->is->read(e->stage, role(way), boundary(e, way), *place(e, way));
    return 0;
}

static int give_to_stage(RankEngine *e, Way way) {
    int failed = e->stage->is->write(e->stage, role(way), boundary(e, way), *place(e, way));
    drop(e, way);
    return failed;
}

static int transfer(RankEngine *e, Way way, bool send, int peer_chunk) {
    if (!send && reserve(e, way)) return -1;
    Transfer t = {.send = send,
                  .peer = chunk_rank(e, peer_chunk),
                  .channel = way.gradient ? CHANNEL_GRADIENTS : CHANNEL_VALUES,
                  .data = *place(e, way),
                  .bytes = way_count(e, way) * sizeof(real)};
    int failed = e->link->is->exchange(e->link, &t, 1);
    if (send) drop(e, way);
    return failed;
}

void rank_drop(RankEngine *e) {
    for (int c = 0; c < e->placement->chunks; c++)
        for (int k = 0; k < e->settings.micro_batches; k++) {
            drop(e, (Way){false, c, k});
            drop(e, (Way){true, c, k});
        }
}

/* ---- tasks --------------------------------------------------------------------------------------
 */

static Batch part(const RankEngine *e, int micro) {
    const Batch *batch = e->batch;
    size_t skip = (size_t)(micro * e->part_size), input = shape_count(e->base.model->input);
    return (Batch){.n = part_samples(e, micro),
                   .ids = batch->ids + skip,
                   .images = batch->images ? batch->images + skip * input : NULL,
                   .tokens = batch->tokens ? batch->tokens + skip * input : NULL,
                   .targets = batch->targets + skip * (size_t)e->base.model->targets};
}

/* From now on the stage is about this micro-batch. */
static void turn_to(RankEngine *e, int micro) {
    Batch now = part(e, micro);
    e->stage->is->select(e->stage, micro);
    e->stage->is->begin(e->stage, &now, e->pass);
}

static void add_loss(RankEngine *e) {
    Loss loss = e->stage->is->loss(e->stage, e->scale);
    e->loss.loss_sum += loss.loss_sum;
    e->loss.count += loss.count;
    e->loss.correct += loss.correct;
}

static int forward(RankEngine *e, int chunk, int micro) {
    if (chunk > 0 && give_to_stage(e, (Way){false, chunk, micro})) return -1;
    int end = chunk_end_block(e, chunk);
    for (int b = chunk_first_block(e, chunk); b < end; b++) e->stage->is->forward(e->stage, b);
    if (chunk + 1 < e->placement->chunks) return take_from_stage(e, (Way){false, chunk + 1, micro});
    add_loss(e);
    return 0;
}

/* Both gradients, block by block: a stage keeps what a weight gradient reads only until the input
 * gradient of the block below. */
static int backward(RankEngine *e, int chunk, int micro, int lowest) {
    if (chunk + 1 < e->placement->chunks && give_to_stage(e, (Way){true, chunk, micro})) return -1;
    for (int b = chunk_end_block(e, chunk) - 1; b >= chunk_first_block(e, chunk); b--) {
        e->stage->is->input_gradient(e->stage, b);
        e->stage->is->weight_gradient(e->stage, b);
    }
    return chunk > lowest ? take_from_stage(e, (Way){true, chunk - 1, micro}) : 0;
}

static int perform(RankEngine *e, const Task *t, int lowest) {
    int chunk = t->chunk, micro = t->micro_batch;
    bool computes = part_samples(e, micro) > 0;
    switch (t->what) {
        case DO_RECEIVE_VALUE:
            return computes ? transfer(e, (Way){false, chunk, micro}, false, chunk - 1) : 0;
        case DO_SEND_VALUE:
            return computes ? transfer(e, (Way){false, chunk + 1, micro}, true, chunk + 1) : 0;
        case DO_RECEIVE_GRADIENT:
            return computes ? transfer(e, (Way){true, chunk, micro}, false, chunk + 1) : 0;
        case DO_SEND_GRADIENT:
            return computes ? transfer(e, (Way){true, chunk - 1, micro}, true, chunk - 1) : 0;
        case DO_FORWARD:
            if (!computes) return 0;
            turn_to(e, micro);
            return forward(e, chunk, micro);
        case DO_INPUT_GRADIENT:
            if (!computes) return 0;
            turn_to(e, micro);
            return backward(e, chunk, micro, lowest);
        case DO_WEIGHT_GRADIENT:
            break; /* done with the input gradient */
    }
    return 0;
}

/* The lowest chunk that a schedule takes backward. */
static int lowest_backward(const Schedule *schedule, int chunks) {
    int lowest = chunks;
    for (int r = 0; r < schedule->ranks; r++)
        for (int i = 0; i < schedule->rank[r].tasks; i++) {
            const Task *t = &schedule->rank[r].task[i];
            if (t->what == DO_INPUT_GRADIENT && t->chunk < lowest) lowest = t->chunk;
        }
    return lowest;
}

int rank_run(RankEngine *e, const Schedule *schedule) {
    const TaskList *list = &schedule->rank[e->link->rank];
    int lowest = lowest_backward(schedule, e->placement->chunks);
    for (int i = 0; i < list->tasks; i++)
        if (perform(e, &list->task[i], lowest)) {
            rank_drop(e);
            return -1;
        }
    return 0;
}
