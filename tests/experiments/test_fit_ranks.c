/* What the ranks of a training take: of a GPU that is their own, of a machine that they share, and
 * how many share it; and what rank 0 says of one that is lost.  The linker replaces the calls of
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
        s.machine_ranks = 2;
        check_need(&s, &memory, &memory.bytes, 5 * UNIT, "on the fullest rank");
    }
    s.options.world = NULL;
    setup_free(&s);
}

/* A rank of each replica keeps a cache of 12 units, and the outputs of a sample for each replica,
 * of 8 x 8 numbers. */
static void each_replica_keeps_a_cache(void) {
    static const struct {
        int ranks, near; /* on a machine; 0: threads */
        int caches;
        const char *says;
    } rows[] = {{2, 0, 2, "of host memory for all ranks together"},
                {2, 2, 2, "of host memory for all ranks of a machine"},
                {2, 1, 1, "of host memory for all ranks of a machine"},
                {4, 4, 2, "of host memory for all ranks of a machine"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Setup s;
        Transport world = {.ranks = rows[i].ranks};
        FitMemory memory = {.name = "FAKE", .bytes = 1e9};
        if (open_ranks(&s, rows[i].ranks, 2, "mpi")) {
            s.options.cache = 12 * UNIT;
            s.options.world = rows[i].near ? &world : NULL;
            s.machine_ranks = rows[i].near;
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
        s.machine_ranks = 2;
        free_bytes = (size_t)(need / 0.97) + 2; /* beside what is kept for libraries */
        CHECK(fit_check_here(&s) == 0, "refused: %s", error_message());
        free_bytes -= 4;
        CHECK(fit_check_here(&s) == -1, "NCCL has no room");
    }
    s.options.world = NULL;
    setup_free(&s);
}

/* The variables of Open MPI's mpirun, of MPICH's and of srun say how many ranks share a machine; a
 * mpirun inside a job of Slurm counts. */
static void launchers_say_who_is_near(void) {
    static const struct {
        const char *set[6][2];
        int near;
    } rows[] = {
        {{{NULL}}, 1},
        {{{"OMPI_COMM_WORLD_SIZE", "8"}, {"OMPI_COMM_WORLD_RANK", "0"}}, 1},
        {{{"OMPI_COMM_WORLD_SIZE", "8"},
          {"OMPI_COMM_WORLD_RANK", "0"},
          {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}},
         4},
        {{{"PMI_SIZE", "8"}, {"PMI_RANK", "0"}, {"MPI_LOCALNRANKS", "2"}}, 2},
        {{{"SLURM_NTASKS", "8"}, {"SLURM_PROCID", "0"}, {"SLURM_STEP_TASKS_PER_NODE", "4(x2)"}}, 4},
        {{{"SLURM_STEP_TASKS_PER_NODE", "1(x2),7"}, {"SLURM_NODEID", "2"}}, 7},
        {{{"SLURM_STEP_TASKS_PER_NODE", "1,7(x2)"}, {"SLURM_NODEID", "2"}}, 7},
        {{{"SLURM_STEP_TASKS_PER_NODE", "4,1"}, {"SLURM_NODEID", "1"}}, 1},
        {{{"SLURM_STEP_TASKS_PER_NODE", "4,2"}, {"SLURM_NODEID", "2"}}, 1}, /* of another step */
        {{{"SLURM_STEP_TASKS_PER_NODE", "4(x"}, {"SLURM_NODEID", "1"}}, 1},
        {{{"PMI_SIZE", "8"}, {"PMI_RANK", "0"}, {"SLURM_STEP_TASKS_PER_NODE", "8"}}, 8}, /* pmi2 */
        {{{"SLURM_NTASKS", "8"},
          {"SLURM_PROCID", "0"},
          {"SLURM_STEP_TASKS_PER_NODE", "8"},
          {"OMPI_COMM_WORLD_SIZE", "6"},
          {"OMPI_COMM_WORLD_RANK", "0"},
          {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"}},
         3}};
    if (getenv("OMPI_COMM_WORLD_SIZE") || getenv("PMI_SIZE") || getenv("SLURM_NTASKS"))
        SKIP("a launcher has started the tests");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Setup s = {.options = {.pipeline = "none"}};
        for (int v = 0; v < 6 && rows[i].set[v][0]; v++)
            setenv(rows[i].set[v][0], rows[i].set[v][1], 1);
        CHECK(pipeline_place(&s) == 0 && s.machine_ranks == rows[i].near, "row %zu: %d ranks", i,
              s.machine_ranks);
        for (int v = 0; v < 6 && rows[i].set[v][0]; v++) unsetenv(rows[i].set[v][0]);
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
                {"NCCL_MAX_CTAS", ""}};
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
    RUN(launchers_say_who_is_near);
    RUN(another_rank_reports_it);
    RUN(computers_go_together);
    RUN(a_process_alone_does_not_wait);
}
