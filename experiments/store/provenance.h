/* Where a result comes from: stored with every file of results. */
#ifndef EXPERIMENTS_PROVENANCE_H
#define EXPERIMENTS_PROVENANCE_H

#include <stdint.h>

#include "h5.h"

typedef struct {
    char commit[64]; /* of the build: git describe --always --dirty; "unknown" outside a checkout */
    char command[1024];
    char compiler[128], flags[256]; /* of the build */
    char cpu[128], device[32], precision[16];
    char started[32]; /* UTC, ISO 8601 */
    int threads;
    uint64_t seed;
    double wall; /* s, of all sessions together */
} Provenance;

/* What this process is.  Remembers argv for `command`. */
void provenance_remember(int argc, char **argv);
void provenance_fill(Provenance *provenance, uint64_t seed);
/* As attributes of a group. */
void provenance_write(H5File *file, const char *group, const Provenance *provenance);
int provenance_read(const H5File *file, const char *group, Provenance *provenance);

#endif
