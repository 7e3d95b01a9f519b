/* The part of the prefix cache in device memory: a slot holds a block's output of one sample. */
#include <limits.h>

#include "stage_inside.h"

int cache_reserve(Stage *base, size_t width, size_t bytes) {
    CudaStage *s = cuda_stage(base);
    size_t size = width * value_bytes(&base->settings);
    arena_close(&s->cache, &s->counted);
    s->cache_width = width;
    size_t slots = size ? bytes / size : 0;
    if (slots > INT_MAX) slots = INT_MAX;
    if (arena_open(&s->cache, &s->counted, MEM_CACHE, slots * size, slots * size)) return -1;
    return (int)slots;
}

void cache_put(Stage *base, int block, const int *slots, int n) {
    CudaStage *s = cuda_stage(base);
    batch_send_slots(s, slots, n);
    cuda_scatter_rows(&s->run, s->cache.base, value_at(s, base->model->block[block].out),
                      fixed_at(s, s->fixed.slots), n, s->cache_width);
}

void cache_get(Stage *base, int block, const int *slots, int n) {
    CudaStage *s = cuda_stage(base);
    s->normed = -1;
    batch_send_slots(s, slots, n);
    cuda_gather_rows(&s->run, value_at(s, base->model->block[block].out), s->cache.base,
                     fixed_at(s, s->fixed.slots), n, s->cache_width);
}
