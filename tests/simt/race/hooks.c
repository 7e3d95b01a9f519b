/* What code compiled with -fsanitize=thread calls, under the names of the sanitizer's library.  All
 * fibers run on one thread of the host, so the one atomic operation can be a plain one. */
#include "race.h"

#define HERE ((RacePlace)(uintptr_t)__builtin_return_address(0))
#define ACCESS(name, bytes, kind) \
    void name(void *memory);      \
    void name(void *memory) { race_access(memory, bytes, kind, HERE); }
#define ACCESSES(bytes)                                    \
    ACCESS(__tsan_read##bytes, bytes, RACE_READ)           \
    ACCESS(__tsan_write##bytes, bytes, RACE_WRITE)         \
    ACCESS(__tsan_unaligned_read##bytes, bytes, RACE_READ) \
    ACCESS(__tsan_unaligned_write##bytes, bytes, RACE_WRITE)
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

void __tsan_read_range(void *memory, size_t bytes);
void __tsan_read_range(void *memory, size_t bytes) { race_access(memory, bytes, RACE_READ, HERE); }
void __tsan_write_range(void *memory, size_t bytes);
void __tsan_write_range(void *memory, size_t bytes) {
    race_access(memory, bytes, RACE_WRITE, HERE);
}

void __tsan_init(void);
void __tsan_init(void) { simt_race = &race_checker; }
void __tsan_func_entry(void *caller);
void __tsan_func_entry(void *caller) { (void)caller; }
void __tsan_func_exit(void);
void __tsan_func_exit(void) {}
uint32_t __tsan_atomic32_fetch_add(volatile uint32_t *memory, uint32_t value, int order);
uint32_t __tsan_atomic32_fetch_add(volatile uint32_t *memory, uint32_t value, int order) {
    (void)order;
    race_access((const void *)memory, sizeof *memory, RACE_ATOMIC, HERE);
    uint32_t old = *memory;
    *memory = old + value;
    return old;
}

/* What code compiled with -fsanitize=alignment calls for an address that the type's alignment
 * forbids, which is an error on a GPU.  The compiler passes a description of the place. */
typedef struct {
    const char *file;
    uint32_t line, column;
    const void *type;
    unsigned char log_alignment, kind;
} Mismatch;
void __ubsan_handle_type_mismatch_v1(const Mismatch *at, uintptr_t address);
void __ubsan_handle_type_mismatch_v1(const Mismatch *at, uintptr_t address) {
    if (!race_running()) return;
    unsigned alignment = 1u << at->log_alignment;
    simt_fail((SimtSite){at->file, (int)at->line},
              "misaligned access: the address is %u more than a multiple of %u",
              (unsigned)(address % alignment), alignment);
}
