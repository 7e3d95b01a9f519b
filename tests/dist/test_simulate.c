/* Simulated steps whose times are known in closed form. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../dist/simulate.h"
#include "../../ref/base/error.h"
#include "../../ref/blocks/models.h"
#include "../near.h"
#include "../test.h"

static const char gpt[] = "gpt:layers=10,width=64,heads=4,context=32,vocabulary=96";

static Configuration configuration(const Model *model, int pipeline, int submodels) {
    return (Configuration){
        .model = model,
        .cluster = {gpu_find("rtx4090"), 8, 4, NETWORK_2X25G, efficiency_default},
        .stage = {.batch = 2, .optimizer = optimizer_defaults(OPTIMIZER_ADAM), .deferred = true},
        .placement = submodels > 1 ? PLACEMENT_VIRTUAL : PLACEMENT_PLAIN,
        .submodels = submodels,
        .pipeline = pipeline,
        .replicas = 1,
        .micro_batches = 1};
}

/* ---- steps ---- */

/* On one rank a step is the sum of its parts, and its memory is the planned one. */
static void one_rank_adds_up(void) {
    Model *model = model_create(gpt);
    Configuration c = configuration(model, 1, 1);
    bool active[32];
    BlockCost cost[32];
    size_t bytes[MEM_ROLES];
    Prediction p;
    for (int b = 0; b < model->blocks; b++) active[b] = true;
    CHECK(block_costs(cost, model, &c.stage, active, c.cluster.gpu, &c.cluster.efficiency) == 0,
          "%s", error_message());
    CHECK(memory_plan(bytes, model, &c.stage, active) == 0, "%s", error_message());
    c.micro_batches = 3;
    CHECK(simulate(&p, NULL, &c, NULL) == 0, "%s", error_message());
    double sum = 0, update = 0;
    for (int b = 0; b < model->blocks; b++) {
        for (int phase = 0; phase < PASSES; phase++) sum += 3 * cost[b].pass_s[phase];
        update += cost[b].update_s;
    }
    CHECK(near(p.passes_s, sum) && near(p.update_s, update), "%g and %g s, not %g and %g",
          p.passes_s, p.update_s, sum, update);
    CHECK(fabs(p.bubble) < 1e-9, "one rank waits: %g", p.bubble);
    for (int role = 0; role < MEM_WORKSPACE; role++)
        CHECK(p.bytes[role] == (double)bytes[role], "%s: %g bytes, planned %zu",
              mem_role_names[role], p.bytes[role], bytes[role]);
    CHECK(near(p.tokens_per_s, 2 * 3 * 32 / p.step_s), "%g tokens/s", p.tokens_per_s);
    model_free(model);
}

/* With equal blocks of costs 1 : 1 : 1 and messages that take no time, p ranks and m micro-batches
 * wait for 2 (p - 1) / (3 m + 2 (p - 1)) of the time in 1F1B. */
static void bubble_in_closed_form(void) {
    Model *model = model_create("gpt:layers=10,width=64,heads=4,context=32,vocabulary=96");
    BlockCost cost[12];
    for (int b = 0; b < 12; b++) cost[b] = (BlockCost){.pass_s = {1, 1, 1}};
    for (int pipeline = 1; pipeline <= 4; pipeline++) {
        if (12 % pipeline) continue;
        Configuration c = configuration(model, pipeline, 1);
        c.cluster.efficiency.interconnect_latency_s = 0;
        c.micro_batches = 8;
        Prediction p;
        CHECK(simulate(&p, NULL, &c, cost) == 0, "%s", error_message());
        double blocks = 12.0 / pipeline, ramp = 2.0 * (pipeline - 1);
        CHECK(near(p.passes_s, blocks * (3 * 8 + ramp)), "%d ranks: %g s, not %g", pipeline,
              p.passes_s, blocks * (3 * 8 + ramp));
        CHECK(near(1 + p.bubble, 1 + ramp / (24 + ramp)), "%d ranks: bubble %g", pipeline,
              p.bubble);
    }
    model_free(model);
}

/* The cost of BCD on one rank, where forward, input gradients and weight gradients of the whole
 * model take 1 each. */
static void submodels_in_closed_form(void) {
    Model *model = model_create("gpt:layers=10,width=64,heads=4,context=32,vocabulary=96");
    BlockCost cost[3][12];
    for (int k = 0; k < 3; k++)
        for (int b = 0; b < 12; b++)
            cost[k][b] = (BlockCost){
                .pass_s = {1 / 12.0, b >= 4 * k ? 1 / 12.0 : 0, b / 4 == k ? 1 / 12.0 : 0}};
    static const double plain[3] = {7.0 / 3, 2, 5.0 / 3}, cached[3] = {7.0 / 3, 5.0 / 3, 1};
    for (int cache = 0; cache < 2; cache++) {
        Configuration c = configuration(model, 1, 3);
        c.cached = cache;
        c.stage.batch = 1;
        Prediction p;
        double s[3];
        CHECK(simulate(&p, s, &c, cost[0]) == 0, "%s", error_message());
        const double *want = cache ? cached : plain;
        for (int k = 0; k < 3; k++)
            CHECK(near(s[k], want[k]), "submodel %d%s: %g units, not %g", k + 1,
                  cache ? ", cached" : "", s[k], want[k]);
    }
    model_free(model);
}

/* Replicas process more samples per step, and add up the gradients of the active submodel. */
static void replicas_reduce_active_gradients(void) {
    Model *model = model_create(gpt);
    Configuration c = configuration(model, 1, 1);
    c.replicas = 4;
    c.cluster.efficiency.interconnect_latency_s = 0;
    Prediction full, third;
    CHECK(simulate(&full, NULL, &c, NULL) == 0, "%s", error_message());
    c.submodels = 3;
    c.placement = PLACEMENT_VIRTUAL;
    CHECK(simulate(&third, NULL, &c, NULL) == 0, "%s", error_message());
    double rate = c.cluster.gpu->interconnect_bandwidth * c.cluster.efficiency.interconnect;
    double bytes = 4.0 * (double)model->param_count * 2 * 3 / 4;
    CHECK(near(full.reduce_s, bytes / rate), "%g s, not %g", full.reduce_s, bytes / rate);
    CHECK(near(third.reduce_s, full.reduce_s / 3), "a third takes %g of %g s", third.reduce_s,
          full.reduce_s);
    CHECK(near(full.tokens_per_s * full.step_s, 8 * model->targets), "%g/s", full.tokens_per_s);
    model_free(model);
}

/* Replicas of a rank, here each on another node, add up the gradients of its own blocks; the rank
 * with most of them is waited for. */
static void the_fullest_rank_reduces_longest(void) {
    enum { RANKS = 2, REPLICAS = 4 };
    Model *model = model_create(gpt);
    Configuration c = configuration(model, RANKS, 1);
    Placement placement;
    Prediction p;
    double bytes[RANKS] = {0}, longest = 0;
    c.replicas = REPLICAS;
    c.cluster.per_node = RANKS;
    if (!CHECK(simulate_place(&placement, &c) == 0, "%s", error_message())) return;
    for (int i = 0; i < model->params; i++)
        bytes[placement.rank_of[placement.chunk_of[model->param[i].block]]] +=
            4.0 * (double)model->param[i].count;
    for (int r = 0; r < RANKS; r++)
        longest = fmax(longest, cluster_all_reduce_s(&c.cluster, REPLICAS, RANKS, bytes[r]));
    CHECK(bytes[0] != bytes[1], "both have %g bytes", bytes[0]);
    CHECK(simulate(&p, NULL, &c, NULL) == 0, "%s", error_message());
    CHECK(near(p.reduce_s, longest), "%g s, not %g", p.reduce_s, longest);
    placement_free(&placement);
    model_free(model);
}

/* Only messages between nodes use the network.  One micro-batch crosses each boundary between ranks
 * once on the way up and once on the way down. */
static void network_between_nodes_only(void) {
    Model *model = model_create(gpt);
    BlockCost cost[12];
    const double bytes = 1e6;
    for (int b = 0; b < 12; b++) cost[b] = (BlockCost){.pass_s = {1, 1, 1}, .out_bytes = bytes};
    for (int per_node = 1; per_node <= 4; per_node++)
        for (int replicas = 1; replicas <= 2; replicas++) {
            Configuration c = configuration(model, 4, 1);
            Prediction p;
            c.cluster.per_node = per_node;
            c.cluster.nodes = 8;
            c.replicas = replicas;
            CHECK(simulate(&p, NULL, &c, cost) == 0, "%s", error_message());
            double interconnect = cluster_message_s(&c.cluster, 0, 0, bytes);
            double network = cluster_message_s(&c.cluster, 0, per_node, bytes), way = 0;
            for (int r = 0; r < 3; r++) {
                bool across = (r + 1) % per_node == 0;
                /* With three ranks per node the second pipeline is cut at other places. */
                if (replicas == 2) across |= (4 + r + 1) % per_node == 0;
                way += across ? network : interconnect;
            }
            CHECK(near(p.passes_s, 24 + 3 + 2 * way), "%d per node, %d pipelines: %g s, not %g",
                  per_node, replicas, p.passes_s, 27 + 2 * way);
        }
    CHECK(cluster_message_s(&(Cluster){gpu_find("a100"), 8, 1, NETWORK_2X25G, efficiency_default},
                            0, 7, 0) == efficiency_default.interconnect_latency_s,
          "an empty message takes its latency");
    model_free(model);
}

/* A tied head on another rank sends its gradient to the embedding and receives the new values, but
 * not while the embedding is frozen. */
static void tied_parameters_are_exchanged(void) {
    Model *model = model_create(gpt);
    Configuration c = configuration(model, 2, 1);
    Prediction full, third;
    CHECK(simulate(&full, NULL, &c, NULL) == 0, "%s", error_message());
    double way = cluster_message_s(&c.cluster, 0, 1, 4.0 * 96 * 64);
    CHECK(near(full.tied_s, 2 * way), "%g s, not %g", full.tied_s, 2 * way);
    c = configuration(model, 2, 3);
    CHECK(simulate(&third, NULL, &c, NULL) == 0, "%s", error_message());
    CHECK(near(third.tied_s, 2 * way / 3), "one of three submodels: %g s", third.tied_s);
    c = configuration(model, 1, 1);
    CHECK(simulate(&full, NULL, &c, NULL) == 0, "%s", error_message());
    CHECK(full.tied_s == 0, "on one rank nothing travels");
    model_free(model);
}

/* The timeline is that of the simulated step. */
static void timeline_of_a_submodel(void) {
    Model *model = model_create(gpt);
    Configuration c = configuration(model, 2, 3);
    double s[3], sum = 0;
    Prediction p;
    c.micro_batches = 4;
    CHECK(simulate(&p, s, &c, NULL) == 0, "%s", error_message());
    for (int k = 0; k < 3; k++) {
        Schedule schedule;
        if (!CHECK(simulate_timeline(&schedule, &c, k) == 0, "%s", error_message())) break;
        sum += schedule.time;
        CHECK(schedule.ranks == 2 && schedule.rank[0].tasks > 0 && schedule.time <= s[k],
              "submodel %d: %g of %g s", k + 1, schedule.time, s[k]);
        schedule_free(&schedule);
    }
    CHECK(near(sum / 3, p.passes_s), "%g s, not %g", sum / 3, p.passes_s);
    model_free(model);
}

/* Offload costs time per step, not per micro-batch. */
static void offload_is_per_step(void) {
    Model *model = model_create(gpt);
    Configuration c = configuration(model, 1, 1);
    Prediction one, many;
    c.stage.offload = true;
    CHECK(simulate(&one, NULL, &c, NULL) == 0, "%s", error_message());
    c.micro_batches = 16;
    CHECK(simulate(&many, NULL, &c, NULL) == 0, "%s", error_message());
    CHECK(many.update_s <= one.update_s, "more micro-batches hide more: %g, %g s", one.update_s,
          many.update_s);
    double count = (double)model->param_count, rate = c.cluster.gpu->host_rate * 0.8;
    double expected = count * 28 / c.cluster.efficiency.host_memory_rate + count * 4 / rate;
    CHECK(many.update_s >= expected * (1 - 1e-12), "%g s, at least %g", many.update_s, expected);
    CHECK(near(one.host_bytes, 16 * count), "%g bytes on the host", one.host_bytes);
    Configuration nodes = configuration(model, 4, 1);
    Prediction half;
    nodes.stage.offload = true;
    nodes.cluster.per_node = 2;
    CHECK(simulate(&half, NULL, &nodes, NULL) == 0, "%s", error_message());
    CHECK(near(half.host_bytes, 8 * count), "%g bytes on each of two hosts", half.host_bytes);
    /* Four ranks share a host that holds the state of two replicas, and its rate. */
    nodes.pipeline = nodes.replicas = 2;
    nodes.cluster.per_node = 4;
    nodes.micro_batches = 64;
    nodes.cluster.efficiency.interconnect_latency_s = 0;
    Prediction two;
    CHECK(simulate(&two, NULL, &nodes, NULL) == 0, "%s", error_message());
    CHECK(near(two.host_bytes, 2 * 16 * count), "%g bytes on their host", two.host_bytes);
    double shared = count * 28 * 2 / nodes.cluster.efficiency.host_memory_rate + count * 2 / rate;
    CHECK(near(two.update_s, shared), "%g s, not %g", two.update_s, shared);
    /* One process alone may reach less than the rate of its node's memory. */
    double not_hidden = many.update_s - expected;
    c.cluster.efficiency.host_process_rate = c.cluster.efficiency.host_memory_rate / 4;
    CHECK(simulate(&many, NULL, &c, NULL) == 0, "%s", error_message());
    double slower = count * 28 * 4 / c.cluster.efficiency.host_memory_rate + count * 4 / rate;
    CHECK(fabs(many.update_s - slower - not_hidden) < 1e-9, "%g s, not %g", many.update_s, slower);
    model_free(model);
}

/* simulate_bound gives the same bytes as simulate.  Its time of the passes is at most that of
 * simulate and at least a rank's share of the work; on one rank, which never waits, it is the same.
 */
static void bounds_are_below(void) {
    Model *model = model_create(gpt);
    for (int submodels = 1; submodels <= 3; submodels += 2) {
        double work = 0;
        for (int pipeline = 1; pipeline <= 4; pipeline++) {
            Configuration c = configuration(model, pipeline, submodels);
            Prediction p, bound;
            c.micro_batches = 8;
            CHECK(simulate(&p, NULL, &c, NULL) == 0, "%s", error_message());
            CHECK(simulate_bound(&bound, &c) == 0, "%s", error_message());
            if (pipeline == 1) work = p.passes_s;
            CHECK(bound.passes_s <= p.passes_s * (1 + 1e-9) &&
                      bound.passes_s >= work / pipeline * (1 - 1e-9) &&
                      (pipeline > 1 || near(bound.passes_s, p.passes_s)),
                  "%d ranks, %d submodels: at least %g s of %g", pipeline, submodels,
                  bound.passes_s, p.passes_s);
            CHECK(bound.total_bytes == p.total_bytes && near(bound.update_s, p.update_s),
                  "%d ranks, %d submodels: %g bytes of %g", pipeline, submodels, bound.total_bytes,
                  p.total_bytes);
        }
    }
    model_free(model);
}

/* Calibration finds the efficiency with which a step takes the given time. */
static void calibration_finds_the_number(void) {
    Model *model = model_create("gpt2");
    Configuration c = configuration(model, 1, 3);
    Prediction p;
    double *fraction = &c.cluster.efficiency.products[PRECISION_FP32];
    *fraction = 0.31;
    CHECK(simulate(&p, NULL, &c, NULL) == 0, "%s", error_message());
    *fraction = 0.73;
    CHECK(simulate_calibrate(&c, fraction, p.step_s) == 0, "%s", error_message());
    CHECK(fabs(*fraction - 0.31) < 1e-5, "%g instead of 0.31", *fraction);
    double before = *fraction;
    CHECK(simulate_calibrate(&c, fraction, 1e-9) == -1, "a step of a nanosecond");
    CHECK(*fraction == before, "it was changed");
    model_free(model);
}

/* Attention without fused kernels moves the scores eight times forward and eleven times backward.
 * The fused node moves input and output forward, and the output and twice the input backward; the
 * input is `in` times as large as the output. */
static void check_scores(const char *spec, double in) {
    Model *model = model_create(spec);
    Configuration c = configuration(model, 1, 1);
    Prediction fused, dense;
    c.cluster.efficiency.launch_s = 0;
    c.cluster.efficiency.products[PRECISION_FP32] = 1e9; /* so fast that only bytes take time */
    CHECK(simulate(&fused, NULL, &c, NULL) == 0, "%s", error_message());
    c.cluster.efficiency.scores_in_memory = true;
    CHECK(simulate(&dense, NULL, &c, NULL) == 0, "%s", error_message());
    double rate = c.cluster.gpu->memory_rate * c.cluster.efficiency.memory;
    double scores = 10 * 19 * 2 * 4 * 32 * 32 * 4 / rate;
    double arrays = 10 * (in + 1 + 1 + 2 * in) * 2 * 32 * 64 * 4 / rate;
    CHECK(fabs(dense.passes_s - fused.passes_s - scores + arrays) < 1e-6 * dense.passes_s,
          "%g s more, not %g", dense.passes_s - fused.passes_s, scores - arrays);
    model_free(model);
}

static void scores_through_memory(void) {
    check_scores(gpt, 3);
    check_scores("llama:layers=10,width=64,heads=4,groups=2,context=32,vocabulary=96", 2);
}

/* Refuses no ranks, no replicas, and more ranks and replicas than GPUs. */
static void refuses_the_impossible(void) {
    static const int ranks[][2] = {{0, 1}, {1, 0}, {1, 1000000}};
    Model *model = model_create(gpt);
    Prediction p;
    for (int i = 0; i < 3; i++) {
        Configuration c = configuration(model, 1, 1);
        c.pipeline = ranks[i][0], c.replicas = ranks[i][1];
        CHECK(simulate(&p, NULL, &c, NULL) == -1 && strstr(error_message(), "GPUs"), "%d: %s", i,
              error_message());
    }
    Configuration c = configuration(model, 2, 3);
    c.always_active = "ends";
    CHECK(simulate(&p, NULL, &c, NULL) == -1 && strstr(error_message(), "need the plain placement"),
          "virtual");
    model_free(model);
}

static void refuses_another_placement(void) {
    Model *model = model_create(gpt);
    double cost[32];
    for (int b = 0; b < 32; b++) cost[b] = 1;
    Placement placement;
    Prediction p;
    CHECK(placement_make(&placement, model, PLACEMENT_PLAIN, 2, 1, cost, NULL) == 0, "%s",
          error_message());
    Configuration c = configuration(model, 2, 1);
    c.placed = &placement;
    CHECK(simulate(&p, NULL, &c, NULL) == 0, "%s", error_message());
    c.pipeline = 3;
    CHECK(simulate(&p, NULL, &c, NULL) == -1 && strstr(error_message(), "on 2 ranks, for 1 on 3"),
          "2 ranks for 3: %s", error_message());
    c.pipeline = 2, c.submodels = 3;
    CHECK(simulate(&p, NULL, &c, NULL) == -1 && strstr(error_message(), "1 submodels on 2 ranks"),
          "1 submodel for 3: %s", error_message());
    placement_free(&placement);
    model_free(model);
}

/* A model that does not fit one GPU fits when it is divided over sixteen. */
static void large_models_need_many(void) {
    Model *model = model_create("G-10B");
    Configuration c = configuration(model, 1, 1);
    c.stage.batch = 1;
    Prediction one, many;
    CHECK(simulate(&one, NULL, &c, NULL) == 0, "%s", error_message());
    CHECK(!one.fits, "10.8 G parameters fit one card with 24 GB");
    c = configuration(model, 16, 3);
    c.stage.batch = 1;
    c.stage.recompute = true;
    CHECK(simulate(&many, NULL, &c, NULL) == 0, "%s", error_message());
    CHECK(many.fits, "a third of it at a time, over 16 cards: %.1f GiB each",
          many.total_bytes / (1 << 30));
    model_free(model);
}

void test_simulate(void) {
    RUN(one_rank_adds_up);
    RUN(bubble_in_closed_form);
    RUN(submodels_in_closed_form);
    RUN(replicas_reduce_active_gradients);
    RUN(the_fullest_rank_reduces_longest);
    RUN(network_between_nodes_only);
    RUN(tied_parameters_are_exchanged);
    RUN(timeline_of_a_submodel);
    RUN(offload_is_per_step);
    RUN(bounds_are_below);
    RUN(calibration_finds_the_number);
    RUN(scores_through_memory);
    RUN(refuses_the_impossible);
    RUN(refuses_another_placement);
    RUN(large_models_need_many);
}
