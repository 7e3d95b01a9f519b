/* The race checker: reports two accesses to one byte, at least one of them a write, that nothing
 * puts in order.
 *
 * Kernels are compiled with -fsanitize=thread, which makes the compiler call a hook (hooks.c) at
 * each access, and linked with the files of this directory instead of the sanitizer's own library.
 * For each byte the last write and the reads since are kept (shadow.c).  What puts accesses in
 * order:
 *   - __syncthreads, for threads of a block;
 *   - __syncwarp, for the lanes it names.  Not shuffles, votes, mma or ldmatrix: they move values
 *     between registers and promise nothing about memory;
 *   - the end of a launch.
 * Nothing orders the blocks of a launch.  Two atomic operations do not race.  Accesses through
 * memcpy and memset of sizes unknown to the compiler are not seen.
 *
 * With -fsanitize=alignment in addition, vector accesses to misaligned addresses are errors too
 * (hooks.c).  g++ checks all of them; clang++ 14 only those through a member, not whole copies.
 *
 * A race is an error of the launch (simt_error), which names both lines; the launch goes on. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../../cuda/simt/internal.h"

/* A place in the source: a return address of the kernel, or a site with its highest bit set. */
typedef uint64_t RacePlace;

typedef enum { RACE_READ, RACE_WRITE, RACE_ATOMIC } RaceKind;

typedef struct {
    RacePlace place;
    RaceKind kind;
    unsigned block, thread;
} RaceAccess;

/* shadow.c: records an access of the running thread. Does nothing if no kernel runs. */
SIMT_HIDDEN void race_access(const void *memory, size_t bytes, RaceKind kind, RacePlace place);
SIMT_HIDDEN bool race_running(void); /* a kernel */
SIMT_HIDDEN extern const SimtRace race_checker;

/* report.c */
SIMT_HIDDEN RacePlace race_site(SimtSite site);
SIMT_HIDDEN void race_report(const void *memory, RaceAccess first, RaceAccess second);
