/* Simulated pre-inference, whose times are known in closed form. */
#include <math.h>
#include <string.h>

#include "../../dist/simulate_infer.h"
#include "../../ref/base/error.h"
#include "../../ref/blocks/models.h"
#include "../near.h"
#include "../test.h"

/* Returns the bytes of a stage that only infers, and has the blocks below `lowest` alone. */
static double planned_bytes(const Model *model, int lowest) {
    bool local[32] = {false}, active[32] = {false};
    size_t bytes[MEM_ROLES];
    double sum = 0;
    memset(local, true, (size_t)lowest);
    const StageSettings settings = {.batch = 2,
                                    .optimizer = optimizer_defaults(OPTIMIZER_ADAM),
                                    .skip_init = true,
                                    .local = local};
    CHECK(memory_plan(bytes, model, &settings, active) == 0, "%s", error_message());
    for (int role = 0; role < MEM_ROLES; role++) sum += (double)bytes[role];
    return sum;
}

/* With n ranks a sample's prefix takes an n-th of its forward passes, its outputs come from all
 * ranks but the holder, which sends a whole batch to each other replica's, and the parameters of a
 * block go from its owner to all others.  Replicas share the samples.  The second of two submodels
 * alone has a prefix. */
static void inference_adds_up(void) {
    Model *model = model_create("gpt:layers=10,width=64,heads=4,context=32,vocabulary=96");
    const int per_sample = 32 * 64, submodels = 2; /* an output: context x width */
    for (int row = 0; row < 6; row++) {
        const int ranks = 1 << row % 3, replicas = 1 + row / 3;
        Configuration c = {
            .model = model,
            .cluster = {gpu_find("rtx4090"), 8, 4, NETWORK_2X25G, efficiency_default},
            .stage = {.batch = 2, .optimizer = optimizer_defaults(OPTIMIZER_ADAM)},
            .placement = PLACEMENT_PLAIN,
            .submodels = submodels,
            .pipeline = ranks,
            .replicas = replicas,
            .micro_batches = 4};
        Placement p;
        Inference inference;
        BlockCost cost[32];
        bool active[32];
        double forward = 0, parameters = 0, gather = 0;
        int lowest = 0;
        if (!CHECK(simulate_place(&p, &c) == 0, "%s", error_message())) break;
        while (p.submodel_of[lowest] == 0) lowest++;
        const int holder = p.rank_of[p.chunk_of[lowest]];
        for (int b = 0; b < model->blocks; b++) active[b] = p.submodel_of[b] == 1;
        CHECK(block_costs(cost, model, &c.stage, active, c.cluster.gpu, &c.cluster.efficiency) == 0,
              "%s", error_message());
        for (int b = 0; b < lowest; b++) {
            size_t count = 0;
            for (int i = 0; i < model->params; i++)
                if (model->param[i].block == b) count += model->param[i].count;
            forward += cost[b].pass_s[PASS_FORWARD] / c.stage.batch;
            parameters += (ranks - 1) * cluster_message_s(&c.cluster, 0, 1, 4.0 * (double)count);
        }
        const double samples = 2 * 4;
        gather =
            (ranks - 1) * cluster_message_s(&c.cluster, 0, 1, samples / ranks * per_sample * 4) +
            (replicas - 1) * cluster_message_s(&c.cluster, 0, 1, samples * per_sample * 4);
        gather /= samples * replicas;
        CHECK(simulate_inference(&inference, &c, ranks) == 0, "%s", error_message());
        CHECK(near(inference.compute_s, forward / (ranks * replicas) / submodels),
              "%d ranks, %d replicas: computes %g s", ranks, replicas, inference.compute_s);
        CHECK(near(inference.gather_s, gather / submodels),
              "%d ranks, %d replicas: gathers %g s, not %g", ranks, replicas, inference.gather_s,
              gather / submodels);
        CHECK(near(inference.parameters_s, parameters / submodels), "%d ranks: sends %g s", ranks,
              inference.parameters_s);
        CHECK(inference.saved_s > 0 && inference.prefix_bytes == planned_bytes(model, lowest),
              "%g s, %g bytes", inference.saved_s, inference.prefix_bytes);
        /* Fewer ranks of the pipeline infer, so each has more to do. */
        if (ranks > 1 && holder > 0) {
            CHECK(simulate_inference(&inference, &c, 1) == 0, "%s", error_message());
            CHECK(near(inference.compute_s, forward / replicas / submodels), "1 of %d ranks",
                  ranks);
        }
        placement_free(&p);
    }
    model_free(model);
}

void test_simulate_infer(void) { RUN(inference_adds_up); }
