#include "memory.h"

#include <stdio.h>

#include "error.h"

/* Returns the bytes of a block's activations that are stored for one micro-batch. */
static size_t stored_bytes(const Layout *layout, const Block *block) {
    const Model *m = layout->model;
    size_t values = 0, aux = 0;
    for (int v = block->first_value; v < block->end_value; v++)
        values += (size_t)(layout->value[v].stored + layout->value[v].stored_gradient) *
                  value_memory(m, layout->settings, v);
    for (int i = block->first_node; i < block->end_node; i++)
        if (layout->node[i].stored_aux) aux += node_aux_count(&m->node[i], layout->settings->batch);
    return values + aux * sizeof(real);
}

/* Returns the bytes of a stage's stored activations: those of its blocks, and the outputs that come
 * from blocks below on other stages. */
static size_t stage_activations(const Layout *layout) {
    const Model *m = layout->model;
    const StageSettings *settings = layout->settings;
    size_t bytes = 0;
    for (int b = 0; b < m->blocks; b++) {
        int out = m->block[b].out;
        size_t one = 0;
        if (block_is_local(settings, b))
            one = stored_bytes(layout, &m->block[b]);
        else if (value_is_local(m, settings, out) && layout->value[out].stored)
            one = value_memory(m, settings, out);
        bytes += one * (size_t)block_in_flight(settings, b);
    }
    return bytes;
}

/* Returns the memory of `count` parameters: weights, a gradient if they train, and if they are
 * active also optimizer state, and float masters in bf16. */
static BlockMemory trained_memory(const StageSettings *settings, size_t count, bool active,
                                  bool trains) {
    size_t floats = active ? count * sizeof(real) : 0; /* of a master, or of a state vector */
    size_t states = settings->offload ? 0 : (size_t)optimizer_state_vectors(&settings->optimizer);
    bool master = settings->precision == PRECISION_BF16 && !settings->offload;
    return (BlockMemory){.parameters = count * value_bytes(settings) + (master ? floats : 0),
                         .gradients = trains ? count * sizeof(real) : 0,
                         .state = states * floats};
}

/* Returns the parameters, gradients and state of a stage.  A tied parameter whose block is on
 * another stage counts as a copy, with a gradient to send there while it trains, but no state. */
static BlockMemory stage_parameters(const Layout *layout) {
    const Model *m = layout->model;
    const StageSettings *settings = layout->settings;
    BlockMemory sum = {0};
    for (int p = 0; p < m->params; p++) {
        const Param *param = &m->param[p];
        if (!param_is_local(m, settings, p)) continue;
        bool updates = param_is_owned(m, settings, p) && layout->active[param->block];
        BlockMemory one =
            trained_memory(settings, param->count, updates, layout->trains[param->block]);
        sum.parameters += one.parameters;
        sum.gradients += one.gradients;
        sum.state += one.state;
    }
    return sum;
}

/* Returns the bytes of the buffers of one block, or of all local blocks with block -1.  They exist
 * twice: as they are, and as they were when the step started. */
static size_t buffer_bytes(const Model *m, const StageSettings *settings, int block) {
    size_t count = 0;
    for (int i = 0; i < m->buffers; i++)
        if (block < 0 ? block_is_local(settings, m->buffer[i].block) : m->buffer[i].block == block)
            count += (size_t)m->buffer[i].count;
    return 2 * count * sizeof(real);
}

/* Returns the workspace of the loss: for each target the loss, log_sum and `correct`. */
static size_t loss_bytes(const Model *m, const StageSettings *settings) {
    return (size_t)settings->batch * (size_t)m->targets * (2 * sizeof(real) + 1);
}

int memory_plan(size_t bytes[MEM_ROLES], const Model *m, const StageSettings *settings,
                const bool *active) {
    Layout layout;
    if (layout_check(m, settings, active) || layout_make(&layout, m, settings, active)) return -1;
    size_t loss = block_is_local(settings, m->blocks - 1) ? loss_bytes(m, settings) : 0;
    BlockMemory parameters = stage_parameters(&layout);
    bytes[MEM_PARAMETERS] = parameters.parameters;
    bytes[MEM_BUFFERS] = buffer_bytes(m, settings, -1);
    bytes[MEM_GRADIENTS] = parameters.gradients;
    bytes[MEM_STATE] = parameters.state;
    bytes[MEM_ACTIVATIONS] = stage_activations(&layout);
    bytes[MEM_CACHE] = 0;
    bytes[MEM_WORKSPACE] = layout.workspace + loss;
    layout_free(&layout);
    return 0;
}

static BlockMemory block_memory(const Layout *layout, int b) {
    const Model *m = layout->model;
    const StageSettings *settings = layout->settings;
    const Block *block = &m->block[b];
    size_t count = 0;
    for (int p = block->first_param; p < block->end_param; p++) count += m->param[p].count;
    BlockMemory memory = trained_memory(settings, count, layout->active[b], layout->trains[b]);
    memory.buffers = buffer_bytes(m, settings, b);
    memory.activations = stored_bytes(layout, block);
    if (layout->value[block->out].stored)
        memory.stored_output = value_memory(m, settings, block->out);
    memory.workspace = layout->need[b];
    if (b == m->blocks - 1) memory.loss = loss_bytes(m, settings);
    return memory;
}

int memory_blocks(BlockMemory *blocks, const Model *m, const StageSettings *settings,
                  const bool *active) {
    Layout layout;
    if (layout_make(&layout, m, settings, active)) return -1;
    for (int b = 0; b < m->blocks; b++) blocks[b] = block_memory(&layout, b);
    layout_free(&layout);
    return 0;
}

/* Sets the bytes of a frozen parameter, and what it takes in addition while it is active: gradient,
 * state and, if weights are bf16, a float master. */
static void parameter_bytes(const OptimizerSettings *optimizer, Precision precision, int *frozen,
                            int *active) {
    bool bf16 = precision == PRECISION_BF16;
    *frozen = bf16 ? 2 : 4;
    *active = 4 * (1 + optimizer_state_vectors(optimizer) + bf16);
}

double memory_closed_form(const Model *m, const OptimizerSettings *optimizer, Precision precision,
                          double submodels) {
    int frozen, active;
    parameter_bytes(optimizer, precision, &frozen, &active);
    return (double)m->param_count * (frozen + active / submodels);
}

const char *memory_closed_form_text(char text[48], const OptimizerSettings *optimizer,
                                    Precision precision, const char *submodels) {
    int frozen, active;
    parameter_bytes(optimizer, precision, &frozen, &active);
    snprintf(text, 48, "W (%s + %d/%s)", frozen == 4 ? "1" : "1/2", active / 4, submodels);
    return text;
}
