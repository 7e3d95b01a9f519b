#include "coordinator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../ref/error.h"

static Coordinator *of(Engine *base) { return (Coordinator *)(void *)base; }

size_t call_numbers(const Model *m, TensorRole role, int number) {
    return role == TENSOR_BUFFER ? (size_t)m->buffer[number].count : m->param[number].count;
}

int call_share_batch(Transport *world, const Model *m, Batch *batch, int n) {
    size_t samples = (size_t)n, inputs = samples * shape_count(m->input);
    void *input = m->tokens ? (void *)batch->tokens : (void *)batch->images;
    size_t input_bytes = inputs * (m->tokens ? sizeof *batch->tokens : sizeof *batch->images);
    size_t target_bytes = samples * (size_t)m->targets * sizeof *batch->targets;
    return transport_broadcast(world, 0, batch->ids, samples * sizeof *batch->ids) ||
                   transport_broadcast(world, 0, input, input_bytes) ||
                   transport_broadcast(world, 0, batch->targets, target_bytes)
               ? -1
               : 0;
}

static int announce(Coordinator *e, RemoteCall call) {
    return transport_broadcast(e->world, 0, &call, sizeof call);
}

static int coordinator_activate(Engine *base, const bool *active) {
    Coordinator *e = of(base);
    size_t blocks = (size_t)base->model->blocks;
    bool *copy = malloc(blocks * sizeof *copy);
    if (!copy) return error_set("pipeline: out of memory");
    memcpy(copy, active, blocks * sizeof *copy);
    int failed = announce(e, (RemoteCall){.kind = CALL_ACTIVATE}) ||
                 transport_broadcast(e->world, 0, copy, blocks * sizeof *copy) ||
                 e->rank->is->activate(e->rank, copy);
    free(copy);
    return failed ? -1 : 0;
}

static int announce_batch(Coordinator *e, RemoteCall call, const Batch *batch) {
    Batch same = *batch;
    return announce(e, call) || call_share_batch(e->world, e->base.model, &same, batch->n) ? -1 : 0;
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
    RemoteCall call = {.kind = CALL_SIZE, .role = role, .number = number};
    if (announce(e, call)) return READ_FAILED;
    size_t count = e->rank->is->read(e->rank, role, number, NULL);
    if (!data || !count || count == READ_FAILED) return count;
    call.kind = CALL_READ;
    call.count = count;
    return announce(e, call) ? READ_FAILED : e->rank->is->read(e->rank, role, number, data);
}

static int coordinator_write(Engine *base, TensorRole role, int number, const real *data) {
    Coordinator *e = of(base);
    size_t bytes = call_numbers(base->model, role, number) * sizeof *data;
    real *copy = malloc(bytes + 1);
    if (!copy) return error_set("pipeline: out of memory for a tensor of %zu bytes", bytes);
    memcpy(copy, data, bytes);
    RemoteCall call = {.kind = CALL_WRITE, .role = role, .number = number};
    int failed = announce(e, call) || transport_broadcast(e->world, 0, copy, bytes) ||
                 e->rank->is->write(e->rank, role, number, copy);
    free(copy);
    return failed ? -1 : 0;
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
    free(e->each);
    if (e->after) e->after(e->context);
}

int coordinator_open(Coordinator *coordinator, const Model *model, Engine *rank, Transport *world,
                     void (*after)(void *context), void *context) {
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
    *coordinator = (Coordinator){.base = {&class, model},
                                 .rank = rank,
                                 .world = world,
                                 .after = after,
                                 .context = context,
                                 .each = calloc((size_t)world->ranks, sizeof *coordinator->each)};
    int failed = rank && !coordinator->each ? error_set("pipeline: out of memory") : rank ? 0 : -1;
    if (failed) world->is->abort(world, error_message());
    if (!failed && transport_barrier(world) == 0) return 0;
    if (rank) rank->is->free(rank);
    world->is->free(world);
    free(coordinator->each);
    if (after) after(context);
    return -1;
}
