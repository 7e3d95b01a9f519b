/* The device memory of a submodel.  A switch frees that of the last submodel before it allocates
 * that of the next, so that the peak is one submodel's. */
#include <stdlib.h>
#include <string.h>

#include "../../ref/base/error.h"
#include "../../ref/memory.h"
#include "stage_internal.h"

/* ---- arenas ---- */

int arena_open(CudaStage *s, Arena *arena, MemRole role, size_t bytes, size_t requested) {
    MemCount *counted = &s->base.memory;
    *arena = (Arena){.role = role};
    if (!bytes) return 0;
    arena->base = device_alloc(bytes);
    if (!arena->base)
        return error_set(
            "memory: the device has no %zu bytes for %s (%zu bytes in use); use a smaller batch, "
            "more submodels, recompute, or bf16: %s",
            bytes, mem_role_names[role], counted->total_current, error_message());
    arena->requested = requested;
    mem_count(counted, role, requested);
    return 0;
}

void arena_close(CudaStage *s, Arena *arena) {
    if (!arena->base) return;
    device_free(arena->base);
    mem_uncount(&s->base.memory, arena->role, arena->requested);
    *arena = (Arena){0};
}

/* ---- optimizer state ---- */

/* Each block has an array of its own, because state is kept or freed block by block. */
int state_allocate(CudaStage *s, int block) {
    const Model *m = s->base.model;
    const Block *b = &m->block[block];
    BlockState *state = &s->state[block];
    const OptimizerSettings *optimizer = &s->base.settings.optimizer;
    const size_t bytes = state_bytes(s, block);
    if (!bytes || state->arena.base || state->pinned) return 0;
    if (s->base.settings.offload) {
        state->pinned = pinned_alloc(bytes);
        if (!state->pinned)
            return error_set("memory: the host has no %zu bytes for the state of %s: %s", bytes,
                             b->name, error_message());
        memset(state->pinned, 0, bytes);
        return 0;
    }
    const size_t requested =
        sizeof(float) * memory_state_count(m, optimizer, b->first_param, b->end_param);
    if (arena_open(s, &state->arena, MEM_STATE, bytes, requested)) return -1;
    fill_zero(s->run.stream, state->arena.base, bytes);
    return 0;
}

void state_free(CudaStage *s, int block) {
    arena_close(s, &s->state[block].arena);
    pinned_free(s->state[block].pinned);
    s->state[block].pinned = NULL;
}

/* ---- masters ---- */

static void move_masters(CudaStage *s, bool up) {
    for (int b = 0; b < s->base.model->blocks; b++) {
        size_t bytes = s->trained.block[b + 1] - s->trained.block[b];
        if (!bytes) continue;
        char *device = s->masters.base + s->trained.block[b];
        char *host = s->host_masters + s->floats.block[b];
        if (up)
            copy_to_device(s->run.stream, device, host, bytes);
        else
            copy_to_host(s->run.stream, host, device, bytes);
    }
}

int masters_to_host(CudaStage *s) {
    if (!s->ready || !s->masters.base) return 0;
    move_masters(s, false);
    return device_wait(s->run.stream);
}

/* ---- the submodel ---- */

static void updater_close(CudaStage *s) {
    if (!s->updater) return;
    mem_uncount(&s->base.memory, MEM_WORKSPACE, s->updater->bytes);
    updater_free(s->updater);
    s->updater = NULL;
}

static UpdateTensor update_tensor(const CudaStage *s, int param) {
    void *weights = weight_at(s, param);
    UpdateTensor tensor = {.p = weights,
                           .master = has_masters(s) ? master_at(s, param) : weights,
                           .state = {state_at(s, 0, param), state_at(s, 1, param)},
                           .g = gradient_at(s, param)};
    update_describe(&tensor, &s->base.settings.optimizer, &s->base.model->param[param]);
    return tensor;
}

static int updater_open(CudaStage *s) {
    const Model *m = s->base.model;
    UpdateTensor *tensors = malloc((size_t)m->params * sizeof *tensors);
    if (!tensors) return error_set("stage: out of memory for the tables of %s", m->name);
    int count = 0;
    for (int p = 0; p < m->params; p++)
        if (is_updated(s, p)) tensors[count++] = update_tensor(s, p);
    bool wanted = count && !s->base.settings.offload;
    if (wanted)
        s->updater =
            updater_create(tensors, count, m->blocks, &s->base.settings.optimizer, s->run.stream);
    free(tensors);
    if (!s->updater) return wanted ? -1 : 0;
    mem_count(&s->base.memory, MEM_WORKSPACE, s->updater->bytes);
    return 0;
}

/* Allocates the host memory that offload copies gradients to. */
static int host_gradients_open(CudaStage *s) {
    size_t bytes = s->trained.bytes;
    if (bytes && !(s->offload.gradients = pinned_alloc(bytes)))
        return error_set("memory: the host has no %zu page-locked bytes for gradients: %s", bytes,
                         error_message());
    return 0;
}

static void host_gradients_close(CudaStage *s) {
    if (s->offload.gradient_stream) device_wait(s->offload.gradient_stream);
    pinned_free(s->offload.gradients);
    s->offload.gradients = NULL;
}

static int activations_open(CudaStage *s) {
    const Model *m = s->base.model;
    const StageSettings *settings = &s->base.settings;
    if (layout_make(&s->layout, m, settings, s->active)) return -1;
    if (stored_offsets_create(&s->stored, m, settings, &s->layout)) return -1;
    size_t scratch = s->layout.workspace;
    if (arena_open(s, &s->activations, MEM_ACTIVATIONS, s->stored.bytes, s->stored.requested))
        return -1;
    return arena_open(s, &s->scratch, MEM_WORKSPACE, scratch, scratch);
}

static int trained_open(CudaStage *s) {
    const Model *m = s->base.model;
    const ParamOffsets *trained = &s->trained;
    if (param_offsets_create(&s->trained, m, &s->base.settings, sizeof(float), s->active))
        return -1;
    if (has_masters(s)) {
        if (arena_open(s, &s->masters, MEM_PARAMETERS, trained->block[m->blocks],
                       trained->own_requested))
            return -1;
        move_masters(s, true);
    }
    if (arena_open(s, &s->gradients, MEM_GRADIENTS, trained->bytes, trained->requested)) return -1;
    for (int b = 0; b < m->blocks; b++)
        if (s->active[b] && state_allocate(s, b)) return -1;
    return s->base.settings.offload ? host_gradients_open(s) : updater_open(s);
}

int submodel_allocate(CudaStage *s) {
    if (trained_open(s) || activations_open(s)) return -1;
    s->ready = true;
    return device_wait(s->run.stream);
}

void submodel_free(CudaStage *s, const bool *next) {
    const Model *m = s->base.model;
    s->ready = false;
    updater_close(s);
    if (s->base.settings.offload) host_gradients_close(s);
    arena_close(s, &s->masters);
    arena_close(s, &s->gradients);
    for (int b = 0; b < m->blocks; b++) {
        if (s->base.settings.keep_state || (next && next[b] && s->active[b])) continue;
        state_free(s, b);
        s->base.optimizer_step[b] = 0;
    }
    arena_close(s, &s->activations);
    arena_close(s, &s->scratch);
    param_offsets_destroy(&s->trained);
    stored_offsets_destroy(&s->stored);
    layout_free(&s->layout);
}
