#include <stdlib.h>

#include "../ref/error.h"
#include "coordinator.h"

typedef struct {
    Engine *engine;
    Transport *world;
    Batch batch;  /* of the coordinator's calls */
    int capacity; /* samples it has room for */
} Worker;

static int worker_activate(Worker *w) {
    size_t blocks = (size_t)w->engine->model->blocks;
    bool *active = malloc(blocks * sizeof *active);
    if (!active) return error_set("pipeline: out of memory");
    int failed = transport_broadcast(w->world, 0, active, blocks * sizeof *active) ||
                 w->engine->is->activate(w->engine, active);
    free(active);
    return failed ? -1 : 0;
}

static int receive_batch(Worker *w, int samples) {
    const Model *m = w->engine->model;
    if (samples > w->capacity) {
        batch_free(&w->batch);
        w->capacity = 0;
        if (batch_reserve(&w->batch, m, samples)) return -1;
        w->capacity = samples;
    }
    w->batch.n = samples;
    return call_share_batch(w->world, m, &w->batch, samples);
}

/* Ignores errors of the step: those of the training itself, such as a loss that is not finite, all
 * ranks have alike, and the coordinator handles them.  A broken transport makes the next call
 * fail. */
static int worker_batch(Worker *w, const RemoteCall *call) {
    Loss loss;
    if (receive_batch(w, call->samples)) return -1;
    if (call->kind == CALL_STEP)
        w->engine->is->step(w->engine, &w->batch, call->lr, &loss);
    else
        w->engine->is->evaluate(w->engine, &w->batch, &loss);
    return 0;
}

static int worker_read(Worker *w, const RemoteCall *call) {
    Engine *e = w->engine;
    real *data = malloc(call->count * sizeof *data);
    if (!data) return error_set("pipeline: out of memory for a tensor of %zu numbers", call->count);
    e->is->read(e, call->role, call->number, data);
    free(data);
    return 0;
}

static int worker_write(Worker *w, const RemoteCall *call) {
    Engine *e = w->engine;
    size_t bytes = call_numbers(e->model, call->role, call->number) * sizeof(real);
    real *data = malloc(bytes + 1);
    if (!data) return error_set("pipeline: out of memory for a tensor of %zu bytes", bytes);
    int failed = transport_broadcast(w->world, 0, data, bytes) ||
                 e->is->write(e, call->role, call->number, data);
    free(data);
    return failed ? -1 : 0;
}

static int worker_memory(Worker *w) {
    MemCount *all = malloc((size_t)w->world->ranks * sizeof *all);
    if (!all) return error_set("pipeline: out of memory");
    int failed = transport_gather(w->world, all, w->engine->is->memory(w->engine), sizeof *all);
    free(all);
    return failed;
}

static int carry_out(Worker *w, const RemoteCall *call) {
    Engine *e = w->engine;
    switch (call->kind) {
        case CALL_ACTIVATE:
            return worker_activate(w);
        case CALL_STEP:
        case CALL_EVALUATE:
            return worker_batch(w, call);
        case CALL_SIZE:
            e->is->read(e, call->role, call->number, NULL);
            return 0;
        case CALL_READ:
            return worker_read(w, call);
        case CALL_WRITE:
            return worker_write(w, call);
        case CALL_SET_OPTIMIZER_STEP:
            e->is->set_optimizer_step(e, call->number, call->t);
            return 0;
        case CALL_MEMORY:
            return worker_memory(w);
        case CALL_END:
            break;
    }
    return 0;
}

static int serve(Worker *w) {
    RemoteCall call = {.kind = CALL_SIZE};
    while (call.kind != CALL_END) {
        if (transport_broadcast(w->world, 0, &call, sizeof call)) return -1;
        if (carry_out(w, &call)) {
            w->world->is->abort(w->world, error_message());
            return -1;
        }
    }
    return 0;
}

int worker_run(Engine *rank, Transport *world) {
    Worker w = {.engine = rank, .world = world};
    int failed = rank ? transport_barrier(world) : -1;
    if (!rank) world->is->abort(world, error_message());
    failed = failed || serve(&w);
    batch_free(&w.batch);
    if (rank) rank->is->free(rank);
    world->is->free(world);
    return failed ? -1 : 0;
}
