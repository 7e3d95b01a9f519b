/* All that was measured, as tables. */
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

/* ---- ops: where a step loses most ---- */

/* The kernel that version 0 chooses is what a step pays for. */
static bool counts(const Row *row) {
    return is(row->part, "op") && row->version == 0 && !row->failed[0];
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
        printf("\n%d ops, %d of them at 80 %% of their floor or better; most lost in a step:\n",
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
    if (row->memory > 0) printf(" %8.2f", row->memory * 1e-9);
    if (peer) printf("  %9.3f %-10s %6.2f", peer->ms, peer->how, peer->ms / row->ms);
    printf("\n");
}

static void print_steps(const Results *r) {
    bool any = false;
    for (size_t i = 0; i < r->rows; i++) {
        if (!is(r->row[i].part, "step") || r->row[i].failed[0]) continue;
        if (!any)
            printf("\nsteps%5s %5s %-5s %-13s %-14s %10s %9s %7s %7s %8s  %9s %-10s %6s\n", "", "n",
                   "", "", "", "ms", "samples/s", "ceiling", "/ full", "GB", "PyTorch", "its best",
                   "faster");
        any = true;
        print_step(r, &r->row[i]);
    }
}

void results_print(const Results *r) {
    print_ceilings(r);
    print_ops(r, 20);
    print_steps(r);
}
