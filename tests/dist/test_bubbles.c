/* The time of a step on p = 4 ranks. Forward, input gradients and weight gradients of the whole
 * model take 1 unit each, and messages take no time. The table has p time / micro-batches. Without
 * any waiting this would be the work: 3, or 2 to 2.25 for BCD with three submodels. */
#include <math.h>

#include "../../dist/simulate.h"
#include "../../ref/base/error.h"
#include "../../ref/blocks/models.h"
#include "../test.h"

enum { RANKS = 4, BLOCKS = 12, MAX_SUBMODELS = 3, SIZES = 3 };

static const int micro_batches[SIZES] = {1, 8, 16};
static const double digit[SIZES] = {0.1, 0.01, 0.01}; /* the last digit of the expected numbers */

typedef struct {
    const char *name;
    PlacementKind placement;
    int submodels;
    ScheduleKind schedule;
    int slack;
    bool together; /* a chunk sends its gradient after its weight gradient, instead of before */
    bool at_most;  /* the expected numbers are upper bounds */
    double units[SIZES];
} Row;

/* The expected numbers come from an independent simulation, made before this one.  Its 1F1B sends a
 * gradient after the weight gradient; ours sends it before, which is never slower, so rows that
 * expect the same number set `together`.  Its zero bubble needs slack.  Where its lists differ in
 * other ways (virtual stages, zero bubble on plain stages), ours must be no slower: at_most. */
static const Row rows[] = {
    {"full, 1F1B", PLACEMENT_PLAIN, 1, SCHEDULE_1F1B, 0, true, false, {12.0, 4.12, 3.56}},
    {"full, zero bubble", PLACEMENT_PLAIN, 1, SCHEDULE_ZERO_BUBBLE, 8, 0, 0, {9.0, 3.38, 3.19}},
    {"contiguous, plain, 1F1B", PLACEMENT_PLAIN, 3, SCHEDULE_1F1B, 0, 1, 0, {8.0, 3.50, 3.32}},
    {"contiguous, plain, zero bubble",
     PLACEMENT_PLAIN,
     3,
     SCHEDULE_ZERO_BUBBLE,
     8,
     false,
     true,
     {7.4, 3.26, 3.08}},
    {"Figure 2, 1F1B", PLACEMENT_FIGURE2, 3, SCHEDULE_1F1B, 0, true, false, {9.0, 3.17, 2.75}},
    {"Figure 2, zero bubble",
     PLACEMENT_FIGURE2,
     3,
     SCHEDULE_ZERO_BUBBLE,
     8,
     0,
     0,
     {8.0, 2.79, 2.52}},
    {"virtual, 1F1B", PLACEMENT_VIRTUAL, 3, SCHEDULE_1F1B, 8, false, true, {8.0, 2.79, 2.30}},
    {"virtual, zero bubble",
     PLACEMENT_VIRTUAL,
     3,
     SCHEDULE_ZERO_BUBBLE,
     8,
     0,
     1,
     {7.0, 2.17, 2.06}},
};

typedef struct {
    int chunk_of[BLOCKS], submodel_of[BLOCKS], rank_of[BLOCKS];
    Placement placement;
    BlockCost cost[MAX_SUBMODELS][BLOCKS];
} Plan;

static void plan_make(Plan *plan, const Row *row) {
    bool virtual = row->placement == PLACEMENT_VIRTUAL;
    for (int b = 0; b < BLOCKS; b++) {
        plan->chunk_of[b] = virtual ? b : b * RANKS / BLOCKS;
        plan->submodel_of[b] =
            row->placement == PLACEMENT_FIGURE2 ? b % row->submodels : b * row->submodels / BLOCKS;
        plan->rank_of[b] = b % RANKS;
    }
    plan->placement = (Placement){.kind = row->placement,
                                  .ranks = RANKS,
                                  .chunks = virtual ? BLOCKS : RANKS,
                                  .submodels = row->submodels,
                                  .chunk_of = plan->chunk_of,
                                  .submodel_of = plan->submodel_of,
                                  .rank_of = plan->rank_of};
    for (int k = 0; k < row->submodels; k++)
        for (int b = 0, below = 1; b < BLOCKS; b++) {
            bool active = plan->submodel_of[b] == k;
            if (active) below = 0;
            double input = below ? 0 : 1.0 / BLOCKS, weight = active ? 1.0 / BLOCKS : 0;
            plan->cost[k][b] = (BlockCost){.pass_s = {1.0 / BLOCKS, input, weight}};
        }
}

static Configuration configuration(const Model *model, const Plan *plan, const Row *row) {
    Configuration c = {.model = model,
                       .cluster = {gpu_find("a100"), RANKS, 1, NETWORK_2X25G, efficiency_default},
                       .stage = {.batch = 1, .optimizer = optimizer_defaults(OPTIMIZER_ADAM)},
                       .schedule = row->schedule,
                       .submodels = row->submodels,
                       .pipeline = RANKS,
                       .replicas = 1,
                       .slack = row->slack,
                       .placed = &plan->placement};
    c.cluster.efficiency.interconnect_latency_s = 0;
    c.stage.deferred = !row->together;
    return c;
}

static void units_as_expected(const void *data) {
    const Row *row = data;
    Model *model = model_create("gpt:layers=10,width=64,heads=4,context=32,vocabulary=96");
    Plan plan;
    plan_make(&plan, row);
    Configuration c = configuration(model, &plan, row);
    for (int i = 0; i < SIZES; i++) {
        Prediction p;
        c.micro_batches = micro_batches[i];
        if (!CHECK(simulate(&p, NULL, &c, plan.cost[0]) == 0, "%s", error_message())) break;
        double units = RANKS * p.passes_s / c.micro_batches, half = digit[i] / 2 + 1e-9;
        double work = units * (1 - p.bubble), max = row->units[i] + half;
        double min = row->at_most ? work : row->units[i] - half;
        CHECK(units <= max && units >= min - 1e-9, "%d micro-batches: %.3f units, expected %g",
              c.micro_batches, units, row->units[i]);
        double full = 3, thirds = 2 + (row->placement == PLACEMENT_FIGURE2) * 0.25;
        CHECK(fabs(work - (row->submodels > 1 ? thirds : full)) < 0.1, "%.3f units of work", work);
    }
    model_free(model);
}

/* ---- closed forms ---- */

/* Returns how long a rank waits in a step. */
static double waiting_time(ScheduleKind kind, int ranks, int v, int micro, ChunkCost each,
                           int slack) {
    int rank_of[16];
    ChunkCost cost[16];
    Schedule schedule;
    for (int c = 0; c < ranks * v; c++) {
        rank_of[c] = c % ranks;
        cost[c] = each;
    }
    SchedulePlan plan = {.kind = kind,
                         .ranks = ranks,
                         .chunks = ranks * v,
                         .micro_batches = micro,
                         .rank_of = rank_of,
                         .cost = cost,
                         .slack = slack};
    if (!CHECK(schedule_make(&schedule, &plan) == 0, "%s", error_message())) return NAN;
    double all = schedule.time;
    schedule_free(&schedule);
    return all - v * micro *
                     (each.pass[PASS_FORWARD] + each.pass[PASS_INPUT_GRADIENT] +
                      each.pass[PASS_WEIGHT_GRADIENT]);
}

/* In 1F1B without separate weight gradients a rank waits for p - 1 forward and backward passes,
 * which is (p - 1) / (m + p - 1) of the time (the bubble of GPipe, Huang et al. 2019, which 1F1B
 * shares). */
static void classic_bubble(void) {
    for (int p = 1; p <= 4; p++)
        for (int m = p; m <= 12; m++) {
            double waiting = waiting_time(SCHEDULE_1F1B, p, 1, m, (ChunkCost){{1, 2, 0}}, 0);
            CHECK(waiting == 3 * (p - 1), "%d ranks, %d micro-batches: %g", p, m, waiting);
            CHECK(fabs(waiting / (waiting + 3 * m) - (p - 1.0) / (m + p - 1)) < 1e-12, "share");
        }
}

/* With v equal chunks per rank the waiting time is at best 1/v of that of plain stages: p - 1
 * forward passes and input gradients of a chunk.  On two ranks our schedules reach this; on more
 * ranks they wait less than plain stages. */
static void virtual_bubble(void) {
    for (int p = 2; p <= 4; p++)
        for (int v = 2; v <= 3; v++)
            for (int m = p; m <= 4 * p; m += p) {
                double waiting = waiting_time(SCHEDULE_1F1B, p, v, m, (ChunkCost){{1, 1, 1}}, p);
                double best = 2 * (p - 1), plain = 2 * (p - 1) * v;
                CHECK(waiting >= best && waiting < plain, "%d ranks, %d v, %d: %g", p, v, m,
                      waiting);
                CHECK(p > 2 || waiting == best, "two ranks, %d v, %d: %g", v, m, waiting);
            }
}

void test_bubbles(void) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        RUN_ROW(rows[i].name, units_as_expected, &rows[i]);
    RUN(classic_bubble);
    RUN(virtual_bubble);
}
