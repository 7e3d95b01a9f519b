/* Steps that experiments/inspect/bench.h times, and the costs of their blocks.  The linker replaces
 * the calls of clock_gettime in this program by the function below (--wrap in the Makefile). */
#include <math.h>
#include <time.h>

#include "../../experiments/inspect/bench.h"
#include "../../ref/base/error.h"
#include "../leak.h"
#include "../test.h"
#include "program.h"

#define TRAIN "train --model resnet:depth=8,width=2 --limit 12 --batch 12 --submodels 2"

/* The times of a step are divided among the blocks without loss. */
static void costs_add_up(void) {
    enum { PARTS = 3, STEP_MS = 40 };
    Bench bench;
    CommandLine line;
    CHECK(parse_line(&line, TRAIN) == 0, "%s", error_message());
    double step_ms;
    if (CHECK(
            bench_open(&bench, &line.options, true) == 0 &&
                bench_steps(&bench, 0, (BenchPace){.min_steps = 1, .max_steps = 1}, &step_ms) == 0,
            "%s", error_message())) {
        const Model *m = bench.setup.model;
        BlockCost cost[8];
        double passes = 0, update = 0;
        for (int b = 0; b < m->blocks; b++) bench.min_times[b] = (BlockTimes){{1, 2, 3}};
        bench.min_update_ms = 7;
        bench_costs(cost, &bench, PARTS, STEP_MS);
        for (int b = 0; b < m->blocks; b++) {
            for (int pass = 0; pass < PASSES; pass++) passes += PARTS * cost[b].pass_s[pass];
            update += cost[b].update_s;
            CHECK((cost[b].update_s > 0) == bench.active[b], "block %d", b);
            /* 12 images in 3 parts, in fp32 */
            CHECK(cost[b].out_bytes == 16.0 * (double)shape_count(m->value[m->block[b].out].shape),
                  "block %d: %g bytes", b, cost[b].out_bytes);
        }
        CHECK(fabs(update - 7e-3) < 1e-12 && fabs(passes + update - 1e-3 * STEP_MS) < 1e-12,
              "updates %g s, passes %g s", update, passes);
        CHECK(cost[1].pass_s[PASS_WEIGHT_GRADIENT] == 1e-3, "a part of a pass");
    }
    bench_close(&bench);
}

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

/* The time, which then only steps let pass; 0: that of the machine. */
static int pretended_ms;

int __wrap_clock_gettime(clockid_t clock, struct timespec *now) {
    if (!pretended_ms) return __real_clock_gettime(clock, now);
    *now = (struct timespec){pretended_ms / 1000, pretended_ms % 1000 * 1000000L};
    return 0;
}

/* Steps of 300, 20 and 150 ms, whose blocks and update have the same times. */
static struct {
    Bench bench;
    int steps;
} uneven;

static int uneven_step(Engine *engine, const Batch *batch, double lr, Loss *loss) {
    static const int took_ms[] = {300, 20, 150};
    const int ms = took_ms[uneven.steps++ % 3];
    (void)engine, (void)batch, (void)lr;
    *loss = (Loss){.count = 1};
    for (int b = 0; b < uneven.bench.setup.model->blocks; b++)
        for (int pass = 0; pass < PASSES; pass++) uneven.bench.now[b].ms[pass] = ms;
    uneven.bench.update_ms = ms;
    pretended_ms += ms;
    return 0;
}

static void the_shortest_step_counts(void) {
    Bench *bench = &uneven.bench;
    CommandLine line;
    double step_ms = 0;
    CHECK(parse_line(&line, TRAIN) == 0, "%s", error_message());
    if (CHECK(bench_open(bench, &line.options, true) == 0, "%s", error_message())) {
        const EngineClass *own = bench->setup.engine->is;
        EngineClass class = *own;
        class.step = uneven_step;
        bench->setup.engine->is = &class;
        pretended_ms = 1;
        CHECK(bench_steps(bench, 0, (BenchPace){.min_steps = 3, .max_steps = 3}, &step_ms) == 0 &&
                  fabs(step_ms - 20) < 1e-9,
              "%g ms", step_ms);
        pretended_ms = 0;
        CHECK(bench->min_update_ms == 20 && bench->min_times[1].ms[PASS_FORWARD] == 20,
              "update %g ms, block %g ms", bench->min_update_ms,
              bench->min_times[1].ms[PASS_FORWARD]);
        bench->setup.engine->is = own;
    }
    bench_close(bench);
}

/* Times a step of each kind, and closes the training again. */
static void measure_once(void) {
    Bench bench;
    CommandLine line;
    double step_ms;
    CHECK(parse_line(&line, TRAIN " --pipeline local:2 --accumulate 2") == 0 &&
              bench_open(&bench, &line.options, false) == 0 &&
              bench_steps(&bench, 1, (BenchPace){.min_steps = 1, .max_steps = 1}, &step_ms) == 0 &&
              step_ms > 0,
          "%s", error_message());
    bench_close(&bench);
}

static void nothing_is_left(void) {
    CHECK(allocations_left(measure_once) == 0, "memory of a measurement is not freed");
}

void test_bench(void) {
    RUN(costs_add_up);
    RUN(the_shortest_step_counts);
    RUN(nothing_is_left);
}
