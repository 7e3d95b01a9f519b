/* What the ranks of a training take: of a GPU that is their own, of a machine that they share, and
 * which share it; and what rank 0 says of one that is lost.  The linker replaces the calls of
 * sleep in this program by the function below (--wrap in the Makefile). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../experiments/train/fit.h"
#include "../../experiments/train/pipeline.h"
#include "../../ref/base/error.h"
#include "../../ref/blocks/models.h"
#include "../test.h"

enum { UNIT = 1024 };
static const int together[4], apart[] = {0, 1, 2, 3}; /* machines of ranks */
static const int halves[] = {0, 0, 2, 2}, in_turn[] = {0, 1, 0, 1};

/* Plans for an imaginary device, on which each block takes a unit. */
static int plan(size_t device[MEM_ROLES], size_t host[MEM_ROLES], const Model *model,
                const StageSettings *settings, const bool *active) {
    (void)active;
    memset(device, 0, MEM_ROLES * sizeof *device);
    memset(host, 0, MEM_ROLES * sizeof *host);
    for (int b = 0; b < model->blocks; b++) device[MEM_PARAMETERS] += settings->local[b] ? UNIT : 0;
    return 0;
}

static size_t free_bytes;

static int info(DeviceInfo *info) {
    *info = (DeviceInfo){.name = "FAKE", .free_bytes = free_bytes, .uuid = {7}};
    return 0;
}

static Stage *no_stage(const Model *model, StageSettings settings) {
    (void)model;
    (void)settings;
    return error_null("they go together");
}

static size_t nccl_bytes(void) { return 3 * UNIT; }

static const DeviceModule fake = {.memory_plan = plan,
                                  .info = info,
                                  .stage_create = no_stage,
                                  .transport_nccl_bytes = nccl_bytes};

/* Opens a training of eight blocks, of which the first rank of a pipeline has five. */
static bool open_ranks(Setup *s, int ranks, int replicas, const char *pipeline) {
    *s = (Setup){.options = {.batch = 1, .accumulate = 1, .replicas = replicas},
                 .device = &fake,
                 .model = model_create("gpt:layers=6,width=8,heads=1,context=8,vocabulary=8"),
                 .stage_settings = {.batch = 1},
                 .ranks = ranks,
                 .pipeline = {.micro_batches = 1}};
    strcpy(s->options.pipeline, pipeline);
    if (!CHECK(s->model && partition_balanced(&s->bcd.partition, s->model, 2, NULL) == 0 &&
                   placement_reserve(&s->placement, s->model, PLACEMENT_PLAIN, ranks / replicas,
                                     2) == 0,
               "%s", error_message()))
        return false;
    for (int b = 5; b < s->model->blocks; b++) s->placement.chunk_of[b] = s->placement.ranks - 1;
    return true;
}

/* Checks that a training takes these bytes of a memory, and no byte more, and the error's words. */
static void check_need(Setup *s, FitMemory *memory, double *of, double bytes, const char *says) {
    *of = bytes;
    CHECK(fit_check(memory, s) == 0, "refused: %s", error_message());
    *of = bytes - 1;
    CHECK(fit_check(memory, s) == -1 && strstr(error_message(), says), "\"%s\", expected \"%s\"",
          error_message(), says);
}

/* Processes have a GPU each, and threads share one. */
static void each_process_has_a_gpu(void) {
    Setup s;
    Transport world = {.ranks = 2};
    FitMemory memory = {.name = "FAKE", .host_bytes = 1e9};
    if (open_ranks(&s, 2, 1, "mpi")) {
        check_need(&s, &memory, &memory.bytes, 8 * UNIT, "for all ranks together");
        s.options.world = &world;
        s.machine = together;
        check_need(&s, &memory, &memory.bytes, 5 * UNIT, "on the fullest rank");
    }
    s.options.world = NULL;
    setup_free(&s);
}

/* A rank of each replica keeps a cache of 12 units, and the outputs of a sample for each replica,
 * of 8 x 8 numbers. */
static void each_replica_keeps_a_cache(void) {
    static const struct {
        int ranks;
        const int *machine; /* NULL: threads */
        int caches;
        const char *says;
    } rows[] = {{2, NULL, 2, "of host memory for all ranks together"},
                {2, together, 2, "of host memory for all ranks of a machine"},
                {2, apart, 1, "of host memory for all ranks of a machine"},
                {4, together, 2, "of host memory for all ranks of a machine"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Setup s;
        Transport world = {.ranks = rows[i].ranks};
        FitMemory memory = {.name = "FAKE", .bytes = 1e9};
        if (open_ranks(&s, rows[i].ranks, 2, "mpi")) {
            s.options.cache = 12 * UNIT;
            s.options.world = rows[i].machine ? &world : NULL;
            s.machine = rows[i].machine;
            check_need(&s, &memory, &memory.host_bytes,
                       rows[i].caches * (12.0 * UNIT + 2 * 8 * 8 * sizeof(real)), rows[i].says);
        }
        s.options.world = NULL;
        setup_free(&s);
    }
}

/* NCCL takes memory of each GPU before the training does. */
static void nccl_takes_its_part(void) {
    Setup s;
    Transport world = {.ranks = 2};
    if (open_ranks(&s, 2, 1, "nccl")) {
        const double need = (5 + 3) * UNIT + (double)fit_message_bytes(&s, 0);
        s.options.device = DEVICE_CUDA;
        s.options.world = &world;
        s.machine = together;
        free_bytes = (size_t)(need / 0.97) + 2; /* beside what is kept for libraries */
        CHECK(fit_check_here(&s) == 0, "refused: %s", error_message());
        free_bytes -= 4;
        CHECK(fit_check_here(&s) == -1, "NCCL has no room");
    }
    s.options.world = NULL;
    setup_free(&s);
}

/* Of two replicas the first ranks have five blocks, and the second ones three. */
static void ranks_share_a_machine(void) {
    static const struct {
        const int *machine;
        int units;
    } rows[] = {{together, 16}, {halves, 8}, {in_turn, 10}, {apart, 5}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Setup s;
        Transport world = {.ranks = 4};
        FitMemory memory = {.name = "FAKE"};
        if (open_ranks(&s, 4, 2, "mpi")) {
            s.options.world = &world;
            s.machine = rows[i].machine;
            check_need(&s, &memory, &memory.bytes, rows[i].units * UNIT, "for all ranks of a mach");
        }
        s.options.world = NULL;
        setup_free(&s);
    }
}

static const char *hosts; /* a letter for the host of each rank */

static int tell_hosts(Transport *transport, Transfer *t, int count) {
    const char *mine = NULL;
    for (int i = 0; i < count; i++)
        if (t[i].send) mine = t[i].data;
    for (int i = 0; i < count; i++) {
        if (t[i].send || !mine) continue;
        char *name = memcpy(t[i].data, mine, t[i].bytes);
        if (hosts[t[i].peer] != hosts[transport->rank]) name[0] = hosts[t[i].peer];
    }
    return 0;
}

/* Whatever the launcher, and in whatever order it numbers the ranks. */
static void ranks_find_their_machines(void) {
    static const TransportClass class = {.sendrecv = tell_hosts};
    static const struct {
        const char *hosts;
        int rank;
        const int *machine;
    } rows[] = {
        {"WWWW", 1, together}, {"XXZZ", 0, halves}, {"XZXZ", 3, in_turn}, {"XZYW", 2, apart}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Transport world = {.is = &class, .rank = rows[i].rank, .ranks = 4};
        int machine[4];
        hosts = rows[i].hosts;
        CHECK(pipeline_find_machines(machine, &world) == 0, "%s", error_message());
        CHECK(memcmp(machine, rows[i].machine, sizeof machine) == 0, "row %zu: %d %d %d %d", i,
              machine[0], machine[1], machine[2], machine[3]);
    }
}

/* ---- a rank that is lost at the start ---- */

static int freed;

static int lose_rank(Transport *transport, Transfer *transfers, int count) {
    (void)transport;
    (void)transfers;
    (void)count;
    return error_set("transport: rank 1 gave up");
}

static void note_abort(Transport *transport, const char *why) {
    (void)transport;
    CHECK(strcmp(why, "transport: rank 1 gave up") == 0, "\"%s\"", why);
}

static bool another_reports(Transport *transport) {
    (void)transport;
    return false;
}

static void note_free(Transport *transport) {
    (void)transport;
    freed++;
}

/* Rank 0 says nothing of a failure that another rank has reported. */
static void another_rank_reports_it(void) {
    static const TransportClass class = {
        .sendrecv = lose_rank, .abort = note_abort, .reports = another_reports, .free = note_free};
    Transport world = {.is = &class, .ranks = 2};
    Setup s;
    freed = 0;
    if (open_ranks(&s, 2, 1, "mpi")) {
        s.options.world = &world;
        CHECK(pipeline_engine(&s, NULL) == -1 && freed == 1, "freed %d times", freed);
        CHECK(!*error_message(), "says \"%s\"", error_message());
    }
    setup_free(&s);
}

/* ---- ranks whose computers do not go together ---- */

static unsigned changed; /* a bit for each rank that says something else of its computer */

/* Other ranks say what this one does, but those have another processor and another GPU. */
static int echo(Transport *transport, Transfer *t, int count) {
    const char *mine = NULL;
    (void)transport;
    for (int i = 0; i < count; i++)
        if (t[i].send) mine = t[i].data;
    for (int i = 0; i < count; i++) {
        if (t[i].send || !mine) continue;
        char *of = memcpy(t[i].data, mine, t[i].bytes);
        if (t[i].bytes <= H5_NAME || !(changed >> t[i].peer & 1)) continue;
        of[0]++;
        of[t[i].bytes - 1]++;
    }
    return 0;
}

static void ignore_abort(Transport *transport, const char *why) {
    (void)transport;
    (void)why;
}

typedef struct {
    int ranks, replicas;
    const char *pipeline;
    unsigned changed;
    const char *says;
} Computers;

/* Ranks of one replica may round otherwise than each other, but not than the same ranks of another:
 * the replicas would drift apart.  And NCCL itself looks only at neighbours. */
static const Computers computers[] = {
    {2, 1, "mpi", 2, "they go together"},
    {2, 2, "mpi", 0, "they go together"},
    {2, 2, "mpi", 2, "pipeline: --replicas: rank 1 has another processor ("},
    {4, 2, "mpi", 10, "they go together"},
    {4, 2, "mpi", 8, "rank 3 has another processor ("},
    {4, 2, "mpi", 8, ") than rank 1 ("},
    {2, 1, "nccl", 2, "they go together"},
    {2, 1, "nccl", 0, "ranks 0 and 1 have the same GPU"},
    {3, 1, "nccl", 4, "ranks 0 and 1 have the same GPU"},
    {3, 1, "nccl", 6, "ranks 1 and 2 have the same GPU"},
};

static void computers_go_together(void) {
    static const TransportClass class = {
        .sendrecv = echo, .abort = ignore_abort, .free = note_free};
    for (size_t i = 0; i < sizeof computers / sizeof *computers; i++) {
        const Computers *row = &computers[i];
        Transport world = {.is = &class, .ranks = row->ranks};
        Setup s;
        changed = row->changed;
        if (open_ranks(&s, row->ranks, row->replicas, row->pipeline)) {
            s.options.world = &world;
            CHECK(pipeline_engine(&s, NULL) == -1 && strstr(error_message(), row->says),
                  "row %zu: \"%s\"", i, error_message());
        }
        setup_free(&s);
    }
}

unsigned __wrap_sleep(unsigned seconds);

/* How long this program has slept, or would have. */
static unsigned slept_s;
unsigned __wrap_sleep(unsigned seconds) {
    slept_s += seconds;
    return 0;
}

/* Of processes that a launcher starts, and that do not join, none waits for another one. */
static void a_process_alone_does_not_wait(void) {
    Options options;
    options_defaults(&options, COMMAND_TRAIN);
    if (getenv("OMPI_COMM_WORLD_SIZE")) SKIP("a launcher has started the tests");
    setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
    setenv("OMPI_COMM_WORLD_RANK", "1", 1);
    slept_s = 0;
    pipeline_let_rank_0_speak(&options, true);
    CHECK(slept_s == 0, "it waits %u s for rank 0, though it does not join it", slept_s);
    strcpy(options.pipeline, "mpi");
    pipeline_let_rank_0_speak(&options, true);
    CHECK(slept_s > 0, "one that joins does not wait");
    unsetenv("OMPI_COMM_WORLD_SIZE");
    unsetenv("OMPI_COMM_WORLD_RANK");
}

/* Variables that would make NCCL's kernels hang are set before it is loaded. */
static void variables_of_nccl_do_not_count(void) {
    static const struct {
        const char *name, *becomes;
    } rows[] = {{"CUDA_MODULE_LOADING", "EAGER"},
                {"CUDA_DEVICE_MAX_CONNECTIONS", "32"},
                {"NCCL_COMM_BLOCKING", "0"},
                {"NCCL_MIN_CTAS", ""},
                {"NCCL_MAX_CTAS", ""},
                {"NCCL_SET_STACK_SIZE", "1"}};
    enum { ROWS = sizeof rows / sizeof *rows };
    Options options;
    Transport *world;
    options_defaults(&options, COMMAND_TRAIN);
    options.device = DEVICE_CUDA;
    options.correct_above = 1; /* which is refused next */
    strcpy(options.pipeline, "nccl");
    for (int i = 0; i < ROWS; i++) setenv(rows[i].name, "16", 1);
    CHECK(pipeline_join(&world, &options) == -1, "it joins");
    for (int i = 0; i < ROWS; i++) {
        const char *value = getenv(rows[i].name);
        CHECK(value && strcmp(value, rows[i].becomes) == 0, "%s=%s", rows[i].name, value);
        unsetenv(rows[i].name);
    }
}

void test_fit_ranks(void) {
    RUN(variables_of_nccl_do_not_count);
    RUN(each_process_has_a_gpu);
    RUN(each_replica_keeps_a_cache);
    RUN(nccl_takes_its_part);
    RUN(ranks_share_a_machine);
    RUN(ranks_find_their_machines);
    RUN(another_rank_reports_it);
    RUN(computers_go_together);
    RUN(a_process_alone_does_not_wait);
}
