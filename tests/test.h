/* The test harness.  A suite is a function `void test_NAME(void)` listed in suites.h; it RUNs
 * cases; a case is a function that CHECKs.  A case passes when none of its checks failed, and is
 * counted as skipped, with its reason, when it says SKIP. */
#pragma once

#include <math.h>

#include "../ref/base/error.h" /* BCD_PRINTF */

#define RUN(function) test_run(#function, function)
/* Runs a case that takes its table row as an argument. */
#define RUN_ROW(name, function, row) test_run_row(name, function, row)

/* CHECK(condition, "printf format", ...): reports file, line, condition and the message, and fails
 * the case; the case goes on.  Evaluates to the condition. Write comparisons so that NaN fails. */
#define CHECK(condition, ...) \
    ((condition) ? 1 : (test_fail(__FILE__, __LINE__, #condition, __VA_ARGS__), 0))

/* The larger of two errors.  A NaN stays, whichever it is, and fails every comparison; fmax would
 * drop it. */
static inline double worse(double a, double b) { return isnan(a) || a >= b ? a : b; }

/* Leaves the case, counted as skipped. */
#define SKIP(...)               \
    do {                        \
        test_skip(__VA_ARGS__); \
        return;                 \
    } while (0)

/* True if a sanitizer watches, which is slow. Cases that another case covers as well are then left
 * out, by SKIP. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TEST_SANITIZED 1
#endif
#endif
#ifndef TEST_SANITIZED
#define TEST_SANITIZED 0
#endif
/* True if races between threads are looked for: what has no threads is left out. */
#if defined(__SANITIZE_THREAD__)
#define TEST_THREADS 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TEST_THREADS 1
#endif
#endif
#ifndef TEST_THREADS
#define TEST_THREADS 0
#endif

void test_run(const char *name, void (*function)(void));
void test_run_row(const char *name, void (*function)(const void *row), const void *row);
void test_fail(const char *file, int line, const char *condition, const char *format, ...)
    BCD_PRINTF(4, 5);
void test_skip(const char *format, ...) BCD_PRINTF(1, 2);
/* Prints a line of detail, with -v only. */
void test_note(const char *format, ...) BCD_PRINTF(1, 2);
