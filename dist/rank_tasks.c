/* Executes a schedule: for each task, copies what it needs into the stage, runs its blocks, and
 * copies out what the next chunk needs. */
#include "rank_inside.h"

/* Makes the calls of the stage that follow refer to this micro-batch. */
static void select_micro_batch(RankEngine *e, int micro) {
    int first = micro * e->micro_batch_size;
    Batch now = batch_slice(&e->batch, e->base.model, first, first + micro_batch_samples(e, micro));
    e->stage->is->select(e->stage, micro);
    e->stage->is->begin(e->stage, &now, e->mode);
}

static int forward(RankEngine *e, int chunk, int micro) {
    Stage *stage = e->stage;
    int b = chunk_first_block(e, chunk), end = chunk_end_block(e, chunk);
    int cached = e->mode == MODE_TRAIN ? e->cache.lowest : -1; /* the block with cached inputs */
    bool skips = e->cache.hit && b <= cached && cached < end;  /* the blocks below it */
    if (skips) b = cached;
    if (!skips && chunk > 0 && boundary_unpack(e, input_of(chunk, micro))) return -1;
    for (; b < end; b++) {
        if (b == cached && rank_cache_copy(e, micro)) return -1;
        stage->is->forward(stage, b);
    }
    if (chunk + 1 < e->placement->chunks) return boundary_pack(e, input_of(chunk + 1, micro));
    Loss loss;
    if (stage->is->loss(stage, e->scale, &loss)) return -1;
    loss_add(&e->loss, &loss);
    return 0;
}

/* Computes the input gradients of a chunk, and after each block's its weight gradients, unless
 * these are deferred and have a task of their own. */
static int backward(RankEngine *e, int chunk, int micro, int lowest) {
    const StageClass *stage = e->stage->is;
    if (chunk + 1 < e->placement->chunks && boundary_unpack(e, output_gradient_of(chunk, micro)))
        return -1;
    for (int b = chunk_end_block(e, chunk) - 1; b >= chunk_first_block(e, chunk); b--) {
        stage->input_gradient(e->stage, b);
        if (!e->stage->settings.deferred) stage->weight_gradient(e->stage, b);
    }
    return chunk > lowest ? boundary_pack(e, output_gradient_of(chunk - 1, micro)) : 0;
}

static void deferred_gradients(RankEngine *e, int chunk) {
    for (int b = chunk_end_block(e, chunk) - 1; b >= chunk_first_block(e, chunk); b--)
        e->stage->is->weight_gradient(e->stage, b);
}

static int perform(RankEngine *e, const Task *t, int lowest) {
    int chunk = t->chunk, micro = t->micro_batch;
    if (micro_batch_samples(e, micro) == 0) return 0;
    switch (t->kind) {
        case TASK_RECEIVE_VALUE:
            return boundary_transfer(e, input_of(chunk, micro), false, chunk - 1);
        case TASK_SEND_VALUE:
            return boundary_transfer(e, input_of(chunk + 1, micro), true, chunk + 1);
        case TASK_RECEIVE_GRADIENT:
            return boundary_transfer(e, output_gradient_of(chunk, micro), false, chunk + 1);
        case TASK_SEND_GRADIENT:
            return boundary_transfer(e, output_gradient_of(chunk - 1, micro), true, chunk - 1);
        case TASK_FORWARD:
            select_micro_batch(e, micro);
            return forward(e, chunk, micro);
        case TASK_INPUT_GRADIENT:
            select_micro_batch(e, micro);
            return backward(e, chunk, micro, lowest);
        case TASK_WEIGHT_GRADIENT:
            if (!e->stage->settings.deferred) break;
            select_micro_batch(e, micro);
            deferred_gradients(e, chunk);
            break;
    }
    return 0;
}

int rank_run_schedule(RankEngine *e, const Schedule *schedule) {
    const TaskList *list = &schedule->rank[e->transport->rank];
    for (int i = 0; i < list->tasks; i++)
        if (perform(e, &list->task[i], schedule->lowest)) {
            boundary_drop_all(e);
            return -1;
        }
    return 0;
}
