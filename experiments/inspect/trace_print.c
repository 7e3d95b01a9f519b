/* The tables of `bcd trace`. */
#include <stdio.h>

#include "trace.h"

enum { NAME = 18, TIME = 8, BYTES = 9, LINE = NAME + 8 + 3 * (TIME + 1) + 4 * (BYTES + 1) };

const char *trace_part(const Model *model, const Trace *trace, int block) {
    int lowest_active = 0;
    while (lowest_active < model->blocks && !trace->active[lowest_active]) lowest_active++;
    return trace->active[block] ? "active" : block < lowest_active ? "prefix" : "frozen";
}

/* The unit of a column of bytes, chosen by the total. */
typedef struct {
    double bytes;
    const char *name;
} Unit;

static Unit choose_unit(double max) {
    static const Unit units[] = {{1073741824, "GiB"}, {1048576, "MiB"}, {1024, "KiB"}};
    int u = 0;
    while (u < 2 && max < 2 * units[u].bytes) u++;
    return units[u];
}

/* Prints a dot where nothing was done, which stands out less than a zero.  (A call that has nothing
 * to do takes a microsecond.) */
static void print_ms(double ms) {
    if (ms >= 0.005)
        printf(" %*.*f", TIME, ms < 100 ? 2 : 1, ms);
    else
        printf(" %*s", TIME, ".");
}

static void print_bytes(double bytes, Unit unit) {
    double amount = bytes / unit.bytes;
    if (bytes > 0)
        printf(" %*.*f", BYTES, amount < 10 ? 2 : amount < 1000 ? 1 : 0, amount);
    else
        printf(" %*s", BYTES, ".");
}

static void print_ratio(double part, double whole, int width) {
    if (whole > 0)
        printf(" %*.2f", width, part / whole);
    else
        printf(" %*s", width, "");
}

static void print_rule(int length) {
    for (int i = 0; i < length; i++) putchar('-');
    putchar('\n');
}

static void print_line(const char *name, const char *state, const double cost[COSTS],
                       const Unit *units) {
    printf("%-*.*s %-7s", NAME, NAME, name, state);
    for (int c = 0; c < COSTS; c++)
        if (c < COST_PARAMETERS)
            print_ms(cost[c]);
        else
            print_bytes(cost[c], units[c == COST_ACTIVATIONS]);
    putchar('\n');
}

static void print_head(const Unit *units) {
    static const char *const head[3][COSTS] = {
        {"forward", "input", "weight", "param-", "activa-", "gradi-", "optimizer"},
        {"", "gradient", "gradient", "eters", "tions", "ents", "state"},
        {"ms", "ms", "ms", NULL, NULL, NULL, NULL}};
    for (int line = 0; line < 3; line++) {
        printf("%-*s %-7s", NAME, line ? "" : "block", "");
        for (int c = 0; c < COSTS; c++)
            printf(" %*s", c < COST_PARAMETERS ? TIME : BYTES,
                   head[line][c] ? head[line][c] : units[c == COST_ACTIVATIONS].name);
        putchar('\n');
    }
    print_rule(LINE);
}

static void print_ratios(const Trace *trace, const Trace *full) {
    printf("%-*s %-7s", NAME, "/ full update", "");
    for (int c = 0; c < COSTS; c++)
        print_ratio(trace->total[c], full->total[c], c < COST_PARAMETERS ? TIME : BYTES);
    putchar('\n');
}

void trace_print(const Setup *setup, const Trace *trace, const Trace *full) {
    const Model *model = setup->model;
    Unit units[] = {choose_unit(full->total[COST_PARAMETERS]),
                    choose_unit(full->total[COST_ACTIVATIONS])};
    if (trace->submodel < 0)
        printf("Full update: every block is active\n\n");
    else
        printf("Submodel %d of %d is active\n\n", trace->submodel + 1,
               setup->bcd.partition.submodels);
    print_head(units);
    for (int b = 0; b < model->blocks; b++)
        print_line(model->block[b].name, trace_part(model, trace, b), trace->cost[b], units);
    print_rule(LINE);
    print_line("all blocks", "", trace->total, units);
    if (trace != full) print_ratios(trace, full);
    putchar('\n');
}

static void print_summary_line(const char *name, const Trace *trace, const Trace *full, Unit unit) {
    printf("%-*s", NAME, name);
    print_ms(trace->passes_ms);
    print_ms(trace->update_ms);
    print_ms(trace->passes_ms + trace->update_ms);
    print_ratio(trace->passes_ms + trace->update_ms, full->passes_ms + full->update_ms, 7);
    print_ratio(trace->flops, full->flops, 11);
    print_bytes(trace->all_bytes, unit);
    print_ratio(trace->all_bytes, full->all_bytes, 7);
    putchar('\n');
}

void trace_print_summary(const Trace *traces, int count) {
    Unit unit = choose_unit(traces[0].all_bytes);
    printf("%-*s %*s %*s %*s %7s %11s %*s %7s\n", NAME, "step", TIME, "passes", TIME, "update",
           TIME, "together", "/ full", "operations", BYTES, "memory", "/ full");
    printf("%-*s %*s %*s %*s %7s %11s %*s\n", NAME, "", TIME, "ms", TIME, "ms", TIME, "ms", "",
           "/ full", BYTES, unit.name);
    print_rule(LINE);
    print_summary_line("full update", &traces[0], &traces[0], unit);
    Trace mean = {.submodel = 0};
    for (int i = 1; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "submodel %d", traces[i].submodel + 1);
        print_summary_line(name, &traces[i], &traces[0], unit);
        mean.passes_ms += traces[i].passes_ms / (count - 1);
        mean.update_ms += traces[i].update_ms / (count - 1);
        mean.flops += traces[i].flops / (count - 1);
        if (traces[i].all_bytes > mean.all_bytes) mean.all_bytes = traces[i].all_bytes;
    }
    if (count > 2) print_summary_line("mean, most memory", &mean, &traces[0], unit);
}
