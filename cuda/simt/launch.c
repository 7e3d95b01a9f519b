/* Launches: their checks, their blocks, their errors. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const SimtLaunch *now;                                  /* the launch that runs */
static pthread_mutex_t error_lock = PTHREAD_MUTEX_INITIALIZER; /* of any thread's work */
static struct {
    bool set;
    char text[SIMT_ERROR_BYTES];
} error;
static struct {
    SimtOrder order;
    uint64_t seed;
} chosen;
static SimtRecord *_Atomic recorder;

uint64_t simt_launch_number;
const SimtRace *simt_race;

void simt_set_order(SimtOrder order, uint64_t seed) {
    chosen.order = order;
    chosen.seed = seed;
}
void simt_set_recorder(SimtRecord *record) { recorder = record; }
bool simt_take_error(char text[SIMT_ERROR_BYTES]) {
    pthread_mutex_lock(&error_lock);
    bool set = error.set;
    if (set) memcpy(text, error.text, sizeof error.text);
    error.set = false;
    pthread_mutex_unlock(&error_lock);
    return set;
}
const char *simt_error(void) {
    pthread_mutex_lock(&error_lock);
    const char *text = error.set ? error.text : NULL;
    pthread_mutex_unlock(&error_lock);
    return text;
}
void simt_clear_error(void) {
    char text[SIMT_ERROR_BYTES];
    simt_take_error(text);
}
bool simt_checks_races(void) { return simt_race != NULL; }
void simt_poison(void *memory, size_t bytes) { memset(memory, 0xff, bytes); }

static void note(const char *prefix, const char *format, va_list arguments) {
    char text[SIMT_ERROR_BYTES] = "";
    int length = snprintf(text, sizeof text, "%s", prefix);
    size_t used = length < 0 ? 0 : (size_t)length;
    if (used < sizeof text) vsnprintf(text + used, sizeof text - used, format, arguments);
    pthread_mutex_lock(&error_lock);
    if (!error.set) memcpy(error.text, text, sizeof text);
    error.set = true;
    pthread_mutex_unlock(&error_lock);
}

void simt_note_error(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    note("", format, arguments);
    va_end(arguments);
}

void simt_note_thread_error(SimtIndex thread, SimtSite site, const char *format, ...) {
    char prefix[512];
    snprintf(prefix, sizeof prefix,
             "kernel %s, block (%u,%u,%u), thread (%u,%u,%u), %s:%d: ", now->kernel, blockIdx.x,
             blockIdx.y, blockIdx.z, thread.x, thread.y, thread.z,
             site.file ? site.file : now->site.file, site.file ? site.line : now->site.line);
    va_list arguments;
    va_start(arguments, format);
    note(prefix, format, arguments);
    va_end(arguments);
}

void simt_fail(SimtSite site, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    simt_note_thread_error(threadIdx, site, "%s", text);
    simt_give_up();
}

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

/* The i-th block of `count` in the chosen order; at random: a step that meets every one once. */
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
        if (!simt_block_run(body, arguments)) return;
    }
}

void simt_run(const SimtLaunch *launch, SimtRun *body, const void *arguments) {
    pthread_mutex_lock(&lock);
    now = launch;
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
    now = NULL;
    pthread_mutex_unlock(&lock);
}

void simt_fence(void) {
    if (simt_race) simt_race->fence();
}

void simt_submit(void *stream, SimtRun *run, const void *closure, size_t bytes) {
    SimtRecord *record = recorder;
    if (record && record(stream, run, closure, bytes)) return;
    run(closure);
}
