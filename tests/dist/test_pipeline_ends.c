/* How a pipeline ends: every message of a device is freed exactly once, and a rank that fails ends
 * the others at once, with its error. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../ref/base/error.h"
#include "../../ref/stage_device.h"
#include "../test.h"
#include "message_stage.h"
#include "pipeline.h"

/* ---- stages with a fault ---- */

/* Pipelines alone have local blocks. */
static bool has_last_block(const Stage *stage) {
    const bool *local = stage->settings.local;
    return local && local[stage->model->blocks - 1];
}

/* On the ranks that hold the last block, replaces the class of the stage by one with a fault. */
static Stage *with_fault(Stage *stage, StageClass *class, void (*damage)(StageClass *class)) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    if (!has_last_block(stage)) return stage;
    pthread_mutex_lock(&lock); /* replicas come here at the same time */
    if (!class->free) {
        *class = *stage->is;
        damage(class);
    }
    pthread_mutex_unlock(&lock);
    stage->is = class;
    return stage;
}

/* ---- messages of a device ---- */

static const PipelineRecipe plain_3 = {.placement = PLACEMENT_PLAIN,
                                       .ranks = 3,
                                       .submodels = 1,
                                       .settings = {.micro_batches = 4},
                                       .message_free = message_stage_free};
static const PipelineRecipe virtual_2 = {.placement = PLACEMENT_VIRTUAL,
                                         .ranks = 2,
                                         .submodels = 3,
                                         .settings = {.micro_batches = 4},
                                         .message_free = message_stage_free};
static const PipelineRecipe replicas_2 = {.placement = PLACEMENT_PLAIN,
                                          .ranks = 2,
                                          .submodels = 1,
                                          .replicas = 2,
                                          .settings = {.micro_batches = 2},
                                          .message_free = message_stage_free};

/* Sending messages of a device gives the bits of sending host data. */
static void messages_carry_the_same_values(const void *data) {
    const PipelineRecipe *how = data;
    Recipe host = {.spec = LLAMA, .steps = 7, .cache_bytes = 1 << 20, .rule = {.every = 5}};
    Recipe device = host;
    PipelineRecipe without = *how;
    Pipeline a, b;
    int made = message_stage_made();
    device.create = message_stage_create;
    without.message_free = NULL;
    host.micro_batches = device.micro_batches = how->settings.micro_batches;
    pipeline_open(&a, &host, &without);
    CHECK(tiny_train(&a.tiny, NULL, NULL) == 0, "%s", error_message());
    CHECK(message_stage_made() == made, "messages of the CPU");
    pipeline_open(&b, &device, how);
    CHECK(tiny_train(&b.tiny, NULL, NULL) == 0, "%s", error_message());
    CHECK(message_stage_made() > made, "no messages");
    tiny_check_same(&a.tiny, &b.tiny, "messages");
    pipeline_close(&a);
    pipeline_close(&b);
    CHECK(message_stage_alive() == 0, "%d messages are left", message_stage_alive());
}

/* The stage of the last block takes its time, so that the ranks below get as far ahead as they can.
 */
static void (*quick_forward)(Stage *stage, int block);

static void slow_forward(Stage *stage, int block) {
    nanosleep(&(struct timespec){0, 20000000}, NULL);
    quick_forward(stage, block);
}

static void slow_down(StageClass *class) {
    quick_forward = class->forward;
    class->forward = slow_forward;
}

static Stage *slow_at_the_end(const Model *model, StageSettings settings) {
    static StageClass class;
    return with_fault(message_stage_create(model, settings), &class, slow_down);
}

static int lowest_block_of(const Placement *p, int rank) {
    int b = 0;
    while (p->rank_of[p->chunk_of[b]] != rank) b++;
    return b;
}

typedef struct {
    const char *name;
    const PipelineRecipe *how;
    int submodel;
} Reserve;

static const PipelineRecipe plain_2 = {.placement = PLACEMENT_PLAIN,
                                       .ranks = 2,
                                       .submodels = 1,
                                       .settings = {.micro_batches = 6},
                                       .message_free = message_stage_free};
static const Reserve reserves[] = {
    {"made before, 3 ranks", &plain_3, 0},
    {"made before, 3 ranks, the last submodel", &plain_3, 2},
    {"made before, 2 ranks, the last submodel", &plain_2, 2},
    {"made before, virtual stages", &virtual_2, 0},
    {"made before, virtual stages, the last submodel", &virtual_2, 2},
};

/* Activating reserves memory on each rank for as many messages as it creates in a step. */
static void messages_are_made_before_a_step(const void *data) {
    const Reserve *row = data;
    const int ranks = row->how->ranks, parts = row->how->settings.micro_batches;
    int made[PIPELINE_MAX_RANKS], peaks = 0;
    Recipe recipe = {.spec = LLAMA,
                     .steps = 1,
                     .batch = parts,
                     .micro_batches = parts,
                     .order = row->submodel ? ORDER_DESCENDING : ORDER_CYCLIC,
                     .create = slow_at_the_end};
    Pipeline p;
    pipeline_open(&p, &recipe, row->how);
    for (int r = 0; r < ranks; r++)
        made[r] = message_stage_made_by(lowest_block_of(&p.placement, r));
    tiny_activate(&p.tiny, row->submodel);
    engine_memory(p.tiny.engine); /* waits for all ranks */
    for (int r = 0; r < ranks; r++) {
        const int lowest = lowest_block_of(&p.placement, r);
        made[r] = message_stage_made_by(lowest) - made[r];
        message_stage_peak_by(lowest);
    }
    CHECK(tiny_train(&p.tiny, NULL, NULL) == 0, "%s", error_message());
    engine_memory(p.tiny.engine);
    for (int r = 0; r < ranks; r++) {
        const int peak = message_stage_peak_by(lowest_block_of(&p.placement, r));
        CHECK(peak <= made[r], "rank %d creates %d at a time, %d were made before", r, peak,
              made[r]);
        test_note("rank %d: %d of %d", r, peak, made[r]);
        peaks += peak;
    }
    CHECK(peaks > 0, "no messages");
    pipeline_close(&p);
}

/* ---- transports that count how they end ---- */

typedef struct {
    Transport base;
    Transport *inner;
    bool broken;
} WatchedTransport;

static atomic_int ended_broken;

static int watched_sendrecv(Transport *transport, Transfer *transfers, int count) {
    return transport_sendrecv(((WatchedTransport *)(void *)transport)->inner, transfers, count);
}

static void watched_abort(Transport *transport, const char *why) {
    WatchedTransport *w = (WatchedTransport *)(void *)transport;
    w->broken = true;
    transport_abort(w->inner, why);
}

static void watched_free(Transport *transport) {
    WatchedTransport *w = (WatchedTransport *)(void *)transport;
    ended_broken += w->broken;
    transport_free(w->inner);
    free(w);
}

static Transport *watched(Transport *inner) {
    static const TransportClass class = {
        .sendrecv = watched_sendrecv, .abort = watched_abort, .free = watched_free};
    WatchedTransport *w = malloc(sizeof *w);
    if (!w) abort();
    *w = (WatchedTransport){*inner, inner, false};
    w->base.is = &class;
    return &w->base;
}

/* ---- failures of one rank ---- */

static int refuse_activate(Stage *stage, const bool *active) {
    (void)stage;
    (void)active;
    return error_set("memory: no 4096 bytes for activations");
}

static int refuse_write(Stage *stage, TensorRole role, int number, const real *values) {
    (void)stage;
    (void)role;
    (void)values;
    return error_set("stage: no room for tensor %d", number);
}

static void *refuse_message(Stage *stage, size_t count) {
    (void)stage;
    error_set("memory: no %zu numbers for a message", count);
    return NULL;
}

static size_t (*sound_read)(Stage *stage, TensorRole role, int number, real *data);

static size_t refuse_gradients(Stage *stage, TensorRole role, int number, real *data) {
    if (role != TENSOR_GRADIENT) return sound_read(stage, role, number, data);
    error_set("stage: cannot read gradient %d", number);
    return READ_FAILED;
}

static size_t refuse_values(Stage *stage, TensorRole role, int number, real *data) {
    if (role != TENSOR_VALUE) return sound_read(stage, role, number, data);
    error_set("stage: cannot read output %d", number);
    return READ_FAILED;
}

static int refuse_loss(Stage *stage, double scale, Loss *loss) {
    (void)stage;
    (void)scale;
    *loss = (Loss){.loss_sum = 1};
    return error_set("stage: cannot read the loss");
}

static int refuse_squares(Stage *stage, double *square) {
    *square = stage->model->params;
    return error_set("stage: cannot read the squares");
}

typedef struct {
    const char *name, *reason, *spec;
    int replicas;
    Stage *(*create)(const Model *model, StageSettings settings);
    size_t cache_bytes;
} Failure;

static void damage_activate(StageClass *class) { class->activate = refuse_activate; }
static void damage_write(StageClass *class) { class->write = refuse_write; }
static void damage_gradients(StageClass *class) {
    sound_read = class->read;
    class->read = refuse_gradients;
}
static void damage_values(StageClass *class) {
    sound_read = class->read;
    class->read = refuse_values;
}

static void damage_loss(StageClass *class) { class->loss = refuse_loss; }
static void damage_squares(StageClass *class) { class->gradient_squares = refuse_squares; }

static Stage *fails_to_activate(const Model *model, StageSettings settings) {
    static StageClass class;
    return with_fault(message_stage_create(model, settings), &class, damage_activate);
}

static Stage *fails_to_write(const Model *model, StageSettings settings) {
    static StageClass class;
    return with_fault(stage_ref_create(model, settings), &class, damage_write);
}

static Stage *fails_to_send(const Model *model, StageSettings settings) {
    static const StageDeviceClass refuses = {.message_create = refuse_message};
    Stage *stage = message_stage_create(model, settings);
    if (has_last_block(stage)) stage->device = &refuses;
    return stage;
}

static Stage *fails_to_read_gradients(const Model *model, StageSettings settings) {
    static StageClass class;
    return with_fault(stage_ref_create(model, settings), &class, damage_gradients);
}

static Stage *fails_to_read_values(const Model *model, StageSettings settings) {
    static StageClass class;
    return with_fault(stage_ref_create(model, settings), &class, damage_values);
}

static Stage *fails_to_read_the_loss(const Model *model, StageSettings settings) {
    static StageClass class;
    return with_fault(stage_ref_create(model, settings), &class, damage_loss);
}

static Stage *fails_to_read_squares(const Model *model, StageSettings settings) {
    static StageClass class;
    return with_fault(stage_ref_create(model, settings), &class, damage_squares);
}

static Stage *corrects(const Model *model, StageSettings settings) {
    Stage *stage = message_stage_create(model, settings);
    if (has_last_block(stage)) stage->settings.correct_factor = 1;
    return stage;
}

static const Failure failures[] = {
    {"no engine", "corrected on one device alone", LLAMA, 1, corrects, 0},
    {"activate", "no 4096 bytes", LLAMA, 1, fails_to_activate, 0},
    {"a value that is refused", "no room for tensor", LLAMA, 1, fails_to_write, 0},
    {"a message", "numbers for a message", LLAMA, 1, fails_to_send, 0},
    {"a message, 2 replicas", "numbers for a message", LLAMA, 2, fails_to_send, 0},
    {"a gradient of 2 replicas", "cannot read gradient", LLAMA, 2, fails_to_read_gradients, 0},
    {"a tied gradient", "cannot read gradient", GPT, 1, fails_to_read_gradients, 0},
    {"a value to cache", "cannot read output", LLAMA, 1, fails_to_read_values, 1 << 20},
    {"a loss", "cannot read the loss", LLAMA, 1, fails_to_read_the_loss, 0},
    {"squares", "cannot read the squares", LLAMA, 1, fails_to_read_squares, 0},
};

/* Every rank reports the error of the rank that failed, in a step or before it; none reports a
 * timeout, as freeing a transport that is not broken would.  Closing the broken pipeline does not
 * replace an earlier error. */
static void one_ends_all(const void *data) {
    const Failure *failure = data;
    Recipe recipe = {.spec = failure->spec,
                     .create = failure->create,
                     .cache_bytes = failure->cache_bytes,
                     .clip = 1,
                     .micro_batches = 4};
    PipelineRecipe how = plain_3;
    Pipeline p;
    how.replicas = failure->replicas;
    how.join = watched;
    ended_broken = 0;
    pipeline_open(&p, &recipe, &how);
    CHECK(!p.tiny.engine || tiny_train(&p.tiny, NULL, NULL) == -1, "trained all the same");
    CHECK(strstr(error_message(), failure->reason) && strstr(error_message(), " gave up: "),
          "\"%s\"", error_message());
    error_set("an earlier error");
    pipeline_close(&p);
    CHECK(strcmp(error_message(), "an earlier error") == 0, "\"%s\"", error_message());
    CHECK(ended_broken == 3 * how.replicas, "%d transports broke", ended_broken);
    CHECK(message_stage_alive() == 0, "%d messages are left", message_stage_alive());
}

/* Without an error a checkpoint would silently lack the tensors of other ranks. */
static void reading_from_a_lost_rank_is_an_error(const void *data) {
    const int *replicas = data;
    Recipe recipe = {.spec = LLAMA, .micro_batches = 4};
    PipelineRecipe how = plain_3;
    Pipeline p;
    how.replicas = *replicas;
    how.message_free = NULL;
    pipeline_open(&p, &recipe, &how);
    Engine *engine = p.tiny.engine;
    size_t count = engine->model->param[0].count;
    real *room = malloc(count * sizeof *room);
    if (!room) abort();
    CHECK(engine_read(engine, TENSOR_PARAMETER, 0, room) == count, "%s", error_message());
    transport_abort(p.transport[2], "it is lost");
    CHECK(engine_read(engine, TENSOR_PARAMETER, 0, room) == READ_FAILED, "read");
    CHECK(engine_read(engine, TENSOR_PARAMETER, 0, NULL) == READ_FAILED, "counted");
    CHECK(strstr(error_message(), "rank 2 gave up: it is lost"), "\"%s\"", error_message());
    free(room);
    pipeline_close(&p);
}

/* Kernels of a transport may wait for the rank that is lost, and freeing a stage for these. Without
 * an earlier error that of the end stays. */
static void transports_break_where_a_rank_is_lost(void) {
    const Recipe recipe = {.spec = LLAMA, .micro_batches = 4};
    PipelineRecipe how = plain_3;
    Pipeline p;
    how.message_free = NULL;
    how.join = watched;
    for (int lost = 0; lost < 2; lost++) {
        ended_broken = 0;
        pipeline_open(&p, &recipe, &how);
        engine_memory(p.tiny.engine);
        if (lost) transport_abort(p.transport[2], "it is lost");
        error_set("%s", "");
        pipeline_close(&p);
        CHECK(!lost == !strstr(error_message(), "rank 2 gave up: it is lost"), "\"%s\"",
              error_message());
        CHECK(ended_broken == 3 * lost, "%d of 3 transports broke", ended_broken);
    }
}

void test_pipeline_ends(void) {
    RUN(transports_break_where_a_rank_is_lost);
    RUN_ROW("messages, 3 ranks", messages_carry_the_same_values, &plain_3);
    RUN_ROW("messages, 2 ranks, virtual stages", messages_carry_the_same_values, &virtual_2);
    RUN_ROW("messages, 2 replicas", messages_carry_the_same_values, &replicas_2);
    for (size_t i = 0; i < sizeof reserves / sizeof *reserves; i++)
        RUN_ROW(reserves[i].name, messages_are_made_before_a_step, &reserves[i]);
    static const int one = 1, two = 2;
    RUN_ROW("reading, 3 ranks", reading_from_a_lost_rank_is_an_error, &one);
    RUN_ROW("reading, 2 replicas", reading_from_a_lost_rank_is_an_error, &two);
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++)
        RUN_ROW(failures[i].name, one_ends_all, &failures[i]);
}
