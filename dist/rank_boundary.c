/* Values and gradients on their way between chunks: out of a stage, over the transport, into a
 * stage.  They are arrays in host memory, or messages of the device if the stage and the transport
 * have these. */
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

int micro_batch_samples(const RankEngine *e, int micro) {
    int left = e->batch.n - micro * e->micro_batch_size;
    return left < 0 ? 0 : left < e->micro_batch_size ? left : e->micro_batch_size;
}

static void **in_transit(RankEngine *e, Boundary b) {
    int chunk = b.to + (b.gradient ? e->placement->chunks : 0);
    return &e->transit[chunk * e->settings.micro_batches + b.micro];
}

/* Creates and frees as many messages as can be on their way to and from this rank's chunks at once.
 * The device keeps their memory, so that steps need not allocate any: an allocation can wait for
 * the device, while the device waits for a message of another rank. */
int boundary_reserve_all(RankEngine *e, const SchedulePlan *plan) {
    const Model *m = e->base.model;
    Stage *stage = e->stage;
    int capacity = 2 * e->placement->chunks * e->settings.micro_batches, made = 0, failed = 0;
    void **message = e->messages ? calloc((size_t)capacity, sizeof *message) : NULL;
    if (!message) return e->messages ? error_set("pipeline: out of memory for messages") : 0;
    for (int low = 0; low + 1 < e->placement->chunks; low++) {
        bool mine = chunk_rank(e, low) == e->transport->rank ||
                    chunk_rank(e, low + 1) == e->transport->rank;
        int flying = schedule_bound(plan, low), value = m->block[chunk_end_block(e, low) - 1].out;
        if (flying > plan->micro_batches) flying = plan->micro_batches;
        if (low >= plan->lowest) flying *= 2; /* gradients, too */
        for (int i = 0; mine && i < flying && !failed; i++) {
            size_t count = value_count(m, value, stage->settings.batch);
            message[made] = stage->is->message_create(stage, count);
            failed = message[made++] ? 0 : -1;
        }
    }
    for (int i = 0; i < made; i++)
        if (message[i]) stage->is->message_free(message[i]);
    free(message);
    return failed;
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
        *in_transit(e, b) = e->stage->is->message_create(e->stage, count);
        return *in_transit(e, b) ? 0 : -1;
    }
    *in_transit(e, b) = malloc((count + 1) * sizeof(real));
    return *in_transit(e, b) ? 0 : error_set("pipeline: out of memory for a message");
}

static void drop(const RankEngine *e, void **message) {
    if (!e->messages)
        free(*message);
    else if (*message)
        e->stage->is->message_free(*message);
    *message = NULL;
}

void boundary_drop_all(RankEngine *e) {
    int count = 2 * e->placement->chunks * e->settings.micro_batches;
    for (int i = 0; i < count; i++) drop(e, &e->transit[i]);
}

int boundary_pack(RankEngine *e, Boundary b) {
    if (reserve(e, b)) return -1;
    void *message = *in_transit(e, b);
    if (!e->messages) return rank_read_stage(e, role(b), boundary_block(e, b), message);
    e->stage->is->message_pack(e->stage, role(b), boundary_block(e, b), message);
    return 0;
}

int boundary_unpack(RankEngine *e, Boundary b) {
    void **message = in_transit(e, b);
    int block = boundary_block(e, b);
    int failed = e->messages ? e->stage->is->message_unpack(e->stage, role(b), block, *message)
                             : e->stage->is->write(e->stage, role(b), block, *message);
    drop(e, message);
    return failed;
}

int boundary_transfer(RankEngine *e, Boundary b, bool send, int peer_chunk) {
    size_t one = e->messages ? value_bytes(&e->stage->settings) : sizeof(real);
    if (!send && !e->messages && reserve(e, b)) return -1;
    void **message = in_transit(e, b);
    Transfer t = {.send = send,
                  .peer = chunk_rank(e, peer_chunk),
                  .channel = b.gradient ? CHANNEL_GRADIENTS : CHANNEL_VALUES,
                  .data = e->messages ? NULL : *message,
                  .message = e->messages ? *message : NULL,
                  .bytes = boundary_count(e, b) * one};
    int failed = e->transport->is->sendrecv(e->transport, &t, 1);
    if (e->messages)
        *message = t.message; /* the received one, or NULL after a send */
    else if (send)
        drop(e, message);
    return failed;
}
