/* The engine over all ranks: rank 0 tells the others what they need to make theirs. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../dist/engine_team.h"
#include "../../ref/base/error.h"
#include "../../ref/blocks/models.h"
#include "../../ref/headers.h"
#include "../base/alloc.h"
#include "pipeline.h"

/* Joins ranks first, first + step ... of the world.  NULL and an error. */
static Transport *join_group(Transport *world, int first, int step, int count) {
    int *member = xmalloc((size_t)count * sizeof *member);
    for (int i = 0; i < count; i++) member[i] = first + i * step;
    Transport *group = transport_group(world, member, count);
    free(member);
    return group;
}

/* The engine of the rank that `world` is in.  NULL and an error. */
static Engine *make_rank(void *context, Transport *world) {
    const Setup *s = context;
    int ranks = s->placement.ranks, replica_count = s->options.replicas;
    int place = world->rank % ranks;
    StageSettings settings = s->stage_settings;
    PipelineSettings how = s->pipeline;
    RankBlocks blocks = {0};
    Stage *stage = NULL;
    how.infer_stage = s->device ? s->device->stage_create : stage_ref_create;
    Transport *pipeline = join_group(world, world->rank - place, 1, ranks), *replicas = NULL;
    if (replica_count > 1) replicas = join_group(world, place, ranks, replica_count);
    bool ok = pipeline && (replicas || replica_count == 1) &&
              rank_blocks_create(&blocks, &s->placement, s->model, place) == 0;
    settings.local = blocks.local;
    settings.in_flight = blocks.in_flight;
    if (ok) stage = how.infer_stage(s->model, settings);
    /* All ranks enter NCCL together, so what may fail on one rank alone comes before it. */
    if (stage && setup_uses_nccl(&s->options))
        pipeline = s->device->transport_nccl_create(pipeline);
    if (stage && pipeline)
        return engine_rank_create(stage, pipeline, replicas, &s->placement, blocks, how);
    if (stage) stage_free(stage);
    if (pipeline) transport_free(pipeline);
    if (replicas) transport_free(replicas);
    rank_blocks_free(&blocks);
    return NULL;
}

/* ---- the run config: what workers need to make their engines --------------------------------- */

/* chunk_of[blocks] and submodel_of[blocks] of the placement follow it. */
typedef struct {
    Options options; /* resolved */
    char spec[OPTION_TEXT], cache_dir[OPTION_TEXT];
    PlacementKind placement;
    StageSettings stage;
    PipelineSettings pipeline;
} RunConfig;

/* Refuses ranks of different builds, which might not understand each other. */
static int check_builds(Transport *world) {
    Provenance build;
    char mine[H5_NAME] = "", *all = xcalloc((size_t)world->ranks, sizeof mine);
    provenance_fill(&build, 0);
    /* Two builds with changes that are not committed have the same name. */
    snprintf(mine, sizeof mine, "%.60s, headers %s", build.commit, bcd_headers);
    int failed = transport_all_gather(world, all, mine, sizeof mine);
    for (int r = 0; r < world->ranks && !failed; r++) {
        const char *other = all + (size_t)r * sizeof mine;
        if (strcmp(other, all) != 0)
            failed = error_set("pipeline: rank %d is another build (%.40s) than rank 0 (%.40s)", r,
                               other, all);
    }
    free(all);
    return failed;
}

/* What the bits that a rank computes depend on. */
enum { PROCESSOR, COMPILER, FLAGS, GPU, LIBRARIES, TRAITS };
static const char *const trait_names[TRAITS] = {[PROCESSOR] = "processor",
                                                [COMPILER] = "compiler",
                                                [FLAGS] = "set of compiler flags",
                                                [GPU] = "GPU",
                                                [LIBRARIES] = "version of libraries"};
typedef struct {
    char trait[TRAITS][512];
    unsigned char gpu[16]; /* DeviceInfo.uuid */
} Computer;

static int find_computer(Computer *c, const Setup *s) {
    Provenance here;
    DeviceInfo device = {.name = ""};
    provenance_fill(&here, 0);
    if (s->device && s->device->info(&device)) return -1;
    const char *const trait[TRAITS] = {[PROCESSOR] = here.cpu,
                                       [COMPILER] = here.compiler,
                                       [FLAGS] = here.flags,
                                       [GPU] = device.name,
                                       [LIBRARIES] = device.libraries};
    memset(c, 0, sizeof *c);
    memcpy(c->gpu, device.uuid, sizeof c->gpu);
    for (int i = 0; i < TRAITS; i++) snprintf(c->trait[i], sizeof c->trait[i], "%s", trait[i]);
    return 0;
}

/* Refuses replicas that would drift apart.  Each updates its own parameters, by the same gradients,
 * so ranks that have the same place in them must round alike. */
static int check_replicas(const Computer *all, int ranks, int places) {
    for (int r = places; r < ranks; r++)
        for (int i = 0; i < TRAITS; i++) {
            const char *one = all[r % places].trait[i], *other = all[r].trait[i];
            if (strcmp(one, other) == 0) continue;
            return error_set(
                "pipeline: --replicas: rank %d has another %s (%.200s) than rank %d (%.200s), and "
                "replicas must compute the same bits",
                r, trait_names[i], other, r % places, one);
        }
    return 0;
}

/* Refuses ranks that share a GPU, of which the kernels of one may wait for those of another.  NCCL
 * itself does so only between neighbours. */
static int check_gpus(const Computer *all, int ranks) {
    for (int r = 1; r < ranks; r++)
        for (int other = 0; other < r; other++)
            if (memcmp(all[r].gpu, all[other].gpu, sizeof all[r].gpu) == 0)
                return error_set(
                    "pipeline: ranks %d and %d have the same GPU (%.90s), and NCCL needs one for "
                    "each",
                    other, r, all[r].trait[GPU]);
    return 0;
}

/* Refuses ranks whose computers do not go together.  All ranks call it with rank 0's options. */
static int check_computers(const Setup *s, Transport *world) {
    const bool nccl = setup_uses_nccl(&s->options);
    if (s->options.replicas == 1 && !nccl) return 0;
    Computer mine, *all = xcalloc((size_t)world->ranks, sizeof mine);
    const int failed = find_computer(&mine, s) ||
                       transport_all_gather(world, all, &mine, sizeof mine) ||
                       check_replicas(all, world->ranks, world->ranks / s->options.replicas) ||
                       (nccl && check_gpus(all, world->ranks));
    free(all);
    return failed ? -1 : 0;
}

static int send_run_config(const Setup *s, Transport *world) {
    const Placement *p = &s->placement;
    RunConfig c = {.options = s->options,
                   .placement = p->kind,
                   .stage = s->stage_settings,
                   .pipeline = s->pipeline};
    snprintf(c.spec, sizeof c.spec, "%s", s->model->spec);
    snprintf(c.cache_dir, sizeof c.cache_dir, "%s",
             s->pipeline.cache_dir ? s->pipeline.cache_dir : "");
    size_t bytes = (size_t)s->model->blocks * sizeof(int);
    return check_builds(world) || transport_broadcast(world, 0, &c, sizeof c) ||
                   transport_broadcast(world, 0, p->chunk_of, bytes) ||
                   transport_broadcast(world, 0, p->submodel_of, bytes) || check_computers(s, world)
               ? -1
               : 0;
}

/* ---- on rank 0 ------------------------------------------------------------------------------- */

/* A rank that is a thread cannot be lost, and the process may be stopped for as long as it likes.
 */
static int engine_of_threads(Setup *s) {
    static const double no_limit_s = 1e9;
    Transport **world = xmalloc((size_t)s->ranks * sizeof *world);
    void (*message_free)(void *) = s->device ? s->device->message_free : NULL;
    int failed = transport_local_create(world, s->ranks, no_limit_s, message_free);
    if (!failed) s->engine = engine_team_create(world, make_rank, s);
    free(world);
    return s->engine ? 0 : -1;
}

static int engine_of_processes(Setup *s) {
    Transport *world = s->options.world;
    s->took_world = true;
    world->timeout_s = s->options.timeout; /* a resumed run's own */
    if (send_run_config(s, world)) {
        pipeline_abort(world, error_message());
        return -1;
    }
    s->engine = coordinator_create(make_rank(s, world), world, NULL, NULL);
    return s->engine ? 0 : -1;
}

int pipeline_engine(Setup *s, const char *cache_dir) {
    s->pipeline.cache_dir = cache_dir;
    return s->options.world ? engine_of_processes(s) : engine_of_threads(s);
}

/* ---- on the other ranks ---------------------------------------------------------------------- */

/* Fills in what make_rank needs of a setup.  The configuration must outlive it. */
static int receive_run_config(Setup *s, RunConfig *c, Transport *world) {
    if (check_builds(world) || transport_broadcast(world, 0, c, sizeof *c)) return -1;
    s->options = c->options;
    s->stage_settings = c->stage;
    s->pipeline = c->pipeline;
    /* Another machine may not have the directory of the run; then nothing goes to a file. */
    s->pipeline.cache_dir = *c->cache_dir && !access(c->cache_dir, W_OK) ? c->cache_dir : NULL;
    const Options *o = &s->options;
    world->timeout_s = o->timeout;
    if (o->threads) omp_set_num_threads(o->threads);
    s->model = model_create(c->spec);
    if (!s->model || placement_reserve(&s->placement, s->model, c->placement,
                                       world->ranks / o->replicas, o->submodels))
        return -1;
    size_t bytes = (size_t)s->model->blocks * sizeof(int);
    if (transport_broadcast(world, 0, s->placement.chunk_of, bytes) ||
        transport_broadcast(world, 0, s->placement.submodel_of, bytes))
        return -1;
    return setup_device(&s->device, o) || check_computers(s, world) ? -1 : 0;
}

int pipeline_worker(Transport *world) {
    Setup s = {.model = NULL};
    RunConfig config;
    int rank = world->rank;
    Engine *engine = receive_run_config(&s, &config, world) ? NULL : make_rank(&s, world);
    int failed = worker_run(engine, world);
    placement_free(&s.placement);
    model_free(s.model);
    if (failed && *error_message() && strncmp(error_message(), "transport: ", 11) != 0)
        error_set("rank %d: %s", rank, error_message());
    return failed;
}
