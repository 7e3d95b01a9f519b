/* Executes a schedule: for each task, copies what it needs into the stage, runs its blocks, and
 * copies out what the next chunk needs. */
#include <stdlib.h>

#include "../ref/base/error.h"
#include "../ref/layout.h"
#include "../ref/stage_device.h"
#include "rank_inside.h"

static int chunk_first_block(const RankEngine *e, int chunk) {
    int b = 0;
    while (e->placement->chunk_of[b] != chunk) b++;
    return b;
}

static int chunk_end_block(const RankEngine *e, int chunk) {
    int b = chunk_first_block(e, chunk);
    while (b < e->base.model->blocks && e->placement->chunk_of[b] == chunk) b++;
    return b;
}

/* Returns the samples in a micro-batch of the step; the last ones may have none. */
static int micro_batch_samples(const RankEngine *e, int micro) {
    int left = e->batch.n - micro * e->micro_batch_size;
    return left < 0 ? 0 : left < e->micro_batch_size ? left : e->micro_batch_size;
}

/* ---- messages between chunks: out of a stage, over the transport, into a stage ----
 *
 * They are arrays in host memory, or messages of the device if the stage and the transport have
 * these. */

/* What passes between neighbouring chunks: the input of chunk `to`, on its way up, or the gradient
 * of that chunk's output, on its way down. */
typedef struct {
    bool gradient;
    int to, micro;
} Boundary;
static Boundary input_of(int chunk, int micro) { return (Boundary){false, chunk, micro}; }
static Boundary output_gradient_of(int chunk, int micro) { return (Boundary){true, chunk, micro}; }

static void **in_transit(RankEngine *e, Boundary b) {
    int chunk = b.to + (b.gradient ? e->placement->chunks : 0);
    return &e->transit[chunk * e->settings.micro_batches + b.micro];
}

/* Returns the block whose output, or whose output's gradient, it is. */
static int boundary_block(const RankEngine *e, Boundary b) {
    return b.gradient ? chunk_end_block(e, b.to) - 1 : chunk_first_block(e, b.to) - 1;
}

static TensorRole role(Boundary b) { return b.gradient ? TENSOR_VALUE_GRADIENT : TENSOR_VALUE; }

static size_t boundary_count(const RankEngine *e, Boundary b) {
    const Model *m = e->base.model;
    return value_count(m, m->block[boundary_block(e, b)].out, micro_batch_samples(e, b.micro));
}

static int reserve(RankEngine *e, Boundary b) {
    size_t count = boundary_count(e, b);
    if (e->messages) {
        *in_transit(e, b) = stage_message_create(e->stage, count);
        return *in_transit(e, b) ? 0 : -1;
    }
    *in_transit(e, b) = malloc((count + 1) * sizeof(real));
    return *in_transit(e, b) ? 0 : error_set("pipeline: out of memory for a message");
}

static void drop(const RankEngine *e, void **message) {
    if (!e->messages)
        free(*message);
    else if (*message)
        stage_message_free(e->stage, *message);
    *message = NULL;
}

void messages_drop(RankEngine *e) {
    int count = 2 * e->placement->chunks * e->settings.micro_batches;
    for (int i = 0; i < count; i++) drop(e, &e->transit[i]);
}

/* Creates and frees as many messages as can be on their way to and from this rank's chunks at once.
 * The device keeps their memory, so that steps need not allocate any: an allocation can wait for
 * the device, while the device waits for a message of another rank. */
int messages_reserve(RankEngine *e, const SchedulePlan *plan) {
    const Model *m = e->base.model;
    Stage *stage = e->stage;
    void **message = e->transit; /* nothing is in transit between steps */
    int failed = 0;
    e->messages = e->has_messages;
    for (int low = 0; e->messages && low + 1 < e->placement->chunks; low++) {
        const int count = rank_messages(e->placement, plan, low, e->transport->rank),
                  value = m->block[chunk_end_block(e, low) - 1].out;
        for (int i = 0; i < count && !failed; i++, message++) {
            *message = stage_message_create(stage, value_count(m, value, stage->settings.batch));
            failed = *message ? 0 : -1;
        }
    }
    messages_drop(e);
    return failed;
}

/* Copies it out of the stage. */
static int boundary_pack(RankEngine *e, Boundary b) {
    if (reserve(e, b)) return -1;
    void *message = *in_transit(e, b);
    if (!e->messages) return rank_read_stage(e, role(b), boundary_block(e, b), message);
    stage_message_pack(e->stage, role(b), boundary_block(e, b), message);
    return 0;
}

/* Copies it into the stage and drops it. */
static int boundary_unpack(RankEngine *e, Boundary b) {
    void **message = in_transit(e, b);
    int block = boundary_block(e, b);
    int failed = e->messages ? stage_message_unpack(e->stage, role(b), block, *message)
                             : stage_write(e->stage, role(b), block, *message);
    drop(e, message);
    return failed;
}

/* Sends it to the rank of the chunk that it is for, or receives it from the neighbouring chunk. */
static int boundary_transfer(RankEngine *e, Boundary b, bool send) {
    size_t one = e->messages ? value_bytes(&e->stage->settings) : sizeof(real);
    if (!send && !e->messages && reserve(e, b)) return -1;
    void **message = in_transit(e, b);
    int from = b.gradient ? b.to + 1 : b.to - 1;
    Transfer t = {.send = send,
                  .peer = chunk_rank(e, send ? b.to : from),
                  .channel = b.gradient ? CHANNEL_GRADIENTS : CHANNEL_VALUES,
                  .data = e->messages ? NULL : *message,
                  .message = e->messages ? *message : NULL,
                  .bytes = boundary_count(e, b) * one};
    int failed = transport_sendrecv(e->transport, &t, 1);
    if (e->messages)
        *message = t.message; /* the received one, or NULL after a send */
    else if (send)
        drop(e, message);
    return failed;
}

/* ---- tasks ---- */

/* Makes the calls of the stage that follow refer to this micro-batch. */
static void select_micro_batch(RankEngine *e, int micro) {
    int first = micro * e->micro_batch_size;
    Batch now = batch_slice(&e->batch, e->base.model, first, first + micro_batch_samples(e, micro));
    stage_select(e->stage, micro);
    stage_begin(e->stage, &now, e->mode);
}

static int forward(RankEngine *e, int chunk, int micro) {
    Stage *stage = e->stage;
    int b = chunk_first_block(e, chunk), end = chunk_end_block(e, chunk);
    bool caches = e->mode == MODE_TRAIN || e->infers;
    int cached = caches ? e->cache.lowest : -1;               /* the block with cached inputs */
    bool skips = e->cache.hit && b <= cached && cached < end; /* the blocks below it */
    if (skips) b = cached;
    if (!skips && chunk > 0 && boundary_unpack(e, input_of(chunk, micro))) return -1;
    for (; b < end; b++) {
        if (b == cached && rank_cache_copy(e, micro)) return -1;
        if (b == cached && e->infers) return 0;
        stage_forward(stage, b);
    }
    if (chunk + 1 < e->placement->chunks) return boundary_pack(e, input_of(chunk + 1, micro));
    Loss loss;
    if (stage_loss(stage, e->scale, &loss)) return -1;
    loss_add(&e->loss, &loss);
    return 0;
}

/* Computes the input gradients of a chunk, and after each block's its weight gradients, unless
 * these are deferred and have a task of their own. */
static int backward(RankEngine *e, int chunk, int micro, int lowest) {
    Stage *stage = e->stage;
    if (chunk + 1 < e->placement->chunks && boundary_unpack(e, output_gradient_of(chunk, micro)))
        return -1;
    for (int b = chunk_end_block(e, chunk) - 1; b >= chunk_first_block(e, chunk); b--) {
        stage_input_gradient(stage, b);
        if (!stage->settings.deferred) stage_weight_gradient(stage, b);
    }
    return chunk > lowest ? boundary_pack(e, output_gradient_of(chunk - 1, micro)) : 0;
}

static void deferred_gradients(RankEngine *e, int chunk) {
    for (int b = chunk_end_block(e, chunk) - 1; b >= chunk_first_block(e, chunk); b--)
        stage_weight_gradient(e->stage, b);
}

static int perform(RankEngine *e, const Task *t, int lowest) {
    int chunk = t->chunk, micro = t->micro_batch;
    if (micro_batch_samples(e, micro) == 0) return 0;
    switch (t->kind) {
        case TASK_RECEIVE_VALUE:
            return boundary_transfer(e, input_of(chunk, micro), false);
        case TASK_SEND_VALUE:
            return boundary_transfer(e, input_of(chunk + 1, micro), true);
        case TASK_RECEIVE_GRADIENT:
            return boundary_transfer(e, output_gradient_of(chunk, micro), false);
        case TASK_SEND_GRADIENT:
            return boundary_transfer(e, output_gradient_of(chunk - 1, micro), true);
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

/* Returns whether this schedule has run with as many samples since the submodel became active, and
 * notes that it does now; all ranks of the pipeline have the same answer. */
static bool has_run(RankEngine *e, const Schedule *schedule) {
    enum { MOST = sizeof e->run_before / sizeof *e->run_before };
    for (int i = 0; i < e->runs_before; i++)
        if (e->run_before[i].schedule == schedule && e->run_before[i].samples == e->batch.n)
            return true;
    if (e->runs_before == MOST) e->runs_before = 0;
    e->run_before[e->runs_before++] = (RankRun){schedule, e->batch.n};
    return false;
}

/* In a first run the device may load kernels, which waits for all that it has begun.  If messages
 * wait on the device for a rank that waits for this one, both would wait for ever; so they go
 * through the host. */
int rank_run_schedule(RankEngine *e, const Schedule *schedule) {
    e->messages = e->has_messages && (has_run(e, schedule) || !e->transport->waits_on_device);
    const TaskList *list = &schedule->rank[e->transport->rank];
    for (int i = 0; i < list->tasks; i++)
        if (perform(e, &list->task[i], schedule->lowest)) {
            messages_drop(e);
            return -1;
        }
    return 0;
}
