/* Parts of the program that are shared libraries of their own, libbcd-NAME.so next to the program,
 * loaded when they are asked for: the program itself needs no GPU, no driver, no CUDA and no
 * MPI. */
#pragma once

#include "../../cuda/device.h"
#include "../../dist/transport.h"
#include "../../ref/stage.h"

/* A device next to the CPU. */
typedef struct {
    const char *name; /* "cuda", "simt" */
    int (*info)(DeviceInfo *info);
    Stage *(*stage_create)(const Model *model, StageSettings settings);
    /* Bytes by role on the device, and in host memory next to it: see cuda/stage/plan.h. */
    int (*memory_plan)(size_t device[MEM_ROLES], size_t host[MEM_ROLES], const Model *model,
                       const StageSettings *settings, const bool *active);
    void (*message_free)(void *message); /* for pipelines, see dist/transport.h */
    /* NULL in a library that was built without NCCL. */
    Transport *(*transport_nccl_create)(Transport *control);
    size_t (*transport_nccl_bytes)(void);
} DeviceModule;

/* Loads the library of a device, "cuda" or "simt", and opens the device; later calls return the
 * same one.  NULL and an error that says what is missing: the library, a driver or a device. */
const DeviceModule *device_module_open(const char *name);

/* Loads libbcd-mpi.so and calls its transport_mpi_create (dist/mpi/transport_mpi.h).  NULL and an
 * error. */
Transport *mpi_module_open(double timeout_s);
