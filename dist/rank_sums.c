/* What ranks add up: gradients of tied parameters, and those of replicas of the pipeline. */
#include <stdlib.h>
#include <string.h>

#include "../ref/base/error.h"
#include "rank_inside.h"

/* ---- tied parameters ----
 *
 * A tied parameter is owned and updated by the rank of its own block.  Another rank that uses it
 * has a copy, and sends its part of the gradient to the owner. */

/* Sends a tensor from one rank to another, which adds a gradient to its own. */
static int move_tensor(RankEngine *e, TensorRole role, int param, int from, int to) {
    size_t count = e->base.model->param[param].count;
    if (e->transport->rank != from && e->transport->rank != to) return 0;
    real *data = malloc(2 * count * sizeof *data), *mine = data + count;
    if (!data) return error_set("pipeline: out of memory for a tied parameter");
    bool send = e->transport->rank == from, add = !send && role == TENSOR_GRADIENT;
    Transfer t = {send, send ? to : from, CHANNEL_GRADIENTS, data, count * sizeof *data, NULL};
    int failed = (send && rank_read_stage(e, role, param, data)) ||
                 transport_sendrecv(e->transport, &t, 1) ||
                 (add && rank_read_stage(e, role, param, mine));
    for (size_t i = 0; add && !failed && i < count; i++) data[i] += mine[i];
    if (!failed && !send) failed = stage_write(e->stage, role, param, data);
    free(data);
    return failed ? -1 : 0;
}

int tied_exchange(RankEngine *e, TensorRole role) {
    const Model *m = e->base.model;
    bool new_value = role == TENSOR_PARAMETER;
    for (int p = 0; p < m->params; p++) {
        if (!e->active[m->param[p].block]) continue;
        int owner = placement_rank(e->placement, m->param[p].block);
        int user = placement_tied_user(e->placement, m, p);
        int from = new_value ? owner : user, to = new_value ? user : owner;
        if (user >= 0 && move_tensor(e, role, p, from, to)) return -1;
    }
    return 0;
}

/* ---- replicas ----
 *
 * Replicas of the pipeline divide each batch and add up their gradients (data parallelism).  Every
 * replica then makes the same update of the same gradients, so that their parameters stay the same
 * to the last bit without being exchanged. */

/* The elements that one all-reduce adds up; small tensors share one. */
enum { BUCKET = 1 << 18 };

int replica_samples(const RankEngine *e, int samples) {
    return (samples + e->replicas->ranks - 1) / e->replicas->ranks;
}

/* Returns the elements of a tensor if this rank trains it, otherwise 0. */
static size_t trained(const RankEngine *e, TensorRole role, int i) {
    const int block = tensor_block(e->base.model, role, i);
    if (!e->active[block] || !e->blocks.local[block]) return 0;
    return tensor_elements(e->base.model, role, i);
}

/* Reads as many tensors from `first` on as fit into sum[capacity], multiplied by `weight`.  Returns
 * the end of their range and sets *used; -1 and an error if the stage cannot read one. */
static int pack(RankEngine *e, TensorRole role, int first, real weight, real *sum, size_t capacity,
                size_t *used) {
    const int tensors = tensor_count(e->base.model, role);
    int i = first;
    *used = 0;
    for (; i < tensors && *used + trained(e, role, i) <= capacity; i++) {
        size_t count = trained(e, role, i);
        if (!count) continue;
        real *x = sum + *used;
        memset(x, 0, count * sizeof *x); /* for a replica without samples, which has no gradient */
        if (weight > 0 && rank_read_stage(e, role, i, x)) return -1;
        for (size_t k = 0; k < count; k++) x[k] *= weight;
        *used += count;
    }
    return i;
}

static int unpack(RankEngine *e, TensorRole role, int first, int end, const real *sum) {
    for (int i = first; i < end; i++) {
        size_t count = trained(e, role, i);
        if (count && stage_write(e->stage, role, i, sum)) return -1;
        sum += count;
    }
    return 0;
}

/* Overwrites all tensors of one role with their weighted sum over the replicas. */
static int add_up(RankEngine *e, TensorRole role, real weight) {
    const int tensors = tensor_count(e->base.model, role);
    size_t capacity = 0, used;
    if (e->replicas->ranks == 1) return 0;
    for (int i = 0; i < tensors; i++)
        if (trained(e, role, i) > capacity) capacity = trained(e, role, i);
    if (!capacity) return 0;
    if (capacity < BUCKET) capacity = BUCKET;
    real *sum = malloc(capacity * sizeof *sum);
    int failed = sum ? 0 : error_set("pipeline: out of memory to add up gradients");
    for (int first = 0, end; first < tensors && !failed; first = end) {
        end = pack(e, role, first, weight, sum, capacity, &used);
        failed = end < 0 || (used && (transport_all_reduce(e->replicas, sum, used) ||
                                      unpack(e, role, first, end, sum)));
    }
    free(sum);
    return failed ? -1 : 0;
}

int replicas_reduce_gradients(RankEngine *e) { return add_up(e, TENSOR_GRADIENT, e->batch.n > 0); }

int replicas_average_buffers(RankEngine *e) {
    real weight = (real)e->batch.n / (real)e->global_batch->n;
    return add_up(e, TENSOR_BUFFER, weight);
}

int replicas_reduce_loss(RankEngine *e, Loss *loss) {
    Loss *all = malloc((size_t)e->replicas->ranks * sizeof *all);
    if (!all) return error_set("pipeline: out of memory");
    int failed = transport_all_gather(e->replicas, all, loss, sizeof *loss);
    *loss = (Loss){0};
    for (int c = 0; c < e->replicas->ranks && !failed; c++) loss_add(loss, &all[c]);
    free(all);
    return failed;
}
