#include "coordinator.h"

#include <stdio.h>
#include <stdlib.h>

#include "../ref/base/error.h"
#include "engine_rank.h"

/* ---- calls, which all ranks make on their own engines ---- */

typedef enum {
    CALL_ACTIVATE, /* data: active[blocks] */
    CALL_STEP,
    CALL_PRE_INFER,
    CALL_EVALUATE,
    CALL_READ,  /* data: overwritten with the tensor on rank 0; none: only its size is wanted */
    CALL_WRITE, /* data: the tensor */
    CALL_SET_OPTIMIZER_STEP,
    CALL_MEMORY, /* data: overwritten with MemCount[ranks] */
    CALL_END
} CallKind;

/* A call and its arguments.  The pointers mean nothing to other ranks, which have their own. */
typedef struct {
    CallKind kind;
    int samples;     /* STEP, PRE_INFER, EVALUATE: in the batch */
    double lr;       /* STEP */
    TensorRole role; /* READ, WRITE */
    int number;      /* of the tensor, or for SET_OPTIMIZER_STEP of the block */
    uint64_t t;      /* SET_OPTIMIZER_STEP */
    size_t bytes;    /* of data */
    const Batch
        *batch; /* STEP, PRE_INFER, EVALUATE; workers overwrite its arrays with the coordinator's */
    Loss *loss; /* STEP: overwritten; EVALUATE: added to */
    Loss so_far;   /* EVALUATE: the coordinator's *loss before the call */
    size_t *count; /* READ: overwritten with the elements of the tensor */
    void *data;    /* CallKind says what; NULL: none */
} RemoteCall;

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

/* Overwrites the arguments of a call on every rank with the coordinator's. */
static int share(Transport *world, const Model *m, const RemoteCall *call) {
    switch (call->kind) {
        case CALL_STEP:
        case CALL_PRE_INFER:
        case CALL_EVALUATE:
            return share_batch(world, m, call->batch);
        case CALL_ACTIVATE:
        case CALL_WRITE:
            return transport_broadcast(world, 0, call->data, call->bytes);
        default:
            return 0;
    }
}

/* Makes the call on this rank's engine. */
static int carry_out(Engine *own, Transport *world, const RemoteCall *call) {
    switch (call->kind) {
        case CALL_ACTIVATE:
            return engine_activate(own, call->data);
        case CALL_STEP:
            return engine_step(own, call->batch, call->lr, call->loss);
        case CALL_PRE_INFER:
            return engine_pre_infer(own, call->batch);
        case CALL_EVALUATE:
            return engine_evaluate(own, call->batch, call->loss);
        case CALL_READ:
            *call->count = engine_read(own, call->role, call->number, call->data);
            return *call->count == READ_FAILED ? -1 : 0;
        case CALL_WRITE:
            return engine_write(own, call->role, call->number, call->data);
        case CALL_SET_OPTIMIZER_STEP:
            engine_set_optimizer_step(own, call->number, call->t);
            return 0;
        case CALL_MEMORY:
            return transport_all_gather(world, call->data, engine_memory(own), sizeof(MemCount));
        case CALL_END:
            return 0;
    }
    return error_set("pipeline: unknown call %d", (int)call->kind);
}

/* ---- the coordinator ---- */

typedef struct {
    Engine base;
    Engine *own;      /* the engine of rank 0 */
    Transport *world; /* joins all ranks */
    void (*after)(void *context);
    void *context;
    MemCount memory; /* of all ranks together, at the last call of memory */
    MemCount each[]; /* [ranks]: of each */
} Coordinator;

static Coordinator *of(Engine *base) { return (Coordinator *)(void *)base; }

/* Makes a call on all ranks.  Only the workers' arguments are overwritten, so that the caller's may
 * be const. */
static int call_all(Coordinator *e, RemoteCall call) {
    return transport_broadcast(e->world, 0, &call, sizeof call) ||
                   share(e->world, e->base.model, &call) || carry_out(e->own, e->world, &call)
               ? -1
               : 0;
}

static int coordinator_activate(Engine *base, const bool *active) {
    size_t bytes = (size_t)base->model->blocks * sizeof *active;
    RemoteCall call = {.kind = CALL_ACTIVATE, .bytes = bytes, .data = (void *)active};
    return call_all(of(base), call);
}

static int coordinator_step(Engine *base, const Batch *batch, double lr, Loss *loss) {
    RemoteCall call = {
        .kind = CALL_STEP, .samples = batch->n, .lr = lr, .batch = batch, .loss = loss};
    return call_all(of(base), call);
}

static int coordinator_pre_infer(Engine *base, const Batch *batch) {
    RemoteCall call = {.kind = CALL_PRE_INFER, .samples = batch->n, .batch = batch};
    return call_all(of(base), call);
}

static int coordinator_evaluate(Engine *base, const Batch *batch, Loss *loss) {
    RemoteCall call = {
        .kind = CALL_EVALUATE, .samples = batch->n, .batch = batch, .loss = loss, .so_far = *loss};
    return call_all(of(base), call);
}

static size_t coordinator_read(Engine *base, TensorRole role, int number, real *data) {
    size_t count;
    RemoteCall call = {.kind = CALL_READ, .role = role, .number = number, .count = &count};
    call.bytes = data ? tensor_elements(base->model, role, number) * sizeof *data : 0;
    call.data = data;
    return call_all(of(base), call) ? READ_FAILED : count;
}

static int coordinator_write(Engine *base, TensorRole role, int number, const real *data) {
    RemoteCall call = {.kind = CALL_WRITE, .role = role, .number = number, .data = (void *)data};
    call.bytes = tensor_elements(base->model, role, number) * sizeof *data;
    return call_all(of(base), call);
}

static uint64_t coordinator_optimizer_step(Engine *base, int block) {
    return engine_optimizer_step(of(base)->own, block);
}

static void coordinator_set_optimizer_step(Engine *base, int block, uint64_t t) {
    call_all(of(base), (RemoteCall){.kind = CALL_SET_OPTIMIZER_STEP, .number = block, .t = t});
}

/* Adds up the memory of all ranks.  Peaks are added too, although the ranks may have reached theirs
 * at different times. */
static const MemCount *coordinator_memory(Engine *base) {
    Coordinator *e = of(base);
    size_t bytes = (size_t)e->world->ranks * sizeof *e->each;
    if (call_all(e, (RemoteCall){.kind = CALL_MEMORY, .bytes = bytes, .data = e->each}))
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
    char cause[ERROR_BYTES]; /* an earlier error, which that of a broken transport does not replace
                              */
    snprintf(cause, sizeof cause, "%s", error_message());
    if (call_all(e, (RemoteCall){.kind = CALL_END})) {
        engine_rank_break(e->own, error_message());
        if (!transport_reports(e->world))
            error_set("%s", "");
        else if (*cause)
            error_set("%s", cause);
    }
    engine_free(e->own);
    transport_free(e->world);
    if (e->after) e->after(e->context);
    free(e);
}

Engine *coordinator_create(Engine *own, Transport *world, void (*after)(void *context),
                           void *context) {
    static const EngineClass class = {
        .activate = coordinator_activate,
        .step = coordinator_step,
        .pre_infer = coordinator_pre_infer,
        .evaluate = coordinator_evaluate,
        .read = coordinator_read,
        .write = coordinator_write,
        .optimizer_step = coordinator_optimizer_step,
        .set_optimizer_step = coordinator_set_optimizer_step,
        .memory = coordinator_memory,
        .free = coordinator_free,
    };
    size_t bytes = sizeof(Coordinator) + (size_t)world->ranks * sizeof(MemCount);
    Coordinator *e = own ? calloc(1, bytes) : NULL;
    if (own && !e) error_set("pipeline: out of memory");
    if (!e) transport_abort(world, error_message());
    if (e && transport_barrier(world) == 0) {
        *e = (Coordinator){.base = {&class, own->model},
                           .own = own,
                           .world = world,
                           .after = after,
                           .context = context};
        return &e->base;
    }
    free(e);
    if (!transport_reports(world)) error_set("%s", "");
    if (own) {
        engine_rank_break(own, "the pipeline has not begun");
        engine_free(own);
    }
    transport_free(world);
    if (after) after(context);
    return NULL;
}

/* ---- the workers ---- */

typedef struct {
    Engine *own;
    Transport *world;
    Batch batch;  /* of the coordinator's calls */
    int capacity; /* samples it has room for */
} Worker;

static int reserve_batch(Worker *w, int samples) {
    if (samples > w->capacity) {
        batch_free(&w->batch);
        w->capacity = 0;
        if (batch_reserve(&w->batch, w->own->model, samples)) return -1;
        w->capacity = samples;
    }
    w->batch.n = samples;
    return 0;
}

/* Makes a call of the coordinator.  Ignores errors of a step: those of the training itself, such as
 * a loss that is not finite, all ranks have alike, and the coordinator handles them.  A broken
 * transport makes the next call fail. */
static int worker_call(Worker *w, RemoteCall *call) {
    Loss loss = call->so_far;
    size_t count;
    call->batch = &w->batch;
    call->loss = &loss;
    call->count = &count;
    call->data = call->bytes ? malloc(call->bytes) : NULL;
    if (call->bytes && !call->data)
        return error_set("pipeline: out of memory for %zu bytes", call->bytes);
    int failed = reserve_batch(w, call->samples) || share(w->world, w->own->model, call);
    if (!failed && carry_out(w->own, w->world, call)) failed = call->kind != CALL_STEP;
    free(call->data);
    return failed ? -1 : 0;
}

static int serve(Worker *w) {
    RemoteCall call = {.kind = CALL_MEMORY};
    while (call.kind != CALL_END) {
        if (transport_broadcast(w->world, 0, &call, sizeof call)) return -1;
        if (worker_call(w, &call)) {
            transport_abort(w->world, error_message());
            return -1;
        }
    }
    return 0;
}

int worker_run(Engine *own, Transport *world) {
    Worker w = {.own = own, .world = world};
    int failed = own ? transport_barrier(world) : -1;
    if (!own) transport_abort(world, error_message());
    failed = failed || serve(&w);
    const bool silent = failed && !transport_reports(world);
    batch_free(&w.batch);
    if (own && failed) engine_rank_break(own, error_message());
    if (own) engine_free(own);
    transport_free(world);
    if (silent) error_set("%s", "");
    return failed ? -1 : 0;
}
