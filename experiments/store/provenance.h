/* Where a result comes from: stored with every file of results. */
#ifndef EXPERIMENTS_PROVENANCE_H
#define EXPERIMENTS_PROVENANCE_H

#include <stdint.h>

#include "../../cuda/device.h"
#include "h5.h"

typedef struct {
    char commit[64]; /* of the build: git describe --always --dirty; "unknown" outside a checkout */
    char command[1024];
    char compiler[128], flags[256];           /* of the build */
    char cpu[128], device[32], precision[16]; /* device: cpu, plain, cuda or simt */
    /* Of a device next to the CPU; "" without one, and in files written before there were any. */
    char accelerator[96], runtime[48], driver[48], libraries[96];
    char started[32]; /* UTC, ISO 8601 */
    int threads;
    uint64_t seed;
    double wall; /* s, of all sessions together */
} Provenance;

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
/* As attributes of a group. */
void provenance_write(H5File *file, const char *group, const Provenance *provenance);
int provenance_read(const H5File *file, const char *group, Provenance *provenance);

/* The same of many runs, `stride` bytes from one to the next: a data set [rows] for each field,
 * next to the dimension scale `scale`. */
void provenance_write_columns(H5File *file, const char *group, const char *scale,
                              const Provenance *first, size_t stride, size_t rows);
int provenance_read_columns(const H5File *file, const char *group, Provenance *first, size_t stride,
                            size_t rows);

/* The fields that are text. */
typedef struct {
    const char *name;
    size_t offset, size;
    bool optional; /* in a run.h5 there if not "" */
} ProvenanceText;
enum { PROVENANCE_TEXTS = 12 };
extern const ProvenanceText provenance_texts[PROVENANCE_TEXTS];

#endif
