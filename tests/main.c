/* Runs the suites: `tests [OPTION]... [NAME...]` runs those whose name contains one of the NAMEs,
 * or equals it where it is written =NAME (all by default). The exit status is 1 when a case failed
 * or none ran.
 *
 *   --list     prints the names of the suites, and runs none
 *   -v         prints each case, when it begins and when it ends
 *   --after N  leaves out the first N cases, so that a new process can go on behind a case that
 *              ended another; a number, since cases of a suite may have the same name
 *   --each S   ends the process, by SIGALRM, when a case takes more than S seconds */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../ref/base/clock.h"
#include "../ref/base/real.h"
#include "test.h"

/* Other programs define another list and another name. */
#ifndef TEST_SUITES
#define TEST_SUITES "suites.h"
#define TEST_PROGRAM REAL_NAME
#endif

#define SUITE(name) void test_##name(void);
#include TEST_SUITES
#undef SUITE

static struct {
    const char *suite;
    int passed, failed, skipped;
    int checks_failed;
    bool skip, verbose, list;
    char reason[256];
    double started; /* of the running case */
    int left_out, after;
    unsigned limit; /* seconds of a case; 0: as many as it takes */
} now;

static void finish_case(const char *name) {
    if (now.checks_failed) {
        now.failed++;
        printf("FAIL %s.%s\n", now.suite, name);
    } else if (now.skip) {
        now.skipped++;
        printf("skip %s.%s: %s\n", now.suite, name, now.reason);
    } else {
        now.passed++;
        if (now.verbose)
            printf("ok   %s.%s (%.2f s)\n", now.suite, name, clock_seconds() - now.started);
    }
}

/* Returns false if the case is left out. */
static bool start_case(const char *name) {
    if (now.left_out < now.after) {
        now.left_out++;
        return false;
    }
    now.checks_failed = 0;
    now.skip = false;
    now.started = clock_seconds();
    if (now.verbose) printf("case %s.%s\n", now.suite, name);
    alarm(now.limit);
    return true;
}

void test_run(const char *name, void (*function)(void)) {
    if (!start_case(name)) return;
    function();
    finish_case(name);
}

void test_run_row(const char *name, void (*function)(const void *row), const void *row) {
    if (!start_case(name)) return;
    function(row);
    finish_case(name);
}

void test_fail(const char *file, int line, const char *condition, const char *format, ...) {
    enum { SHOWN = 5 }; /* failures shown for one case; more would say the same */
    if (now.checks_failed++ >= SHOWN) return;
    va_list arguments;
    va_start(arguments, format);
    printf("%s:%d: %s: ", file, line, condition);
    vprintf(format, arguments);
    printf("\n");
    va_end(arguments);
}

void test_skip(const char *format, ...) {
    now.skip = true;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(now.reason, sizeof now.reason, format, arguments);
    va_end(arguments);
}

void test_note(const char *format, ...) {
    if (!now.verbose) return;
    va_list arguments;
    va_start(arguments, format);
    printf("     ");
    vprintf(format, arguments);
    printf("\n");
    va_end(arguments);
}

static bool wanted(const char *suite, char **names, int count) {
    for (int i = 0; i < count; i++)
        if (*names[i] == '=' ? !strcmp(suite, names[i] + 1) : strstr(suite, names[i]) != NULL)
            return true;
    return count == 0;
}

/* Returns the number of the first argument that is no option. */
static int read_options(int argc, char **argv) {
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i++) {
        if (!strcmp(argv[i], "-v")) {
            now.verbose = true;
        } else if (!strcmp(argv[i], "--list")) {
            now.list = true;
        } else if (!strcmp(argv[i], "--after") && i + 1 < argc) {
            now.after = atoi(argv[++i]);
        } else if (!strcmp(argv[i], "--each") && i + 1 < argc) {
            now.limit = (unsigned)atoi(argv[++i]);
        } else {
            fprintf(stderr, "tests: unknown \"%s\"; see the head of tests/main.c\n", argv[i]);
            exit(2);
        }
    }
    return i;
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    int first = read_options(argc, argv);
    static const struct {
        const char *name;
        void (*run)(void);
    } suites[] = {
#define SUITE(name) {#name, test_##name},
#include TEST_SUITES
#undef SUITE
    };
    for (size_t i = 0; i < sizeof suites / sizeof *suites; i++) {
        if (!wanted(suites[i].name, argv + first, argc - first)) continue;
        if (now.list) {
            printf("%s\n", suites[i].name);
            continue;
        }
        int before = now.passed + now.failed + now.skipped;
        now.suite = suites[i].name;
        double start = clock_seconds();
        suites[i].run();
        printf("%-6s %-17s %4d cases %8.2f s\n", TEST_PROGRAM, now.suite,
               now.passed + now.failed + now.skipped - before, clock_seconds() - start);
    }
    if (now.list) return 0;
    printf("%s: %d passed, %d failed, %d skipped\n", TEST_PROGRAM, now.passed, now.failed,
           now.skipped);
    return now.failed || now.left_out + now.passed + now.skipped == 0;
}
