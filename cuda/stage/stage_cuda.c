/* Creates and frees the CUDA stage, changes its submodel, and has the table of its functions. */
#include "stage_cuda.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/base/error.h"
#include "../message.h"
#include "stage_internal.h"

/* Frees the submodel, its captured steps, and the notes on which gradients were sent. */
static void submodel_close(CudaStage *s, const bool *next) {
    step_forget(s);
    submodel_free(s, next);
    offload_forget(s);
}

static int stage_cuda_activate(Stage *base, const bool *active) {
    CudaStage *s = cuda_stage(base);
    const Model *m = base->model;
    if (s->ready && memcmp(active, s->active, (size_t)m->blocks) == 0) return 0;
    if (layout_check(m, &base->settings, active)) return -1;
    if (masters_to_host(s) || device_wait(s->run.stream)) return -1;
    submodel_close(s, active);
    memset(s->gradient_made, 0, (size_t)m->params);
    memcpy(s->active, active, (size_t)m->blocks);
    s->stepping = false;
    return submodel_allocate(s);
}

static int stage_cuda_loss(Stage *base, double scale, Loss *loss) {
    CudaStage *s = cuda_stage(base);
    LossSums *sums = (LossSums *)fixed_at(s, s->fixed.sums) + 1;
    batch_send_scale(s, scale);
    pass_loss(s, sums, false);
    copy_to_host(s->run.stream, &s->answer->sums, sums, sizeof *sums);
    if (device_wait(s->run.stream)) return -1;
    *loss = step_loss(s);
    return 0;
}

/* ---- create and destroy ---- */

static int make_tables(CudaStage *s) {
    const Model *m = s->base.model;
    size_t params = (size_t)m->params + 1, blocks = (size_t)m->blocks;
    s->active = calloc(blocks, sizeof *s->active);
    s->base.optimizer_step = calloc(blocks, sizeof *s->base.optimizer_step);
    s->state = calloc(blocks, sizeof *s->state);
    s->gradient_made = calloc(params, sizeof *s->gradient_made);
    s->buffer_offset = calloc((size_t)m->buffers + 1, sizeof *s->buffer_offset);
    s->fusion = calloc((size_t)m->nodes, sizeof *s->fusion);
    s->kept_at = calloc((size_t)m->values, sizeof *s->kept_at);
    if (!s->active || !s->base.optimizer_step || !s->state || !s->gradient_made ||
        !s->buffer_offset || !s->fusion || !s->kept_at)
        return error_set("stage: out of memory for the tables of %s", m->name);
    const StageSettings *settings = &s->base.settings;
    if (param_offsets_create(&s->weights, m, settings, value_bytes(settings), NULL)) return -1;
    if (param_offsets_create(&s->floats, m, settings, sizeof(float), NULL)) return -1;
    return fusion_find(s->fusion, m);
}

static int open_buffers(CudaStage *s) {
    const Model *m = s->base.model;
    size_t bytes = 0, requested = 0;
    for (int k = 0; k < m->buffers; k++) {
        s->buffer_offset[k] = SIZE_MAX;
        if (!block_is_local(&s->base.settings, m->buffer[k].block)) continue;
        s->buffer_offset[k] = bytes;
        requested += (size_t)m->buffer[k].count * sizeof(float);
        bytes += align_bytes((size_t)m->buffer[k].count * sizeof(float));
    }
    s->buffer_bytes = bytes;
    if (arena_open(s, &s->buffers, MEM_BUFFERS, bytes, requested)) return -1;
    return arena_open(s, &s->buffers_before, MEM_BUFFERS, bytes, requested);
}

static int open_host_memory(CudaStage *s) {
    s->staging = pinned_alloc(STAGING_BYTES);
    if (!s->staging) return -1;
    if (!has_masters(s) && !s->base.settings.offload) return 0;
    size_t bytes = s->floats.block[s->base.model->blocks]; /* only owned ones; copies come after */
    s->host_masters = pinned_alloc(bytes);
    if (s->host_masters) return 0;
    return error_set("memory: the host has no %zu page-locked bytes for float masters: %s", bytes,
                     error_message());
}

static int open_stage(CudaStage *s) {
    const StageSettings *settings = &s->base.settings;
    if (device_open() || !(s->run.stream = stream_create()) || make_tables(s)) return -1;
    s->fixed = fixed_offsets(s->base.model, settings);
    if (arena_open(s, &s->parameters, MEM_PARAMETERS, s->weights.bytes, s->weights.requested) ||
        open_buffers(s) ||
        arena_open(s, &s->workspace, MEM_WORKSPACE, s->fixed.bytes, s->fixed.bytes))
        return -1;
    s->run.workspace = fixed_at(s, s->fixed.node);
    if (open_host_memory(s) || batch_open(s) || (settings->offload && offload_start(s))) return -1;
    /* No block is active yet, so this allocates what an evaluation needs. */
    return transfer_initial(s) || submodel_allocate(s) ? -1 : 0;
}

static void stage_cuda_free(Stage *base) {
    CudaStage *s = cuda_stage(base);
    if (s->run.stream) device_wait(s->run.stream);
    if (s->state && s->base.optimizer_step) submodel_close(s, NULL);
    for (int b = 0; s->state && b < base->model->blocks; b++) state_free(s, b);
    if (base->settings.offload) offload_stop(s);
    arena_close(s, &s->parameters);
    arena_close(s, &s->buffers);
    arena_close(s, &s->buffers_before);
    arena_close(s, &s->workspace);
    arena_close(s, &s->cache);
    arena_close(s, &s->kept);
    batch_close(s);
    times_close(s);
    pinned_free(s->staging);
    pinned_free(s->host_masters);
    param_offsets_destroy(&s->weights);
    param_offsets_destroy(&s->floats);
    free(s->active);
    free(s->base.optimizer_step);
    free(s->state);
    free(s->gradient_made);
    free(s->buffer_offset);
    free(s->fusion);
    free(s->kept_at);
    stream_free(s->run.stream);
    message_users_remove();
    free(s);
}

Stage *stage_cuda_create(const Model *model, StageSettings settings) {
    static const StageClass class = {
        .activate = stage_cuda_activate,
        .begin = batch_begin,
        .forward = pass_forward,
        .loss = stage_cuda_loss,
        .input_gradient = pass_input_gradient,
        .weight_gradient = pass_weight_gradient,
        .discard = step_discard,
        .gradient_norm = step_gradient_norm,
        .update = step_update,
        .read = transfer_read,
        .write = transfer_write,
        .free = stage_cuda_free,
        .select = batch_select,
        .gradient_squares = step_gradient_squares,
        .extend = extend_run,
    };
    static const StageDeviceClass device = {
        .step = step_run,
        .charge_time = times_charge,
        .keep_images = batch_keep_images,
        .cache_reserve = cache_reserve,
        .cache_put = cache_put,
        .cache_get = cache_get,
        .message_create = stage_cuda_message_create,
        .message_pack = stage_cuda_message_pack,
        .message_unpack = stage_cuda_message_unpack,
        .message_free = message_free,
    };
    if (settings.local && settings.offload)
        return error_null("stage: offload is for one device; a pipeline trains without");
    if (settings.correct_factor > 0)
        return error_null(
            "stage: blocks above the active ones are corrected on the processor alone");
    if (optimizer_check(&settings.optimizer) || device_check(model)) return NULL;
    CudaStage *s = calloc(1, sizeof *s);
    if (!s) return error_null("stage: out of memory");
    message_users_add();
    s->base = (Stage){
        .is = &class, .device = &device, .model = model, .settings = device_settings(settings)};
    s->tuning = (StageTuning){.fuse = true, .graphs = true};
    s->run = (Run){.precision = settings.precision};
    if (open_stage(s)) {
        stage_cuda_free(&s->base);
        return NULL;
    }
    return &s->base;
}

void stage_cuda_tune(Stage *base, StageTuning tuning) {
    CudaStage *s = cuda_stage(base);
    s->tuning = tuning;
    step_forget(s);
    fusion_none(s->fusion, base->model);
    if (tuning.fuse) fusion_find(s->fusion, base->model);
}
