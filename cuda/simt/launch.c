/* Checks launches, and runs their blocks one after the other. */
#include <pthread.h>

#include "internal.h"

SimtIndex threadIdx, blockIdx;
SimtSize blockDim, gridDim;
const SimtLaunch *simt_running;
uint64_t simt_launch_number;
const SimtRace *simt_race;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    SimtOrder order;
    uint64_t seed;
} chosen;
static SimtRecord *_Atomic recorder;

void simt_set_order(SimtOrder order, uint64_t seed) {
    chosen.order = order;
    chosen.seed = seed;
}
void simt_set_recorder(SimtRecord *record) { recorder = record; }
bool simt_checks_races(void) { return simt_race != NULL; }

static bool launch_error(const SimtLaunch *launch, const char *what) {
    simt_note_error("kernel %s, %s:%d: launch of (%u,%u,%u) blocks of (%u,%u,%u) threads: %s",
                    launch->kernel, launch->site.file, launch->site.line, launch->grid.x,
                    launch->grid.y, launch->grid.z, launch->block.x, launch->block.y,
                    launch->block.z, what);
    return false;
}

/* The limits of compute capability 8.0 to 9.0. */
static bool shape_allowed(const SimtLaunch *launch) {
    SimtSize grid = launch->grid, threads = launch->block;
    if (!grid.x || !grid.y || !grid.z) return launch_error(launch, "no blocks");
    if (grid.x > 2147483647u || grid.y > 65535u || grid.z > 65535u)
        return launch_error(launch, "too many blocks");
    if (!threads.x || !threads.y || !threads.z) return launch_error(launch, "no threads");
    if (threads.x > 1024 || threads.y > 1024 || threads.z > 64 ||
        threads.x * threads.y * threads.z > SIMT_THREADS)
        return launch_error(launch, "too many threads in a block");
    return true;
}

static uint64_t divisor(uint64_t a, uint64_t b) {
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Returns the i-th block of `count` in the chosen order.  In random order `step` has no common
 * divisor with `count`, so that every block comes once. */
static uint64_t block_number(uint64_t i, uint64_t count, uint64_t step) {
    if (chosen.order == SIMT_ASCENDING) return i;
    if (chosen.order == SIMT_DESCENDING) return count - 1 - i;
    return (uint64_t)((__extension__(unsigned __int128) i * step + chosen.seed) % count);
}

static void run_blocks(const SimtLaunch *launch, SimtRun *body, const void *arguments) {
    uint64_t count = (uint64_t)launch->grid.x * launch->grid.y * launch->grid.z;
    uint64_t step = (chosen.seed * 2654435761u + 0x9e3779b9u) % count;
    while (divisor(step, count) != 1) step++;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t b = block_number(i, count, step), row = b / launch->grid.x;
        blockIdx = (SimtIndex){(unsigned)(b % launch->grid.x), (unsigned)(row % launch->grid.y),
                               (unsigned)(row / launch->grid.y)};
        simt_shared_poison();
        simt_copies_drop();
        simt_wgmma_drop();
        if (simt_race) simt_race->block();
        if (!simt_block_run(body, arguments) || !simt_wgmma_agree()) return;
    }
}

void simt_run(const SimtLaunch *launch, SimtRun *body, const void *arguments) {
    pthread_mutex_lock(&lock);
    simt_running = launch;
    simt_launch_number++;
    if (shape_allowed(launch) && simt_shared_open(launch)) {
        gridDim = launch->grid;
        blockDim = launch->block;
        simt_order_start(chosen.order, chosen.seed);
        simt_block_shape(launch->block);
        if (simt_race) simt_race->launch(true);
        run_blocks(launch, body, arguments);
        if (simt_race) simt_race->launch(false);
    }
    simt_running = NULL;
    pthread_mutex_unlock(&lock);
}

void simt_submit(void *stream, SimtRun *run, const void *closure, size_t bytes) {
    SimtRecord *record = recorder;
    if (record && record(stream, run, closure, bytes)) return;
    run(closure);
}
