/* The bytes of a training, from the memory plans of its stages. */
#include <stdlib.h>
#include <string.h>

#include "../../ref/base/alloc.h"
#include "../../ref/base/error.h"
#include "../../ref/memory.h"
#include "../base/alloc.h"
#include "../base/cgroup.h"
#include "../base/text.h"
#include "fit.h"

/* Overwrites the bytes by role of a stage that trains active[blocks]. */
static int plan(size_t device[MEM_ROLES], size_t host[MEM_ROLES], const Setup *s,
                const StageSettings *settings, const bool *active) {
    memset(host, 0, MEM_ROLES * sizeof *host);
    return s->device ? s->device->memory_plan(device, host, s->model, settings, active)
                     : memory_plan(device, s->model, settings, active);
}

/* Raises each role of max[], and the total at its end, to what one submodel needs. */
static void raise_to(size_t max[MEM_ROLES + 1], const size_t bytes[MEM_ROLES]) {
    size_t sum = 0;
    for (int role = 0; role < MEM_ROLES; role++) {
        sum += bytes[role];
        if (bytes[role] > max[role]) max[role] = bytes[role];
    }
    if (sum > max[MEM_ROLES]) max[MEM_ROLES] = sum;
}

/* Adds what a stage of the frozen prefix needs, which infers next to the rank's own. */
static int add_prefix(size_t device[MEM_ROLES], size_t host[MEM_ROLES], const Setup *s,
                      StageSettings settings, const bool *active) {
    size_t more[MEM_ROLES], more_host[MEM_ROLES];
    const int lowest = lowest_active(s->model, active);
    if (lowest == 0) return 0;
    RankBlocks blocks = {0};
    bool *none = xcalloc((size_t)s->model->blocks, sizeof *none);
    const int failed = rank_prefix_create(&blocks, &settings, s->model, lowest) ||
                       plan(more, more_host, s, &settings, none);
    for (int role = 0; role < MEM_ROLES && !failed; role++) {
        device[role] += more[role];
        host[role] += more_host[role];
    }
    free(none);
    rank_blocks_free(&blocks);
    return failed ? -1 : 0;
}

/* Returns of how many phases the plans differ: the training has no more, or the later ones need
 * what earlier ones did.  Kept state is complete after a cycle.  Before there are data and a
 * length, there may be any number. */
static uint64_t count_phases(const Setup *s) {
    const uint64_t most = (uint64_t)s->bcd.partition.submodels * (1 + s->stage_settings.keep_state);
    if (!s->train || !order_by_phase[s->bcd.order]) return most;
    const uint64_t shortest = bcd_shortest_phase(&s->bcd, s->train->samples);
    const uint64_t phases = s->bcd.steps / shortest + (s->bcd.steps % shortest > 0);
    return phases < most ? phases : most;
}

/* Overwrites active[blocks] with those that train in a phase.  Of an order that is not by phase
 * each submodel is planned in turn.  -1 and an error. */
static int active_in_phase(bool *active, const Setup *s, uint64_t phase) {
    BcdSettings bcd = s->bcd;
    if (!order_by_phase[bcd.order]) bcd.order = ORDER_CYCLIC;
    const int submodel = bcd_select(&(BcdState){.phase = phase}, &bcd, NULL, NULL);
    if (submodel < 0) return -1;
    partition_active(&bcd.partition, s->model, submodel, active);
    return 0;
}

/* Overwrites *bytes with the state of all blocks that have trained once these do, and
 * trained[blocks] with which they are. */
static int plan_kept(size_t *bytes, bool *trained, const Setup *s, const StageSettings *settings,
                     const bool *active) {
    size_t device[MEM_ROLES], host[MEM_ROLES];
    for (int b = 0; b < s->model->blocks; b++) trained[b] |= active[b];
    const int failed = plan(device, host, s, settings, trained);
    *bytes = failed ? 0 : device[MEM_STATE];
    return failed;
}

/* The largest plan of a stage with these settings; `blocks` are those of a rank, or NULL.  `infers`
 * says that a stage of the frozen prefix is there too, at the start of a phase. */
static int plan_largest(FitBytes *max, const Setup *s, const StageSettings *settings,
                        RankBlocks *blocks, bool infers) {
    size_t device[MEM_ROLES], host[MEM_ROLES];
    const uint64_t phases = count_phases(s);
    bool *active = xcalloc(2 * (size_t)s->model->blocks, sizeof *active);
    bool *trained = active + s->model->blocks;
    *max = (FitBytes){.device = {0}};
    /* Before the first step no block is active, and the stage has the scratch of an evaluation. */
    int failed = plan(device, host, s, settings, active);
    for (uint64_t phase = 0; phase < phases && !failed; phase++) {
        raise_to(max->device, device);
        raise_to(max->host, host);
        failed =
            active_in_phase(active, s, phase) ||
            (blocks &&
             rank_blocks_set_in_flight(blocks, &s->placement, s->model, s->pipeline, active)) ||
            plan(device, host, s, settings, active) ||
            (infers && add_prefix(device, host, s, *settings, active)) ||
            (settings->keep_state && plan_kept(&device[MEM_STATE], trained, s, settings, active));
    }
    free(active);
    if (failed) return -1;
    raise_to(max->device, device);
    raise_to(max->host, host);
    return 0;
}

int fit_plan(FitBytes *bytes, const Setup *s, int rank) {
    RankBlocks blocks;
    StageSettings settings = s->stage_settings;
    if (!s->ranks) return plan_largest(bytes, s, &settings, NULL, false);
    const int place = rank % s->placement.ranks;
    if (rank_blocks_create(&blocks, &s->placement, s->model, place)) return -1;
    settings.local = blocks.local;
    settings.in_flight = blocks.in_flight;
    int failed = plan_largest(bytes, s, &settings, &blocks, place < s->pipeline.infer_ranks);
    rank_blocks_free(&blocks);
    return failed;
}

size_t fit_message_bytes(const Setup *s, int rank) {
    size_t bytes = 0;
    /* MPI carries copies in host memory, and so does every transport of processors. */
    if (!s->ranks || !s->device || strcmp(s->options.pipeline, "mpi") == 0) return 0;
    ChunkCost *cost = xcalloc((size_t)s->placement.chunks, sizeof *cost);
    bool *active = xcalloc((size_t)s->model->blocks, sizeof *active);
    for (int submodel = 0; submodel < s->bcd.partition.submodels; submodel++) {
        partition_active(&s->bcd.partition, s->model, submodel, active);
        const SchedulePlan plan =
            rank_schedule_plan(cost, &s->placement, s->model, s->pipeline, active);
        const size_t own = rank_message_bytes(&s->placement, &plan, s->model, &s->stage_settings,
                                              rank % s->placement.ranks);
        bytes = size_max(bytes, own);
    }
    free(active);
    free(cost);
    return bytes;
}

int fit_plan_all(FitBytes *bytes, const Setup *s) {
    if (!s->ranks) return fit_plan(bytes, s, 0);
    *bytes = (FitBytes){.device = {0}};
    for (int r = 0; r < s->ranks; r++) {
        FitBytes one;
        if (fit_plan(&one, s, r)) return -1;
        fit_add(bytes->device, one.device);
        fit_add(bytes->host, one.host);
    }
    return 0;
}

/* Returns the rank of a pipeline that holds a block; 0 on one device. */
static int place_of(const Setup *s, int block) {
    return s->ranks ? placement_rank(&s->placement, block) : 0;
}

/* Returns the numbers of a sample's outputs of the widest frozen prefix that is not cached at
 * `place`, which is that of the lowest active block; 0: there is none.  Place -1: wherever the
 * cache is. */
static size_t prefix_width(const Setup *s, int place) {
    const Model *m = s->model;
    size_t width = 0;
    bool *active = xcalloc((size_t)m->blocks, sizeof *active);
    for (int submodel = 0; submodel < s->bcd.partition.submodels; submodel++) {
        partition_active(&s->bcd.partition, m, submodel, active);
        const int lowest = lowest_active(m, active);
        if (lowest == 0 || lowest == m->blocks || place_of(s, lowest) == place) continue;
        width = size_max(width, shape_count(m->value[m->block[lowest].in].shape));
    }
    free(active);
    return width;
}

size_t fit_cache_bytes(const Setup *s) {
    const size_t bytes = prefix_width(s, -1) * sizeof(real);
    const size_t samples = s->train ? (size_t)s->train->samples : SIZE_MAX;
    if (!s->options.cache || !bytes) return 0;
    return samples < s->options.cache / bytes ? samples * bytes : s->options.cache;
}

size_t fit_cache_batch_bytes(const Setup *s) {
    const Options *o = &s->options;
    if (!o->cache && !o->device_cache) return 0;
    const int samples = s->ranks ? s->stage_settings.batch * s->pipeline.micro_batches * o->replicas
                                 : s->stage_settings.batch;
    return (size_t)samples * prefix_width(s, -1) * sizeof(real);
}

size_t fit_inferred_bytes(const Setup *s, int rank) {
    const int place = s->ranks ? rank % s->placement.ranks : 0;
    if (!s->ranks || place >= s->pipeline.infer_ranks) return 0;
    const int samples = s->stage_settings.batch * s->pipeline.micro_batches;
    return (size_t)samples * prefix_width(s, place) * sizeof(real);
}

int fit_plan_evaluation(FitBytes *bytes, const Setup *s) {
    size_t device[MEM_ROLES], host[MEM_ROLES];
    bool *none = xcalloc((size_t)s->model->blocks, sizeof *none);
    const int failed = plan(device, host, s, &s->stage_settings, none);
    free(none);
    *bytes = (FitBytes){.device = {0}};
    if (failed) return -1;
    if (s->generates) device[MEM_CACHE] += memory_extend(s->model, &s->stage_settings);
    raise_to(bytes->device, device);
    raise_to(bytes->host, host);
    return 0;
}
