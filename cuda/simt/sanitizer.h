/* Calls of AddressSanitizer: which memory must not be accessed, and when the stack changes. */
#pragma once

#ifdef __SANITIZE_ADDRESS__
#define SIMT_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SIMT_ADDRESS_SANITIZER 1
#endif
#endif

#if SIMT_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define SIMT_POISON(memory, bytes) __asan_poison_memory_region(memory, bytes)
#define SIMT_UNPOISON(memory, bytes) __asan_unpoison_memory_region(memory, bytes)
#else
#define SIMT_ADDRESS_SANITIZER 0
#define SIMT_POISON(memory, bytes) ((void)(memory), (void)(bytes))
#define SIMT_UNPOISON(memory, bytes) ((void)(memory), (void)(bytes))
#endif
