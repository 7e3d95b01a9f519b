#include "coordinator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../ref/error.h"

/* ---- what the coordinator sends to the workers ---- */

typedef enum {
    CALL_ACTIVATE, /* active[blocks] follows */
    CALL_STEP,     /* the batch follows */
    CALL_EVALUATE, /* the batch follows */
    CALL_READ,
    CALL_WRITE, /* the numbers follow */
    CALL_SET_OPTIMIZER_STEP,
    CALL_MEMORY,
    CALL_END
} CallKind;

typedef struct {
    CallKind kind;
    int samples;     /* STEP, EVALUATE */
    double lr;       /* STEP */
    TensorRole role; /* READ, WRITE */
    int number;      /* of the tensor, or for SET_OPTIMIZER_STEP of the block */
    bool size_only;  /* READ: without the numbers */
    uint64_t t;      /* SET_OPTIMIZER_STEP */
} RemoteCall;

/* Returns the numbers in a tensor that can be written. */
static size_t tensor_count(const Model *m, TensorRole role, int number) {
    return role == TENSOR_BUFFER ? (size_t)m->buffer[number].count : m->param[number].count;
}

/* Overwrites the arrays of a batch on every rank with rank 0's; batch->n is the same on all. */
static int share_batch(Transport *world, const Model *m, const Batch *batch) {
    size_t samples = (size_t)batch->n, inputs = samples * shape_count(m->input);
    void *input = m->tokens ? (void *)batch->tokens : (void *)batch->images;
    size_t input_bytes = inputs * (m->tokens ? sizeof *batch->tokens : sizeof *batch->images);
    size_t target_bytes = samples * (size_t)m->targets * sizeof *batch->targets;
    return transport_broadcast(world, 0, batch->ids, samples * sizeof *batch->ids) ||
                   transport_broadcast(world, 0, input, input_bytes) ||
                   transport_broadcast(world, 0, batch->targets, target_bytes)
               ? -1
               : 0;
}

/* ---- the coordinator ---- */

typedef struct {
    Engine base;
    Engine *rank;     /* the engine of rank 0 */
    Transport *world; /* joins all ranks */
    void (*after)(void *context);
    void *context;
    MemCount memory; /* of all ranks together, at the last call of memory */
    MemCount each[]; /* [ranks]: of each */
} Coordinator;

static Coordinator *of(Engine *base) { return (Coordinator *)(void *)base; }

/* Sends data from here to all workers; a broadcast only reads those of its root. */
static int send_all(Coordinator *e, const void *data, size_t bytes) {
    return transport_broadcast(e->world, 0, (void *)data, bytes);
}

static int announce(Coordinator *e, RemoteCall call) { return send_all(e, &call, sizeof call); }

static int coordinator_activate(Engine *base, const bool *active) {
    Coordinator *e = of(base);
    return announce(e, (RemoteCall){.kind = CALL_ACTIVATE}) ||
                   send_all(e, active, (size_t)base->model->blocks * sizeof *active) ||
                   e->rank->is->activate(e->rank, active)
               ? -1
               : 0;
}

static int announce_batch(Coordinator *e, RemoteCall call, const Batch *batch) {
    return announce(e, call) || share_batch(e->world, e->base.model, batch) ? -1 : 0;
}

static int coordinator_step(Engine *base, const Batch *batch, double lr, Loss *loss) {
    Coordinator *e = of(base);
    RemoteCall call = {.kind = CALL_STEP, .samples = batch->n, .lr = lr};
    return announce_batch(e, call, batch) ? -1 : e->rank->is->step(e->rank, batch, lr, loss);
}

static int coordinator_evaluate(Engine *base, const Batch *batch, Loss *loss) {
    Coordinator *e = of(base);
    RemoteCall call = {.kind = CALL_EVALUATE, .samples = batch->n};
    return announce_batch(e, call, batch) ? -1 : e->rank->is->evaluate(e->rank, batch, loss);
}

static size_t coordinator_read(Engine *base, TensorRole role, int number, real *data) {
    Coordinator *e = of(base);
    RemoteCall call = {.kind = CALL_READ, .role = role, .number = number, .size_only = !data};
    if (announce(e, call)) return READ_FAILED;
    size_t count = e->rank->is->read(e->rank, role, number, NULL);
    if (!data || !count || count == READ_FAILED) return count;
    return e->rank->is->read(e->rank, role, number, data);
}

static int coordinator_write(Engine *base, TensorRole role, int number, const real *data) {
    Coordinator *e = of(base);
    RemoteCall call = {.kind = CALL_WRITE, .role = role, .number = number};
    return announce(e, call) ||
                   send_all(e, data, tensor_count(base->model, role, number) * sizeof *data) ||
                   e->rank->is->write(e->rank, role, number, data)
               ? -1
               : 0;
}

static uint64_t coordinator_optimizer_step(Engine *base, int block) {
    return of(base)->rank->is->optimizer_step(of(base)->rank, block);
}

static void coordinator_set_optimizer_step(Engine *base, int block, uint64_t t) {
    Coordinator *e = of(base);
    if (announce(e, (RemoteCall){.kind = CALL_SET_OPTIMIZER_STEP, .number = block, .t = t}) == 0)
        e->rank->is->set_optimizer_step(e->rank, block, t);
}

/* Adds up the memory of all ranks.  Peaks are added too, although the ranks may have reached theirs
 * at different times. */
static const MemCount *coordinator_memory(Engine *base) {
    Coordinator *e = of(base);
    const MemCount *mine = e->rank->is->memory(e->rank);
    if (announce(e, (RemoteCall){.kind = CALL_MEMORY}) ||
        transport_gather(e->world, e->each, mine, sizeof *mine))
        return &e->memory;
    e->memory = (MemCount){0};
    for (int r = 0; r < e->world->ranks; r++) {
        const MemCount *one = &e->each[r];
        for (int role = 0; role < MEM_ROLES; role++) {
            e->memory.current[role] += one->current[role];
            e->memory.peak[role] += one->peak[role];
        }
        e->memory.total_current += one->total_current;
        e->memory.total_peak += one->total_peak;
    }
    return &e->memory;
}

const MemCount *coordinator_counts(Engine *coordinator) { return of(coordinator)->each; }

static void coordinator_free(Engine *base) {
    Coordinator *e = of(base);
    char cause[400]; /* an earlier error, which that of a broken transport must not replace */
    snprintf(cause, sizeof cause, "%s", error_message());
    if (announce(e, (RemoteCall){.kind = CALL_END})) error_set("%s", cause);
    e->rank->is->free(e->rank);
    e->world->is->free(e->world);
    if (e->after) e->after(e->context);
    free(e);
}

Engine *coordinator_create(Engine *rank, Transport *world, void (*after)(void *context),
                           void *context) {
    static const EngineClass class = {
        .activate = coordinator_activate,
        .step = coordinator_step,
        .evaluate = coordinator_evaluate,
        .read = coordinator_read,
        .write = coordinator_write,
        .optimizer_step = coordinator_optimizer_step,
        .set_optimizer_step = coordinator_set_optimizer_step,
        .memory = coordinator_memory,
        .free = coordinator_free,
    };
    size_t bytes = sizeof(Coordinator) + (size_t)world->ranks * sizeof(MemCount);
    Coordinator *e = rank ? calloc(1, bytes) : NULL;
    if (rank && !e) error_set("pipeline: out of memory");
    if (!e) world->is->abort(world, error_message());
    if (e && transport_barrier(world) == 0) {
        *e = (Coordinator){.base = {&class, rank->model},
                           .rank = rank,
                           .world = world,
                           .after = after,
                           .context = context};
        return &e->base;
    }
    free(e);
    if (rank) rank->is->free(rank);
    world->is->free(world);
    if (after) after(context);
    return NULL;
}

/* ---- the workers ---- */

typedef struct {
    Engine *engine;
    Transport *world;
    Batch batch;  /* of the coordinator's calls */
    int capacity; /* samples it has room for */
} Worker;

/* Receives data of the coordinator, for the caller to free.  NULL and an error. */
static void *receive(Worker *w, size_t bytes) {
    void *data = malloc(bytes + 1);
    if (!data) error_set("pipeline: out of memory for %zu bytes", bytes);
    if (!data || transport_broadcast(w->world, 0, data, bytes) == 0) return data;
    free(data);
    return NULL;
}

static int worker_activate(Worker *w) {
    bool *active = receive(w, (size_t)w->engine->model->blocks * sizeof *active);
    int failed = !active || w->engine->is->activate(w->engine, active);
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
    return share_batch(w->world, m, &w->batch);
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
    size_t count = e->is->read(e, call->role, call->number, NULL);
    if (call->size_only || !count || count == READ_FAILED) return 0;
    real *data = malloc(count * sizeof *data);
    if (!data) return error_set("pipeline: out of memory for a tensor of %zu numbers", count);
    e->is->read(e, call->role, call->number, data);
    free(data);
    return 0;
}

static int worker_write(Worker *w, const RemoteCall *call) {
    Engine *e = w->engine;
    real *data = receive(w, tensor_count(e->model, call->role, call->number) * sizeof *data);
    int failed = !data || e->is->write(e, call->role, call->number, data);
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
    RemoteCall call = {.kind = CALL_MEMORY};
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
