/* The peak rates of the device, which every other time is compared with. */
#include <stdio.h>
#include <string.h>

#include "../../../cuda/matmul.h"
#include "../../../ref/base/error.h"
#include "../../../ref/optimizers/optimizer.h"
#include "../../bench/bench.h"
#include "bench.h"

/* The milliseconds after which a GPU that gets warm has lowered its clock, as it does in a
 * training. The least time of a row is from before that. */
static const double SUSTAINED = 1000;

static Row ceiling(const char *what, const char *precision, double bytes, double flops) {
    Row row = {.part = "ceiling", .how = "-", .bytes = bytes, .flops = flops};
    snprintf(row.work, sizeof row.work, "%s", what);
    snprintf(row.what, sizeof row.what, "-");
    snprintf(row.precision, sizeof row.precision, "%s", precision);
    return row;
}

/* ---- copies ---- */

typedef struct {
    void *to, *from;
    size_t bytes; /* of one set on the device; of all sets on the host */
} Copy;

static void *set_at(void *base, const Copy *copy, int set) {
    return (char *)base + (size_t)set * copy->bytes;
}

static void by_engine(const Run *run, void *context, int set) {
    const Copy *c = context;
    copy_on_device(run->stream, set_at(c->to, c, set), set_at(c->from, c, set), c->bytes);
}
static void by_kernel(const Run *run, void *context, int set) {
    const Copy *c = context;
    cuda_from_float(run, set_at(c->to, c, set), set_at(c->from, c, set), c->bytes / sizeof(float));
}
static void up(const Run *run, void *context, int set) {
    const Copy *c = context;
    copy_to_device(run->stream, set_at(c->to, c, set), c->from, c->bytes);
}
static void down(const Run *run, void *context, int set) {
    const Copy *c = context;
    copy_to_host(run->stream, c->from, set_at(c->to, c, set), c->bytes);
}

static int measure_copies(Bench *b) {
    const size_t bytes = b->tiny ? 1 << 12 : (size_t)1 << 29;
    Run run = {.stream = b->stream};
    Row rows[] = {ceiling("copy", "-", 2 * (double)bytes, 0),
                  ceiling("copy by a kernel", "-", 2 * (double)bytes, 0),
                  ceiling("host to device", "-", (double)bytes, 0),
                  ceiling("device to host", "-", (double)bytes, 0)};
    int begun = bench_begin(b, rows, 4);
    if (begun <= 0) return begun;
    Copy own = {device_alloc(2 * bytes), device_alloc(2 * bytes), bytes};
    Copy link = {own.to, pinned_alloc(bytes), bytes};
    Task tasks[] = {{by_engine, &own, 2, run, SUSTAINED},
                    {by_kernel, &own, 2, run, SUSTAINED},
                    {up, &link, 2, run, SUSTAINED},
                    {down, &link, 2, run, SUSTAINED}};
    int status = own.to && own.from && link.from ? 0 : -1;
    if (!status) memset(link.from, 1, bytes);
    if (!status) status = fill_values(b, own.from, bytes / 2, PRECISION_FP32, 1);
    if (status) status = bench_failure(b); /* of all four, which are then not tried */
    for (int i = 0; i < 4 && !status; i++) status = timer_row(b, &tasks[i], &rows[i]);
    device_free(own.to);
    device_free(own.from);
    pinned_free(link.from);
    return status;
}

/* ---- matrix products ---- */

typedef struct {
    char *c, *a, *b;
    int n;
    size_t bytes; /* of a matrix */
} Square;

static void multiply(const Run *run, void *context, int set) {
    const Square *s = context;
    const size_t at = (size_t)set * s->bytes;
    cuda_matmul(run, &(Product){.c = s->c + at,
                                .a = s->a + at,
                                .b = s->b + at,
                                .ldc = s->n,
                                .lda = s->n,
                                .ldb = s->n,
                                .transpose_b = true,
                                .m = s->n,
                                .n = s->n,
                                .k = s->n});
}

static int measure_matrix(Bench *b, Precision precision) {
    const int n = b->tiny ? 32 : 8192;
    const double count = (double)n * n;
    Square s = {.n = n, .bytes = (size_t)n * (size_t)n * precision_bytes(precision)};
    Row row = ceiling("matrix product", precision_names[precision],
                      3 * count * (double)precision_bytes(precision), 2 * count * n);
    Task task = {multiply, &s, 2, {b->stream, precision, 0, NULL}, SUSTAINED};
    int begun = bench_begin(b, &row, 1);
    if (begun <= 0) return begun;
    task.how.workspace = device_alloc(cuda_matmul_workspace() + 1);
    s.a = device_alloc(2 * s.bytes);
    s.b = device_alloc(2 * s.bytes);
    s.c = device_alloc(2 * s.bytes);
    int status = s.a && s.b && s.c && task.how.workspace ? 0 : -1;
    if (!status) status = fill_values(b, s.a, 2 * (size_t)n * (size_t)n, precision, 1);
    if (!status) status = fill_values(b, s.b, 2 * (size_t)n * (size_t)n, precision, 2);
    status = status ? bench_failure(b) : timer_row(b, &task, &row);
    device_free(s.a);
    device_free(s.b);
    device_free(s.c);
    device_free(task.how.workspace);
    return status;
}

/* ---- the host's optimizer, which offload waits for ---- */

typedef struct {
    OptimizerSettings settings;
    float *p, *g, *state[2];
    Param param;
} Adam;

static void run_adam(void *context) {
    Adam *a = context;
    optimizer_update(&a->settings, &a->param, a->p, a->state, a->g, 1, 1e-6, 10, NULL);
}

static int measure_adam(Bench *b) {
    const size_t count = b->tiny ? 1 << 10 : (size_t)1 << 26, bytes = count * sizeof(float);
    Row row = ceiling("Adam on the host", "-", 28 * (double)count, 0);
    Adam a = {.settings = optimizer_defaults(OPTIMIZER_ADAMW), .param.count = count};
    int begun = bench_begin(b, &row, 1);
    if (begun <= 0) return begun;
    float *memory = pinned_alloc(4 * bytes);
    if (!memory) return bench_failure(b);
    for (size_t i = 0; i < 4 * count; i++) memory[i] = (float)(i % 1023) / 1024;
    a.p = memory;
    a.g = memory + count;
    a.state[0] = memory + 2 * count;
    a.state[1] = memory + 3 * count;
    Times times = bench_repeat(run_adam, &a, b->tiny ? 1 : 500);
    row.repeats = times.count;
    row.ms = times_median(&times);
    row.min_ms = times_min(&times);
    row.max_ms = times_max(&times);
    pinned_free(memory);
    return bench_add(b, &row);
}

/* Keeps the rates from which floors are computed: the faster way to copy, and the product of each
 * precision. */
static int take_ceilings(Bench *b) {
    static const char *const copies[] = {"copy", "copy by a kernel"};
    for (int i = 0; i < 2; i++) {
        Row like = ceiling(copies[i], "-", 0, 0);
        const Row *row = results_find(&b->results, &like);
        if (row && row->ms > 0 && row->bytes / row->ms > b->copy) b->copy = row->bytes / row->ms;
    }
    for (Precision p = 0; p < PRECISIONS; p++) {
        Row like = ceiling("matrix product", precision_names[p], 0, 0);
        const Row *row = results_find(&b->results, &like);
        if (row && row->ms > 0) b->matrix[p] = row->flops / row->ms;
    }
    return 0;
}

int measure_ceilings(Bench *b) {
    if (measure_copies(b)) return -1;
    for (Precision p = 0; p < PRECISIONS; p++)
        if (measure_matrix(b, p)) return -1;
    if (measure_adam(b)) return -1;
    return take_ceilings(b);
}
