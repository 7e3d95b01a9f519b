/* The engine of one device: a step is forward, loss, backward and update over one stage, in
 * micro-batches, with the frozen prefix taken from the cache where there is one. */
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "engine.h"
#include "error.h"
#include "prefix_cache.h"

typedef struct {
    Engine base;
    Stage *stage;
    EngineSettings settings;
    int lowest; /* active block; the frozen prefix is blocks 0 .. lowest - 1 */
    PrefixCache cache;
    real *prefix; /* [batch] outputs of the prefix, on their way to or from the cache */
} SingleEngine;

static SingleEngine *of(Engine *base) { return (SingleEngine *)(void *)base; }

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static int engine_activate(Engine *base, const bool *active) {
    SingleEngine *e = of(base);
    const Model *m = base->model;
    int lowest = 0;
    while (lowest < m->blocks && !active[lowest]) lowest++;
    if (lowest == m->blocks) return error_set("bcd: no block is active");
    if (e->settings.cache_bytes && lowest != e->lowest) {
        free(e->prefix);
        e->prefix = NULL;
        size_t width = lowest ? shape_count(m->value[m->block[lowest].in].shape) : 1;
        prefix_cache_clear(&e->cache, width);
        if (lowest &&
            !(e->prefix = malloc((size_t)e->stage->settings.batch * width * sizeof(real))))
            return error_set("cache: out of memory for a batch");
    }
    e->lowest = lowest;
    return e->stage->is->activate(e->stage, active);
}

/* Runs `what` on one block and adds its time to *ms, if anyone asked. */
static void timed(SingleEngine *e, void (*what)(Stage *, int), int block, size_t member) {
    if (!e->settings.times) {
        what(e->stage, block);
        return;
    }
    double start = now_ms();
    what(e->stage, block);
    *(double *)(void *)((char *)&e->settings.times[block] + member) += now_ms() - start;
}

/* Brings the prefix's outputs into the stage: from the cache, or computed and then kept. */
static int forward_prefix(SingleEngine *e, const Batch *batch) {
    Stage *stage = e->stage;
    bool cached = e->settings.cache_bytes && e->lowest > 0;
    if (cached) {
        int found = prefix_cache_get(&e->cache, e->prefix, batch->ids, batch->n);
        if (found < 0) return -1;
        if (found) return stage->is->write(stage, TENSOR_VALUE, e->lowest - 1, e->prefix);
    }
    for (int b = 0; b < e->lowest; b++)
        timed(e, stage->is->forward, b, offsetof(BlockTimes, forward_ms));
    if (!cached) return 0;
    stage->is->read(stage, TENSOR_VALUE, e->lowest - 1, e->prefix);
    return prefix_cache_put(&e->cache, e->prefix, batch->ids, batch->n);
}

/* Adds the gradients of one micro-batch; scale is 1 over the targets of the whole batch. */
static int accumulate(SingleEngine *e, const Batch *batch, double scale, Loss *loss) {
    Stage *stage = e->stage;
    int blocks = e->base.model->blocks;
    stage->is->begin(stage, batch, PASS_TRAIN);
    if (forward_prefix(e, batch)) return -1;
    for (int b = e->lowest; b < blocks; b++)
        timed(e, stage->is->forward, b, offsetof(BlockTimes, forward_ms));
    Loss part = stage->is->loss(stage, scale);
    loss->loss_sum += part.loss_sum;
    loss->count += part.count;
    loss->correct += part.correct;
    if (!isfinite(part.loss_sum))
        return error_set("bcd: the loss is %g; lower --lr, or set --clip", part.loss_sum);
    for (int b = blocks - 1; b >= e->lowest; b--) {
        timed(e, stage->is->input_gradient, b, offsetof(BlockTimes, input_gradient_ms));
        timed(e, stage->is->weight_gradient, b, offsetof(BlockTimes, weight_gradient_ms));
    }
    return 0;
}

static Batch micro_batch(const Model *m, const Batch *batch, int first, int end) {
    size_t skip = (size_t)first, input = shape_count(m->input);
    return (Batch){.n = end - first,
                   .ids = batch->ids + skip,
                   .images = batch->images ? batch->images + skip * input : NULL,
                   .tokens = batch->tokens ? batch->tokens + skip * input : NULL,
                   .targets = batch->targets + skip * (size_t)m->targets};
}

static double counted_targets(const Model *m, const Batch *batch) {
    size_t all = (size_t)batch->n * (size_t)m->targets, count = 0;
    for (size_t i = 0; i < all; i++) count += batch->targets[i] >= 0;
    return count ? (double)count : 1;
}

static int update(SingleEngine *e, double lr) {
    Stage *stage = e->stage;
    double clip = stage->settings.optimizer.clip_norm, scale = 1;
    double start = now_ms();
    if (clip > 0) {
        double norm = stage->is->gradient_norm(stage);
        if (!isfinite(norm)) return error_set("bcd: the gradient's norm is %g; lower --lr", norm);
        if (norm > clip) scale = clip / norm;
    }
    stage->is->update(stage, lr, scale);
    if (e->settings.update_ms) *e->settings.update_ms = now_ms() - start;
    return 0;
}

static int engine_step(Engine *base, const Batch *batch, double lr, Loss *loss) {
    SingleEngine *e = of(base);
    int parts = e->settings.micro_batches, size = (batch->n + parts - 1) / parts;
    double scale = 1 / counted_targets(base->model, batch);
    *loss = (Loss){0};
    if (e->settings.times)
        for (int b = 0; b < base->model->blocks; b++) e->settings.times[b] = (BlockTimes){0};
    for (int first = 0; first < batch->n; first += size) {
        int end = first + size < batch->n ? first + size : batch->n;
        Batch part = micro_batch(base->model, batch, first, end);
        if (accumulate(e, &part, scale, loss)) {
            e->stage->is->discard(e->stage);
            return -1;
        }
    }
    if (update(e, lr)) {
        e->stage->is->discard(e->stage);
        return -1;
    }
    return 0;
}

static int engine_evaluate(Engine *base, const Batch *batch, Loss *loss) {
    SingleEngine *e = of(base);
    Stage *stage = e->stage;
    int most = stage->settings.batch;
    *loss = (Loss){0};
    for (int first = 0; first < batch->n; first += most) {
        int end = first + most < batch->n ? first + most : batch->n;
        Batch part = micro_batch(base->model, batch, first, end);
        stage->is->begin(stage, &part, PASS_EVALUATE);
        for (int b = 0; b < base->model->blocks; b++) stage->is->forward(stage, b);
        Loss some = stage->is->loss(stage, 1);
        loss->loss_sum += some.loss_sum;
        loss->count += some.count;
        loss->correct += some.correct;
    }
    return 0;
}

static size_t engine_read(Engine *base, TensorRole role, int number, real *data) {
    Stage *stage = of(base)->stage;
    return stage->is->read(stage, role, number, data);
}

static int engine_write(Engine *base, TensorRole role, int number, const real *data) {
    Stage *stage = of(base)->stage;
    return stage->is->write(stage, role, number, data);
}

static uint64_t engine_age(Engine *base, int block) {
    return of(base)->stage->is->age(of(base)->stage, block);
}

static void engine_set_age(Engine *base, int block, uint64_t age) {
    of(base)->stage->is->set_age(of(base)->stage, block, age);
}

static const MemCount *engine_memory(Engine *base) {
    return of(base)->stage->is->memory(of(base)->stage);
}

static void engine_free(Engine *base) {
    SingleEngine *e = of(base);
    if (e->settings.cache_bytes) prefix_cache_free(&e->cache);
    free(e->prefix);
    e->stage->is->free(e->stage);
    free(e);
}

/* A cached output is exact only if the prefix would compute the same again. */
static int check_cache(const Stage *stage, const Dataset *data) {
    if (!data) return error_set("cache: needs the data set it is for");
    if (data->augmented)
        return error_set(
            "cache: random augmentation changes the images at each visit, so a cached "
            "prefix would not be exact; drop --augment or --cache");
    if (stage->model->buffers && stage->settings.frozen_norm == FROZEN_BATCH)
        return error_set(
            "cache: frozen batch norms that use batch statistics depend on the batch, "
            "so a cached prefix would not be exact; drop --frozen-norm batch or "
            "--cache");
    return 0;
}

Engine *engine_single_create(Stage *stage, EngineSettings settings, const Dataset *data) {
    static const EngineClass class = {
        .activate = engine_activate,
        .step = engine_step,
        .evaluate = engine_evaluate,
        .read = engine_read,
        .write = engine_write,
        .age = engine_age,
        .set_age = engine_set_age,
        .memory = engine_memory,
        .free = engine_free,
    };
    if (settings.micro_batches < 1) settings.micro_batches = 1;
    if (settings.cache_bytes && check_cache(stage, data)) return NULL;
    SingleEngine *e = calloc(1, sizeof *e);
    if (!e) {
        error_set("engine: out of memory");
        return NULL;
    }
    *e = (SingleEngine){.base = {&class, stage->model},
                        .stage = stage,
                        .settings = settings,
                        .lowest = -1,
                        .cache.file = -1};
    if (settings.cache_bytes &&
        prefix_cache_init(&e->cache, stage->is->memory(stage), settings.cache_bytes,
                          settings.cache_dir, data->samples)) {
        free(e);
        return NULL;
    }
    return &e->base;
}
