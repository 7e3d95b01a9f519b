/* What the inline functions of the SIMT layer share with its engine (engine.c, warp.c, shared.c).
 * Kernels do not use these names. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control.h"
#ifdef __cplusplus
#include "numbers.h"
typedef uint3 SimtIndex;
typedef dim3 SimtSize;
extern "C" {
#else
typedef struct {
    unsigned x, y, z;
} SimtIndex;
typedef SimtIndex SimtSize;
#endif

/* All objects of the layer are linked into one program or one shared library. */
#define SIMT_HIDDEN __attribute__((visibility("hidden")))
/* Variables of the layer that kernels read all the time: in a section of their own, so that the
 * race checker can tell them from the kernels' memory. */
#define SIMT_OWN __attribute__((visibility("hidden"), section("simt_own")))

enum { SIMT_LANES = 32, SIMT_WARPS = 32, SIMT_THREADS = SIMT_LANES * SIMT_WARPS };

/* A line of a kernel, for messages. */
typedef struct {
    const char *file;
    int line;
} SimtSite;
/* The last parameters of a function that kernels call: the compiler fills in the line of the call.
 */
#define SIMT_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

/* ---- the thread that runs now ---- */

SIMT_OWN extern SimtIndex threadIdx, blockIdx;
SIMT_OWN extern SimtSize blockDim, gridDim;

struct SimtFiber;
typedef struct SimtWarp SimtWarp;
/* Does a warp-wide operation for all lanes of the mask; called when the last of them has arrived.
 */
typedef void SimtResolve(SimtWarp *warp, unsigned mask);

/* Lanes are bits: `present` those the block has, `ready` those that can run, `done` those that have
 * left the kernel, `arrived` those that wait in a warp-wide operation. */
struct SimtWarp {
    unsigned present, ready, done, arrived;
    unsigned number;                     /* in the block */
    struct SimtFiber *fiber[SIMT_LANES]; /* NULL: not started, or done */
    SimtIndex index[SIMT_LANES];
    SimtSite site[SIMT_LANES]; /* where the lane waits */
    /* A warp-wide operation: who takes part, what it is, what each lane brings and gets. */
    unsigned mask[SIMT_LANES];
    SimtResolve *resolve[SIMT_LANES];
    uint64_t value[SIMT_LANES], result[SIMT_LANES];
    unsigned source[SIMT_LANES];
};

typedef struct {
    SimtWarp *warp;
    unsigned lane;
} SimtHere;
SIMT_OWN extern SimtHere simt_here;

static inline unsigned simt_thread(void) {
    return simt_here.warp->number * SIMT_LANES + simt_here.lane;
}

/* ---- waiting ---- */

/* Returns when every thread of the block has called it from the same site. */
SIMT_HIDDEN void simt_block_barrier(bool predicate, SimtSite site);
SIMT_OWN extern bool simt_vote; /* was any thread's predicate true at the barrier just passed? */

/* Waits until every lane of `mask` has called it with the same mask and resolve; the last one calls
 * resolve.  Returns the lane's warp->result. */
SIMT_HIDDEN uint64_t simt_warp_operation(unsigned mask, SimtResolve *resolve, uint64_t value,
                                         unsigned source, SimtSite site);

/* Notes an error of the current thread and gives up the launch; does not return. */
SIMT_HIDDEN __attribute__((noreturn, format(printf, 2, 3))) void simt_fail(SimtSite site,
                                                                           const char *format, ...);

/* ---- launches ---- */

typedef struct {
    const char *kernel;
    SimtSite site;
    const void *function; /* the kernel's address: SHARED_LIMIT is kept by it */
    SimtSize grid, block;
    size_t shared_bytes;
} SimtLaunch;

/* Runs body(arguments) for every thread of the grid. */
SIMT_HIDDEN void simt_run(const SimtLaunch *launch, SimtRun *body, const void *arguments);
/* Runs run(closure), or lets the recorder keep it. */
SIMT_HIDDEN void simt_submit(void *stream, SimtRun *run, const void *closure, size_t bytes);
/* Notes a launch's error unless there is an earlier one. */
SIMT_HIDDEN __attribute__((format(printf, 1, 2))) void simt_note_error(const char *format, ...);

/* ---- shared memory ---- */

/* The maximum of a block's shared memory on compute capability 9.0; 8.0 has 163 KiB, 8.9 has 99. */
enum { SIMT_SHARED_LARGEST = 227 << 10 };

typedef struct { /* one SHARED of one kernel; `memory` is valid only in launch `launch` */
    uint64_t launch;
    void *memory;
} SimtShared;
SIMT_OWN extern uint64_t simt_launch_number;
SIMT_OWN extern void *simt_dynamic_shared;
SIMT_HIDDEN void *simt_shared_place(SimtShared *shared, size_t bytes, const char *name,
                                    SimtSite site);
SIMT_HIDDEN void simt_shared_limit(const void *function, const char *kernel, size_t bytes,
                                   SimtSite site);

static inline void *simt_shared(SimtShared *shared, size_t bytes, const char *name, SimtSite site) {
    if (shared->launch == simt_launch_number) return shared->memory;
    return simt_shared_place(shared, bytes, name, site);
}

/* The engine calls the first of these before a launch (it returns false when the launch asks for
 * too much), the last one after each block (it returns false, with an error, when warps of a group
 * issued different products, which a GPU leaves undefined), the others before each block. */
SIMT_HIDDEN bool simt_shared_open(const SimtLaunch *launch);
SIMT_HIDDEN void simt_shared_poison(void);
SIMT_HIDDEN void simt_copies_drop(void);
SIMT_HIDDEN void simt_wgmma_drop(void);
SIMT_HIDDEN bool simt_wgmma_agree(void);

/* ---- asynchronous copies, fragments ---- */

SIMT_HIDDEN void simt_copy_async(void *shared, const void *global, size_t bytes, bool ok,
                                 SimtSite site);
SIMT_HIDDEN void simt_copy_commit(void);
SIMT_HIDDEN void simt_copy_wait(int pending);

typedef struct {
    float *d;
    const unsigned *a, *b;
} SimtProduct;
typedef struct {
    unsigned *r;
    const void *row;
    unsigned matrices;
    bool transposed;
} SimtMatrices;
typedef struct {
    float *d;          /* [n][4] */
    const unsigned *a; /* [4]; NULL: a_matrix */
    uint64_t a_matrix, b_matrix;
    int n;
} SimtGroupProduct;
/* shared.c: return the offset of an address in the block's shared memory, and the address at an
 * offset. */
SIMT_HIDDEN unsigned simt_shared_address(const void *memory);
SIMT_HIDDEN const void *simt_shared_at(unsigned address);
/* copies.c: the first is async_proxy_fence; the second returns true if some thread has waited for
 * copies and has not called the fence since. */
SIMT_HIDDEN void simt_async_fence(void);
SIMT_HIDDEN bool simt_unfenced_copies(void);
/* warp.c, wgmma.c */
SIMT_HIDDEN SimtResolve simt_resolve_sync, simt_resolve_shuffle, simt_resolve_any;
SIMT_HIDDEN SimtResolve simt_resolve_mma_bf16, simt_resolve_mma_tf32, simt_resolve_ldmatrix;
SIMT_HIDDEN SimtResolve simt_resolve_wgmma, simt_resolve_wgmma_begin, simt_resolve_wgmma_end;

#ifdef __cplusplus
}
#endif
