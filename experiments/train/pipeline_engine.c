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
} Plan;

/* Ranks first, first + step ... of the world. */
static Link *join_group(Link *world, int first, int step, int count) {
    int *member = malloc((size_t)count * sizeof *member);
    if (!member) {
        error_set("pipeline: out of memory");
        return NULL;
    }
    for (int i = 0; i < count; i++) member[i] = first + i * step;
    Link *group = link_group(world, member, count);
    free(member);
    return group;
}

static Engine *make_rank(void *context, Link *world) {
    const Plan *plan = context;
    int ranks = plan->placement->ranks, place = world->rank % ranks;
    StageSettings settings = plan->stage;
    RankBlocks blocks = {0};
    Stage *stage = NULL;
    Link *pipeline = join_group(world, world->rank - place, 1, ranks), *copies = NULL;
    if (plan->replicas > 1) copies = join_group(world, place, ranks, plan->replicas);
    bool ok = pipeline && (copies || plan->replicas == 1) &&
              rank_blocks_create(&blocks, plan->placement, plan->model, place) == 0;
    settings.local = blocks.local;
    settings.in_flight = blocks.in_flight;
    if (ok) stage = setup_stage(plan->device, plan->model, settings);
    if (stage)
        return engine_rank_create(stage, pipeline, copies, plan->placement, blocks, plan->pipeline);
    if (pipeline) pipeline->is->free(pipeline);
    if (copies) copies->is->free(copies);
    rank_blocks_free(&blocks);
    return NULL;
}

/* ---- what rank 0 tells --------------------------------------------------------------------------
 */

typedef struct {
    char commit[H5_NAME], spec[OPTION_TEXT], cache_dir[OPTION_TEXT];
    StageSettings stage;
    PipelineSettings pipeline;
    int placement, ranks, submodels, replicas, device;
    int blocks; /* then follow chunk_of and submodel_of of each */
} Briefing;

/* Programs that are not the same would not understand each other. */
static int check_builds(Link *world) {
    Provenance build;
    char mine[H5_NAME] = "", *all = calloc((size_t)world->ranks, sizeof mine);
    if (!all) return error_set("pipeline: out of memory");
    provenance_fill(&build, 0);
    snprintf(mine, sizeof mine, "%.60s, %zu", build.commit, sizeof(Briefing));
    int failed = link_gather(world, all, mine, sizeof mine);
    for (int r = 0; r < world->ranks && !failed; r++) {
        const char *other = all + (size_t)r * sizeof mine;
        if (strcmp(other, all) != 0)
            failed = error_set("pipeline: rank %d is another build (%.40s) than rank 0 (%.40s)", r,
                               other, all);
    }
    free(all);
    return failed;
}

static int tell(Setup *s, Link *world, const char *cache_dir) {
    Placement *p = &s->placement;
    Briefing *b = calloc(1, sizeof *b);
    if (!b) return error_set("pipeline: out of memory");
    *b = (Briefing){.stage = s->stage_settings,
                    .pipeline = s->pipeline,
                    .placement = s->options.placement,
                    .ranks = p->ranks,
                    .submodels = p->submodels,
                    .replicas = s->options.replicas,
                    .device = s->options.device,
                    .blocks = s->model->blocks};
    snprintf(b->spec, sizeof b->spec, "%s", s->model->spec);
    snprintf(b->cache_dir, sizeof b->cache_dir, "%s", cache_dir ? cache_dir : "");
    size_t bytes = (size_t)b->blocks * sizeof(int);
    int failed = check_builds(world) || link_broadcast(world, 0, b, sizeof *b) ||
                 link_broadcast(world, 0, p->chunk_of, bytes) ||
                 link_broadcast(world, 0, p->submodel_of, bytes);
    free(b);
    return failed ? -1 : 0;
}

/* ---- on rank 0 ----------------------------------------------------------------------------------
 */

static Plan plan_of(Setup *s, const char *cache_dir) {
    s->pipeline.cache_dir = cache_dir;
    return (Plan){.model = s->model,
                  .device = s->device,
                  .placement = &s->placement,
                  .stage = s->stage_settings,
                  .pipeline = s->pipeline,
                  .replicas = s->options.replicas};
}

static int engine_of_threads(Setup *s, Plan *plan) {
    Link **world = malloc((size_t)s->ranks * sizeof *world);
    if (!world) return error_set("pipeline: out of memory");
    void (*message_free)(void *) = s->device ? s->device->message_free : NULL;
    int capacity = engine_rank_capacity(plan->placement, plan->pipeline);
    int failed = link_local_create(world, s->ranks, capacity, s->options.timeout, message_free);
    if (!failed) s->engine = engine_team_create(s->model, world, make_rank, plan);
    free(world);
    return s->engine ? 0 : -1;
}

static int engine_of_processes(Setup *s, Plan *plan, const char *cache_dir) {
    Link *world = s->options.world;
    s->took_world = true;
    LeadEngine *lead = malloc(sizeof *lead);
    int failed = lead ? tell(s, world, cache_dir) : error_set("pipeline: out of memory");
    if (failed) {
        free(lead);
        pipeline_give_up(world, error_message());
        return -1;
    }
    if (engine_lead_open(lead, s->model, make_rank(plan, world), world, free, lead)) return -1;
    s->engine = &lead->base;
    return 0;
}

int pipeline_engine(Setup *s, const char *cache_dir) {
    Plan plan = plan_of(s, cache_dir);
    return s->options.world ? engine_of_processes(s, &plan, cache_dir)
                            : engine_of_threads(s, &plan);
}

/* ---- on the others ------------------------------------------------------------------------------
 */

/* From the briefing: model, placement, device. */
typedef struct {
    Briefing *told;
    Model *model;
    Placement placement;
    Plan plan;
} Follower;

static int listen(Follower *f, Link *world) {
    if (check_builds(world) || link_broadcast(world, 0, f->told, sizeof *f->told)) return -1;
    Briefing *b = f->told;
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
    if (link_broadcast(world, 0, p->chunk_of, bytes) ||
        link_broadcast(world, 0, p->submodel_of, bytes))
        return -1;
    f->model = model_create(b->spec);
    return f->model ? 0 : -1;
}

static int open_device(Follower *f, const Options *asked) {
    Options o = *asked;
    o.device = f->told->device;
    o.precision = (int)f->told->stage.precision;
    return setup_device(&f->plan.device, &o);
}

static Engine *make_follower(Follower *f, Link *world, const Options *asked) {
    if (listen(f, world) || open_device(f, asked)) return NULL;
    f->plan.model = f->model;
    f->plan.placement = &f->placement;
    f->plan.stage = f->told->stage;
    f->plan.pipeline = f->told->pipeline;
    f->plan.pipeline.cache_dir = f->told->cache_dir[0] ? f->told->cache_dir : NULL;
    f->plan.replicas = f->told->replicas;
    return make_rank(&f->plan, world);
}

int pipeline_follow(Link *world, const Options *asked) {
    Follower f = {.told = calloc(1, sizeof *f.told)};
    int rank = world->rank, failed = 0;
    char cause[400];
    Engine *engine = NULL;
    if (f.told)
        engine = make_follower(&f, world, asked);
    else
        error_set("pipeline: out of memory");
    failed = engine_follow(engine, world);
    placement_free(&f.placement);
    model_free(f.model);
    free(f.told);
    if (!failed) return 0;
    /* A rank that gave up has said why itself; what this one found out is said here. */
    snprintf(cause, sizeof cause, "%s", error_message());
    return strstr(cause, " gave up: ") ? error_set("%s", "")
                                       : error_set("rank %d: %s", rank, cause);
}
