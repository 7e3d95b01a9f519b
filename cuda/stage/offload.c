/* The baseline that block coordinate descent is compared with.  It trains the whole model; the
 * optimizer state and the float masters are in host memory, and the CPU runs the update
 * (ref/optimizers/optimizer.h).  Each block's gradients are copied to the host as soon as they
 * exist, while the backward pass goes on.  The CPU updates the upper blocks meanwhile, unless
 * clipping needs the norm of all gradients first, and their new weights are copied back to the
 * device. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/base/error.h"
#include "stage_internal.h"

/* ---- create and destroy ---- */

int offload_start(CudaStage *s) {
    Offload *o = &s->offload;
    size_t blocks = (size_t)s->base.model->blocks;
    bool bf16 = s->base.settings.precision == PRECISION_BF16, ok = true;
    o->gradient_stream = stream_create();
    o->weight_stream = stream_create();
    o->arrived = calloc(blocks, sizeof(Event));
    o->sent = calloc(blocks, sizeof(bool));
    if (!o->gradient_stream || !o->weight_stream) return -1;
    if (!o->arrived || !o->sent) return error_set("offload: out of memory for %zu blocks", blocks);
    for (size_t b = 0; b < blocks; b++) ok &= (o->arrived[b] = event_create(false)) != NULL;
    o->made = event_create(false);
    o->loss_on_host = event_create(false);
    o->weights_on_device = event_create(false);
    if (!ok || !o->made || !o->loss_on_host || !o->weights_on_device) return -1;
    const size_t update = host_update_bytes(s->base.model, &s->base.settings);
    if (update && !(o->update = malloc(update)))
        return error_set("memory: the host has no %zu bytes for the update", update);
    if (bf16 && !(o->weights = pinned_alloc(s->weights.bytes)))
        return error_set("memory: the host has no %zu page-locked bytes for weights",
                         s->weights.bytes);
    return 0;
}

void offload_stop(CudaStage *s) {
    Offload *o = &s->offload;
    if (o->weight_stream) device_wait(o->weight_stream); /* a failed update leaves copies */
    for (int b = 0; o->arrived && b < s->base.model->blocks; b++) event_free(o->arrived[b]);
    event_free(o->made);
    event_free(o->loss_on_host);
    event_free(o->weights_on_device);
    stream_free(o->gradient_stream);
    stream_free(o->weight_stream);
    pinned_free(o->weights);
    free(o->update);
    free(o->arrived);
    free(o->sent);
    *o = (Offload){0};
}

/* ---- gradients to the host ---- */

void offload_send(CudaStage *s, int block) {
    Offload *o = &s->offload;
    size_t offset = s->trained.block[block], bytes = s->trained.block[block + 1] - offset;
    if (!bytes || o->sent[block]) return;
    event_record(o->made, s->run.stream);
    stream_wait_event(o->gradient_stream, o->made);
    copy_to_host(o->gradient_stream, o->gradients + offset, s->gradients.base + offset, bytes);
    event_record(o->arrived[block], o->gradient_stream);
    o->sent[block] = true;
}

static void send_all(CudaStage *s) {
    for (int b = s->base.model->blocks - 1; b >= 0; b--) offload_send(s, b);
}

void offload_forget(CudaStage *s) {
    if (s->offload.sent) memset(s->offload.sent, 0, (size_t)s->base.model->blocks);
}

static const float *host_gradient(const CudaStage *s, int param) {
    return (const float *)(const void *)(s->offload.gradients + s->trained.param[param]);
}

int offload_norm(CudaStage *s, double *norm) {
    const Model *m = s->base.model;
    double sum = 0;
    send_all(s);
    if (device_wait(s->offload.gradient_stream)) return -1;
    for (int p = 0; p < m->params; p++)
        if (s->active[m->param[p].block])
            sum += optimizer_square_sum(host_gradient(s, p), m->param[p].count);
    *norm = sqrt(sum);
    return 0;
}

/* ---- update on the host, weights to the device ---- */

static void update_parameter(CudaStage *s, int param, double lr, double gradient_scale) {
    const Param *p = &s->base.model->param[param];
    const OptimizerSettings *optimizer = &s->base.settings.optimizer;
    float *const state[2] = {state_at(s, 0, param), state_at(s, 1, param)};
    float *master = host_master_at(s, param);
    optimizer_update(optimizer, p, master, state, host_gradient(s, param), gradient_scale, lr,
                     s->base.optimizer_step[p->block], s->offload.update);
    if (s->offload.weights)
        round_to_bf16((uint16_t *)(void *)(s->offload.weights + s->weights.param[param]), master,
                      p->count);
}

/* Waits for the block's gradients.  Once they have arrived, nothing on the device reads its weights
 * any more, so the new ones may overwrite them. */
static int update_block(CudaStage *s, int block, double lr, double gradient_scale) {
    const Block *b = &s->base.model->block[block];
    size_t offset = s->weights.block[block], bytes = s->weights.block[block + 1] - offset;
    const char *from = s->offload.weights ? s->offload.weights : s->host_masters;
    if (!s->active[block] || !bytes) return 0;
    if (event_wait(s->offload.arrived[block])) return -1;
    for (int p = b->first_param; p < b->end_param; p++) update_parameter(s, p, lr, gradient_scale);
    copy_to_device(s->offload.weight_stream, s->parameters.base + offset, from + offset, bytes);
    return 0;
}

int offload_update(CudaStage *s, double lr, double gradient_scale) {
    send_all(s);
    for (int b = s->base.model->blocks - 1; b >= 0; b--)
        if (update_block(s, b, lr, gradient_scale)) return -1;
    event_record(s->offload.weights_on_device, s->offload.weight_stream);
    stream_wait_event(s->run.stream, s->offload.weights_on_device);
    offload_forget(s);
    return 0;
}
