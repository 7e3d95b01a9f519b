/* Placements and simulated steps, where the answer is known. */
#include <math.h>
#include <stdlib.h>

#include "../../dist/simulate.h"
#include "../../ref/error.h"
#include "../test.h"

static const char gpt[] = "gpt:layers=10,width=64,heads=4,context=32,vocabulary=96";

static Configuration configuration(const Model *model, int pipeline, int submodels) {
    return (Configuration){.model = model,
                           .cluster = {gpu_find("rtx4090"), 8, 4, NETWORK_2X25G, practice_default},
                           .stage = {.batch = 2, .optimizer = optimizer_defaults(OPTIMIZER_ADAM)},
                           .placement = submodels > 1 ? PLACEMENT_VIRTUAL : PLACEMENT_PLAIN,
                           .submodels = submodels,
                           .pipeline = pipeline,
                           .replicas = 1,
                           .micro_batches = 1};
}

static bool near(double a, double b) { return fabs(a - b) <= 1e-9 * (fabs(a) + fabs(b)); }

/* ---- placements ---------------------------------------------------------------------------------
 */

typedef struct {
    const char *name;
    PlacementKind kind;
    int ranks, submodels;
} PlacementRow;

static const PlacementRow placement_rows[] = {
    {"plain 3 ranks", PLACEMENT_PLAIN, 3, 1},
    {"plain 4 ranks, 3 submodels", PLACEMENT_PLAIN, 4, 3},
    {"virtual 2 ranks, 3 submodels", PLACEMENT_VIRTUAL, 2, 3},
    {"virtual 4 ranks, 3 submodels", PLACEMENT_VIRTUAL, 4, 3},
    {"figure 2, 3 ranks, 2 submodels", PLACEMENT_FIGURE2, 3, 2},
    {"figure 2, 1 rank, 4 submodels", PLACEMENT_FIGURE2, 1, 4},
};

static void check_cover(const Placement *p, int blocks) {
    int *seen = calloc((size_t)(p->ranks * p->submodels), sizeof *seen);
    if (!seen) abort();
    for (int b = 0; b < blocks; b++) {
        CHECK(p->chunk_of[b] >= 0 && p->chunk_of[b] < p->chunks, "block %d is nowhere", b);
        CHECK(b == 0 || (p->chunk_of[b] - p->chunk_of[b - 1]) / 2 == 0, "chunks jump at block %d",
              b);
        CHECK(p->submodel_of[b] >= 0 && p->submodel_of[b] < p->submodels, "block %d never trains",
              b);
        seen[p->rank_of[p->chunk_of[b]] * p->submodels + p->submodel_of[b]]++;
    }
    CHECK(p->chunk_of[blocks - 1] == p->chunks - 1, "the last chunk is empty");
    bool everywhere = p->chunks == p->ranks * p->submodels;
    for (int i = 0; i < p->ranks * p->submodels && everywhere; i++)
        CHECK(seen[i], "rank %d holds nothing of submodel %d", i / p->submodels, i % p->submodels);
    free(seen);
}

static void placement_covers(const void *data) {
    const PlacementRow *row = data;
    double cost[32];
    for (int b = 0; b < 32; b++) cost[b] = 1 + 0.1 * (b % 3);
    Model *model = model_create("gpt:layers=14,width=32,heads=2,context=8,vocabulary=16");
    Placement p;
    if (!CHECK(placement_make(&p, model, row->kind, row->ranks, row->submodels, cost, NULL) == 0,
               "%s", error_message()))
        return;
    check_cover(&p, model->blocks);
    placement_free(&p);
    model_free(model);
}

static void placement_refuses_too_many_pieces(void) {
    double cost[32] = {0};
    Model *model = model_create("gpt:layers=4,width=32,heads=2,context=8,vocabulary=16");
    for (PlacementKind kind = 0; kind < PLACEMENTS; kind++) {
        Placement p;
        CHECK(placement_make(&p, model, kind, 7, 3, cost, NULL) == -1, "%s was accepted",
              placement_names[kind]);
    }
    model_free(model);
}

/* ---- steps --------------------------------------------------------------------------------------
 */

/* On one rank a step is the sum of its parts, and memory is that of the plan. */
static void one_rank_adds_up(void) {
    Model *model = model_create(gpt);
    Configuration c = configuration(model, 1, 1);
    bool active[32];
    BlockCost cost[32];
    size_t bytes[MEM_ROLES];
    Prediction p;
    for (int b = 0; b < model->blocks; b++) active[b] = true;
    CHECK(block_costs(cost, model, &c.stage, active, c.cluster.gpu, &c.cluster.practice) == 0, "%s",
          error_message());
    CHECK(memory_plan(bytes, model, &c.stage, active) == 0, "%s", error_message());
    c.micro_batches = 3;
    CHECK(simulate(&p, NULL, &c, NULL) == 0, "%s", error_message());
    double sum = 0, update = 0;
    for (int b = 0; b < model->blocks; b++) {
        for (int phase = 0; phase < PHASES; phase++) sum += 3 * cost[b].phase_s[phase];
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

/* Equal blocks, nothing on the way: p ranks and m micro-batches idle (p - 1) / (m + p - 1) of the
 * time in 1F1B with gradients that leave early, here with 1 : 1 : 1 costs 2 (p - 1) / (3 m + 2 (p -
 * 1)). */
static void bubble_in_closed_form(void) {
    Model *model = model_create("gpt:layers=10,width=64,heads=4,context=32,vocabulary=96");
    BlockCost cost[12];
    for (int b = 0; b < 12; b++) cost[b] = (BlockCost){.phase_s = {1, 1, 1}};
    for (int pipeline = 1; pipeline <= 4; pipeline++) {
        if (12 % pipeline) continue;
        Configuration c = configuration(model, pipeline, 1);
        c.cluster.practice.link_latency_s = 0;
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

/* The table of what BCD costs: forward 1, input gradients 1, weight gradients 1 for the whole. */
static void submodels_in_closed_form(void) {
    Model *model = model_create("gpt:layers=10,width=64,heads=4,context=32,vocabulary=96");
    BlockCost cost[3][12];
    for (int k = 0; k < 3; k++)
        for (int b = 0; b < 12; b++)
            cost[k][b] = (BlockCost){
                .phase_s = {1 / 12.0, b >= 4 * k ? 1 / 12.0 : 0, b / 4 == k ? 1 / 12.0 : 0}};
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

/* More pipelines see more data, and pay for adding up gradients; only the active ones. */
static void replicas_reduce_active_gradients(void) {
    Model *model = model_create(gpt);
    Configuration c = configuration(model, 1, 1);
    c.replicas = 4;
    c.cluster.practice.link_latency_s = 0;
    Prediction full, third;
    CHECK(simulate(&full, NULL, &c, NULL) == 0, "%s", error_message());
    c.submodels = 3;
    c.placement = PLACEMENT_VIRTUAL;
    CHECK(simulate(&third, NULL, &c, NULL) == 0, "%s", error_message());
    double rate = c.cluster.gpu->link_rate * c.cluster.practice.link;
    double bytes = 4.0 * (double)model->param_count * 2 * 3 / 4;
    CHECK(near(full.reduce_s, bytes / rate), "%g s, not %g", full.reduce_s, bytes / rate);
    CHECK(near(third.reduce_s, full.reduce_s / 3), "a third takes %g of %g s", third.reduce_s,
          full.reduce_s);
    CHECK(near(full.samples_per_s, 8 / full.step_s), "%g samples/s", full.samples_per_s);
    model_free(model);
}

/* The paper's Table 8: bytes of parameters, gradients and state. */
static void published_memory(void) {
    static const struct {
        const char *spec;
        int gpus;
        double full, third; /* GiB, over all GPUs */
    } rows[] = {{"G-1.6B", 1, 24.077, 12.038}, {"G-10B", 8, 160.738, 80.370}};
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

/* What does not fit must be said not to. */
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
    for (size_t i = 0; i < sizeof placement_rows / sizeof *placement_rows; i++)
        RUN_ROW(placement_rows[i].name, placement_covers, &placement_rows[i]);
    RUN(placement_refuses_too_many_pieces);
    RUN(one_rank_adds_up);
    RUN(bubble_in_closed_form);
    RUN(submodels_in_closed_form);
    RUN(replicas_reduce_active_gradients);
    RUN(published_memory);
    RUN(large_models_need_many);
}
