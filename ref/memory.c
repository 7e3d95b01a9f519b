#include "memory.h"

#include "error.h"
#include "layout.h"

static size_t trained_count(const Model *m, const bool *active) {
    size_t count = 0;
    for (int p = 0; p < m->params; p++)
        if (active[m->param[p].block]) count += m->param[p].count;
    return count;
}

/* Activations the backward pass needs, in numbers. */
static size_t stored_count(const Model *m, const Layout *layout, int batch, int first_block,
                           int end_block) {
    size_t count = 0;
    for (int b = first_block; b < end_block; b++) {
        const Block *block = &m->block[b];
        for (int v = block->first_value; v < block->end_value; v++)
            if (layout->stored[v]) count += value_count(m, v, batch);
        for (int i = block->first_node; i < block->end_node; i++)
            if (layout->stored_aux[i]) count += node_aux_count(&m->node[i], batch);
    }
    return count;
}

int memory_plan(size_t bytes[MEM_ROLES], const Model *m, const StageSettings *settings,
                const bool *active) {
    Layout layout;
    if (layout_make(&layout, m, settings, active)) return -1;
    size_t buffers = 0, trained = trained_count(m, active);
    for (int i = 0; i < m->buffers; i++) buffers += (size_t)m->buffer[i].count;
    size_t states = (size_t)optimizer_state_vectors(&settings->optimizer);
    size_t rows = (size_t)settings->batch * (size_t)m->targets;
    size_t scratch = layout.scratch + 2 * layout.boundary + 2 * layout.boundary_gradient;
    bytes[MEM_PARAMETERS] = m->param_count * sizeof(real);
    bytes[MEM_BUFFERS] = buffers * sizeof(real);
    bytes[MEM_GRADIENTS] = trained * sizeof(real);
    bytes[MEM_STATE] = states * trained * sizeof(real);
    bytes[MEM_ACTIVATIONS] = stored_count(m, &layout, settings->batch, 0, m->blocks) * sizeof(real);
    bytes[MEM_CACHE] = 0;
    bytes[MEM_WORKSPACE] = (scratch + 2 * rows) * sizeof(real) + rows; /* loss, lse, correct */
    layout_free(&layout);
    return 0;
}

int memory_blocks(BlockMemory *blocks, const Model *m, const StageSettings *settings,
                  const bool *active) {
    Layout layout;
    if (layout_make(&layout, m, settings, active)) return -1;
    size_t states = (size_t)optimizer_state_vectors(&settings->optimizer);
    for (int b = 0; b < m->blocks; b++) {
        size_t count = 0;
        for (int p = m->block[b].first_param; p < m->block[b].end_param; p++)
            count += m->param[p].count;
        blocks[b] = (BlockMemory){
            .parameters = count * sizeof(real),
            .gradients = active[b] ? count * sizeof(real) : 0,
            .state = active[b] ? states * count * sizeof(real) : 0,
            .activations = stored_count(m, &layout, settings->batch, b, b + 1) * sizeof(real)};
    }
    layout_free(&layout);
    return 0;
}

double memory_closed_form(const Model *m, const OptimizerSettings *optimizer, double submodels) {
    double w = 4.0 * (double)m->param_count;
    return w * (1 + (1 + optimizer_state_vectors(optimizer)) / submodels);
}
