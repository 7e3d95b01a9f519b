#include "memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

size_t memory_extend(const Model *m, const StageSettings *settings) {
    size_t numbers = 0;
    for (int i = 0; i < m->nodes; i++)
        if (m->node[i].kind == OP_ATTENTION) numbers += value_count(m, m->node[i].in, 1);
    return numbers * value_bytes(settings);
}

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

size_t memory_state_count(const Model *m, const OptimizerSettings *optimizer, int first, int end) {
    size_t count = 0;
    for (int p = first; p < end; p++)
        count += m->param[p].count * (size_t)optimizer_state_vectors(optimizer, &m->param[p]);
    return count;
}

/* Returns the memory of a block's parameters: weights, a gradient if they train, and if they are
 * active also optimizer state, and float masters in bf16. */
static BlockMemory trained_memory(const Layout *layout, int b) {
    const StageSettings *settings = layout->settings;
    const Block *block = &layout->model->block[b];
    const bool on_device = layout->active[b] && !settings->offload;
    const size_t count = block_params(layout->model, b);
    BlockMemory memory = {.parameters = count * value_bytes(settings),
                          .gradients = layout->trains[b] ? count * sizeof(real) : 0};
    if (on_device && settings->precision == PRECISION_BF16)
        memory.parameters += count * sizeof(real);
    if (on_device)
        memory.state = sizeof(real) * memory_state_count(layout->model, &settings->optimizer,
                                                         block->first_param, block->end_param);
    return memory;
}

/* Returns the bytes of the buffers of one block.  They exist twice: as they are, and as they were
 * when the step started. */
static size_t buffer_bytes(const Model *m, int block) {
    size_t count = 0;
    for (int i = 0; i < m->buffers; i++)
        if (m->buffer[i].block == block) count += (size_t)m->buffer[i].count;
    return 2 * count * sizeof(real);
}

/* Returns the workspace of the loss: for each target the loss, log_sum and `correct`. */
static size_t loss_bytes(const Model *m, const StageSettings *settings) {
    return (size_t)settings->batch * (size_t)m->targets * (2 * sizeof(real) + 1);
}

static BlockMemory block_memory(const Layout *layout, int b) {
    const Model *m = layout->model;
    const StageSettings *settings = layout->settings;
    const Block *block = &m->block[b];
    BlockMemory memory = trained_memory(layout, b);
    memory.buffers = buffer_bytes(m, b);
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
    StageSettings whole = *settings;
    whole.local = NULL;
    if (layout_make(&layout, m, &whole, active)) return -1;
    for (int b = 0; b < m->blocks; b++) blocks[b] = block_memory(&layout, b);
    layout_free(&layout);
    return 0;
}

void memory_stage(size_t bytes[MEM_ROLES], const BlockMemory *blocks, const Model *m,
                  const StageSettings *settings) {
    size_t scratch = 0, output[2] = {0}, gradient[2] = {0}, update = 0; /* as in layout.c */
    memset(bytes, 0, MEM_ROLES * sizeof *bytes);
    for (int b = 0; b < m->blocks; b++) {
        const BlockMemory *block = &blocks[b];
        const BlockWorkspace *w = &block->workspace;
        bool local = block_is_local(settings, b);
        if (!local && !value_is_local(m, settings, m->block[b].out)) continue;
        output[b % 2] = size_max(output[b % 2], w->boundary);
        gradient[b % 2] =
            size_max(gradient[b % 2], local ? w->boundary_gradient : w->sent_gradient);
        bytes[MEM_ACTIVATIONS] += (local ? block->activations : block->stored_output) *
                                  (size_t)block_in_flight(settings, b);
        if (!local) continue;
        bytes[MEM_PARAMETERS] += block->parameters;
        bytes[MEM_BUFFERS] += block->buffers;
        bytes[MEM_GRADIENTS] += block->gradients;
        bytes[MEM_STATE] += block->state;
        bytes[MEM_WORKSPACE] += block->loss;
        scratch = size_max(scratch, w->scratch);
        update = size_max(update, w->update);
    }
    bytes[MEM_WORKSPACE] +=
        size_max(scratch + output[0] + output[1] + gradient[0] + gradient[1], update);
    /* A head that is tied to a block of another stage has a copy of its weight, and a gradient to
     * send there while it trains. */
    int tied = m->node[m->nodes - 1].weight;
    if (tied < 0 || !block_is_local(settings, m->blocks - 1) || param_is_owned(m, settings, tied))
        return;
    size_t count = m->param[tied].count;
    bytes[MEM_PARAMETERS] += count * value_bytes(settings);
    if (blocks[m->param[tied].block].gradients) bytes[MEM_GRADIENTS] += count * sizeof(real);
}

int memory_plan(size_t bytes[MEM_ROLES], const Model *m, const StageSettings *settings,
                const bool *active) {
    if (layout_check(m, settings, active)) return -1;
    BlockMemory *blocks = malloc((size_t)m->blocks * sizeof *blocks);
    int failed = blocks ? memory_blocks(blocks, m, settings, active)
                        : error_set("memory: out of memory for the blocks of %s", m->name);
    if (!failed) memory_stage(bytes, blocks, m, settings);
    free(blocks);
    return failed;
}

double memory_closed_form(const Model *m, const OptimizerSettings *optimizer, Precision precision,
                          double submodels) {
    const bool bf16 = precision == PRECISION_BF16;
    const double count = (double)m->param_count;
    const double state = (double)memory_state_count(m, optimizer, 0, m->params);
    return count * (bf16 ? 2 : 4) + 4 * (count * (1 + bf16) + state) / submodels;
}

const char *memory_closed_form_text(char text[48], const OptimizerSettings *optimizer,
                                    Precision precision, const char *submodels) {
    const bool bf16 = precision == PRECISION_BF16;
    const int matrix = optimizer_state_vectors(optimizer, &(Param){.kind = PARAM_MATRIX});
    const int other = optimizer_state_vectors(optimizer, &(Param){.kind = PARAM_VECTOR});
    const int used =
        snprintf(text, 48, "W (%s + %d/%s)", bf16 ? "1/2" : "1", 1 + matrix + bf16, submodels);
    if (other > matrix && used < 48) snprintf(text + used, 48 - (size_t)used, " + V/%s", submodels);
    return text;
}
