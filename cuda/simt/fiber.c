#include "fiber.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sanitizer.h"

/* Sanitizers surround each variable with spare bytes. */
#if SIMT_ADDRESS_SANITIZER
enum { STACK_BYTES = 512 << 10 };
#else
enum { STACK_BYTES = 128 << 10 };
#endif

#if !defined(__x86_64__)
#error "cuda/simt/fiber.c knows how to switch stacks on x86-64 only"
#endif

/* System V ABI: rbx, rbp, r12 to r15 belong to the caller, everything else is lost in a call
 * anyway.  The floating-point control words are the same in every fiber. */
void simt_switch_stack(void **save, void *load) __attribute__((visibility("hidden")));
__asm__(
    ".text\n"
    ".p2align 4\n"
    ".hidden simt_switch_stack\n"
    ".globl simt_switch_stack\n"
    ".type simt_switch_stack, @function\n"
    "simt_switch_stack:\n"
    "    pushq %rbp\n"
    "    pushq %rbx\n"
    "    pushq %r12\n"
    "    pushq %r13\n"
    "    pushq %r14\n"
    "    pushq %r15\n"
    "    movq %rsp, (%rdi)\n"
    "    movq %rsi, %rsp\n"
    "    popq %r15\n"
    "    popq %r14\n"
    "    popq %r13\n"
    "    popq %r12\n"
    "    popq %rbx\n"
    "    popq %rbp\n"
    "    ret\n"
    ".size simt_switch_stack, .-simt_switch_stack\n");

enum { SAVED_REGISTERS = 6 };

#if SIMT_ADDRESS_SANITIZER
static SimtFiber *left; /* the fiber just left, for its stack's bounds if it is the host's */

static void before_switch(SimtFiber *from, SimtFiber *to) {
    left = from;
    __sanitizer_start_switch_fiber(&from->sanitizer, to->stack, to->stack_bytes);
}
static void after_switch(SimtFiber *now) {
    const void *bottom;
    size_t bytes;
    __sanitizer_finish_switch_fiber(now ? now->sanitizer : NULL, &bottom, &bytes);
    if (left->stack == NULL || left->stack_bytes == 0) {
        left->stack = (char *)(uintptr_t)bottom;
        left->stack_bytes = bytes;
    }
}
#else
static void before_switch(SimtFiber *from, SimtFiber *to) { (void)from, (void)to; }
static void after_switch(SimtFiber *now) { (void)now; }
#endif

static void (*entered)(void);

static void enter(void) {
    after_switch(NULL);
    entered();
    abort();
}

void fiber_reset(SimtFiber *fiber, void (*body)(void)) {
    SIMT_UNPOISON(fiber->stack, fiber->stack_bytes);
    entered = body;
    /* Stacks begin at different offsets in their pages: where they would all use the same sets of
     * the cache, every switch would miss it. */
    uintptr_t top = (uintptr_t)fiber->stack + fiber->stack_bytes;
    top -= (top / STACK_BYTES * 5 % 32) * 128;
    void **frame = (void **)(top & ~(uintptr_t)15);
    *--frame = NULL; /* where enter() would return to: keeps the stack aligned as after a call */
    *--frame = (void *)(uintptr_t)enter;
    for (int i = 0; i < SAVED_REGISTERS; i++) *--frame = NULL;
    fiber->stack_pointer = frame;
    fiber->sanitizer = NULL;
}

SimtFiber *fiber_create(void (*body)(void)) {
    SimtFiber *fiber = calloc(1, sizeof *fiber);
    if (!fiber) return NULL;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = STACK_BYTES + page;
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        free(fiber);
        return NULL;
    }
    mprotect(memory, page, PROT_NONE); /* a stack that overflows stops the program */
    fiber->stack = memory + page;
    fiber->stack_bytes = STACK_BYTES;
    fiber_reset(fiber, body);
    return fiber;
}

void fiber_switch(SimtFiber *from, SimtFiber *to) {
    before_switch(from, to);
    simt_switch_stack(&from->stack_pointer, to->stack_pointer);
    after_switch(from);
}
