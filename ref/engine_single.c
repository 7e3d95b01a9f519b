/* The engine of one device.  A step runs forward, loss, backward and update over one stage, in
 * micro-batches.  The outputs of the frozen prefix come from the cache (engine_cache.h) if there is
 * one. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "engine_cache.h"
#include "layout.h"
#include "stage_device.h"

typedef struct {
    Engine base;
    Stage *stage;
    EngineSettings settings;
    int lowest;         /* the lowest active block; the frozen prefix is blocks 0 .. lowest - 1 */
    EngineCache *cache; /* NULL: none */
} SingleEngine;

static SingleEngine *of(Engine *base) { return (SingleEngine *)(void *)base; }
static Stage *stage_of(Engine *base) { return of(base)->stage; }

static int engine_single_activate(Engine *base, const bool *active) {
    SingleEngine *e = of(base);
    const Model *m = base->model;
    int lowest = lowest_active(m, active);
    if (lowest == m->blocks) return error_set("bcd: no block is active");
    e->lowest = lowest;
    if (e->cache) engine_cache_release(e->cache, lowest);
    if (stage_activate(e->stage, active)) return -1;
    return e->cache ? engine_cache_reserve(e->cache, lowest) : 0;
}

/* If times are measured, adds the time until stop_time, of the device or else of the processor, to
 * *ms.  Returns when it started. */
static double start_time(SingleEngine *e, double *ms) {
    if (ms && e->stage->device) stage_charge_time(e->stage, ms);
    return ms ? clock_ms() : 0;
}

static void stop_time(const SingleEngine *e, double *ms, double start) {
    if (ms && !e->stage->device) *ms += clock_ms() - start;
}

/* Runs a pass on one block. */
static void run(SingleEngine *e, Pass pass, int block) {
    static void (*const call[PASSES])(Stage *, int) = {stage_forward, stage_input_gradient,
                                                       stage_weight_gradient};
    double *ms = e->settings.times ? &e->settings.times[block].ms[pass] : NULL;
    double start = start_time(e, ms);
    call[pass](e->stage, block);
    stop_time(e, ms, start);
}

/* With a cache, puts the prefix's outputs into the stage: from the cache if all samples are in it,
 * otherwise by running the prefix and caching what it computes.  Returns the first block that is
 * still to run, or -1 and an error. */
static int forward_prefix(SingleEngine *e, const Batch *batch) {
    if (!e->cache || e->lowest == 0) return 0;
    int found = engine_cache_load(e->cache, batch);
    if (found) return found < 0 ? -1 : e->lowest;
    for (int b = 0; b < e->lowest; b++) run(e, PASS_FORWARD, b);
    return engine_cache_store(e->cache, batch) ? -1 : e->lowest;
}

/* Runs forward from block `first`, the loss and the gradients; adds to *loss. */
static int pass_by_block(SingleEngine *e, int first, double scale, Loss *loss) {
    Stage *stage = e->stage;
    int blocks = e->base.model->blocks;
    for (int b = first; b < blocks; b++) run(e, PASS_FORWARD, b);
    /* The loss, and the wait of the host for it, are no time of the last block. */
    if (e->settings.times && stage->device) stage_charge_time(stage, NULL);
    Loss part;
    if (stage_loss(stage, scale, &part)) return -1;
    loss_add(loss, &part);
    if (optimizer_check_loss(part.loss_sum)) return -1;
    for (int b = blocks - 1; b >= e->lowest; b--) {
        run(e, PASS_INPUT_GRADIENT, b);
        run(e, PASS_WEIGHT_GRADIENT, b);
    }
    return 0;
}

static int update(SingleEngine *e, double lr) {
    Stage *stage = e->stage;
    const OptimizerSettings *optimizer = &stage->settings.optimizer;
    double norm = 0, *ms = e->settings.update_ms;
    if (ms) *ms = 0;
    double start = start_time(e, ms);
    int failed = optimizer->clip_norm > 0 ? stage_gradient_norm(stage, &norm) : 0;
    if (!failed) failed = optimizer_check_norm(norm);
    if (!failed) stage_update(stage, lr, optimizer_clip(optimizer, norm));
    stop_time(e, ms, start);
    if (ms && stage->device) stage_charge_time(stage, NULL);
    return failed;
}

/* Adds the gradients of one micro-batch and updates after the last one.  `scale` is 1 over the
 * number of targets in the whole batch. */
static int run_micro_batch(SingleEngine *e, const Batch *batch, double scale, bool last, double lr,
                           Loss *loss) {
    Stage *stage = e->stage;
    stage_begin(stage, batch, MODE_TRAIN);
    int first = forward_prefix(e, batch);
    if (first < 0) return -1;
    if (stage->device && !e->settings.times) {
        Loss part = {0};
        int failed = stage_step(stage, first, scale, last, lr, &part);
        loss_add(loss, &part);
        return failed;
    }
    if (pass_by_block(e, first, scale, loss)) return -1;
    return last ? update(e, lr) : 0;
}

/* Computes the gradient of a batch, in micro-batches, and makes an update from it if `updates`. */
static int run_batch(SingleEngine *e, const Batch *batch, bool updates, double lr, Loss *loss) {
    const Model *m = e->base.model;
    int parts = e->settings.micro_batches, size = (batch->n + parts - 1) / parts;
    double scale = 1 / batch_target_count(batch, m);
    *loss = (Loss){0};
    if (e->settings.times)
        for (int b = 0; b < m->blocks; b++) e->settings.times[b] = (BlockTimes){0};
    for (int first = 0; first < batch->n; first += size) {
        int end = first + size < batch->n ? first + size : batch->n;
        Batch part = batch_slice(batch, m, first, end);
        if (run_micro_batch(e, &part, scale, updates && end == batch->n, lr, loss)) {
            stage_discard(e->stage);
            return -1;
        }
    }
    return 0;
}

static int engine_single_step(Engine *base, const Batch *batch, double lr, Loss *loss) {
    return run_batch(of(base), batch, true, lr, loss);
}

static int engine_single_gradient_norm(Engine *base, const Batch *batch, double *norm) {
    Stage *stage = stage_of(base);
    Loss loss;
    if (run_batch(of(base), batch, false, 0, &loss)) return -1;
    int failed = stage_gradient_norm(stage, norm);
    stage_discard(stage);
    return failed ? -1 : optimizer_check_norm(*norm);
}

static int engine_single_evaluate(Engine *base, const Batch *batch, Loss *loss) {
    SingleEngine *e = of(base);
    Stage *stage = e->stage;
    int max = stage->settings.batch;
    for (int first = 0; first < batch->n; first += max) {
        int end = first + max < batch->n ? first + max : batch->n;
        Batch part = batch_slice(batch, base->model, first, end);
        stage_begin(stage, &part, MODE_EVALUATE);
        for (int b = 0; b < base->model->blocks; b++) stage_forward(stage, b);
        Loss some;
        if (stage_loss(stage, 1, &some)) return -1;
        loss_add(loss, &some);
    }
    return 0;
}

static size_t engine_single_read(Engine *base, TensorRole role, int number, real *data) {
    return stage_read(stage_of(base), role, number, data);
}

static real *engine_single_view(Engine *base, TensorRole role, int number, size_t *count) {
    Stage *stage = stage_of(base);
    return stage->is->view ? stage_view(stage, role, number, count) : NULL;
}

static int engine_single_write(Engine *base, TensorRole role, int number, const real *data) {
    return stage_write(stage_of(base), role, number, data);
}

static uint64_t engine_single_optimizer_step(Engine *base, int block) {
    return stage_of(base)->optimizer_step[block];
}

static void engine_single_set_optimizer_step(Engine *base, int block, uint64_t t) {
    stage_of(base)->optimizer_step[block] = t;
}

static const MemCount *engine_single_memory(Engine *base) { return &stage_of(base)->memory; }

static void engine_single_free(Engine *base) {
    SingleEngine *e = of(base);
    engine_cache_free(e->cache);
    stage_free(e->stage);
    free(e);
}

Engine *engine_single_create(Stage *stage, EngineSettings settings, const Dataset *data) {
    static const EngineClass class = {
        .activate = engine_single_activate,
        .step = engine_single_step,
        .gradient_norm = engine_single_gradient_norm,
        .evaluate = engine_single_evaluate,
        .read = engine_single_read,
        .view = engine_single_view,
        .write = engine_single_write,
        .optimizer_step = engine_single_optimizer_step,
        .set_optimizer_step = engine_single_set_optimizer_step,
        .memory = engine_single_memory,
        .free = engine_single_free,
    };
    if (settings.micro_batches < 1) settings.micro_batches = 1;
    SingleEngine *e = calloc(1, sizeof *e);
    if (!e) return error_null("engine: out of memory");
    *e = (SingleEngine){.base = {&class, stage->model}, .stage = stage, .settings = settings};
    if (!settings.cache_bytes && !settings.cache_device_bytes) return &e->base;
    e->cache = engine_cache_create(stage, &settings, data);
    if (e->cache) return &e->base;
    free(e);
    return NULL;
}
