/* Runs a training, on one device or as a pipeline, or a simulated step, in which the n-th
 * allocation fails, for every n.  It must end with an error of one line and free everything.  The
 * linker replaces the calls of malloc, calloc, realloc, aligned_alloc and free in this program, but
 * not in libraries, by the functions below (--wrap in the Makefile). */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../dist/engine_rank.h"
#include "../../dist/engine_team.h"
#include "../../dist/simulate.h"
#include "../../experiments/base/alloc.h"
#include "../../ref/base/error.h"
#include "../../ref/blocks/models.h"
#include "../../ref/fast/scratch.h"
#include "../leak.h"
#include "../test.h"
#include "tiny.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void __real_free(void *pointer);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void __wrap_free(void *pointer);

/* ---- the allocator ---- */

enum { MAX_LIVE = 4096 };

static struct {
    bool watching, ending; /* ending: what frees may allocate, but cannot fail */
    int calls, fails_at;   /* 0: never */
    void *live[MAX_LIVE];  /* what is allocated */
    int count;
    pthread_mutex_t lock;
} watch = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Counts an allocation.  Returns true if it is the one that must fail. */
static bool fails(void) {
    return watch.watching && !watch.ending && ++watch.calls == watch.fails_at;
}

static void *record(void *pointer) {
    if (!watch.watching || !pointer) return pointer;
    if (watch.count == MAX_LIVE) abort();
    watch.live[watch.count++] = pointer;
    return pointer;
}

static void forget(void *pointer) {
    for (int i = 0; i < watch.count; i++)
        if (watch.live[i] == pointer) {
            watch.live[i] = watch.live[--watch.count];
            return;
        }
}

void *__wrap_malloc(size_t size) {
    pthread_mutex_lock(&watch.lock);
    void *result = fails() ? NULL : record(__real_malloc(size));
    pthread_mutex_unlock(&watch.lock);
    return result;
}

void *__wrap_calloc(size_t count, size_t size) {
    pthread_mutex_lock(&watch.lock);
    void *result = fails() ? NULL : record(__real_calloc(count, size));
    pthread_mutex_unlock(&watch.lock);
    return result;
}

void *__wrap_aligned_alloc(size_t alignment, size_t size) {
    pthread_mutex_lock(&watch.lock);
    void *result = fails() ? NULL : record(__real_aligned_alloc(alignment, size));
    pthread_mutex_unlock(&watch.lock);
    return result;
}

void *__wrap_realloc(void *old, size_t size) {
    pthread_mutex_lock(&watch.lock);
    void *result = fails() ? NULL : __real_realloc(old, size);
    if (result) {
        forget(old);
        record(result);
    }
    pthread_mutex_unlock(&watch.lock);
    return result;
}

void __wrap_free(void *pointer) {
    pthread_mutex_lock(&watch.lock);
    forget(pointer);
    __real_free(pointer);
    pthread_mutex_unlock(&watch.lock);
}

int allocations_left(void (*function)(void)) {
    function();
    watch.count = watch.fails_at = 0;
    watch.watching = true;
    function();
    watch.watching = false;
    return watch.count;
}

/* ---- trainings ---- */

typedef struct {
    const char *name, *spec, *parts; /* submodels as text; NULL: three of about the same size */
    bool recompute, keep_state;
    size_t cache_bytes;
    double fraction;
} Row;

static const Row rows[] = {
    {"resnet", "resnet:depth=8,width=2,size=4,classes=3", NULL, false, false, 0, 1},
    {"gpt", "gpt:layers=3,width=4,heads=2,context=3,vocabulary=5", "0,1/2,3/4", false, true, 0,
     0.5},
    {"recomputed", "llama:layers=3,width=4,heads=2,ffn=6,context=3,vocabulary=5", NULL, true, false,
     0, 1},
    {"cached", "gpt:layers=3,width=4,heads=2,context=3,vocabulary=5", NULL, false, false, 1 << 20,
     1},
};

/* Creates the engine that a row trains on; frees the stage on failure. */
typedef Engine *Create(const Row *row, const Model *model, StageSettings settings,
                       const Dataset *data);

static Engine *create_single(const Row *row, const Model *model, StageSettings settings,
                             const Dataset *data) {
    Stage *stage = stage_ref_create(model, settings);
    if (!stage) return NULL;
    Engine *engine = engine_single_create(
        stage, (EngineSettings){.micro_batches = 1, .cache_bytes = row->cache_bytes}, data);
    if (!engine) stage_free(stage);
    return engine;
}

/* Creates a model, trains it and frees everything.  Returns -1 if something failed. */
static int train_on(Create *create, const Row *row, const Dataset *data) {
    BcdSettings s = {.rule = {.kind = SWITCH_STEPS, .every = 2},
                     .optimizer = optimizer_defaults(OPTIMIZER_ADAM),
                     .batch = 4,
                     .steps = 6,
                     .fraction = row->fraction,
                     .seed = 5};
    BcdState state = {0};
    Engine *engine = NULL;
    int result = -1;
    Model *model = model_create(row->spec);
    if (model && (row->parts ? partition_parse(&s.partition, model, row->parts, NULL)
                             : partition_balanced(&s.partition, model, 3, NULL)) == 0)
        engine = create(row, model,
                        (StageSettings){.batch = 4,
                                        .recompute = row->recompute,
                                        .keep_state = row->keep_state,
                                        .optimizer = s.optimizer,
                                        .seed = 5},
                        data);
    if (engine) {
        result = bcd_train(&state, &s, engine, data, NULL, NULL);
        watch.ending = true;
        engine_free(engine);
        watch.ending = false;
    }
    partition_free(&s.partition);
    model_free(model);
    return result;
}

static int train(const Row *row, const Dataset *data) { return train_on(create_single, row, data); }

/* Returns -1 and an error if an allocation fails. */
typedef int Job(const Row *row, const Dataset *data);

static int run_failing(Job *job, const Row *row, const Dataset *data, int at) {
    watch.calls = watch.count = 0;
    watch.fails_at = at;
    watch.watching = true;
    int result = job(row, data);
    watch.watching = false;
    return result;
}

static void check_every_allocation(Job *job, const Row *row, const Dataset *data) {
    /* The first run allocates the scratch of the ops and of OpenMP, which stays allocated. */
    if (!CHECK(job(row, data) == 0, "%s", error_message())) return;
    int all = run_failing(job, row, data, 0) == 0 ? watch.calls : 0;
    CHECK(all > 20, "%d allocations", all);
    CHECK(watch.count == 0, "without a failure, %d are not freed", watch.count);
    for (int n = 1; n <= all; n++) {
        error_set("nothing");
        CHECK(run_failing(job, row, data, n) == -1, "allocation %d of %d failed, unseen", n, all);
        const char *said = error_message();
        CHECK(strcmp(said, "nothing") != 0 && *said && !strchr(said, '\n'),
              "allocation %d of %d: says \"%s\"", n, all, said);
        CHECK(watch.count == 0, "allocation %d of %d: %d are not freed", n, all, watch.count);
    }
}

static void fail_each_allocation(Job *job, const Row *row) {
    Model *model = model_create(row->spec);
    Dataset *data = tiny_dataset(model, 12, false);
    check_every_allocation(job, row, data);
    dataset_free(data);
    model_free(model);
}

static void every_allocation_fails_once(const void *row) { fail_each_allocation(train, row); }

/* What the only rank of a pipeline is made of. */
typedef struct {
    const Model *model;
    const Placement *placement;
    StageSettings stage;
    PipelineSettings pipeline;
} Rank;

static Engine *create_rank(void *context, Transport *world) {
    const Rank *r = context;
    StageSettings settings = r->stage;
    RankBlocks blocks = {0};
    Stage *stage = NULL;
    Transport *transport = transport_group(world, (int[]){0}, 1);
    if (transport && rank_blocks_create(&blocks, r->placement, r->model, 0) == 0) {
        settings.local = blocks.local;
        settings.in_flight = blocks.in_flight;
        stage = stage_ref_create(r->model, settings);
    }
    if (stage) return engine_rank_create(stage, transport, NULL, r->placement, blocks, r->pipeline);
    if (transport) transport_free(transport);
    rank_blocks_free(&blocks);
    return NULL;
}

/* A pipeline of one rank, which is this thread; two micro-batches. */
static Placement *placed; /* outlives the engine */
static Engine *create_pipeline(const Row *row, const Model *model, StageSettings settings,
                               const Dataset *data) {
    double cost[16];
    for (int b = 0; b < model->blocks; b++) cost[b] = 1;
    Rank rank = {model,
                 placed,
                 settings,
                 {.micro_batches = 2, .cache_bytes = row->cache_bytes, .samples = data->samples}};
    rank.stage.batch = 2;
    Transport *world;
    if (placement_make(placed, model, PLACEMENT_PLAIN, 1, 3, cost, NULL) ||
        transport_local_create(&world, 1, 60, NULL))
        return NULL;
    return engine_team_create(&world, create_rank, &rank);
}

static int train_pipeline(const Row *row, const Dataset *data) {
    Placement placement = {0};
    placed = &placement;
    int result = train_on(create_pipeline, row, data);
    placement_free(&placement);
    return result;
}

static void every_allocation_of_a_pipeline(void) {
    fail_each_allocation(train_pipeline, &rows[sizeof rows / sizeof *rows - 1]);
}

/* A simulated step of two ranks, three submodels and two micro-batches. */
static int simulate_step(const Row *row, const Dataset *data) {
    (void)data;
    Model *model = model_create(row->spec);
    if (!model) return -1;
    Configuration c = {
        .model = model,
        .cluster = {gpu_find("rtx4090"), 8, 4, NETWORK_2X25G, efficiency_default},
        .stage = {.batch = 2, .optimizer = optimizer_defaults(OPTIMIZER_ADAM), .deferred = true},
        .placement = PLACEMENT_VIRTUAL,
        .submodels = 3,
        .pipeline = 2,
        .replicas = 1,
        .micro_batches = 2};
    Prediction prediction;
    int result = simulate(&prediction, NULL, &c, NULL);
    model_free(model);
    return result;
}

static void every_allocation_of_a_simulation(void) {
    const Row row = {.spec = "gpt:layers=4,width=4,heads=2,context=3,vocabulary=5"};
    check_every_allocation(simulate_step, &row, NULL);
}

/* Calls a function without memory in a process of its own, which must print one line, which begins
 * with these words, and exit. */
static void check_end(void (*use)(void), const char *words) {
    int ends[2], status = 0;
    char said[200] = "";
    if (!CHECK(pipe(ends) == 0, "no pipe")) return;
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        watch.calls = 0;
        watch.fails_at = 1;
        watch.watching = true;
        use();
        _exit(0);
    }
    close(ends[1]);
    ssize_t length = read(ends[0], said, sizeof said - 1);
    close(ends[0]);
    CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
              WEXITSTATUS(status) == 1,
          "ends with %d", status);
    CHECK(!strncmp(said, words, strlen(words)) && strchr(said, '\n') == said + length - 1,
          "says \"%s\"", said);
}

/* An op cannot fail. */
static void use_scratch(void) { scratch(SCRATCH_PARTIAL, 1 << 20); }
static void scratch_ends_the_process(void) {
    check_end(use_scratch, "bcd: memory: none left for ");
}

/* Nor do the small allocations of the program. */
static void use_malloc(void) { xmalloc(1000); }
static void use_calloc(void) { xcalloc(100, 10); }
static void use_realloc(void) { xrealloc(NULL, 1000); }
static void the_program_ends(void) {
    check_end(use_malloc, "bcd: out of memory (1000 bytes)\n");
    check_end(use_calloc, "bcd: out of memory (1000 bytes)\n");
    check_end(use_realloc, "bcd: out of memory (1000 bytes)\n");
}

void test_out_of_memory(void) {
    RUN(scratch_ends_the_process); /* of a thread that has none yet */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        RUN_ROW(rows[i].name, every_allocation_fails_once, &rows[i]);
    RUN(scratch_ends_the_process); /* that asks for more */
    RUN(every_allocation_of_a_pipeline);
    RUN(every_allocation_of_a_simulation);
    RUN(the_program_ends);
}
