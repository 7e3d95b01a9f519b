/* The data sheets of the planner, and costs in closed form: of blocks, of all-reduces, and the
 * paper's of memory. */
#include <math.h>

#include "../../dist/cost.h"
#include "../../ref/base/error.h"
#include "../../ref/blocks/models.h"
#include "../../ref/memory.h"
#include "../near.h"
#include "../test.h"

/* The rates of the data sheets: TFLOP/s in fp32, tf32 and bf16, then GB/s of the memory, of the
 * interconnect between GPUs and of that to the host (NVLink 3 and 4, PCIe 4.0 and 5.0 x16), in one
 * direction. */
static void data_sheets(void) {
    static const struct {
        const char *key;
        double fp32, tf32, bf16, memory, interconnect, host;
    } sheets[] = {{"rtx4090", 82.6, 82.6, 165.2, 1008, 31.5, 31.5},
                  {"a100", 19.5, 156, 312, 2039, 300, 31.5},
                  {"a800", 19.5, 156, 312, 1935, 31.5, 31.5},
                  {"h100", 66.9, 494.7, 989.4, 3352, 450, 63},
                  {"h200", 66.9, 494.7, 989.4, 4800, 450, 63}};
    for (size_t i = 0; i < sizeof sheets / sizeof *sheets; i++) {
        const Gpu *gpu = gpu_find(sheets[i].key);
        if (!CHECK(gpu, "%s", error_message())) continue;
        CHECK(near(gpu->flops[PRECISION_FP32], 1e12 * sheets[i].fp32) &&
                  near(gpu->flops[PRECISION_TF32], 1e12 * sheets[i].tf32) &&
                  near(gpu->flops[PRECISION_BF16], 1e12 * sheets[i].bf16),
              "%s computes otherwise", gpu->name);
        CHECK(near(gpu->memory_rate, 1e9 * sheets[i].memory) &&
                  near(gpu->interconnect_bandwidth, 1e9 * sheets[i].interconnect) &&
                  near(gpu->host_rate, 1e9 * sheets[i].host),
              "%s: %g, %g and %g bytes/s", gpu->name, gpu->memory_rate, gpu->interconnect_bandwidth,
              gpu->host_rate);
    }
}

/* Memory, of which 3 % are the driver's, and dollars per hour, as the paper has them
 * (section 4.4.1); then what is reached of a data sheet unless a measurement says otherwise. */
static void memory_prices_efficiency(void) {
    static const struct {
        const char *key;
        double gib, dollars;
    } cards[] = {{"rtx4090", 24, 0.29},
                 {"a100", 80, 1.20},
                 {"a800", 80, 0.69},
                 {"h100", 80, 0},
                 {"h200", 139, 0}};
    for (size_t i = 0; i < sizeof cards / sizeof *cards; i++) {
        const Gpu *gpu = gpu_find(cards[i].key);
        if (!CHECK(gpu, "%s", error_message())) continue;
        CHECK(near(gpu_usable_bytes(gpu->memory_bytes), 0.97 * cards[i].gib * 1024 * 1024 * 1024) &&
                  gpu->dollars_per_hour == cards[i].dollars,
              "%s: %g bytes, %g dollars", gpu->name, gpu_usable_bytes(gpu->memory_bytes),
              gpu->dollars_per_hour);
    }
    const Efficiency *e = &efficiency_default;
    CHECK(e->products[PRECISION_FP32] == 0.73 && e->products[PRECISION_TF32] == 0.84 &&
              e->products[PRECISION_BF16] == 0.80 && e->memory == 0.90 && e->interconnect == 0.80,
          "fractions of the peak");
    CHECK(near(e->launch_s, 2e-6) && near(e->interconnect_latency_s, 1e-5) &&
              near(e->network_latency_s, 3e-5) && near(e->host_process_rate, 1e11) &&
              near(e->host_memory_rate, 1e11) && !e->scores_in_memory,
          "latencies, and the memory of the host");
}

/* A window of w of t positions leaves (t - w)^2 of the t^2 scores out where kernels are fused.
 * Without these all scores are computed, and a mask removes those that do not count. */
static void attention_window(void) {
    const double t = 4096, w = 512;
    double fused[2], unfused[2];
    for (int windowed = 0; windowed < 2; windowed++) {
        Model *m = model_create(windowed ? "mistral:layers=1,width=512,heads=8,ffn=64,vocabulary=9,"
                                           "context=4096,window=512"
                                         : "llama:layers=1,width=512,heads=8,ffn=64,vocabulary=9,"
                                           "context=4096");
        if (!CHECK(m, "%s", error_message())) return;
        bool active[8] = {false};
        BlockCost cost[8];
        Efficiency e = efficiency_default;
        StageSettings settings = {.batch = 64, .precision = PRECISION_FP32};
        e.launch_s = 0;
        CHECK(block_costs(cost, m, &settings, active, gpu_find("a100"), &e) == 0, "%s",
              error_message());
        fused[windowed] = cost[1].pass_s[PASS_FORWARD];
        e.scores_in_memory = true;
        CHECK(block_costs(cost, m, &settings, active, gpu_find("a100"), &e) == 0, "%s",
              error_message());
        unfused[windowed] = cost[1].pass_s[PASS_FORWARD];
        model_free(m);
    }
    const double rate =
        gpu_find("a100")->flops[PRECISION_FP32] * efficiency_default.products[PRECISION_FP32];
    const double all = 64 * 2 * t * t * 512 / rate, saved = (t - w) * (t - w) / (t * t) * all;
    CHECK(near(fused[0] - fused[1], saved), "a window saves %g s, not %g", fused[0] - fused[1],
          saved);
    CHECK(unfused[0] == unfused[1], "%g and %g s", unfused[0], unfused[1]);
}

/* An all-reduce of four takes six turns, each with a quarter of the bytes.  Between nodes, the GPUs
 * of a node that reduce at the same time share its network. */
static void reduce_between_nodes(void) {
    static const struct {
        int replicas, stride, sharing; /* 0: inside the node */
    } rows[] = {{4, 1, 0}, {2, 2, 0}, {4, 2, 2}, {2, 4, 4}, {4, 8, 4}};
    const double bytes = 1e9;
    Cluster c = {gpu_find("rtx4090"), 4, 8, NETWORK_2X25G, efficiency_default};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int n = rows[i].replicas, sharing = rows[i].sharing;
        double rate = sharing ? c.network_rate / sharing : c.gpu->interconnect_bandwidth;
        double latency =
            sharing ? c.efficiency.network_latency_s : c.efficiency.interconnect_latency_s;
        double expected = 2 * (n - 1) * (latency + bytes / n / (rate * c.efficiency.interconnect));
        double got = cluster_all_reduce_s(&c, n, rows[i].stride, bytes);
        CHECK(near(got, expected), "%d replicas, %d apart: %g s, not %g", n, rows[i].stride, got,
              expected);
    }
}

/* Of the head, a norm and a linear layer, the weight gradients read two arrays of bf16 and write
 * floats; its update moves 30 bytes a parameter.  Recomputing adds a forward pass, without what
 * only the output of a block needs, and deferred weight gradients add it once more. */
static void costs_in_bf16(void) {
    enum { ROWS = 2 * 32, WIDTH = 64, VOCABULARY = 96 };
    Model *model = model_create("llama:layers=2,width=64,heads=4,context=32,vocabulary=96");
    StageSettings settings = {
        .batch = 2, .precision = PRECISION_BF16, .optimizer = optimizer_defaults(OPTIMIZER_ADAM)};
    Efficiency efficiency = efficiency_default;
    const Gpu *gpu = gpu_find("rtx4090");
    BlockCost cost[4], again[4], deferred[4];
    const bool active[4] = {true, true, true, true};
    efficiency.launch_s = 0;
    efficiency.products[PRECISION_BF16] = 1e9; /* so fast that only bytes take time */
    CHECK(block_costs(cost, model, &settings, active, gpu, &efficiency) == 0, "%s",
          error_message());
    settings.recompute = true;
    CHECK(block_costs(again, model, &settings, active, gpu, &efficiency) == 0, "%s",
          error_message());
    settings.deferred = true;
    CHECK(block_costs(deferred, model, &settings, active, gpu, &efficiency) == 0, "%s",
          error_message());
    double rate = gpu->memory_rate * efficiency.memory;
    double norm = 2 * ROWS * 2 * WIDTH + 4 * WIDTH;
    double linear = 2 * ROWS * (WIDTH + VOCABULARY) + 4 * WIDTH * VOCABULARY;
    double got = cost[3].pass_s[PASS_WEIGHT_GRADIENT] * rate;
    CHECK(near(got, norm + linear), "weight gradients move %g bytes, not %g", got, norm + linear);
    got = cost[3].update_s * rate;
    CHECK(near(got, 30 * (WIDTH + WIDTH * VOCABULARY)), "the update moves %g bytes", got);
    const int hidden = model->node[model->block[1].end_node - 2].in_shape.c;
    const double down = 2 * ROWS * (hidden + WIDTH) + 2 * hidden * WIDTH,
                 add = 3 * 2 * ROWS * WIDTH;
    const double block = cost[1].pass_s[PASS_FORWARD] - (down + add) / rate;
    const double forwards[4] = {0, block, block, (norm - 2 * WIDTH) / rate};
    for (int b = 0; b < 4; b++) {
        const double forward = forwards[b];
        const double *first = cost[b].pass_s, *then = again[b].pass_s;
        CHECK(near(then[PASS_INPUT_GRADIENT], first[PASS_INPUT_GRADIENT] + forward) &&
                  near(then[PASS_WEIGHT_GRADIENT], first[PASS_WEIGHT_GRADIENT]),
              "block %d is not recomputed", b);
        const double *late = deferred[b].pass_s;
        CHECK(near(late[PASS_INPUT_GRADIENT], then[PASS_INPUT_GRADIENT]) &&
                  near(late[PASS_WEIGHT_GRADIENT], first[PASS_WEIGHT_GRADIENT] + forward),
              "block %d is not recomputed for its weight gradients", b);
    }
    model_free(model);
}

/* Overwrites cost[] with a full update in bf16 on a card whose memory moves a byte in a second, and
 * whose products take `compute` seconds for an operation and `launch` for a node. */
static void cost_in_bytes(BlockCost *cost, const Model *model, OptimizerKind optimizer,
                          double compute, double launch) {
    const bool active[] = {true, true, true};
    const Gpu gpu = {.flops = {1, 1, 1}, .memory_rate = 1};
    const Efficiency e = {
        .products = {[PRECISION_TF32] = 1 / compute, [PRECISION_BF16] = 1 / compute},
        .memory = 1,
        .launch_s = launch};
    const StageSettings settings = {
        .batch = 2, .precision = PRECISION_BF16, .optimizer = optimizer_defaults(optimizer)};
    CHECK(block_costs(cost, model, &settings, active, &gpu, &e) == 0, "%s", error_message());
}

/* By hand, in numbers: of the embedding the rows of 2 x 32 tokens, of a layer two norms, linear
 * layers of 3, 1, 4 and 4 squares of the width, an attention, a GELU and two sums.  An input
 * gradient moves the output, the input twice, and weights, and a weight gradient no sums. */
static void bytes_by_hand(void) {
    enum { ROWS = 2 * 32, WIDTH = 64, ROW = ROWS * WIDTH, SQUARE = WIDTH * WIDTH };
    Model *model = model_create("gpt:layers=1,width=64,heads=4,context=32,vocabulary=96");
    BlockCost cost[3];
    cost_in_bytes(cost, model, OPTIMIZER_ADAM, 1e-30, 0);
    const double ids = 4 * ROWS, weights = 12 * SQUARE + 2 * WIDTH;
    const double expected[2][PASSES] = {
        {ids + 2 * 2 * ROW, 0, ids + 2 * ROW + 4 * ROW},
        {2 * (38 * ROW + weights), 2 * (54 * ROW + weights), 2 * 20 * ROW + 4 * weights}};
    for (int b = 0; b < 2; b++)
        for (int pass = 0; pass < PASSES; pass++)
            CHECK(near(cost[b].pass_s[pass], expected[b][pass]), "block %d, pass %d: %g, not %g", b,
                  pass, cost[b].pass_s[pass], expected[b][pass]);
    model_free(model);
}

/* A node takes the longer of moving and computing, and a launch: here a norm, which computes
 * nothing, and a linear layer. */
static void a_node_takes_the_longer(void) {
    enum { ROWS = 2 * 32, WIDTH = 64, VOCABULARY = 96 };
    Model *model = model_create("llama:layers=1,width=64,heads=4,context=32,vocabulary=96");
    const double norm = 2 * (2 * ROWS * WIDTH + WIDTH),
                 moved = 2 * (ROWS * (WIDTH + VOCABULARY) + WIDTH * VOCABULARY),
                 operations = 2.0 * ROWS * WIDTH * VOCABULARY;
    for (int third = 1; third <= 9; third += 2) {
        BlockCost cost[3];
        const double computed = third / 3.0 * moved;
        cost_in_bytes(cost, model, OPTIMIZER_ADAM, computed / operations, 1000);
        const double expected = norm + fmax(moved, computed) + 2 * 1000;
        CHECK(near(cost[2].pass_s[PASS_FORWARD], expected), "%d thirds: %g s, not %g", third,
              cost[2].pass_s[PASS_FORWARD], expected);
    }
    model_free(model);
}

/* Muon multiplies matrices: of the layer's seven squares each step takes three products. */
static void an_update_computes(void) {
    enum { WIDTH = 64, SQUARES = 7 };
    Model *model = model_create("llama:layers=1,width=64,heads=4,ffn=64,context=32,vocabulary=96");
    const double cube = (double)WIDTH * WIDTH * WIDTH, expected = SQUARES * 5 * 3 * 2 * cube;
    static const OptimizerKind kinds[] = {OPTIMIZER_ADAM, OPTIMIZER_MUON};
    for (int i = 0; i < 2; i++) {
        BlockCost fast[3], slow[3];
        cost_in_bytes(fast, model, kinds[i], 1e-30, 0);
        cost_in_bytes(slow, model, kinds[i], 1, 0);
        CHECK(near(slow[1].update_s - fast[1].update_s, i ? expected : 0), "%g operations",
              slow[1].update_s - fast[1].update_s);
    }
    model_free(model);
}

/* The paper's Table 8: bytes of parameters, gradients and state. */
static void published_memory(void) {
    static const struct {
        const char *spec;
        double full, third; /* GiB, over all GPUs */
    } rows[] = {{"G-1.6B", 24.077, 12.038}, {"G-10B", 160.738, 80.370}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Model *model = model_create(rows[i].spec);
        for (int submodels = 1; submodels <= 3; submodels += 2) {
            OptimizerSettings adam = optimizer_defaults(OPTIMIZER_ADAM);
            double form = memory_closed_form(model, &adam, PRECISION_FP32, submodels) / (1 << 30);
            double published = submodels == 1 ? rows[i].full : rows[i].third;
            CHECK(fabs(form / published - 1) < 1e-3, "%s / %d: %g GiB, published %g", rows[i].spec,
                  submodels, form, published);
        }
        model_free(model);
    }
}

void test_cost(void) {
    RUN(data_sheets);
    RUN(memory_prices_efficiency);
    RUN(attention_window);
    RUN(reduce_between_nodes);
    RUN(costs_in_bf16);
    RUN(bytes_by_hand);
    RUN(a_node_takes_the_longer);
    RUN(an_update_computes);
    RUN(published_memory);
}
