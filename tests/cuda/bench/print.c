/* Prints the results as tables: all of them, and a summary for those who see only the last screen
 * of a run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

static bool is(const char *text, const char *word) { return strcmp(text, word) == 0; }

static void print_ceilings(const Results *r) {
    printf("\nceilings%*s median\n", 34, "");
    for (size_t i = 0; i < r->rows; i++) {
        const Row *row = &r->row[i];
        if (!is(row->part, "ceiling") || row->failed[0]) continue;
        printf("%-18s %-5s %12.1f %-8s %10.4f ms\n", row->work, row->precision,
               row->flops > 0 ? row->flops / row->ms * 1e-9 : row->bytes / row->ms * 1e-6,
               row->flops > 0 ? "TFLOP/s" : "GB/s", row->ms);
    }
}

/* ---- ops: where a step loses the most time ---- */

/* Returns true if a step runs this row: kernels of version 0 are those that a step chooses. What
 * stays in the cache says nothing of a step. */
static bool counts(const Row *row) {
    return is(row->part, "op") && row->version == 0 && !row->failed[0] && is(row->how, "-") &&
           row->times > 0;
}
static double lost(const Row *row) { return (row->ms - row->floor) * row->times; }

static int by_loss(const void *a, const void *b) {
    double x = lost(*(const Row *const *)a), y = lost(*(const Row *const *)b);
    return (x < y) - (x > y);
}

static double version_ms(const Results *r, const Row *row, int version) {
    Row like = *row;
    like.version = version;
    const Row *found = results_find(r, &like);
    return found ? found->ms : 0;
}

static void print_ops(const Results *r, int shown) {
    const Row **sorted = malloc((r->rows + 1) * sizeof(Row *));
    int count = 0, fast = 0;
    for (size_t i = 0; sorted && i < r->rows; i++)
        if (counts(&r->row[i])) {
            sorted[count++] = &r->row[i];
            fast += r->row[i].ms * 0.8 <= r->row[i].floor;
        }
    if (count) {
        qsort(sorted, (size_t)count, sizeof(Row *), by_loss);
        printf(
            "\n%d ops, %d of them at 80 %% of their floor or better; those that cost a step most "
            "time:\n",
            count, fast);
        printf("%-44s %-15s %-5s %5s %9s %9s %6s %9s %5s\n", "", "", "", "n", "ms", "floor",
               "floor%", "plain ms", "times");
    }
    for (int i = 0; i < count && i < shown; i++) {
        const Row *row = sorted[i];
        printf("%-44.44s %-15.15s %-5s %5d %9.4f %9.4f %5.0f%% %9.4f %5d\n", row->work, row->what,
               row->precision, row->n, row->ms, row->floor, 100 * row->floor / row->ms,
               version_ms(r, row, 1), row->times);
    }
    free(sorted);
}

/* What a product loses because 50257, the vocabulary of GPT-2, is odd: measured next to the one of
 * 50304, of the same rows in memory. */
static void print_head(const Results *r) {
    for (size_t i = 0; i < r->rows; i++) {
        Row even = r->row[i];
        char *odd = strstr(even.work, "50257");
        if (!odd || !counts(&even)) continue;
        memcpy(odd, "50304", strlen("50304"));
        const Row *twin = results_find(r, &even);
        if (twin && twin->ms > 0)
            printf("%-44.44s %-15.15s %-5s takes %.2f times what one of 50304 does\n",
                   r->row[i].work, even.what, even.precision, r->row[i].ms / twin->ms);
    }
}

/* ---- steps ---- */

static const Row *full_of(const Results *r, const Row *row) {
    Row like = *row;
    strcpy(like.what, "full");
    strcpy(like.how, "plain");
    const Row *full = results_find(r, &like);
    return full && full->ms > 0 ? full : NULL;
}

static void print_step(const Results *r, const Row *row) {
    const Row *full = full_of(r, row), *peer = is(row->how, "plain") ? results_peer(r, row) : NULL;
    printf("%-9.9s %5d %-5s %-13s %-14s %10.3f %9.1f %6.0f%%", row->work, row->n, row->precision,
           row->what, row->how, row->ms, 1e3 * row->n / row->ms,
           row->ms > 0 ? 100 * row->floor / row->ms : 0);
    if (full)
        printf(" %7.3f", row->ms / full->ms);
    else
        printf(" %7s", "");
    if (row->memory > 0) printf(" %8.2f %8.4f", row->memory * 1e-9, row->loss);
    if (peer) printf("  %9.3f %-10s %6.2f", peer->ms, peer->how, peer->ms / row->ms);
    printf("\n");
}

static void print_steps(const Results *r) {
    bool any = false;
    for (size_t i = 0; i < r->rows; i++) {
        if (!is(r->row[i].part, "step") || r->row[i].failed[0]) continue;
        if (!any)
            printf("\nsteps%5s %5s %-5s %-13s %-14s %10s %9s %7s %7s %8s %8s  %9s %-10s %6s\n", "",
                   "n", "", "", "", "ms", "samples/s", "ceiling", "/ full", "GB", "loss", "PyTorch",
                   "its best", "faster");
        any = true;
        print_step(r, &r->row[i]);
    }
}

void results_print(const Results *r) {
    print_ceilings(r);
    print_ops(r, 20);
    print_head(r);
    print_steps(r);
}

/* ---- the summary: failures, then each measured time next to its prediction and its floor ---- */

/* The lines of each part. With their titles and what gpu_check prints they are less than sixty. */
enum { FAILURES = 10, CEILINGS = 8, STEPS = 8, PREDICTED = 8, LOSERS = 6, KERNELS = 5 };

static void print_failures(const Results *r) {
    int count = 0;
    for (size_t i = 0; i < r->rows; i++) {
        const Row *row = &r->row[i];
        if (!row->failed[0]) continue;
        if (++count <= FAILURES)
            printf("FAILED %-7.7s %-30.30s %-15.15s %-5.5s %5d v%d: %.56s\n", row->part, row->work,
                   row->what, row->precision, row->n, row->version, row->failed);
    }
    if (count > FAILURES)
        printf("FAILED and %d more: the log and results.h5 have them\n", count - FAILURES);
    if (!count) printf("nothing failed\n");
}

static void print_suites(const Results *r) {
    int count = 0, passed = 0;
    double slowest = 0;
    const char *name = "";
    for (size_t i = 0; i < r->rows; i++) {
        const Row *row = &r->row[i];
        if (!is(row->part, "suite")) continue;
        count++;
        passed += row->times;
        if (row->ms > slowest) slowest = row->ms, name = row->work;
    }
    if (count)
        printf("%d suites, %d cases passed; the longest, %s, took %.1f s\n", count, passed, name,
               1e-3 * slowest);
}

/* ---- times ---- */

/* Writes "0.98 x", the ratio to a prediction; "" without a prediction. */
static const char *ratio(char text[16], double ms, double of) {
    text[0] = 0;
    if (of > 0 && ms > 0) snprintf(text, 16, "%6.2f x", ms / of);
    return text;
}

static void print_row(const Results *r, const Row *row) {
    char predicted[16], floor[16], expected[16] = "-";
    if (row->predicted > 0) snprintf(expected, sizeof expected, "%.4f", row->predicted);
    const Row *peer = is(row->part, "step") ? results_peer(r, row) : NULL;
    printf("%-32.32s %-15.15s %-5.5s %5d %10.4f %10s %-8s %10.4f %-8s", row->work, row->what,
           row->precision, row->n, row->ms, expected, ratio(predicted, row->ms, row->predicted),
           row->floor, ratio(floor, row->ms, row->floor));
    if (peer) printf(" %9.3f %-8.8s", peer->ms, peer->how);
    printf("\n");
}

static int by_prediction(const void *a, const void *b) {
    const Row *x = *(const Row *const *)a, *y = *(const Row *const *)b;
    return (y->predicted > 0) - (x->predicted > 0);
}

static void print_title(const char *title) {
    printf("%-32s %-15s %-5s %5s %10s %10s %-8s %10s %-8s %9s\n", title, "", "", "n", "ms",
           "predicted", "", "floor", "", "PyTorch");
}

/* Prints at most `shown` rows of a part in the given order; with `predicted`, only those that were
 * predicted. */
static void print_part(const Results *r, const char *part, const char *title, int shown,
                       int (*order)(const void *, const void *), bool predicted) {
    const Row **list = malloc((r->rows + 1) * sizeof *list);
    int count = 0;
    for (size_t i = 0; list && i < r->rows; i++) {
        const Row *row = &r->row[i];
        const bool ranks = is(part, "op") ? counts(row) : row->version == 0 && !row->failed[0];
        if (is(row->part, part) && ranks && (!predicted || row->predicted > 0)) list[count++] = row;
    }
    if (count) qsort(list, (size_t)count, sizeof *list, order);
    if (count) print_title(title);
    for (int i = 0; i < count && i < shown; i++) print_row(r, list[i]);
    if (count > shown) printf("... and %d more in results.h5\n", count - shown);
    free(list);
}

static void print_kernels(const Results *r) {
    int shown = 0;
    for (size_t i = 0; i < r->rows && shown < KERNELS; i++) {
        const Row *row = &r->row[i];
        if (!is(row->part, "kernel") || row->failed[0]) continue;
        if (!shown++) printf("kernels of a step, ncu\n");
        printf("%-10.10s %8.3f ms %4d x %9.1f GB/s  %.60s\n", row->what, row->ms, row->times,
               row->bytes / row->ms * 1e-6, row->work);
    }
}

void results_print_summary(const Results *r) {
    printf("%s, %s, %s, commit %s\n", r->provenance.accelerator, r->provenance.driver,
           r->provenance.libraries, r->provenance.commit);
    print_failures(r);
    print_suites(r);
    print_part(r, "ceiling", "ceilings", CEILINGS, by_prediction, false);
    print_part(r, "step", "training steps", STEPS, by_prediction, false);
    print_part(r, "op", "ops that were predicted", PREDICTED, by_prediction, true);
    print_part(r, "op", "ops that cost a step most time", LOSERS, by_loss, false);
    print_head(r);
    print_kernels(r);
}
