/* Plans optimizer steps, and sends what changes from step to step. */
#include "update.h"

#include <stdlib.h>
#include <string.h>

#include "../ref/base/alloc.h"
#include "../ref/base/error.h"

/* ---- memory ---- */

typedef struct {
    size_t tensors, chunks, numbers, partials, bytes; /* offsets in bytes */
} UpdaterOffsets;

static size_t numbers_bytes(int blocks) {
    return sizeof(UpdateNumbers) + 2 * (size_t)blocks * sizeof(OptimizerFactors);
}

/* Allows one more chunk for each tensor, because a tensor may end within a chunk. */
static UpdaterOffsets updater_offsets(int tensors, int blocks, size_t numbers) {
    size_t chunks = numbers / UPDATE_CHUNK + (size_t)tensors;
    UpdaterOffsets at = {0};
    at.chunks = align_bytes((size_t)tensors * sizeof(UpdateTensor));
    at.numbers = at.chunks + align_bytes(chunks * sizeof(UpdateChunk));
    at.partials = at.numbers + align_bytes(numbers_bytes(blocks));
    at.bytes = at.partials + align_bytes(chunks * sizeof(double));
    return at;
}

size_t updater_bytes(int tensors, int blocks, size_t numbers) {
    return updater_offsets(tensors, blocks, numbers).bytes;
}

/* ---- the plan ---- */

/* Copies the plan to the device, and waits, because the host's copies are then freed. */
static int upload(Updater *u, UpdaterOffsets at, const UpdateTensor *tensors, int count,
                  Stream stream) {
    size_t bytes = (size_t)u->plan.chunks * sizeof(UpdateChunk);
    UpdateChunk *chunk = malloc(bytes ? bytes : 1), *next = chunk;
    if (!chunk) return error_set("update: out of memory for a plan of %d tensors", count);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < update_chunks(tensors[i].count); k++) *next++ = (UpdateChunk){i, k};
    copy_to_device(stream, u->memory, tensors, (size_t)count * sizeof *tensors);
    copy_to_device(stream, u->memory + at.chunks, chunk, bytes);
    int status = device_wait(stream);
    free(chunk);
    return status;
}

/* The kernel of each optimizer for what is updated element by element, by its state vectors. */
static const UpdateRule rules[OPTIMIZER_KINDS][3] = {
    [OPTIMIZER_SGD] = {UPDATE_SGD, UPDATE_MOMENTUM}, [OPTIMIZER_ADAM] = {[2] = UPDATE_ADAM},
    [OPTIMIZER_ADAMW] = {[2] = UPDATE_ADAM},         [OPTIMIZER_LION] = {[1] = UPDATE_LION},
    [OPTIMIZER_MUON] = {[2] = UPDATE_ADAM},
};

void update_describe(UpdateTensor *tensor, const OptimizerSettings *settings, const Param *param) {
    tensor->count = param->count;
    tensor->block = param->block;
    tensor->decay = optimizer_decays(settings, param);
    if (!optimizer_workspace(settings, param)) return;
    tensor->columns = (int)(param->count / (size_t)param->dim[0]);
    tensor->parts = param->parts;
    memcpy(tensor->part_rows, param->part_rows, sizeof tensor->part_rows);
}

/* Keeps the matrices in host memory, where their products are launched.  -1: no memory. */
static int keep_matrices(Updater *u, const UpdateTensor *tensors, int count) {
    u->matrix = malloc((size_t)(count ? count : 1) * sizeof *u->matrix);
    if (!u->matrix) return error_set("update: out of memory for a plan of %d tensors", count);
    for (int i = 0; i < count; i++)
        if (tensors[i].columns) u->matrix[u->matrices++] = tensors[i];
    return 0;
}

Updater *updater_create(const UpdateTensor *tensors, int count, int blocks,
                        const OptimizerSettings *settings, Stream stream) {
    UpdateRule rule = rules[settings->kind][optimizer_state_vectors(settings, &(Param){0})];
    if (rule == UPDATE_NONE)
        return error_null("update: there is no kernel of %s", optimizer_names[settings->kind]);
    Updater *u = calloc(1, sizeof *u);
    if (!u) return error_null("update: out of memory for a plan of %d tensors", count);
    size_t numbers = 0;
    int chunks = 0;
    for (int i = 0; i < count; i++) {
        numbers += tensors[i].count;
        chunks += update_chunks(tensors[i].count);
    }
    UpdaterOffsets at = updater_offsets(count, blocks, numbers);
    u->settings = *settings;
    u->blocks = blocks;
    u->memory = device_alloc(at.bytes);
    u->bytes = at.bytes;
    u->pinned = pinned_alloc(numbers_bytes(blocks));
    u->sent = event_create(false);
    u->plan = (UpdatePlan){
        .tensor = (UpdateTensor *)(void *)u->memory,
        .chunk = (UpdateChunk *)(void *)(u->memory + at.chunks),
        .numbers = (UpdateNumbers *)(void *)(u->memory + at.numbers),
        .factors = (OptimizerFactors *)(void *)(u->memory + at.numbers + sizeof(UpdateNumbers)),
        .partial = (double *)(void *)(u->memory + at.partials),
        .chunks = chunks,
        .rule = rule,
        .clip_norm = settings->clip_norm};
    if (!u->memory || !u->pinned || !u->sent || keep_matrices(u, tensors, count) ||
        upload(u, at, tensors, count, stream)) {
        updater_free(u);
        return NULL;
    }
    return u;
}

void updater_free(Updater *u) {
    if (!u) return;
    if (u->sent) event_finish(u->sent);
    event_free(u->sent);
    pinned_free(u->pinned);
    device_free(u->memory);
    free(u->matrix);
    free(u);
}

/* ---- a step ---- */

void update_prepare(Updater *u, Stream stream, double lr, double gradient_scale,
                    const uint64_t *t) {
    event_finish(u->sent);
    *u->pinned = (UpdateNumbers){.gradient_scale = gradient_scale, .scale = (float)gradient_scale};
    OptimizerFactors *factors = (OptimizerFactors *)(void *)(u->pinned + 1);
    for (int b = 0; b < u->blocks; b++)
        for (int decay = 0; decay < 2; decay++)
            factors[2 * b + decay] = optimizer_factors(&u->settings, lr, t[b], decay);
    copy_to_device(stream, u->plan.numbers, u->pinned, numbers_bytes(u->blocks));
    event_record(u->sent, stream);
}
