/* The scheduler: it chooses which thread of the block runs.
 *
 * A thread keeps the fiber it was started on until it leaves the kernel; the same fiber then starts
 * the next thread, so that a kernel without barriers runs all its threads on one stack.  A thread
 * that must wait is taken out of its warp's ready lanes, and the scheduler goes on with the next
 * ready lane of the warp, or of another warp.  When no thread is ready but some are left, these
 * wait for one that does not come, which is an error. */
#include "engine.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fiber.h"
#include "internal.h"

SimtHere simt_here;
bool simt_vote;

static struct {
    SimtWarp warp[SIMT_WARPS];
    unsigned warps, threads;
    unsigned ready_warps;   /* bits: those with a ready lane */
    unsigned left, waiting; /* threads that are done, or at the barrier */
    SimtSite barrier;       /* where the first of those waits */
    SimtIndex first_waiting;
    bool predicate; /* whether one of the waiting threads' was true */
    SimtRun *body;
    const void *arguments;
} block;

static struct {
    SimtFiber host, *running, *parked, *all[SIMT_THREADS];
    int count;
} fibers;

static struct {
    SimtOrder order;
    uint64_t state;
} turn;

void simt_order_start(SimtOrder order, uint64_t seed) {
    turn.order = order;
    turn.state = seed * 0x9e3779b97f4a7c15u + 0xd1b54a32d192ed03u;
}

/* xorshift64*. */
static unsigned next_random(void) {
    turn.state ^= turn.state >> 12;
    turn.state ^= turn.state << 25;
    turn.state ^= turn.state >> 27;
    return (unsigned)((turn.state * 0x2545f4914f6cdd1du) >> 32);
}

static unsigned choose(unsigned bits) {
    if (turn.order == SIMT_ASCENDING) return (unsigned)__builtin_ctz(bits);
    if (turn.order == SIMT_DESCENDING) return 31u - (unsigned)__builtin_clz(bits);
    unsigned r = next_random() & 31u;
    unsigned rotated = bits >> r | bits << (32 - r) % 32;
    return ((unsigned)__builtin_ctz(rotated) + r) & 31u;
}

/* Makes the next ready thread the current one.  Returns false when no thread is ready. */
static bool next_thread(void) {
    SimtWarp *warp = simt_here.warp;
    if (!warp->ready || turn.order == SIMT_RANDOM) {
        if (!block.ready_warps) return false;
        warp = simt_here.warp = &block.warp[choose(block.ready_warps)];
    }
    unsigned lane = simt_here.lane = choose(warp->ready);
    /* Copied number by number: for a struct the address sanitizer calls memcpy, at every switch. */
    threadIdx.x = warp->index[lane].x;
    threadIdx.y = warp->index[lane].y;
    threadIdx.z = warp->index[lane].z;
    return true;
}

static void not_ready(SimtWarp *warp, unsigned lane) {
    warp->ready &= ~(1u << lane);
    if (!warp->ready) block.ready_warps &= ~(1u << warp->number);
}

static void thread_loop(void);

static SimtFiber *idle_fiber(void) {
    SimtFiber *fiber = fibers.parked;
    if (fiber) {
        fibers.parked = fiber->next;
    } else if ((fiber = fiber_create(thread_loop))) {
        fibers.all[fibers.count++] = fiber;
    }
    return fiber;
}

static void park(SimtFiber *fiber) {
    fiber->next = fibers.parked;
    fibers.parked = fiber;
}

/* Continues the current thread, on its own fiber or an idle one. */
static void resume(void) {
    SimtWarp *warp = simt_here.warp;
    SimtFiber *fiber = warp->fiber[simt_here.lane], *from = fibers.running;
    if (!fiber) {
        fiber = warp->fiber[simt_here.lane] = idle_fiber();
        if (!fiber) simt_fail((SimtSite){NULL, 0}, "no memory for another stack");
    }
    if (fiber == from) return;
    fibers.running = fiber;
    fiber_switch(from, fiber);
}

static void to_host(void) {
    SimtFiber *from = fibers.running;
    fibers.running = &fibers.host;
    fiber_switch(from, &fibers.host);
}

/* The body of every fiber: runs the current thread to its end, then the next one if that has not
 * been started.  When the next one has a fiber of its own, this fiber parks itself. */
static void thread_loop(void) {
    for (;;) {
        block.body(block.arguments);
        SimtWarp *warp = simt_here.warp;
        SimtFiber *fiber = fibers.running;
        warp->fiber[simt_here.lane] = NULL;
        warp->done |= 1u << simt_here.lane;
        block.left++;
        not_ready(warp, simt_here.lane);
        if (next_thread()) {
            SimtFiber **next = &simt_here.warp->fiber[simt_here.lane];
            if (!*next) {
                *next = fiber;
                continue;
            }
            park(fiber);
            resume();
        } else {
            park(fiber);
            if (block.left < block.threads) simt_diagnose(block.warp, block.warps);
            to_host();
        }
    }
}

/* Switches from the current thread, which waits, to the next ready one.  That may be the same
 * thread, if its own arrival has released it. */
static void wait_turn(void) {
    SimtWarp *warp = simt_here.warp;
    unsigned lane = simt_here.lane;
    if (!next_thread()) {
        simt_here.warp = warp;
        simt_here.lane = lane;
        simt_diagnose(block.warp, block.warps);
        to_host();
    }
    resume();
}

void simt_give_up(void) {
    to_host();
    abort(); /* nothing switches back to a dropped fiber */
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

uint64_t simt_warp_operation(unsigned mask, SimtResolve *resolve, uint64_t value, unsigned source,
                             SimtSite site) {
    SimtWarp *warp = simt_here.warp;
    unsigned lane = simt_here.lane, bit = 1u << lane;
    if (!(mask & bit)) simt_fail(site, "the mask %08x does not name the calling lane", mask);
    warp->mask[lane] = mask;
    warp->resolve[lane] = resolve;
    warp->value[lane] = value;
    warp->source[lane] = source;
    warp->site[lane] = site;
    warp->arrived |= bit;
    bool complete = (warp->arrived & mask) == mask;
    for (unsigned i = 0; complete && i < SIMT_LANES; i++)
        if (mask >> i & 1u) complete = warp->mask[i] == mask && warp->resolve[i] == resolve;
    if (complete) {
        resolve(warp, mask);
        warp->arrived &= ~mask;
        warp->ready |= mask;
        block.ready_warps |= 1u << warp->number;
    } else {
        not_ready(warp, lane);
    }
    wait_turn();
    return warp->result[lane];
}

static void release_block(void) {
    if (simt_race) simt_race->barrier();
    simt_vote = block.predicate;
    block.waiting = 0;
    block.predicate = false;
    for (unsigned i = 0; i < block.warps; i++) block.warp[i].ready = block.warp[i].present;
    block.ready_warps = ~0u >> (SIMT_WARPS - block.warps);
}

void simt_block_barrier(bool predicate, SimtSite site) {
    SimtWarp *warp = simt_here.warp;
    if (block.waiting == 0) {
        block.barrier = site;
        block.first_waiting = threadIdx;
    } else if (site.line != block.barrier.line ||
               (site.file != block.barrier.file && strcmp(site.file, block.barrier.file) != 0)) {
        SimtIndex first = block.first_waiting;
        simt_fail(site, "__syncthreads, while thread (%u,%u,%u) waits in another one at %s:%d",
                  first.x, first.y, first.z, block.barrier.file, block.barrier.line);
    }
    warp->site[simt_here.lane] = site;
    warp->mask[simt_here.lane] = 0;
    block.waiting++;
    block.predicate |= predicate;
    if (block.waiting == block.threads)
        release_block();
    else
        not_ready(warp, simt_here.lane);
    wait_turn();
}

bool simt_on_stack(const void *memory) {
    const SimtFiber *fiber = fibers.running;
    return (uintptr_t)memory - (uintptr_t)fiber->stack < fiber->stack_bytes;
}

void simt_block_shape(SimtSize size) {
    block.threads = size.x * size.y * size.z;
    block.warps = (block.threads + SIMT_LANES - 1) / SIMT_LANES;
    memset(block.warp, 0, sizeof block.warp);
    for (unsigned i = 0; i < block.threads; i++) {
        SimtWarp *warp = &block.warp[i / SIMT_LANES];
        warp->number = i / SIMT_LANES;
        warp->present |= 1u << i % SIMT_LANES;
        warp->index[i % SIMT_LANES] =
            (SimtIndex){i % size.x, i / size.x % size.y, i / size.x / size.y};
    }
}

bool simt_block_run(SimtRun *body, const void *arguments) {
    block.body = body;
    block.arguments = arguments;
    block.left = block.waiting = 0;
    block.predicate = false;
    for (unsigned i = 0; i < block.warps; i++) {
        block.warp[i].ready = block.warp[i].present;
        block.warp[i].done = block.warp[i].arrived = 0;
    }
    block.ready_warps = ~0u >> (SIMT_WARPS - block.warps);
    simt_here.warp = &block.warp[0];
    next_thread();
    SimtFiber *first = idle_fiber();
    if (!first) {
        simt_note_error("no memory for a kernel's stack");
        return false;
    }
    simt_here.warp->fiber[simt_here.lane] = first;
    fibers.host = (SimtFiber){0};
    fibers.running = &fibers.host;
    resume();
    if (block.left == block.threads) return true;
    /* The block was given up, so every fiber may be in the middle of a thread: all start over. */
    fibers.parked = NULL;
    for (int i = 0; i < fibers.count; i++) {
        fiber_reset(fibers.all[i], thread_loop);
        park(fibers.all[i]);
    }
    for (unsigned i = 0; i < block.warps; i++)
        memset(block.warp[i].fiber, 0, sizeof block.warp[i].fiber);
    return false;
}
