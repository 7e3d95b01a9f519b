/* LAUNCH, SHARED, DYNAMIC_SHARED, SHARED_LIMIT of kernel.cuh on a CPU. */
#pragma once

#include "engine.h"

/* The race checker need not see how a launch reads its own arguments. */
#define SIMT_UNCHECKED __attribute__((no_sanitize("thread")))

/* A kernel with its launch configuration; called with the arguments, it runs or is put aside with a
 * copy of them. */
template <typename... P>
struct SimtKernel {
    SimtLaunch launch;
    void *stream;
    void (*kernel)(P...);

    void operator()(P... arguments) const {
        void (*const function)(P...) = kernel;
        auto thread = [function, arguments...]() SIMT_UNCHECKED { function(arguments...); };
        typedef decltype(thread) Thread;
        struct alignas(16) Closure {
            SimtLaunch launch;
            Thread thread;
            SIMT_UNCHECKED static void one(const void *self) {
                (*static_cast<const Thread *>(self))();
            }
            static void grid(const void *self) {
                const Closure *closure = static_cast<const Closure *>(self);
                simt_run(&closure->launch, one, &closure->thread);
            }
        };
        const Closure closure = {launch, thread};
        simt_submit(stream, Closure::grid, &closure, sizeof closure);
    }
};

template <typename... P>
static inline SimtKernel<P...> simt_kernel(void (*kernel)(P...), const char *name, SimtSite site,
                                           dim3 grid, dim3 block, size_t shared_bytes,
                                           void *stream) {
    const void *function = reinterpret_cast<const void *>(kernel);
    return {{name, site, function, grid, block, shared_bytes}, stream, kernel};
}

#define LAUNCH(kernel, grid, block, shared_bytes, stream, ...)                              \
    simt_kernel(kernel, #kernel, SimtSite{__FILE__, __LINE__}, grid, block, (shared_bytes), \
                (void *)(stream))(__VA_ARGS__)

#define SHARED(type, name, dimensions)                                     \
    typedef type simt_type_##name dimensions;                              \
    static SimtShared simt_shared_##name;                                  \
    simt_type_##name &name = *static_cast<simt_type_##name *>(simt_shared( \
        &simt_shared_##name, sizeof(simt_type_##name), #name, SimtSite{__FILE__, __LINE__}))

#define DYNAMIC_SHARED(type, name) type *const name = static_cast<type *>(simt_dynamic_shared)

template <typename... P>
static inline void simt_limit(void (*kernel)(P...), const char *name, size_t bytes, SimtSite site) {
    simt_shared_limit(reinterpret_cast<const void *>(kernel), name, bytes, site);
}
#define SHARED_LIMIT(kernel, bytes) \
    simt_limit(kernel, #kernel, (size_t)(bytes), SimtSite{__FILE__, __LINE__})
