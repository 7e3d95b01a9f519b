#include "engine_cache.h"

#include <stdlib.h>

#include "base/error.h"
#include "stage_device.h"

int engine_check_cache(const Stage *stage, int samples, bool augmented) {
    if (samples < 1) return error_set("cache: needs the data set it is for");
    if (augmented)
        return error_set(
            "cache: random augmentation changes the images each time, so a cached prefix would "
            "not be exact; train without one of them");
    if (stage->model->buffers && stage->settings.frozen_norm == FROZEN_BATCH)
        return error_set(
            "cache: frozen batch norms that use batch statistics depend on the batch, so a "
            "cached prefix would not be exact; train without one of them");
    return 0;
}

EngineCache *engine_cache_create(Stage *stage, const EngineSettings *s, const Dataset *data) {
    if (engine_check_cache(stage, data ? data->samples : 0, data ? data->augmented : false))
        return NULL;
    EngineCache *c = calloc(1, sizeof *c);
    int *slots = malloc((size_t)stage->settings.batch * sizeof *slots);
    if (c && slots) {
        *c = (EngineCache){
            .stage = stage, .device_bytes = s->cache_device_bytes, .lowest = -1, .slots = slots};
        /* A device counts only its own memory. */
        MemCount *counted = stage->device ? &c->host : &stage->memory;
        if (prefix_cache_init(&c->kept, counted, s->cache_bytes, s->cache_dir, data->samples) == 0)
            return c;
    } else {
        error_set("cache: out of memory for a batch");
    }
    free(slots);
    free(c);
    return NULL;
}

void engine_cache_free(EngineCache *c) {
    if (!c) return;
    mem_free(c->kept.counted, c->values);
    prefix_cache_free(&c->kept);
    free(c->slots);
    free(c);
}

void engine_cache_release(EngineCache *c, int lowest) {
    if (lowest != c->lowest && c->stage->device) stage_cache_reserve(c->stage, 0, 0);
}

int engine_cache_reserve(EngineCache *c, int lowest) {
    if (lowest == c->lowest) return 0; /* no block below it has trained: the kept outputs hold */
    c->lowest = lowest;
    Stage *stage = c->stage;
    const Model *m = stage->model;
    size_t width = lowest ? shape_count(m->value[m->block[lowest].in].shape) : 1;
    int on_device = 0;
    if (lowest && c->device_bytes && stage->device)
        on_device = stage_cache_reserve(stage, width, c->device_bytes);
    if (on_device < 0) return -1;
    prefix_cache_clear(&c->kept, width, on_device);
    mem_free(c->kept.counted, c->values);
    c->values = NULL;
    if (!lowest) return 0;
    const size_t count = (size_t)stage->settings.batch * width;
    c->values = mem_alloc(c->kept.counted, MEM_CACHE, count, sizeof *c->values);
    return c->values ? 0 : -1;
}

int engine_cache_load(EngineCache *c, const Batch *batch) {
    Stage *stage = c->stage;
    int block = c->lowest - 1, on_device = 0;
    int found = prefix_cache_get(&c->kept, c->values, batch->ids, batch->n);
    if (found <= 0) return found;
    for (int i = 0; i < batch->n; i++) {
        int slot = c->kept.slot[batch->ids[i]];
        c->slots[i] = slot < c->kept.on_device ? slot : -1;
        on_device += c->slots[i] >= 0;
    }
    if (on_device < batch->n && stage_write(stage, TENSOR_VALUE, block, c->values)) return -1;
    if (on_device) stage_cache_get(stage, block, c->slots, batch->n);
    return 1;
}

int engine_cache_store(EngineCache *c, const Batch *batch) {
    Stage *stage = c->stage;
    int block = c->lowest - 1;
    if (prefix_cache_put_reads(&c->kept, batch->n) &&
        stage_read(stage, TENSOR_VALUE, block, c->values) == READ_FAILED)
        return -1;
    if (prefix_cache_put(&c->kept, c->values, batch->ids, batch->n, c->slots)) return -1;
    bool any = false;
    for (int i = 0; i < batch->n; i++) any |= c->slots[i] >= 0;
    if (any) stage_cache_put(stage, block, c->slots, batch->n);
    return 0;
}
