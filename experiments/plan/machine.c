/* `bcd plan --gpu cpu`: the rates of this machine, so that what is predicted can be measured here.
 */
#include <math.h>
#include <omp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../../dist/transport.h"
#include "../../ref/base/clock.h"
#include "../../ref/fast/matmul.h"
#include "../base/alloc.h"
#include "../base/cgroup.h"
#include "plan.h"

enum { SIDE = 384, COPY_FLOATS = 1 << 22, MESSAGE_BYTES = 1 << 22, ROUNDS = 64 };

/* Seconds of a call, with all processors busy. */
typedef void Work(real *scratch);

static void multiply(real *x) {
    matmul(x, SIDE, x + SIDE * SIDE, SIDE, false, x + 2 * SIDE * SIDE, SIDE, true, NULL, SIDE, SIDE,
           SIDE, false);
}
static void multiply_little(real *x) {
    matmul(x, 4, x, 4, false, x, 4, true, NULL, 4, 4, 4, false);
}
static void copy(real *x) { memcpy(x, x + COPY_FLOATS, COPY_FLOATS * sizeof *x); }

/* Returns the time of a call in each of all threads at once: that of the fastest of several rounds,
 * since other programs may be running. */
static double measure(Work *work, int calls) {
    double fastest = INFINITY;
#pragma omp parallel
    {
        real *scratch = xcalloc(2 * COPY_FLOATS, sizeof *scratch);
        work(scratch);
        for (int r = 0; r < ROUNDS; r++) {
#pragma omp barrier
            const double start = clock_seconds();
            for (int i = 0; i < calls; i++) work(scratch);
            const double took = (clock_seconds() - start) / calls;
#pragma omp critical(plan_machine)
            fastest = fmin(fastest, took);
        }
        free(scratch);
    }
    return fastest;
}

/* ---- messages between two threads ---- */

typedef struct {
    Transport *transport;
    size_t bytes;
    double fastest_s; /* there and back */
    int failed;
} Echo;

/* Sends a message there and back again and again, or answers. */
static void *echo(void *argument) {
    Echo *e = argument;
    char *data = xcalloc(1, e->bytes);
    const int peer = 1 - e->transport->rank;
    double start = clock_seconds();
    for (int i = 0; i < 2 * ROUNDS && !e->failed; i++) {
        Transfer t = (i + e->transport->rank) % 2
                         ? transport_receive(peer, CHANNEL_VALUES, data, e->bytes)
                         : transport_send(peer, CHANNEL_VALUES, data, e->bytes);
        e->failed = transport_sendrecv(e->transport, &t, 1);
        if (i % 2 == 0) continue;
        const double now = clock_seconds();
        e->fastest_s = fmin(e->fastest_s, now - start);
        start = now;
    }
    free(data);
    return NULL;
}

/* Overwrites *seconds with the time of a message.  -1 and an error. */
static int measure_message(double *seconds, size_t bytes) {
    enum { TIMEOUT_S = 60 };
    Transport *transport[2];
    pthread_t other;
    if (transport_local_create(transport, 2, TIMEOUT_S, NULL)) return -1;
    Echo mine = {transport[0], bytes, INFINITY, 0}, its = {transport[1], bytes, INFINITY, 0};
    int failed = pthread_create(&other, NULL, echo, &its)
                     ? error_set("plan: no thread to measure messages with")
                     : 0;
    if (!failed) {
        echo(&mine);
        pthread_join(other, NULL);
        failed = mine.failed || its.failed;
    }
    *seconds = mine.fastest_s / 2;
    for (int r = 0; r < 2; r++) transport_free(transport[r]);
    return failed ? -1 : 0;
}

int machine_measure(Gpu *cpu, Efficiency *efficiency, int ranks) {
    const int threads = omp_get_max_threads();
    double little_s, large_s;
    if (measure_message(&little_s, 4) || measure_message(&large_s, MESSAGE_BYTES)) return -1;
    const double flops = 2.0 * SIDE * SIDE * SIDE / measure(multiply, 4);
    *cpu = (Gpu){
        .key = "cpu",
        .name = "this machine",
        .flops = {flops, flops, flops},
        .memory_bytes = memory_here() / ranks,
        .memory_rate = 2.0 * COPY_FLOATS * sizeof(real) / measure(copy, 1),
        .interconnect_bandwidth = MESSAGE_BYTES / fmax(large_s - little_s, 1e-9),
        .interconnect = "messages between threads",
        .source = "measured, one thread a processor and all of them busy",
    };
    cpu->host_rate = cpu->memory_rate;
    *efficiency = (Efficiency){.products = {1, 1, 1},
                               .memory = 1,
                               .interconnect = 1,
                               .launch_s = measure(multiply_little, 1000),
                               .interconnect_latency_s = little_s,
                               .network_latency_s = efficiency->network_latency_s,
                               .host_process_rate = cpu->memory_rate,
                               .host_memory_rate = cpu->memory_rate * threads};
    return 0;
}

void machine_add(Tables *tables, const Gpu *cpu, const Efficiency *efficiency) {
    static const TableColumn columns[] = {
        {"products", "products", "GFLOP/s", COLUMN_NUMBER, 1, SOURCE_MEASURED},
        {"memory", "memory", "GB/s", COLUMN_NUMBER, 1, SOURCE_MEASURED},
        {"message", "messages", "GB/s", COLUMN_NUMBER, 2, SOURCE_MEASURED},
        {"latency", "latency", "us", COLUMN_NUMBER, 1, SOURCE_MEASURED},
        {"call", "a call", "us", COLUMN_NUMBER, 2, SOURCE_MEASURED},
    };
    Table *table = tables_add(tables, "machine", "This machine, a processor", "", columns,
                              (int)(sizeof columns / sizeof *columns));
    table_row(table, "cpu");
    table_put(table, 0, cpu->flops[PRECISION_FP32] / 1e9, cpu->memory_rate / 1e9,
              cpu->interconnect_bandwidth / 1e9, 1e6 * efficiency->interconnect_latency_s,
              1e6 * efficiency->launch_s);
    table_note(table,
               "products: of matrices of %d x %d.  memory: of a copy, read and written.  messages: "
               "between threads, as with --pipeline local:N.",
               SIDE, SIDE);
}
