/* The counting allocator, and what happens when memory runs out. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../../ref/blocks/models.h"
#include "../../ref/stage.h"
#include "../test.h"

static void bytes_are_counted_by_role(void) {
    MemCount counted = {0};
    float *a = mem_alloc(&counted, MEM_PARAMETERS, 1001, sizeof *a);
    double *b = mem_alloc(&counted, MEM_STATE, 77, sizeof *b);
    if (!CHECK(a && b, "%s", error_message())) return;
    CHECK((uintptr_t)a % 64 == 0 && (uintptr_t)b % 64 == 0, "not aligned to 64 bytes");
    for (int i = 0; i < 1001; i++) CHECK(a[i] == 0, "a[%d] is %g", i, (double)a[i]);
    CHECK(counted.current[MEM_PARAMETERS] == 4004 && counted.current[MEM_STATE] == 616 &&
              counted.total_current == 4620,
          "%zu, %zu, %zu bytes", counted.current[MEM_PARAMETERS], counted.current[MEM_STATE],
          counted.total_current);
    mem_free(&counted, a);
    float *c = mem_alloc(&counted, MEM_PARAMETERS, 10, sizeof *c);
    CHECK(counted.current[MEM_PARAMETERS] == 40 && counted.peak[MEM_PARAMETERS] == 4004,
          "now %zu, peak %zu", counted.current[MEM_PARAMETERS], counted.peak[MEM_PARAMETERS]);
    CHECK(counted.total_current == 656 && counted.total_peak == 4620, "now %zu, peak %zu",
          counted.total_current, counted.total_peak);
    mem_free(&counted, b);
    mem_free(&counted, c);
    mem_free(&counted, NULL);
    CHECK(counted.total_current == 0, "%zu bytes are left", counted.total_current);
}

static void nothing_is_a_valid_pointer(void) {
    MemCount counted = {0};
    void *nothing = mem_alloc(&counted, MEM_CACHE, 0, 8);
    CHECK(nothing && counted.total_current == 0 && counted.total_peak == 0, "%zu bytes",
          counted.total_current);
    mem_free(&counted, nothing);
}

static void absurd_sizes_are_refused(void) {
    static const struct {
        size_t count, size;
    } rows[] = {{SIZE_MAX, 8}, {SIZE_MAX / 8 + 1, 8}, {SIZE_MAX, 1}, {(size_t)1 << 60, 4}};
    size_t count = sizeof rows / sizeof *rows;
    if (TEST_SANITIZED) count--; /* a sanitizer ends the program when the system has not enough */
    for (size_t i = 0; i < count; i++) {
        MemCount counted = {0};
        CHECK(!mem_alloc(&counted, MEM_GRADIENTS, rows[i].count, rows[i].size), "row %zu", i);
        CHECK(strstr(error_message(), "gradients"), "\"%s\"", error_message());
        CHECK(counted.total_current == 0 && counted.total_peak == 0, "counted all the same");
    }
}

/* Returns the bytes of address space in use, or 0 if the system does not say. */
static size_t address_space(void) {
    size_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file) return 0;
    if (fscanf(file, "%zu", &pages) != 1) pages = 0;
    fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* Limits how many bytes the process can still allocate; 0: no limit. */
static void limit_growth(size_t bytes) {
    struct rlimit limit;
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = bytes ? address_space() + bytes : limit.rlim_max;
    setrlimit(RLIMIT_AS, &limit);
}

/* There is memory for half of the parameters; then for the parameters, but not for gradients and
 * state. */
static void running_out_is_an_error(void) {
    if (TEST_SANITIZED) SKIP("a sanitizer needs all of the address space");
    if (address_space() == 0) SKIP("no /proc/self/statm");
    Model *m = model_create("gpt:layers=4,width=320,heads=4,context=8,vocabulary=1000");
    if (!CHECK(m, "%s", error_message())) return;
    size_t bytes = m->param_count * sizeof(real);
    StageSettings settings = {.batch = 1, .optimizer = optimizer_defaults(OPTIMIZER_ADAM)};
    limit_growth(bytes / 2);
    Stage *none = stage_ref_create(m, settings);
    limit_growth(0);
    CHECK(!none && strstr(error_message(), "memory: no "), "\"%s\"", error_message());
    if (none) stage_free(none);

    Stage *stage = stage_ref_create(m, settings);
    bool *active = malloc((size_t)m->blocks * sizeof *active);
    if (CHECK(stage && active, "%s", error_message())) {
        for (int b = 0; b < m->blocks; b++) active[b] = true;
        limit_growth(bytes);
        int result = stage_activate(stage, active);
        limit_growth(0);
        CHECK(result == -1 && strstr(error_message(), "memory: no "), "\"%s\"", error_message());
        stage_free(stage);
    }
    free(active);
    model_free(m);
}

void test_alloc(void) {
    RUN(bytes_are_counted_by_role);
    RUN(nothing_is_a_valid_pointer);
    RUN(absurd_sizes_are_refused);
    RUN(running_out_is_an_error);
}
