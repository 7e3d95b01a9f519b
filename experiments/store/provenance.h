/* Where a result comes from: stored with every file of results. */
#ifndef EXPERIMENTS_PROVENANCE_H
#define EXPERIMENTS_PROVENANCE_H

#include <stdint.h>

#include "../../cuda/device.h"
#include "h5.h"

typedef struct {
    /* of the build: git describe --always --dirty, "unknown" outside a checkout; ... */
    char commit[H5_NAME], command[H5_PATH], compiler[H5_NAME], flags[H5_PATH];
    char cpu[H5_NAME], device[H5_NAME], precision[H5_NAME]; /* device: cpu, plain, cuda or simt */
    char started[H5_NAME];                                  /* UTC, ISO 8601 */
    /* Of a device next to the CPU; "" without one, and in files written before there were any. */
    char accelerator[H5_NAME], runtime[H5_NAME], driver[H5_NAME], libraries[H5_NAME];
    int threads;
    uint64_t seed;
    double wall; /* s, of all sessions together */
} Provenance;

/* As it is stored: attributes of a group, or of many runs columns. */
enum { PROVENANCE_FIELDS = 15 };
extern const H5Column provenance_fields[PROVENANCE_FIELDS];

/* What this process is.  Remembers argv for `command`, and when it started. */
void provenance_remember(int argc, char **argv);
/* Since then; 0 where it was not remembered. */
double provenance_seconds(void);
void provenance_fill(Provenance *provenance, uint64_t seed);
/* What computes: `device` is cpu, plain, cuda or simt; info of the latter two, else NULL. */
void provenance_set_device(Provenance *provenance, const char *device, const char *precision,
                           const DeviceInfo *info);
/* The name of what computes: the accelerator's, or else the processor's. */
const char *provenance_computer(const Provenance *provenance);
void provenance_write(H5File *file, const char *group, const Provenance *provenance);
int provenance_read(const H5File *file, const char *group, Provenance *provenance);

#endif
