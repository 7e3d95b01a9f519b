#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../../../ref/base/error.h"
#include "../../bench/bench.h"
#include "bench.h"

enum { MOST_SETS = 32, CACHES = 4 };

int timer_sets(const Bench *bench, double bytes) {
    if (bench->tiny) return 2;
    double sets = ceil(CACHES * (double)bench->info.cache_bytes / (bytes > 1 ? bytes : 1));
    return sets < 2 ? 2 : sets > MOST_SETS ? MOST_SETS : (int)sets;
}

bool timer_stays_in_cache(const Bench *bench, double bytes) {
    return !bench->tiny && MOST_SETS * bytes < 2 * (double)bench->info.cache_bytes;
}

bool timer_fits(size_t bytes) {
    DeviceInfo now;
    return !device_info(&now) && (double)bytes <= 0.9 * (double)now.free_bytes;
}

static void run_all(const Task *task) {
    for (int set = 0; set < task->sets; set++) task->run(&task->how, task->context, set);
}

/* Runs the task once without a graph, so that libraries can choose their algorithms, then records
 * it as a graph. */
static Graph capture(const Task *task) {
    run_all(task);
    if (device_wait(task->how.stream) || graph_begin(task->how.stream)) return NULL;
    run_all(task);
    return graph_end(task->how.stream);
}

/* `ms` has the time of an earlier replay, or 0, and is overwritten.  On an idle stream the events
 * of a short graph would also time its launch by the host, 5 to 12 us: another launch before it
 * keeps the device busy meanwhile. */
static int replay(const Task *task, Graph graph, Event from, Event to, double *ms) {
    const double brief = 1;
    if (*ms * task->sets < brief && graph_launch(graph, task->how.stream)) return -1;
    event_record(from, task->how.stream);
    if (graph_launch(graph, task->how.stream)) return -1;
    event_record(to, task->how.stream);
    if (device_wait(task->how.stream)) return -1;
    *ms = event_ms(from, to) / task->sets;
    return 0;
}

static int repeat(const Bench *bench, const Task *task, Graph graph, Times *times) {
    Event from = event_create(true), to = event_create(true);
    const double enough = bench->tiny ? 0 : task->enough > 0 ? task->enough : 40;
    const double slow = 1000, warm = 250;
    double ms = 0, all = 0;
    int status = from && to ? replay(task, graph, from, to, &ms) : -1; /* to warm up */
    if (!status && ms * task->sets >= warm) { /* so long a replay warms itself, and counts */
        times_add(times, ms);
        all = ms * task->sets;
    }
    while (!status && times->count < TIMES_MOST &&
           (all < enough || (times->count < 3 && all < slow) || !times->count)) {
        status = replay(task, graph, from, to, &ms);
        times_add(times, ms);
        all += ms * task->sets;
    }
    if (from) event_free(from);
    if (to) event_free(to);
    return status;
}

static double floor_ms(const Bench *bench, const Row *row) {
    double bytes = bench->copy > 0 ? row->bytes / bench->copy : 0, flops = 0;
    for (Precision p = 0; p < PRECISIONS; p++)
        if (!strcmp(row->precision, precision_names[p]) && bench->matrix[p] > 0)
            flops = row->flops / bench->matrix[p];
    return bytes > flops ? bytes : flops;
}

static int measure(const Bench *bench, const Task *task, Row *row) {
    Times times = {0};
    Graph graph = capture(task);
    if (!graph) return -1;
    int status = repeat(bench, task, graph, &times);
    graph_free(graph);
    if (status) return -1;
    row->repeats = times.count;
    row->ms = times_median(&times);
    row->min_ms = times_min(&times);
    row->max_ms = times_max(&times);
    row->floor = floor_ms(bench, row);
    return 0;
}

int timer_row(Bench *bench, const Task *task, Row *row) {
    int begun = bench_begin(bench, row, 1);
    if (begun <= 0) return begun;
    bench_progress("%s: %s %s %s", row->part, row->work, row->what, row->precision);
    int status = measure(bench, task, row);
    bench_progress_end();
    return status ? bench_failure(bench) : bench_add(bench, row);
}
