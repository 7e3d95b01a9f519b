/* The memory that a training will take, and whether its device has it. */
#include <unistd.h>

#include "../../ref/error.h"
#include "pipeline.h"
#include "progress.h" /* format_bytes */

static FitTraining fit_training(const Setup *s) {
    return (FitTraining){.model = s->model,
                         .always = s->options.always_active,
                         .partition = &s->bcd.partition,
                         .settings = s->stage_settings,
                         .batch = s->options.batch,
                         .accumulate = s->options.accumulate,
                         .placement = &s->placement,
                         .pipeline = s->pipeline};
}

static FitPlan fit_function(const Setup *s) {
    return s->device ? s->device->memory_plan : fit_plan_cpu;
}

int setup_rank_memory(FitBytes *bytes, const Setup *s, int rank) {
    RankBlocks blocks;
    FitTraining training = fit_training(s);
    if (rank_blocks_create(&blocks, &s->placement, s->model, rank % s->placement.ranks)) return -1;
    training.blocks = &blocks;
    training.settings.local = blocks.local;
    training.settings.in_flight = blocks.in_flight;
    int failed = fit_plan(bytes, fit_function(s), &training);
    rank_blocks_free(&blocks);
    return failed;
}

int setup_memory(FitBytes *bytes, const Setup *s) {
    FitTraining training = fit_training(s);
    if (!s->ranks) return fit_plan(bytes, fit_function(s), &training);
    *bytes = (FitBytes){.device = {0}};
    for (int r = 0; r < s->ranks; r++) {
        FitBytes one;
        if (setup_rank_memory(&one, s, r)) return -1;
        for (int role = 0; role <= MEM_ROLES; role++) {
            bytes->device[role] += one.device[role];
            bytes->host[role] += one.host[role];
        }
    }
    return 0;
}

/* Ranks that are threads share one memory; a process is assumed to have a memory of its own. */
static int check_ranks(const Setup *s, const FitMemory *memory) {
    FitBytes bytes;
    size_t max = 0, sum = 0;
    char needs[32], has[32];
    for (int r = 0; r < s->ranks; r++) {
        if (setup_rank_memory(&bytes, s, r)) return -1;
        sum += bytes.device[MEM_ROLES];
        if (bytes.device[MEM_ROLES] > max) max = bytes.device[MEM_ROLES];
    }
    double need = (double)(s->options.world ? max : sum);
    if (need <= memory->bytes) return 0;
    return error_set(
        "memory: %s needs %s %s, %s has %s; more submodels, --recompute or more ranks "
        "would need less",
        s->model->name, format_bytes(need, needs),
        s->options.world ? "on the fullest rank" : "for all ranks together", memory->name,
        format_bytes(memory->bytes, has));
}

int setup_check_memory(const Setup *s) {
    double installed = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGE_SIZE);
    FitTraining training = fit_training(s);
    FitMemory memory = {.plan = fit_function(s), .name = "this machine", .bytes = installed};
    DeviceInfo info;
    if (s->device) {
        if (s->device->info(&info)) return -1;
        memory.bf16 = true;
        memory.cache = s->options.device_cache;
    }
    if (s->options.device == DEVICE_CUDA) {
        memory.name = info.name;
        memory.bytes = (double)info.free_bytes;
        memory.host_bytes = installed;
        if (pipeline_is_nccl(&s->options))
            memory.bytes -= (double)s->device->transport_nccl_bytes();
    }
    return s->ranks ? check_ranks(s, &memory) : fit_check(&memory, &training);
}
