/* The device a training runs on, and whether it has the memory that the training will take. */
#include <string.h>
#include <unistd.h>

#include "../../ref/error.h"
#include "../text.h"
#include "setup.h"

static bool on_processor(const Options *o) {
    return o->device == DEVICE_CPU || o->device == DEVICE_PLAIN;
}

bool setup_uses_nccl(const Options *o) { return strcmp(o->pipeline, "nccl") == 0; }

int setup_check_device(const Options *o) {
    const char *precision = precision_names[o->precision];
    if (!on_processor(o))
        return o->correct_above > 0 ? error_set("--correct-above needs --device cpu or plain") : 0;
    if (o->precision != PRECISION_FP32)
        return error_set(
            "--precision %s: the cpu computes in fp32; %s is for --device cuda or simt", precision,
            precision);
    if (o->method == METHOD_OFFLOAD)
        return error_set(
            "--method offload moves optimizer state from a device's memory to the host's; it needs "
            "--device cuda or simt");
    if (o->device_cache)
        return error_set("--device-cache: the cpu has no memory of its own; use --cache");
    return 0;
}

int setup_device(const DeviceModule **device, const Options *o) {
    *device = NULL;
    if (setup_check_device(o)) return -1;
    if (on_processor(o)) return 0;
    *device = device_module_open(device_names[o->device]);
    return *device ? 0 : -1;
}

Stage *setup_stage(const DeviceModule *device, const Model *model, StageSettings settings) {
    return device ? device->stage_create(model, settings) : stage_ref_create(model, settings);
}

int setup_provenance(Provenance *provenance, const Options *o) {
    const DeviceModule *device;
    DeviceInfo info;
    if (setup_device(&device, o) || (device && device->info(&info))) return -1;
    provenance_fill(provenance, o->seed);
    provenance_set_device(provenance, device_names[o->device], precision_names[o->precision],
                          device ? &info : NULL);
    return 0;
}

/* ---- memory ---------------------------------------------------------------------------------- */

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
        s->model->name, format_bytes(need).text,
        s->options.world ? "on the fullest rank" : "for all ranks together", memory->name,
        format_bytes(memory->bytes).text);
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
        if (setup_uses_nccl(&s->options)) memory.bytes -= (double)s->device->transport_nccl_bytes();
    }
    return s->ranks ? check_ranks(s, &memory) : fit_check(&memory, &training);
}
