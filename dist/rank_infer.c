/* Pre-inference (section 3.2.2 of the paper): all ranks hold the frozen prefix, with parameters
 * alone, and each infers a share of the samples.  A gather brings the outputs to the rank of the
 * lowest active block, which caches them.
 *
 * Where the first rank has no room for the prefix, it is inferred in pieces: each rank runs the
 * blocks that it holds anyway, and the samples go through them in micro-batches, as in an
 * evaluation. */
#include <stdlib.h>

#include "../ref/base/error.h"
#include "../ref/layout.h"
#include "rank_inside.h"

/* Returns the first of the n samples of this replica that rank r infers; those of rank r + 1 follow
 * its. */
static int share_first(const RankEngine *e, int r) {
    const int ranks = e->settings.infer_ranks;
    return (int)((long long)e->batch.n * (r < ranks ? r : ranks) / ranks);
}

static bool infers(const RankEngine *e) { return e->transport->rank < e->settings.infer_ranks; }

/* ---- the stage of the prefix ---- */

/* Copies a tensor from its owner to the stages of the prefix on all ranks. */
static int share_tensor(RankEngine *e, TensorRole role, int number) {
    const Model *m = e->base.model;
    const size_t count = tensor_elements(m, role, number);
    real *data = malloc((count + 1) * sizeof *data);
    if (!data) return error_set("pipeline: out of memory for a tensor of %zu elements", count);
    int owner = placement_rank(e->placement, tensor_block(m, role, number));
    int failed = (owner == e->transport->rank && rank_read_stage(e, role, number, data)) ||
                 transport_broadcast(e->transport, owner, data, count * sizeof *data);
    if (!failed && infers(e)) {
        Stage *stage = e->inference.stage;
        failed = stage_write(stage, role, number, data);
    }
    free(data);
    return failed ? -1 : 0;
}

static int share_prefix(RankEngine *e) {
    const Model *m = e->base.model;
    for (TensorRole role = TENSOR_PARAMETER; role <= TENSOR_BUFFER; role++)
        for (int i = 0; i < tensor_count(m, role); i++)
            if (tensor_block(m, role, i) < e->cache.lowest && share_tensor(e, role, i)) return -1;
    return 0;
}

static int open_stage(RankEngine *e) {
    RankInference *i = &e->inference;
    StageSettings settings = e->stage->settings;
    if (rank_prefix_create(&i->blocks, &settings, e->base.model, e->cache.lowest)) return -1;
    i->stage = e->settings.infer_stage(e->base.model, settings);
    return i->stage ? 0 : -1;
}

/* Makes the schedule of an evaluation that ends at the chunk of the lowest active block. */
static int make_pieces(RankEngine *e) {
    SchedulePlan plan = rank_schedule_plan(e->cost, e->placement, e->base.model, e->settings, NULL);
    plan.chunks = plan.lowest = e->placement->chunk_of[e->cache.lowest] + 1;
    return schedule_make(&e->inference.pieces, &plan);
}

static int infer_open(RankEngine *e) {
    RankInference *i = &e->inference;
    size_t samples = (size_t)e->stage->settings.batch * (size_t)e->settings.micro_batches;
    i->open = true;
    if (!e->settings.infer_ranks) return make_pieces(e);
    if (infers(e) && !rank_cache_is_here(e)) {
        i->values = malloc(samples * rank_cache_width(e) * sizeof *i->values);
        if (!i->values) return error_set("cache: out of memory for a batch");
    }
    return (infers(e) && open_stage(e)) || share_prefix(e) ? -1 : 0;
}

/* Counts in the peaks that the stage of the prefix was there with this rank's own. */
static void count_peaks(MemCount *counted, const MemCount *prefix) {
    for (int role = 0; role < MEM_ROLES; role++)
        counted->peak[role] =
            size_max(counted->peak[role], counted->current[role] + prefix->peak[role]);
    counted->total_peak =
        size_max(counted->total_peak, counted->total_current + prefix->total_peak);
}

void rank_infer_close(RankEngine *e) {
    RankInference *i = &e->inference;
    if (i->stage) {
        count_peaks(&e->stage->memory, &i->stage->memory);
        stage_free(i->stage);
    }
    rank_blocks_free(&i->blocks);
    schedule_free(&i->pieces);
    free(i->values);
    *i = (RankInference){.open = false};
}

/* ---- a batch ---- */

/* Overwrites values[end - first][width] with the outputs for those samples of the replica. */
static int infer_share(RankEngine *e, real *values, int first, int end) {
    Stage *stage = e->inference.stage;
    const int size = stage->settings.batch, lowest = e->cache.lowest;
    for (int at = first; at < end; at += size) {
        Batch some = batch_slice(&e->batch, e->base.model, at, at + size < end ? at + size : end);
        stage_begin(stage, &some, MODE_EVALUATE);
        for (int b = 0; b < lowest; b++) stage_forward(stage, b);
        real *out = values + (size_t)(at - first) * rank_cache_width(e);
        if (stage_read(stage, TENSOR_VALUE, lowest - 1, out) == READ_FAILED) return -1;
    }
    return 0;
}

/* The ranks infer their shares, and bring them together. */
static int infer_shares(RankEngine *e) {
    const int rank = e->transport->rank, holder = placement_rank(e->placement, e->cache.lowest);
    const size_t width = rank_cache_width(e);
    real *values = rank == holder ? rank_cache_values(e) : e->inference.values;
    if (infers(e) && infer_share(e, values + (size_t)share_first(e, rank) * width,
                                 share_first(e, rank), share_first(e, rank + 1)))
        return -1;
    for (int r = 0; r < e->settings.infer_ranks; r++) {
        size_t first = (size_t)share_first(e, r), count = (size_t)share_first(e, r + 1) - first;
        real *share = values ? values + first * width : NULL; /* of others it takes no part in it */
        if (transport_move(e->transport, r, holder, share, count * width * sizeof *values))
            return -1;
    }
    return 0;
}

/* The rank of the lowest active block copies the outputs out of its stage (rank_tasks.c). */
static int infer_pieces(RankEngine *e) {
    e->micro_batch_size = e->stage->settings.batch;
    e->mode = MODE_EVALUATE;
    e->infers = true;
    int failed = rank_run_schedule(e, &e->inference.pieces);
    e->infers = false;
    return failed;
}

int rank_infer(RankEngine *e) {
    if (e->cache.lowest < 0) return 0;
    if (!e->inference.open && infer_open(e)) return -1;
    e->cache.hit = false;
    if (e->settings.infer_ranks ? infer_shares(e) : infer_pieces(e)) return -1;
    return rank_cache_store(e);
}
