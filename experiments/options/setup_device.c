/* The device a training runs on, and whether its memory will do. */
#include <unistd.h>

#include "../../ref/error.h"
#include "setup.h"

int setup_check_device(const Options *o) {
    const char *precision = precision_names[o->precision];
    if (o->device != DEVICE_CPU) return 0;
    if (o->precision != PRECISION_FP32)
        return error_set(
            "--precision %s: the cpu computes in fp32; %s is for --device cuda or simt", precision,
            precision);
    if (o->method == METHOD_OFFLOAD)
        return error_set(
            "--method offload puts optimizer state beside a device's memory, into the host's; the "
            "cpu has only that: choose --device cuda or simt");
    if (o->device_cache)
        return error_set("--device-cache: the cpu has no memory of its own; use --cache");
    return 0;
}

int setup_device(const DeviceModule **device, const Options *o) {
    *device = NULL;
    if (setup_check_device(o)) return -1;
    if (o->device == DEVICE_CPU) return 0;
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

static FitTraining fit_training(const Setup *s) {
    return (FitTraining){.model = s->model,
                         .partition = &s->bcd.partition,
                         .settings = s->stage_settings,
                         .batch = s->options.batch,
                         .accumulate = s->options.accumulate};
}

static FitPlan fit_function(const Setup *s) {
    return s->device ? s->device->memory_plan : fit_plan_cpu;
}

int setup_memory(size_t bytes[MEM_ROLES + 1], size_t host[MEM_ROLES + 1], const Setup *s) {
    FitTraining training = fit_training(s);
    return fit_plan(bytes, host, fit_function(s), &training);
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
    }
    return fit_check(&memory, &training);
}
