/* What someone must know who sees the last screen of a run and no more: what failed, then each
 * measured time beside its prediction and its floor. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

/* Lines of each part; with their titles and what gpu_check says they make less than sixty. */
enum { FAILURES = 10, CEILINGS = 8, STEPS = 8, PREDICTED = 8, LOSERS = 6, KERNELS = 5 };

static bool is(const char *text, const char *word) { return strcmp(text, word) == 0; }

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

/* "0.98 x": of the prediction; "" without one. */
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

static double lost(const Row *row) { return (row->ms - row->floor) * row->times; }
static int by_loss(const void *a, const void *b) {
    double x = lost(*(const Row *const *)a), y = lost(*(const Row *const *)b);
    return (x < y) - (x > y);
}
static int by_prediction(const void *a, const void *b) {
    const Row *x = *(const Row *const *)a, *y = *(const Row *const *)b;
    return (y->predicted > 0) - (x->predicted > 0);
}

static void print_title(const char *title) {
    printf("%-32s %-15s %-5s %5s %10s %10s %-8s %10s %-8s %9s\n", title, "", "", "n", "ms",
           "predicted", "", "floor", "", "PyTorch");
}

/* At most `shown` rows of a part, sorted: those that were predicted first, or those only; or those
 * that lose most in a step. */
static void print_part(const Results *r, const char *part, const char *title, int shown,
                       int (*order)(const void *, const void *), bool predicted) {
    const Row **list = malloc((r->rows + 1) * sizeof *list);
    int count = 0;
    for (size_t i = 0; list && i < r->rows; i++) {
        const Row *row = &r->row[i];
        if (is(row->part, part) && row->version == 0 && !row->failed[0] &&
            (!predicted || row->predicted > 0))
            list[count++] = row;
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
    print_part(r, "op", "ops that lose most in a step", LOSERS, by_loss, false);
    print_kernels(r);
}
