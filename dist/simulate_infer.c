#include "simulate_infer.h"

#include <math.h>
#include <stdlib.h>

#include "../ref/base/error.h"
#include "../ref/layout.h"
#include "rank_plan.h"

typedef struct {
    const Configuration *c;
    const Placement *placement;
    int ranks;    /* of a pipeline, that infer */
    bool *active; /* [blocks] */
    BlockCost *cost;
} InferSimulation;

/* Returns the bytes of a block's parameters and buffers, which travel as floats. */
static double tensor_bytes(const Model *m, int block) {
    double count = 0;
    for (TensorRole role = TENSOR_PARAMETER; role <= TENSOR_BUFFER; role++)
        for (int i = 0; i < tensor_count(m, role); i++)
            if (tensor_block(m, role, i) == block) count += (double)tensor_elements(m, role, i);
    return count * sizeof(float);
}

/* A rank sends its tensors to one rank after the other, and the ranks take turns. */
static double parameters_time(const InferSimulation *s, int lowest) {
    double time = 0;
    for (int b = 0; b < lowest; b++) {
        const int owner = placement_rank(s->placement, b);
        const double bytes = tensor_bytes(s->c->model, b);
        for (int r = 0; r < s->c->pipeline; r++)
            if (r != owner) time += cluster_message_s(&s->c->cluster, owner, r, bytes);
    }
    return time;
}

/* Returns the time of a batch's outputs: to the holder from one rank after the other, and then from
 * each holder to those of the other replicas. */
static double gather_time(const InferSimulation *s, int lowest) {
    const Configuration *c = s->c;
    const int holder = placement_rank(s->placement, lowest);
    const double samples = (double)c->stage.batch * c->micro_batches;
    const double bytes =
        samples * sizeof(float) * (double)value_count(c->model, c->model->block[lowest - 1].out, 1);
    double time = 0;
    for (int r = 0; r < s->ranks; r++)
        if (r != holder) time += cluster_message_s(&c->cluster, r, holder, bytes / s->ranks);
    for (int r = 1; r < c->replicas; r++)
        time += cluster_message_s(&c->cluster, holder, r * c->pipeline + holder, bytes);
    return time;
}

/* Returns the bytes of a stage that holds the blocks below `lowest` alone; negative, with an error,
 * when memory runs out. */
static double prefix_bytes(const InferSimulation *s, int lowest) {
    const Model *m = s->c->model;
    StageSettings settings = s->c->stage;
    RankBlocks blocks;
    size_t bytes[MEM_ROLES];
    double total = 0;
    bool *none = calloc((size_t)m->blocks, sizeof *none);
    if (!none) return error_set("simulate: out of memory");
    int failed = rank_prefix_create(&blocks, &settings, m, lowest);
    if (!failed) {
        failed = memory_plan(bytes, m, &settings, none);
        rank_blocks_free(&blocks);
    }
    for (int role = 0; role < MEM_ROLES && !failed; role++) total += (double)bytes[role];
    free(none);
    return failed ? -1 : total;
}

static int add_submodel(Inference *sum, InferSimulation *s, int submodel) {
    const Configuration *c = s->c;
    const Model *m = c->model;
    const double batch = (double)c->stage.batch * c->micro_batches * c->replicas;
    const Partition placed = {.of_block = s->placement->submodel_of};
    double forward_s = 0;
    partition_active(&placed, m, submodel, s->active);
    const int lowest = lowest_active(m, s->active);
    if (lowest == 0) return 0;
    if (block_costs(s->cost, m, &c->stage, s->active, c->cluster.gpu, &c->cluster.efficiency))
        return -1;
    for (int b = 0; b < lowest; b++) forward_s += s->cost[b].pass_s[PASS_FORWARD];
    const double bytes = prefix_bytes(s, lowest);
    if (bytes < 0) return -1;
    sum->parameters_s += parameters_time(s, lowest);
    sum->compute_s += forward_s / c->stage.batch / (s->ranks * c->replicas);
    sum->gather_s += gather_time(s, lowest) / batch;
    sum->prefix_bytes = fmax(sum->prefix_bytes, bytes);
    return 0;
}

/* Sets what a sample saves: the difference of a step without and with the cache. */
static int add_saved(Inference *inference, Configuration c) {
    Prediction with, without;
    c.cached = true;
    if (simulate(&with, NULL, &c, NULL)) return -1;
    c.cached = false;
    if (simulate(&without, NULL, &c, NULL)) return -1;
    inference->saved_s =
        (without.step_s - with.step_s) / ((double)c.stage.batch * c.micro_batches * c.replicas);
    return 0;
}

int simulate_inference(Inference *inference, const Configuration *c, int ranks) {
    const size_t blocks = (size_t)c->model->blocks;
    Placement own = {0};
    InferSimulation s = {.c = c,
                         .placement = c->placed ? c->placed : &own,
                         .ranks = ranks,
                         .active = malloc(blocks * sizeof *s.active),
                         .cost = malloc(blocks * sizeof *s.cost)};
    *inference = (Inference){0};
    int failed = s.active && s.cost ? 0 : error_set("simulate: out of memory");
    failed = failed || add_saved(inference, *c) || (!c->placed && simulate_place(&own, c));
    for (int k = 0; k < c->submodels && !failed; k++) failed = add_submodel(inference, &s, k);
    inference->parameters_s /= c->submodels;
    inference->compute_s /= c->submodels;
    inference->gather_s /= c->submodels;
    placement_free(&own);
    free(s.active);
    free(s.cost);
    return failed ? -1 : 0;
}
