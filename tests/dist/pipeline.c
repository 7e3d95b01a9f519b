#include "pipeline.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../dist/engine_team.h"
#include "../../ref/base/error.h"

static const double timeout_s = 600; /* long enough on any machine */

static void need(bool ok, const char *what) {
    if (ok) return;
    fprintf(stderr, "tests: %s: %s\n", what, error_message());
    exit(2);
}

PipelineRecipe pipeline_plain(int ranks, int micro_batches) {
    return (PipelineRecipe){.placement = PLACEMENT_PLAIN,
                            .ranks = ranks,
                            .submodels = 1,
                            .settings = {.micro_batches = micro_batches}};
}

/* ---- a transport that counts messages ---- */

typedef struct {
    Transport base;
    Transport *counted;
    Traffic *sent;
} CountingTransport;

static int counted_sendrecv(Transport *transport, Transfer *transfers, int count) {
    CountingTransport *c = (CountingTransport *)(void *)transport;
    for (int i = 0; i < count; i++) {
        c->sent->values += transfers[i].send && transfers[i].channel == CHANNEL_VALUES;
        c->sent->gradients += transfers[i].send && transfers[i].channel == CHANNEL_GRADIENTS;
        if (transfers[i].send && transfers[i].channel == CHANNEL_COLLECTIVE && transfers[i].peer)
            c->sent->collective_bytes += transfers[i].bytes;
    }
    return transport_sendrecv(c->counted, transfers, count);
}

static void counted_abort(Transport *transport, const char *why) {
    Transport *counted = ((CountingTransport *)(void *)transport)->counted;
    transport_abort(counted, why);
}

static void counted_free(Transport *transport) {
    Transport *counted = ((CountingTransport *)(void *)transport)->counted;
    transport_free(counted);
    free(transport);
}

static Transport *count_messages(Transport *counted, Traffic *sent) {
    static const TransportClass class = {
        .sendrecv = counted_sendrecv, .abort = counted_abort, .free = counted_free};
    CountingTransport *c = malloc(sizeof *c);
    need(c, "memory");
    *c = (CountingTransport){*counted, counted, sent};
    c->base.is = &class;
    return &c->base;
}

/* ---- ranks ---- */

static Transport *group(Transport *world, int first, int step, int count) {
    int member[PIPELINE_MAX_RANKS];
    for (int i = 0; i < count; i++) member[i] = first + i * step;
    Transport *transport = transport_group(world, member, count);
    need(transport, "transport");
    return transport;
}

static Engine *make_rank(void *context, Transport *world) {
    Pipeline *p = context;
    int ranks = p->how.ranks, place = world->rank % ranks, me = world->rank;
    p->threads[me] = omp_get_max_threads();
    Transport *transport = count_messages(group(world, me - place, 1, ranks), &p->sent[me]);
    Transport *replicas = p->how.replicas > 1 ? group(world, place, ranks, p->how.replicas) : NULL;
    RankBlocks blocks;
    need(rank_blocks_create(&blocks, &p->placement, p->tiny.model, place) == 0, "blocks");
    StageSettings settings = p->settings;
    settings.local = blocks.local;
    settings.in_flight = blocks.in_flight;
    p->stage[me] = p->create(p->tiny.model, settings);
    need(p->stage[me], "stage");
    if (p->how.join) transport = p->how.join(transport);
    need(transport, "joined transport");
    return engine_rank_create(p->stage[me], transport, replicas, &p->placement, blocks,
                              p->how.settings);
}

static void place(Pipeline *p, const char *spec) {
    const Model *model = p->tiny.model;
    double *cost = malloc((size_t)model->blocks * sizeof *cost);
    need(cost, "memory");
    for (int b = 0; b < model->blocks; b++) cost[b] = 1;
    need(placement_make(&p->placement, model, p->how.placement, p->how.ranks, p->how.submodels,
                        cost, NULL) == 0,
         spec);
    free(cost);
}

static void apply_recipe(Pipeline *p, const Recipe *recipe) {
    int parts = p->how.settings.micro_batches;
    if (p->how.replicas < 1) p->how.replicas = 1;
    p->how.settings.cache_bytes = recipe->cache_bytes;
    p->how.settings.cache_dir = recipe->cache_dir;
    p->how.settings.samples = p->tiny.data->samples;
    p->how.settings.augmented = recipe->augmented;
    p->create = recipe->create ? recipe->create : stage_ref_create;
    p->how.settings.infer_stage = p->create;
    p->tiny.settings.pre_infer = p->how.pre_infer;
    p->settings = p->tiny.stage->settings;
    int share = (p->tiny.settings.batch + p->how.replicas - 1) / p->how.replicas;
    p->settings.batch = (share + parts - 1) / parts;
    p->settings.deferred = p->how.settings.kind == SCHEDULE_ZERO_BUBBLE;
}

void pipeline_open(Pipeline *p, const Recipe *recipe, const PipelineRecipe *how) {
    Recipe without_cache = *recipe;
    *p = (Pipeline){.how = *how};
    without_cache.cache_bytes = 0;
    tiny_open(&p->tiny, &without_cache);
    apply_recipe(p, recipe);
    engine_free(p->tiny.engine);
    p->tiny.stage = NULL;
    place(p, recipe->spec);
    need(transport_local_create(p->transport, p->how.ranks * p->how.replicas, timeout_s,
                                how->message_free) == 0,
         "transport");
    p->tiny.engine = engine_team_create(p->transport, make_rank, p);
}

void pipeline_close(Pipeline *p) {
    tiny_close(&p->tiny);
    placement_free(&p->placement);
}
