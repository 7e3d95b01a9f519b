/* Plants every kind of mistake that the SIMT layer looks for. It shows by the order of threads, by
 * NaN, as an error of the launch, by the race checker or by AddressSanitizer. What only a special
 * build can find is skipped in the others. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../cuda/simt/control.h"
#include "../../cuda/simt/sanitizer.h"
#include "../test.h"
#include "kernels.h"

static float *x, *y; /* the arguments of run_planted */

static void memory(void) {
    x = aligned_alloc(16, 256 * sizeof *x);
    y = aligned_alloc(16, 64 * sizeof *y);
    for (int i = 0; i < 256; i++) x[i] = (float)i;
    for (int i = 0; i < 64; i++) y[i] = 0;
}

typedef struct {
    Planted planted;
    const char *name;
    const char *says; /* words of the message; NULL: it shows in the numbers */
    bool races;
} Row;

static const Row order_rows[] = {
    {MISSING_BARRIER, "missing barrier", NULL, true},
    {MISSING_SECOND_BARRIER, "missing second barrier", NULL, true},
    {BLOCKS_WITHOUT_ATOMIC, "blocks without an atomic", NULL, true},
};

/* Another order of threads must give other results. */
static void shown_by_order(const void *argument) {
    const Row *row = argument;
    float first[64];
    bool differs = false;
    for (int order = 0; order < SIMT_ORDERS; order++) {
        memory();
        simt_set_order((SimtOrder)order, 3);
        run_planted(row->planted, y, x);
        CHECK(simt_checks_races() || !simt_error(), "%s", simt_error());
        simt_clear_error();
        if (order == 0) memcpy(first, y, sizeof first);
        differs |= memcmp(first, y, sizeof first) != 0;
        free(x);
        free(y);
    }
    simt_set_order(SIMT_ASCENDING, 0);
    CHECK(differs, "the same bits in every order");
}

static const Row race_rows[] = {
    {MISSING_BARRIER, "race: missing barrier", "race in shared memory", true},
    {MISSING_SECOND_BARRIER, "race: missing second barrier", "race in shared memory", true},
    {MISSING_SYNCWARP, "race: missing __syncwarp", "race in shared memory", true},
    {BLOCKS_WITHOUT_ATOMIC, "race: blocks without an atomic", "race in global memory", true},
};

static const Row alignment_rows[] = {
    {MISALIGNED_LOAD, "misaligned load", "8 more than a multiple of 16", true},
};

static const Row error_rows[] = {
    {LEAVES_BEFORE_BARRIER, "leaves before a barrier", "left the kernel before the __syncthreads",
     false},
    {DIVERGENT_BARRIER, "divergent barriers", "waits in another one at", false},
    {LEAVES_BEFORE_SHUFFLE, "leaves before a shuffle", "which has left the kernel", false},
    {LANE_THAT_IS_NOT, "lane that is not there", "which the block does not have", false},
    {LANE_AT_BARRIER, "lane at a barrier", "which waits in __syncthreads at", false},
    {ANOTHER_OPERATION, "another operation", "which waits in another warp-wide operation", false},
    {MASK_WITHOUT_CALLER, "mask without the caller", "does not name the calling lane", false},
    {MISALIGNED_MATRIX, "misaligned matrix", "ldmatrix from an address", false},
    {MISALIGNED_COPY, "misaligned copy", "copy_async16 from an address", false},
    {PRODUCT_WITHOUT_FENCE, "product without a fence", "no async_proxy_fence has followed", false},
    {PRODUCT_OF_ONE_WARP, "product of one warp", "four warps of a group do not issue alike", false},
};

/* The message names the mistake, the kernel's file and both lines (which may be the same). */
static void shown_by_message(const void *argument) {
    const Row *row = argument;
    if (row->races && !simt_checks_races()) SKIP("needs the build with the race checker");
    if (row->planted == MISALIGNED_LOAD && planted_by_clang())
        SKIP("clang++ does not check copies of whole vectors");
    int lines[2];
    planted_lines(row->planted, lines);
    for (int order = 0; order < SIMT_ORDERS; order++) {
        memory();
        simt_set_order((SimtOrder)order, 5);
        run_planted(row->planted, y, x);
        const char *error = simt_error();
        if (CHECK(error, "no error in order %d", order)) {
            if (order == 0) test_note("%s", error);
            CHECK(strstr(error, row->says), "%s", error);
            for (int i = 0; i < 2; i++) {
                char place[32];
                snprintf(place, sizeof place, "planted.cu:%d", lines[i]);
                /* Divergence is reported at whichever line comes first, and the message names the
                 * other. */
                CHECK(strstr(error, place), "%s is not in: %s", place, error);
            }
        }
        simt_clear_error();
        /* The layer still works. */
        float sum[1], ones[64];
        for (int i = 0; i < 64; i++) ones[i] = 1;
        run_sum(sum, ones, 1, 64, 64);
        CHECK(sum[0] == 64 && !simt_error(), "afterwards: %g", (double)sum[0]);
        free(x);
        free(y);
    }
    simt_set_order(SIMT_ASCENDING, 0);
}

static const Row launch_rows[] = {
    {TOO_MANY_THREADS, "too many threads", "too many threads in a block", false},
    {NO_BLOCKS, "no blocks", "no blocks", false},
    {TOO_MUCH_SHARED, "too much shared memory", "49153 bytes of dynamic shared memory", false},
    {LIMIT_TOO_LARGE, "limit too large", "the most is 232448", false},
    {LIMIT_LOWERED, "limit lowered", "65 bytes of dynamic shared memory, the limit is 64", false},
};

static void refused(const void *argument) {
    const Row *row = argument;
    memory();
    run_planted(row->planted, y, x);
    const char *error = simt_error();
    if (CHECK(error, "no error")) CHECK(strstr(error, row->says), "%s", error);
    for (int i = 0; i < 64; i++) CHECK(y[i] == 0, "y[%d] was written", i);
    simt_clear_error();
    free(x);
    free(y);
}

static const Row nan_rows[] = {
    {MISSING_WAIT, "missing wait for a copy", NULL, false},
    {UNINITIALISED, "uninitialised shared memory", NULL, false},
};

static void shown_by_nan(const void *argument) {
    const Row *row = argument;
    memory();
    run_planted(row->planted, y, x);
    CHECK(!simt_error(), "%s", simt_error());
    CHECK(isnan(y[63]), "y[63] is %g", (double)y[63]);
    CHECK(row->planted == MISSING_WAIT || y[62] == 62, "y[62] is %g", (double)y[62]);
    free(x);
    free(y);
}

static const Row sanitizer_rows[] = {
    {PLANTED_NOTHING, "nothing", NULL, false},
    {STATIC_OVERRUN, "beyond static shared memory", "AddressSanitizer: use-after-poison", false},
    {DYNAMIC_OVERRUN, "beyond dynamic shared memory", "AddressSanitizer: use-after-poison", false},
    {GLOBAL_OVERRUN, "beyond global memory", "AddressSanitizer: heap-buffer-overflow", false},
};

/* A sanitizer ends the process, so the kernel runs in a child, whose output is read through a
 * pipe. */
static void shown_by_sanitizer(const void *argument) {
    const Row *row = argument;
    if (!SIMT_ADDRESS_SANITIZER) SKIP("needs the build with sanitizers");
    int ends[2];
    if (!CHECK(pipe(ends) == 0, "no pipe")) return;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        memory();
        run_planted(row->planted, y, x);
        _exit(0);
    }
    close(ends[1]);
    static char output[1 << 16];
    size_t length = 0;
    ssize_t got;
    while ((got = read(ends[0], output + length, sizeof output - 1 - length)) > 0)
        length += (size_t)got;
    output[length] = '\0';
    close(ends[0]);
    int status = 0, lines[2];
    waitpid(child, &status, 0);
    if (!row->says) {
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s", output);
        return;
    }
    char place[32];
    planted_lines(row->planted, lines);
    snprintf(place, sizeof place, "planted.cu:%d", lines[0]);
    CHECK(!(WIFEXITED(status) && WEXITSTATUS(status) == 0), "it was not noticed");
    CHECK(strstr(output, row->says) && strstr(output, place), "no %s in: %s", place, output);
}

#define RUN_ROWS(rows, function)                            \
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) \
    RUN_ROW(rows[i].name, function, &rows[i])

void test_simt_planted(void);
void test_simt_planted(void) {
    simt_clear_error();
    RUN_ROWS(order_rows, shown_by_order);
    RUN_ROWS(error_rows, shown_by_message);
    RUN_ROWS(launch_rows, refused);
    RUN_ROWS(nan_rows, shown_by_nan);
    RUN_ROWS(race_rows, shown_by_message);
    RUN_ROWS(alignment_rows, shown_by_message);
    RUN_ROWS(sanitizer_rows, shown_by_sanitizer);
}
