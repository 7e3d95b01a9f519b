#include <stdlib.h>

#include "../ref/error.h"
#include "coordinator.h"

typedef struct {
    Engine *engine;
    Link *world;
    Batch batch; /* of the leader's calls */
    int room;    /* samples it has room for */
} Follower;

static int follow_activate(Follower *f) {
    size_t blocks = (size_t)f->engine->model->blocks;
    bool *active = malloc(blocks * sizeof *active);
    if (!active) return error_set("pipeline: out of memory");
    int failed = link_broadcast(f->world, 0, active, blocks * sizeof *active) ||
                 f->engine->is->activate(f->engine, active);
    free(active);
    return failed ? -1 : 0;
}

static int receive_batch(Follower *f, int samples) {
    const Model *m = f->engine->model;
    if (samples > f->room) {
        batch_free(&f->batch);
        f->room = 0;
        if (batch_reserve(&f->batch, m, samples)) return -1;
        f->room = samples;
    }
    f->batch.n = samples;
    return call_share_batch(f->world, m, &f->batch, samples);
}

/* Errors of the training itself (a loss that is not a number) all ranks have together, and go on
 * from: the leader decides what becomes of it.  A broken link shows at the next call. */
static int follow_batch(Follower *f, const Call *call) {
    Loss loss;
    if (receive_batch(f, call->samples)) return -1;
    if (call->kind == CALL_STEP)
        f->engine->is->step(f->engine, &f->batch, call->lr, &loss);
    else
        f->engine->is->evaluate(f->engine, &f->batch, &loss);
    return 0;
}

static int follow_read(Follower *f, const Call *call) {
    Engine *e = f->engine;
    real *data = malloc(call->count * sizeof *data);
    if (!data) return error_set("pipeline: out of memory for a tensor of %zu numbers", call->count);
    e->is->read(e, call->role, call->number, data);
    free(data);
    return 0;
}

static int follow_write(Follower *f, const Call *call) {
    Engine *e = f->engine;
    size_t bytes = call_numbers(e->model, call->role, call->number) * sizeof(real);
    real *data = malloc(bytes + 1);
    if (!data) return error_set("pipeline: out of memory for a tensor of %zu bytes", bytes);
    int failed =
        link_broadcast(f->world, 0, data, bytes) || e->is->write(e, call->role, call->number, data);
    free(data);
    return failed ? -1 : 0;
}

static int follow_memory(Follower *f) {
    MemCount *all = malloc((size_t)f->world->ranks * sizeof *all);
    if (!all) return error_set("pipeline: out of memory");
    int failed = link_gather(f->world, all, f->engine->is->memory(f->engine), sizeof *all);
    free(all);
    return failed;
}

static int carry_out(Follower *f, const Call *call) {
    Engine *e = f->engine;
    switch (call->kind) {
        case CALL_ACTIVATE:
            return follow_activate(f);
        case CALL_STEP:
        case CALL_EVALUATE:
            return follow_batch(f, call);
        case CALL_SIZE:
            e->is->read(e, call->role, call->number, NULL);
            return 0;
        case CALL_READ:
            return follow_read(f, call);
        case CALL_WRITE:
            return follow_write(f, call);
        case CALL_SET_AGE:
            e->is->set_age(e, call->number, call->age);
            return 0;
        case CALL_MEMORY:
            return follow_memory(f);
        case CALL_END:
            break;
    }
    return 0;
}

static int follow(Follower *f) {
    Call call = {.kind = CALL_SIZE};
    while (call.kind != CALL_END) {
        if (link_broadcast(f->world, 0, &call, sizeof call)) return -1;
        if (carry_out(f, &call)) {
            f->world->is->give_up(f->world, error_message());
            return -1;
        }
    }
    return 0;
}

int engine_follow(Engine *rank, Link *world) {
    Follower f = {.engine = rank, .world = world};
    int failed = rank ? link_barrier(world) : -1;
    if (!rank) world->is->give_up(world, error_message());
    failed = failed || follow(&f);
    batch_free(&f.batch);
    if (rank) rank->is->free(rank);
    world->is->free(world);
    return failed ? -1 : 0;
}
