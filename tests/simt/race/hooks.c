/* What code compiled with -fsanitize=thread calls, under the names of the sanitizer's library.  All
 * fibers run on one thread of the host, so atomic operations can be plain ones. */
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
#define ATOMIC(memory) race_access((const void *)(memory), sizeof *(memory), RACE_ATOMIC, HERE)
#define FETCH(bits, T, name, update)                                         \
    T __tsan_atomic##bits##_##name(volatile T *memory, T value, int order);  \
    T __tsan_atomic##bits##_##name(volatile T *memory, T value, int order) { \
        (void)order;                                                         \
        ATOMIC(memory);                                                      \
        T old = *memory;                                                     \
        *memory = (T)(update);                                               \
        return old;                                                          \
    }
#define COMPARE(bits, T, name)                                                                  \
    int __tsan_atomic##bits##_compare_exchange_##name(volatile T *memory, T *expected, T value, \
                                                      int order, int on_failure);               \
    int __tsan_atomic##bits##_compare_exchange_##name(volatile T *memory, T *expected, T value, \
                                                      int order, int on_failure) {              \
        (void)order, (void)on_failure;                                                          \
        ATOMIC(memory);                                                                         \
        T old = *memory;                                                                        \
        bool same = old == *expected;                                                           \
        if (same)                                                                               \
            *memory = value;                                                                    \
        else                                                                                    \
            *expected = old;                                                                    \
        return same;                                                                            \
    }
#define ATOMICS(bits, T)                                                                  \
    void __tsan_atomic##bits##_store(volatile T *memory, T value, int order);             \
    void __tsan_atomic##bits##_store(volatile T *memory, T value, int order) {            \
        (void)order;                                                                      \
        ATOMIC(memory);                                                                   \
        *memory = value;                                                                  \
    }                                                                                     \
    FETCH(bits, T, exchange, value)                                                       \
    FETCH(bits, T, fetch_add, old + value)                                                \
    FETCH(bits, T, fetch_sub, old - value)                                                \
    FETCH(bits, T, fetch_and, old &value)                                                 \
    FETCH(bits, T, fetch_or, old | value)                                                 \
    FETCH(bits, T, fetch_xor, old ^ value)                                                \
    COMPARE(bits, T, strong)                                                              \
    COMPARE(bits, T, weak)                                                                \
    T __tsan_atomic##bits##_load(const volatile T *memory, int order);                    \
    T __tsan_atomic##bits##_load(const volatile T *memory, int order) {                   \
        (void)order;                                                                      \
        ATOMIC(memory);                                                                   \
        return *memory;                                                                   \
    }                                                                                     \
    T __tsan_atomic##bits##_compare_exchange_val(volatile T *memory, T expected, T value, \
                                                 int order, int on_failure);              \
    T __tsan_atomic##bits##_compare_exchange_val(volatile T *memory, T expected, T value, \
                                                 int order, int on_failure) {             \
        (void)order, (void)on_failure;                                                    \
        ATOMIC(memory);                                                                   \
        T old = *memory;                                                                  \
        if (old == expected) *memory = value;                                             \
        return old;                                                                       \
    }
ATOMICS(32, uint32_t)
ATOMICS(64, uint64_t)

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
