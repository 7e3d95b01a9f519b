/* Devices next to the CPU.  Each is a library of its own, libbcd-NAME.so next to the program,
 * loaded when asked for: the program itself needs neither a GPU nor a driver nor CUDA. */
#ifndef EXPERIMENTS_DEVICE_H
#define EXPERIMENTS_DEVICE_H

#include "../../cuda/device.h"
#include "../../ref/stage.h"

typedef struct {
    const char *name; /* "cuda", "simt" */
    int (*info)(DeviceInfo *info);
    Stage *(*stage_create)(const Model *model, StageSettings settings);
    /* Bytes by role on the device, and in host memory next to it: see cuda/plan.h. */
    /* For pipelines; see dist/transport.h.  NULL: built without NCCL. */
    void (*message_free)(void *message);
    struct Transport *(*transport_nccl_create)(struct Transport *control);
    size_t (*transport_nccl_bytes)(void);
    int (*memory_plan)(size_t device[MEM_ROLES], size_t host[MEM_ROLES], const Model *model,
                       const StageSettings *settings, const bool *active);
} DeviceModule;

/* Loads the library and opens the device; once, later calls return the same.  NULL and an error
 * that says what is missing: the library, a driver, a device. */
const DeviceModule *device_module_open(const char *name);

#endif
