#include "rank_plan.h"

#include <stdlib.h>

#include "../ref/base/error.h"
#include "../ref/layout.h"

SchedulePlan rank_schedule_plan(ChunkCost *cost, const Placement *p, const Model *m,
                                PipelineSettings settings, const bool *active) {
    for (int c = 0; c < p->chunks; c++) cost[c] = (ChunkCost){{1, 1, 0}};
    for (int i = 0; i < m->nodes; i++) {
        const Node *node = &m->node[i];
        int chunk = p->chunk_of[node_block(m, node)];
        double *pass = cost[chunk].pass;
        pass[PASS_FORWARD] += node_flops(node, PASS_FORWARD);
        pass[PASS_INPUT_GRADIENT] += node_flops(node, PASS_INPUT_GRADIENT);
        if (!active || !node_trains(m, node, active)) continue;
        if (pass[PASS_WEIGHT_GRADIENT] == 0) pass[PASS_WEIGHT_GRADIENT] = 1;
        pass[PASS_WEIGHT_GRADIENT] += node_flops(node, PASS_WEIGHT_GRADIENT);
    }
    int lowest = 0;
    while (lowest < p->chunks && cost[lowest].pass[PASS_WEIGHT_GRADIENT] == 0) lowest++;
    return (SchedulePlan){.kind = settings.kind,
                          .ranks = p->ranks,
                          .chunks = p->chunks,
                          .micro_batches = settings.micro_batches,
                          .rank_of = p->rank_of,
                          .lowest = lowest,
                          .cost = cost};
}

/* None of the blocks is local yet, and each has one micro-batch in flight. */
static int blocks_reserve(RankBlocks *blocks, int count) {
    *blocks = (RankBlocks){calloc((size_t)count, sizeof(bool)), calloc((size_t)count, sizeof(int))};
    if (!blocks->local || !blocks->in_flight) {
        rank_blocks_free(blocks);
        return error_set("pipeline: out of memory");
    }
    for (int b = 0; b < count; b++) blocks->in_flight[b] = 1;
    return 0;
}

int rank_blocks_create(RankBlocks *blocks, const Placement *p, const Model *model, int rank) {
    if (blocks_reserve(blocks, model->blocks)) return -1;
    for (int b = 0; b < model->blocks; b++) blocks->local[b] = placement_rank(p, b) == rank;
    return 0;
}

int rank_prefix_create(RankBlocks *blocks, StageSettings *settings, const Model *model,
                       int lowest) {
    if (blocks_reserve(blocks, model->blocks)) return -1;
    for (int b = 0; b < lowest; b++) blocks->local[b] = true;
    settings->recompute = settings->deferred = settings->keep_state = settings->offload = false;
    settings->image_bytes = 0;
    settings->skip_init = true;
    settings->local = blocks->local;
    settings->in_flight = blocks->in_flight;
    return 0;
}

void rank_blocks_free(RankBlocks *blocks) {
    free(blocks->local);
    free(blocks->in_flight);
    *blocks = (RankBlocks){0};
}

/* Returns for how many micro-batches this rank keeps a block's output.  That is the number in
 * flight in the block's chunk; if the output enters the next chunk and that is on this rank too, it
 * is the number in the next chunk.  If both chunks are on this rank they share one array, which
 * lives from the forward pass of the lower chunk to the last gradient of the upper one, so both
 * numbers count. */
static int kept_outputs(const bool *local, const Placement *p, int count, int block,
                        const SchedulePlan *plan) {
    int chunk = p->chunk_of[block], above = block + 1 < count ? p->chunk_of[block + 1] : chunk;
    bool enters = above != chunk && local[block + 1];
    if (!enters) return schedule_bound(plan, chunk);
    int max = schedule_bound(plan, above);
    return local[block] ? max + schedule_bound(plan, chunk) : max;
}

void rank_in_flight(RankBlocks *blocks, const Placement *p, int count, const SchedulePlan *plan) {
    for (int b = 0; b < count; b++) {
        int bound = kept_outputs(blocks->local, p, count, b, plan);
        blocks->in_flight[b] = bound < plan->micro_batches ? bound : plan->micro_batches;
    }
}

int rank_blocks_set_in_flight(RankBlocks *blocks, const Placement *p, const Model *model,
                              PipelineSettings settings, const bool *active) {
    ChunkCost *cost = calloc((size_t)p->chunks, sizeof *cost);
    if (!cost) return error_set("pipeline: out of memory");
    SchedulePlan plan = rank_schedule_plan(cost, p, model, settings, active);
    rank_in_flight(blocks, p, model->blocks, &plan);
    free(cost);
    return 0;
}

int rank_messages(const Placement *p, const SchedulePlan *plan, int low, int rank) {
    const bool below = p->rank_of[low] == rank, above = p->rank_of[low + 1] == rank;
    const bool frozen = low < plan->lowest;
    if (!below && !above) return 0;
    int count = schedule_bound(plan, low);
    if (count > plan->micro_batches || (frozen && !above)) count = plan->micro_batches;
    return frozen ? count : 2 * count; /* gradients, too */
}

size_t rank_message_bytes(const Placement *p, const SchedulePlan *plan, const Model *model,
                          const StageSettings *settings, int rank) {
    SchedulePlan evaluation = *plan;
    evaluation.lowest = p->chunks;
    size_t step = 0, evaluated = 0;
    for (int b = 0; b + 1 < model->blocks; b++) {
        const int low = p->chunk_of[b];
        if (p->chunk_of[b + 1] == low) continue;
        const size_t bytes =
            value_count(model, model->block[b].out, settings->batch) * value_bytes(settings);
        step += bytes * (size_t)rank_messages(p, plan, low, rank);
        evaluated += bytes * (size_t)rank_messages(p, &evaluation, low, rank);
    }
    return step > evaluated ? step : evaluated;
}
