/* The addresses of all arrays, on the device and in host memory, from the offsets computed before.
 * Nothing is allocated or moved here. */
#include <stdint.h>

#include "stage_internal.h"

/* ---- parameters ---- */

static float *in_array(char *base, size_t offset) {
    return base && offset != SIZE_MAX ? (float *)(void *)(base + offset) : NULL;
}

void *weight_at(const CudaStage *s, int param) {
    return in_array(s->parameters.base, s->weights.param[param]);
}

float *buffer_at(const CudaStage *s, int buffer) {
    return in_array(s->buffers.base, s->buffer_offset[buffer]);
}

float *gradient_at(const CudaStage *s, int param) {
    return in_array(s->gradients.base, s->trained.param[param]);
}

static bool is_owned(const CudaStage *s, int param) {
    return param_is_owned(s->base.model, &s->base.settings, param);
}

bool is_updated(const CudaStage *s, int param) {
    return s->active[s->base.model->param[param].block] && is_owned(s, param);
}

float *master_at(const CudaStage *s, int param) {
    return is_owned(s, param) ? in_array(s->masters.base, s->trained.param[param]) : NULL;
}

float *host_master_at(const CudaStage *s, int param) {
    return is_owned(s, param) ? in_array(s->host_masters, s->floats.param[param]) : NULL;
}

/* Returns the bytes of a block's optimizer state that lie before a vector of a parameter, or all of
 * them if there is no such vector. */
static size_t state_offset(const CudaStage *s, int block, int vector, int param) {
    const Model *m = s->base.model;
    const OptimizerSettings *optimizer = &s->base.settings.optimizer;
    size_t offset = 0;
    if (!block_is_local(&s->base.settings, block)) return 0;
    for (int v = 0; v < STATE_VECTORS; v++)
        for (int p = m->block[block].first_param; p < m->block[block].end_param; p++) {
            if (v == vector && p == param) return offset;
            if (v < optimizer_state_vectors(optimizer, &m->param[p]))
                offset += align_bytes(m->param[p].count * sizeof(float));
        }
    return offset;
}

size_t state_bytes(const CudaStage *s, int block) { return state_offset(s, block, -1, -1); }

float *state_at(const CudaStage *s, int vector, int param) {
    const Param *p = &s->base.model->param[param];
    const BlockState *state = &s->state[p->block];
    if (vector >= optimizer_state_vectors(&s->base.settings.optimizer, p)) return NULL;
    char *base = s->base.settings.offload ? state->pinned : state->arena.base;
    return in_array(base, state_offset(s, p->block, vector, param));
}

/* ---- values ---- */

/* Returns NULL if there is no scratch, because everything is stored. */
static void *scratch_at(const CudaStage *s, size_t offset) {
    return s->scratch.base ? s->scratch.base + offset : NULL;
}

/* Returns the slot of the selected micro-batch. */
static void *stored_at(const CudaStage *s, StoredOffset offset, int block) {
    int slot = s->micro_batch % block_in_flight(&s->base.settings, block);
    return s->activations.base + offset.at + (size_t)slot * offset.step;
}

void *value_at(const CudaStage *s, int value) {
    const Model *m = s->base.model;
    if (value == 0) return fixed_at(s, s->fixed.images);
    if (s->layout.value[value].stored)
        return stored_at(s, s->stored.value[value], m->value[value].block);
    return scratch_at(s, s->layout.value[value].offset);
}

void *value_gradient_at(const CudaStage *s, int value) {
    const Model *m = s->base.model;
    value = s->layout.value[value].gradient_of;
    if (value == m->values - 1) return value_at(s, value); /* it overwrites the logits */
    if (s->layout.value[value].stored_gradient)
        return stored_at(s, s->stored.gradient[value], m->value[value].block);
    return scratch_at(s, s->layout.value[value].gradient_offset);
}

float *aux_at(const CudaStage *s, int node) {
    const Model *m = s->base.model;
    if (s->layout.node[node].stored_aux)
        return stored_at(s, s->stored.aux[node], node_block(m, &m->node[node]));
    return scratch_at(s, s->layout.node[node].aux_offset);
}
