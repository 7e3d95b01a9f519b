/* Where a result comes from; stored in every file of results. */
#pragma once

#include <stdint.h>

#include "../../cuda/device.h"
#include "h5.h"

typedef struct {
    /* commit: git describe --always --dirty, "unknown" outside a checkout. */
    char commit[H5_NAME], command[H5_PATH], compiler[H5_NAME], flags[H5_PATH];
    char cpu[H5_NAME], device[H5_NAME], precision[H5_NAME]; /* device: cpu, plain, cuda or simt */
    char started[H5_NAME];                                  /* UTC, ISO 8601 */
    /* Of a device next to the CPU; "" without one. */
    char accelerator[H5_NAME], runtime[H5_NAME], driver[H5_NAME], libraries[H5_NAME];
    int threads;
    uint64_t seed;
    double wall; /* s, of all sessions together */
} Provenance;

/* Its fields in a file: attributes of a group or, of many runs, columns. */
enum { PROVENANCE_FIELDS = 15 };
extern const H5Column provenance_fields[PROVENANCE_FIELDS];

/* Remembers the command line, and when the process started. */
void provenance_remember(int argc, char **argv);
/* Returns the seconds since then, or 0 if nothing was remembered. */
double provenance_seconds(void);
/* Describes this build and process, with the CPU as the device. */
void provenance_fill(Provenance *provenance, uint64_t seed);
/* Sets the device: cpu, plain, cuda or simt; info is that of the latter two, else NULL. */
void provenance_set_device(Provenance *provenance, const char *device, const char *precision,
                           const DeviceInfo *info);
/* Returns the name of the accelerator, or without one of the processor. */
const char *provenance_computer(const Provenance *provenance);
