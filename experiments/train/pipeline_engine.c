/* The engine over all ranks: rank 0 tells the others what they need to make theirs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../dist/engine_team.h"
#include "../../ref/error.h"
#include "pipeline.h"

/* What a rank's engine is made of. */
typedef struct {
    const Model *model;
    const DeviceModule *device;
    const Placement *placement;
    StageSettings stage;
    PipelineSettings pipeline;
    int replicas;
    bool nccl; /* carries what passes between the stages */
} RankRecipe;

/* Ranks first, first + step ... of the world. */
static Transport *join_group(Transport *world, int first, int step, int count) {
    int *member = malloc((size_t)count * sizeof *member);
    if (!member) {
        error_set("pipeline: out of memory");
        return NULL;
    }
    for (int i = 0; i < count; i++) member[i] = first + i * step;
    Transport *group = transport_group(world, member, count);
    free(member);
    return group;
}

static Engine *make_rank(void *context, Transport *world) {
    const RankRecipe *plan = context;
    int ranks = plan->placement->ranks, place = world->rank % ranks;
    StageSettings settings = plan->stage;
    RankBlocks blocks = {0};
    Stage *stage = NULL;
    Transport *pipeline = join_group(world, world->rank - place, 1, ranks), *replicas = NULL;
    if (plan->replicas > 1) replicas = join_group(world, place, ranks, plan->replicas);
    bool ok = pipeline && (replicas || plan->replicas == 1) &&
              rank_blocks_create(&blocks, plan->placement, plan->model, place) == 0;
    settings.local = blocks.local;
    settings.in_flight = blocks.in_flight;
    if (ok) stage = setup_stage(plan->device, plan->model, settings);
    /* Last of what may fail on one rank alone, for NCCL joins all of them. */
    if (stage && plan->nccl) pipeline = plan->device->transport_nccl_create(pipeline);
    if (stage && pipeline)
        return engine_rank_create(stage, pipeline, replicas, plan->placement, blocks,
                                  plan->pipeline);
    if (stage) stage->is->free(stage);
    if (pipeline) pipeline->is->free(pipeline);
    if (replicas) replicas->is->free(replicas);
    rank_blocks_free(&blocks);
    return NULL;
}

/* ---- the run config -------------------------------------------------------------------------- */

typedef struct {
    char spec[OPTION_TEXT], cache_dir[OPTION_TEXT];
    StageSettings stage;
    PipelineSettings pipeline;
    int placement, ranks, submodels, replicas, device;
    int blocks; /* then follow chunk_of and submodel_of of each */
} RunConfig;

/* Programs that are not the same would not understand each other. */
static int check_builds(Transport *world) {
    Provenance build;
    char mine[H5_NAME] = "", *all = calloc((size_t)world->ranks, sizeof mine);
    if (!all) return error_set("pipeline: out of memory");
    provenance_fill(&build, 0);
    snprintf(mine, sizeof mine, "%.60s, %zu", build.commit, sizeof(RunConfig));
    int failed = transport_gather(world, all, mine, sizeof mine);
    for (int r = 0; r < world->ranks && !failed; r++) {
        const char *other = all + (size_t)r * sizeof mine;
        if (strcmp(other, all) != 0)
            failed = error_set("pipeline: rank %d is another build (%.40s) than rank 0 (%.40s)", r,
                               other, all);
    }
    free(all);
    return failed;
}

static int send_run_config(Setup *s, Transport *world, const char *cache_dir) {
    Placement *p = &s->placement;
    RunConfig c = {.stage = s->stage_settings,
                   .pipeline = s->pipeline,
                   .placement = s->options.placement,
                   .ranks = p->ranks,
                   .submodels = p->submodels,
                   .replicas = s->options.replicas,
                   .device = s->options.device,
                   .blocks = s->model->blocks};
    snprintf(c.spec, sizeof c.spec, "%s", s->model->spec);
    snprintf(c.cache_dir, sizeof c.cache_dir, "%s", cache_dir ? cache_dir : "");
    size_t bytes = (size_t)c.blocks * sizeof(int);
    return check_builds(world) || transport_broadcast(world, 0, &c, sizeof c) ||
                   transport_broadcast(world, 0, p->chunk_of, bytes) ||
                   transport_broadcast(world, 0, p->submodel_of, bytes)
               ? -1
               : 0;
}

/* ---- on rank 0 ------------------------------------------------------------------------------- */

static RankRecipe plan_of(Setup *s, const char *cache_dir) {
    s->pipeline.cache_dir = cache_dir;
    return (RankRecipe){.model = s->model,
                        .device = s->device,
                        .placement = &s->placement,
                        .stage = s->stage_settings,
                        .pipeline = s->pipeline,
                        .replicas = s->options.replicas,
                        .nccl = pipeline_is_nccl(&s->options)};
}

static int engine_of_threads(Setup *s, RankRecipe *plan) {
    Transport **world = malloc((size_t)s->ranks * sizeof *world);
    if (!world) return error_set("pipeline: out of memory");
    void (*message_free)(void *) = s->device ? s->device->message_free : NULL;
    int capacity = engine_rank_capacity(plan->placement, plan->pipeline);
    int failed =
        transport_local_create(world, s->ranks, capacity, s->options.timeout, message_free);
    if (!failed) s->engine = engine_team_create(s->model, world, make_rank, plan);
    free(world);
    return s->engine ? 0 : -1;
}

static int engine_of_processes(Setup *s, RankRecipe *plan, const char *cache_dir) {
    Transport *world = s->options.world;
    s->took_world = true;
    Coordinator *coordinator = malloc(sizeof *coordinator);
    int failed =
        coordinator ? send_run_config(s, world, cache_dir) : error_set("pipeline: out of memory");
    if (failed) {
        free(coordinator);
        pipeline_abort(world, error_message());
        return -1;
    }
    if (coordinator_open(coordinator, s->model, make_rank(plan, world), world, free, coordinator))
        return -1;
    s->engine = &coordinator->base;
    return 0;
}

int pipeline_engine(Setup *s, const char *cache_dir) {
    RankRecipe plan = plan_of(s, cache_dir);
    return s->options.world ? engine_of_processes(s, &plan, cache_dir)
                            : engine_of_threads(s, &plan);
}

/* ---- on the others --------------------------------------------------------------------------- */

/* From the run config: model, placement, device. */
typedef struct {
    RunConfig config;
    Model *model;
    Placement placement;
    RankRecipe plan;
} RemoteRank;

static int receive_run_config(RemoteRank *f, Transport *world) {
    RunConfig *b = &f->config;
    if (check_builds(world) || transport_broadcast(world, 0, b, sizeof *b)) return -1;
    size_t blocks = (size_t)b->blocks, bytes = blocks * sizeof(int);
    bool is_virtual = b->placement == PLACEMENT_VIRTUAL;
    int chunks = is_virtual ? b->ranks * b->submodels : b->ranks;
    f->placement = (Placement){.ranks = b->ranks,
                               .chunks = chunks,
                               .submodels = b->submodels,
                               .chunk_of = malloc(bytes),
                               .submodel_of = malloc(bytes),
                               .rank_of = malloc((size_t)chunks * sizeof(int))};
    Placement *p = &f->placement;
    if (!p->chunk_of || !p->submodel_of || !p->rank_of) return error_set("pipeline: out of memory");
    for (int c = 0; c < chunks; c++) p->rank_of[c] = c % b->ranks;
    if (transport_broadcast(world, 0, p->chunk_of, bytes) ||
        transport_broadcast(world, 0, p->submodel_of, bytes))
        return -1;
    f->model = model_create(b->spec);
    return f->model ? 0 : -1;
}

static int open_device(RemoteRank *f, const Options *asked) {
    Options o = *asked;
    o.device = f->config.device;
    o.precision = (int)f->config.stage.precision;
    return setup_device(&f->plan.device, &o);
}

static Engine *make_remote(RemoteRank *f, Transport *world, const Options *asked) {
    if (receive_run_config(f, world) || open_device(f, asked)) return NULL;
    f->plan.model = f->model;
    f->plan.placement = &f->placement;
    f->plan.stage = f->config.stage;
    f->plan.pipeline = f->config.pipeline;
    f->plan.pipeline.cache_dir = f->config.cache_dir[0] ? f->config.cache_dir : NULL;
    f->plan.replicas = f->config.replicas;
    f->plan.nccl = pipeline_is_nccl(asked);
    return make_rank(&f->plan, world);
}

int pipeline_worker(Transport *world, const Options *asked) {
    RemoteRank f = {.model = NULL};
    int rank = world->rank, failed = worker_run(make_remote(&f, world, asked), world);
    placement_free(&f.placement);
    model_free(f.model);
    if (!failed) return 0;
    /* A rank that gave up has said why itself; what this one found out is said here. */
    return strstr(error_message(), " gave up: ") ? error_set("%s", "")
                                                 : error_set("rank %d: %s", rank, error_message());
}
