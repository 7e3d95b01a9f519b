/* What the files of the engine share. */
#pragma once

#include "engine.h"

/* engine.c: runs the threads of a block.  simt_block_shape is called once per launch, and then
 * simt_block_run for each block; it returns false if the block was given up. */
SIMT_HIDDEN void simt_order_start(SimtOrder order, uint64_t seed);
SIMT_HIDDEN void simt_block_shape(SimtSize size);
SIMT_HIDDEN bool simt_block_run(SimtRun *body, const void *arguments);
SIMT_HIDDEN __attribute__((noreturn)) void simt_give_up(void); /* on a fiber */

SIMT_HIDDEN extern const SimtLaunch *simt_running; /* launch.c */
/* errors.c: notes an error of a thread, with the kernel's name and the line. */
SIMT_HIDDEN __attribute__((format(printf, 3, 4))) void simt_note_thread_error(SimtIndex thread,
                                                                              SimtSite site,
                                                                              const char *format,
                                                                              ...);
/* Notes which thread waits in vain and for whom, when some wait and none is ready. */
SIMT_HIDDEN void simt_diagnose(const SimtWarp *warps, unsigned count);

/* What the engine tells the race checker (tests/simt/race). */
typedef struct {
    void (*launch)(bool begin);
    void (*block)(void);   /* a block begins */
    void (*barrier)(void); /* every thread has reached it */
    void (*sync_warp)(const SimtWarp *warp, unsigned mask);
    void (*access)(const void *memory, size_t bytes, bool write, unsigned thread, SimtSite site);
} SimtRace;
SIMT_HIDDEN extern const SimtRace *simt_race; /* NULL without the checker */
/* The section of SIMT_OWN, whose ends the linker names. */
SIMT_HIDDEN extern const char __start_simt_own[], __stop_simt_own[];
static inline bool simt_is_own(const void *memory) {
    return (uintptr_t)memory - (uintptr_t)__start_simt_own <
           (uintptr_t)__stop_simt_own - (uintptr_t)__start_simt_own;
}
/* Return true if the memory is on the stack of the running fiber, or in the shared memory. */
SIMT_HIDDEN bool simt_on_stack(const void *memory);
SIMT_HIDDEN bool simt_in_shared(const void *memory);
