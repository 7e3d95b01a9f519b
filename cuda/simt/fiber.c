#include "fiber.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sanitizer.h"

/* Sanitizers surround each variable with spare bytes, so stacks must be larger. */
#if SIMT_ADDRESS_SANITIZER
enum { STACK_BYTES = 512 << 10 };
#else
enum { STACK_BYTES = 128 << 10 };
#endif

/* Pushes the registers that a call must preserve, stores the stack pointer in *save, and undoes the
 * same for the stack `load`.  A call may change all other registers anyway; the floating-point
 * control words are the same in every fiber. */
void simt_switch_stack(void **save, void *load) __attribute__((visibility("hidden")));

#define FUNCTION(body)                     \
    ".text\n"                              \
    ".p2align 4\n"                         \
    ".hidden simt_switch_stack\n"          \
    ".globl simt_switch_stack\n"           \
    ".type simt_switch_stack, %function\n" \
    "simt_switch_stack:\n" body ".size simt_switch_stack, .-simt_switch_stack\n"

#if defined(__x86_64__)
/* System V ABI.  A new stack holds six registers, the address to start at, and a null return
 * address, which also keeps the alignment that a called function expects. */
enum { FRAME_WORDS = 8, ENTRY_WORD = 6 };
__asm__(
    FUNCTION("    pushq %rbp\n"
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
             "    ret\n"));
#elif defined(__aarch64__)
/* AAPCS64.  A new stack holds the same registers, with the address to start at as return address.
 */
enum { FRAME_WORDS = 20, ENTRY_WORD = 11 };
__asm__(
    FUNCTION("    sub sp, sp, #160\n"
             "    stp x19, x20, [sp, #0]\n"
             "    stp x21, x22, [sp, #16]\n"
             "    stp x23, x24, [sp, #32]\n"
             "    stp x25, x26, [sp, #48]\n"
             "    stp x27, x28, [sp, #64]\n"
             "    stp x29, x30, [sp, #80]\n"
             "    stp d8, d9, [sp, #96]\n"
             "    stp d10, d11, [sp, #112]\n"
             "    stp d12, d13, [sp, #128]\n"
             "    stp d14, d15, [sp, #144]\n"
             "    mov x9, sp\n"
             "    str x9, [x0]\n"
             "    mov sp, x1\n"
             "    ldp x19, x20, [sp, #0]\n"
             "    ldp x21, x22, [sp, #16]\n"
             "    ldp x23, x24, [sp, #32]\n"
             "    ldp x25, x26, [sp, #48]\n"
             "    ldp x27, x28, [sp, #64]\n"
             "    ldp x29, x30, [sp, #80]\n"
             "    ldp d8, d9, [sp, #96]\n"
             "    ldp d10, d11, [sp, #112]\n"
             "    ldp d12, d13, [sp, #128]\n"
             "    ldp d14, d15, [sp, #144]\n"
             "    add sp, sp, #160\n"
             "    ret\n"));
#else
#error "cuda/simt/fiber.c switches stacks on x86-64 and AArch64 only"
#endif

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
    /* Stacks begin at different offsets in their pages.  Otherwise all would use the same sets of
     * the cache, and every switch would miss it. */
    uintptr_t top = (uintptr_t)fiber->stack + fiber->stack_bytes;
    top -= (top / STACK_BYTES * 5 % 32) * 128;
    void **frame = (void **)(top & ~(uintptr_t)15) - FRAME_WORDS;
    memset(frame, 0, FRAME_WORDS * sizeof *frame);
    frame[ENTRY_WORD] = (void *)(uintptr_t)enter;
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
