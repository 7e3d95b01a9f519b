#include "memory.h"

#include <stdio.h>

#include "error.h"
#include "layout.h"

static size_t trained_count(const Model *m, const bool *active) {
    size_t count = 0;
    for (int p = 0; p < m->params; p++)
        if (active[m->param[p].block]) count += m->param[p].count;
    return count;
}

/* Activations the backward pass needs. */
static size_t stored_bytes(const Model *m, const Layout *layout, const StageSettings *settings,
                           int first_block, int end_block) {
    size_t values = 0, aux = 0;
    for (int b = first_block; b < end_block; b++) {
        const Block *block = &m->block[b];
        for (int v = block->first_value; v < block->end_value; v++)
            if (layout->stored[v]) values += value_count(m, v, settings->batch);
        for (int i = block->first_node; i < block->end_node; i++)
            if (layout->stored_aux[i]) aux += node_aux_count(&m->node[i], settings->batch);
    }
    return values * value_bytes(settings) + aux * sizeof(real);
}

/* What `count` parameters take: their weights, and if they train in bf16 float masters beside them.
 */
static BlockMemory trained_memory(const StageSettings *settings, size_t count, bool active) {
    size_t bytes = active ? count * sizeof(real) : 0;
    size_t states = settings->offload ? 0 : (size_t)optimizer_state_vectors(&settings->optimizer);
    bool master = settings->precision == PRECISION_BF16 && !settings->offload;
    return (BlockMemory){.parameters = count * value_bytes(settings) + (master ? bytes : 0),
                         .gradients = bytes,
                         .state = states * bytes};
}

int memory_plan(size_t bytes[MEM_ROLES], const Model *m, const StageSettings *settings,
                const bool *active) {
    Layout layout;
    if (layout_make(&layout, m, settings, active)) return -1;
    size_t buffers = 0, trained = trained_count(m, active);
    for (int i = 0; i < m->buffers; i++) buffers += (size_t)m->buffer[i].count;
    BlockMemory active_part = trained_memory(settings, trained, true);
    BlockMemory frozen_part = trained_memory(settings, m->param_count - trained, false);
    size_t rows = (size_t)settings->batch * (size_t)m->targets;
    size_t scratch = layout.scratch + 2 * layout.boundary + 2 * layout.boundary_gradient;
    bytes[MEM_PARAMETERS] = active_part.parameters + frozen_part.parameters;
    bytes[MEM_BUFFERS] = buffers * sizeof(real);
    bytes[MEM_GRADIENTS] = active_part.gradients;
    bytes[MEM_STATE] = active_part.state;
    bytes[MEM_ACTIVATIONS] = stored_bytes(m, &layout, settings, 0, m->blocks);
    bytes[MEM_CACHE] = 0;
    bytes[MEM_WORKSPACE] = scratch + 2 * rows * sizeof(real) + rows; /* loss, lse, correct */
    layout_free(&layout);
    return 0;
}

int memory_blocks(BlockMemory *blocks, const Model *m, const StageSettings *settings,
                  const bool *active) {
    Layout layout;
    if (layout_make(&layout, m, settings, active)) return -1;
    for (int b = 0; b < m->blocks; b++) {
        size_t count = 0;
        for (int p = m->block[b].first_param; p < m->block[b].end_param; p++)
            count += m->param[p].count;
        blocks[b] = trained_memory(settings, count, active[b]);
        blocks[b].activations = stored_bytes(m, &layout, settings, b, b + 1);
    }
    layout_free(&layout);
    return 0;
}

/* Bytes of a parameter at rest, and what more it takes while it trains: gradient, state, and where
 * the weights are bf16, their float master. */
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
