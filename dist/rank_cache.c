/* The prefix cache of a pipeline (pre-inference, section 3.2.2 of the paper).  The rank of the
 * lowest active block holds that block's inputs; if it has those of a whole step, the ranks below
 * have nothing to do.  Each replica runs the prefix for its own samples and sends the results to
 * the others, so that the prefix of a sample runs only once. */
#include <stdlib.h>

#include "../ref/base/error.h"
#include "../ref/engine_cache.h"
#include "../ref/layout.h"
#include "rank_inside.h"

bool rank_cache_is_here(const RankEngine *e) {
    return e->cache.lowest > 0 &&
           placement_rank(e->placement, e->cache.lowest) == e->transport->rank;
}

size_t rank_cache_width(const RankEngine *e) {
    const Model *m = e->base.model;
    return shape_count(m->value[m->block[e->cache.lowest].in].shape);
}

int rank_cache_open(RankEngine *e) {
    RankCache *c = &e->cache;
    const PipelineSettings *s = &e->settings;
    c->lowest = -1;
    if (!s->cache_bytes) return 0;
    if (engine_check_cache(e->stage, s->samples, s->augmented)) return -1;
    /* A device counts only its own memory. */
    MemCount *counted = e->stage->device ? &c->host : &e->stage->memory;
    return prefix_cache_init(&c->prefix, counted, s->cache_bytes, s->cache_dir, s->samples);
}

void rank_cache_close(RankEngine *e) {
    mem_free(e->cache.prefix.counted, e->cache.values);
    if (e->cache.prefix.slot) prefix_cache_free(&e->cache.prefix);
}

int rank_cache_activate(RankEngine *e) {
    RankCache *c = &e->cache;
    int lowest = lowest_active(e->base.model, e->active);
    if (!e->settings.cache_bytes || lowest == 0 || lowest == e->base.model->blocks) lowest = -1;
    if (lowest == c->lowest) return 0;
    c->lowest = lowest;
    mem_free(c->prefix.counted, c->values);
    c->values = NULL;
    prefix_cache_clear(&c->prefix, rank_cache_is_here(e) ? rank_cache_width(e) : 1, 0);
    if (!rank_cache_is_here(e)) return 0;
    const int samples = e->stage->settings.batch * e->settings.micro_batches * e->replicas->ranks;
    c->values = mem_alloc(c->prefix.counted, MEM_CACHE, (size_t)samples * rank_cache_width(e),
                          sizeof *c->values);
    return c->values ? 0 : -1;
}

real *rank_cache_values(const RankEngine *e) {
    int first = e->replicas->rank * replica_samples(e, e->global_batch->n);
    return e->cache.values + (size_t)first * rank_cache_width(e);
}

int rank_cache_look_up(RankEngine *e) {
    RankCache *c = &e->cache;
    int found = 0;
    c->hit = false;
    if (c->lowest < 0) return 0;
    if (rank_cache_is_here(e))
        found = prefix_cache_get(&c->prefix, rank_cache_values(e), e->batch.ids, e->batch.n);
    if (found < 0) return -1;
    if (transport_broadcast(e->transport, placement_rank(e->placement, c->lowest), &found,
                            sizeof found))
        return -1;
    c->hit = found;
    return 0;
}

int rank_cache_copy(RankEngine *e, int micro) {
    real *inputs =
        rank_cache_values(e) + (size_t)(micro * e->micro_batch_size) * rank_cache_width(e);
    int below = e->cache.lowest - 1;
    if (e->cache.hit) return stage_write(e->stage, TENSOR_VALUE, below, inputs);
    return rank_read_stage(e, TENSOR_VALUE, below, inputs);
}

int rank_cache_store(RankEngine *e) {
    RankCache *c = &e->cache;
    real missed = c->hit ? 0 : 1; /* by how many replicas */
    if (!rank_cache_is_here(e)) return 0;
    if (transport_all_reduce(e->replicas, &missed, 1)) return -1;
    if (missed == 0) return 0; /* nothing is new */
    size_t bytes =
        (size_t)replica_samples(e, e->global_batch->n) * rank_cache_width(e) * sizeof *c->values;
    if (transport_all_gather(e->replicas, c->values, rank_cache_values(e), bytes)) return -1;
    return prefix_cache_put(&c->prefix, c->values, e->global_batch->ids, e->global_batch->n, NULL);
}
