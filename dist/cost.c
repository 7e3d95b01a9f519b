#include "cost.h"

#include <math.h>

#include "../ref/memory.h"

typedef struct {
    const Model *model;
    const StageSettings *settings;
    const Gpu *gpu;
    const Efficiency *efficiency;
} Roofline;

/* Returns the fewest bytes that a pass can move: each array it needs is read or written once.
 * Gradients of elementwise ops and norms read the incoming gradient and a saved value, and write
 * one array. */
static double node_bytes(const Roofline *q, const Node *node, Pass pass) {
    double value = (double)value_bytes(q->settings), n = q->settings->batch;
    double in = n * (double)shape_count(node->in_shape) * value;
    double out = n * (double)shape_count(node->out_shape) * value;
    double weights = node->weight < 0 ? 0 : (double)q->model->param[node->weight].count;
    if (node->kind == OP_EMBEDDING) {
        weights = n * (double)shape_count(node->out_shape); /* the rows it looks up */
        in = n * (double)shape_count(node->in_shape) * sizeof(int);
    }
    switch (pass) {
        case PASS_FORWARD:
            return in + out + weights * value + (node->skip < 0 ? 0 : out);
        case PASS_INPUT_GRADIENT:
            return out + 2 * in + weights * value;
        default:
            return in + out + weights * sizeof(float);
    }
}

/* Returns the time of attention without fused kernels, which moves heads x t x t scores 8 times in
 * the forward pass: the first product writes them; scale and mask, softmax, and dropout each read
 * and write them; the second product reads them.  The backward pass moves them 11 times: its
 * products read three times and write once; dropout and mask each read and write, softmax reads two
 * arrays and writes one.  A window leaves nothing out, because it is a part of the mask. */
static double scores_time(const Roofline *q, const Node *node, Pass pass) {
    double t = node->out_shape.w, n = q->settings->batch;
    double passes = pass == PASS_FORWARD ? 8 : 11, products = pass == PASS_FORWARD ? 2 : 4;
    double scores = n * node->attention.heads * t * t;
    double bytes = passes * scores * (double)value_bytes(q->settings);
    double flops = products * 2 * n * t * (double)shape_count(node->out_shape);
    Precision precision = q->settings->precision;
    return flops / (q->gpu->flops[precision] * q->efficiency->products[precision]) +
           bytes / (q->gpu->memory_rate * q->efficiency->memory);
}

static double node_time(const Roofline *q, const Node *node, Pass pass) {
    if (node->kind == OP_ATTENTION && q->efficiency->scores_in_memory)
        return scores_time(q, node, pass) + q->efficiency->launch_s;
    Precision precision = q->settings->precision;
    double flops = q->settings->batch * node_flops(node, pass);
    double compute = flops / (q->gpu->flops[precision] * q->efficiency->products[precision]);
    double memory = node_bytes(q, node, pass) / (q->gpu->memory_rate * q->efficiency->memory);
    return fmax(compute, memory) + q->efficiency->launch_s;
}

double update_bytes(const Model *m, const OptimizerSettings *optimizer, Precision precision,
                    int first, int end) {
    const double state = (double)memory_state_count(m, optimizer, first, end);
    double count = 0;
    for (int p = first; p < end; p++) count += (double)m->param[p].count;
    /* gradient read; parameter (or its master) and state read and written; bf16 weights written */
    return count * (4 + 8 + (precision == PRECISION_BF16 ? 2 : 0)) + 8 * state;
}

static void add_node(BlockCost *cost, const Roofline *q, const Layout *layout, const bool *active,
                     const Node *node) {
    double forward = node_time(q, node, PASS_FORWARD);
    const InputGradients wanted = node_input_gradients(layout, node);
    const bool recomputed = layout->node[node - q->model->node].recomputed;
    cost->pass_s[PASS_FORWARD] += forward;
    if (recomputed) cost->pass_s[PASS_INPUT_GRADIENT] += forward;
    /* What deferred gradients read has been overwritten by then, and is computed once more. */
    if (recomputed && q->settings->deferred &&
        block_trains(q->model, node_block(q->model, node), layout->trains))
        cost->pass_s[PASS_WEIGHT_GRADIENT] += forward;
    if (wanted.in || wanted.skip)
        cost->pass_s[PASS_INPUT_GRADIENT] += node_time(q, node, PASS_INPUT_GRADIENT);
    if (node_trains(q->model, node, active))
        cost->pass_s[PASS_WEIGHT_GRADIENT] += node_time(q, node, PASS_WEIGHT_GRADIENT);
}

static double update_time(const Roofline *q, const Block *block) {
    const OptimizerSettings *optimizer = &q->settings->optimizer;
    /* The products of an update are of floats in every precision. */
    const Precision products =
        q->settings->precision == PRECISION_FP32 ? PRECISION_FP32 : PRECISION_TF32;
    const double bytes = update_bytes(q->model, optimizer, q->settings->precision,
                                      block->first_param, block->end_param);
    double flops = 0;
    for (int p = block->first_param; p < block->end_param; p++)
        flops += optimizer_flops(optimizer, &q->model->param[p]);
    return bytes / (q->gpu->memory_rate * q->efficiency->memory) +
           flops / (q->gpu->flops[products] * q->efficiency->products[products]);
}

int block_costs(BlockCost *cost, const Model *model, const StageSettings *settings,
                const bool *active, const Gpu *gpu, const Efficiency *efficiency) {
    Roofline q = {model, settings, gpu, efficiency};
    Layout layout;
    if (layout_make(&layout, model, settings, active)) return -1;
    for (int b = 0; b < model->blocks; b++) {
        const Block *block = &model->block[b];
        cost[b] = (BlockCost){.out_bytes = (double)value_count(model, block->out, settings->batch) *
                                           (double)value_bytes(settings)};
        for (int i = block->first_node; i < block->end_node; i++)
            add_node(&cost[b], &q, &layout, active, &model->node[i]);
        if (active[b]) cost[b].update_s = update_time(&q, block);
    }
    layout_free(&layout);
    return 0;
}
