/* The device a training runs on. */
#include <string.h>

#include "../../ref/base/error.h"
#include "../base/text.h"
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

int setup_provenance(Provenance *provenance, const Options *o) {
    const DeviceModule *device;
    DeviceInfo info;
    if (setup_device(&device, o) || (device && device->info(&info))) return -1;
    provenance_fill(provenance, o->seed);
    provenance_set_device(provenance, device_names[o->device], precision_names[o->precision],
                          device ? &info : NULL);
    return 0;
}
