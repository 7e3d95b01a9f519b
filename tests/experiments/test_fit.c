/* A training that does not fit is refused, with the bytes it needs and the fewest changes with
 * which it would fit. */
#include <stdio.h>
#include <string.h>

#include "../../experiments/base/text.h"
#include "../../experiments/train/fit.h"
#include "../../ref/base/error.h"
#include "../../ref/blocks/models.h"
#include "../test.h"

/* Plans for an imaginary device, in units that are easy to add up. Parameters take 64; gradients
 * and state 10 each for every active block between embedding and head; activations 1 per sample, a
 * quarter of that with recomputation, and half in bf16. In bf16 host memory holds 10. */
enum { UNIT = 1024 };

static int plan(size_t device[MEM_ROLES], size_t host[MEM_ROLES], const Model *model,
                const StageSettings *settings, const bool *active) {
    size_t count = 0, bf16 = settings->precision == PRECISION_BF16;
    for (int b = 1; b < model->blocks - 1; b++) count += active[b];
    memset(device, 0, MEM_ROLES * sizeof *device);
    memset(host, 0, MEM_ROLES * sizeof *host);
    device[MEM_PARAMETERS] = 64 * UNIT;
    device[MEM_GRADIENTS] = device[MEM_STATE] = 10 * count * UNIT;
    device[MEM_ACTIVATIONS] = (size_t)settings->batch * UNIT / (settings->recompute ? 4 : 1);
    device[MEM_ACTIVATIONS] /= 1 + bf16;
    host[MEM_PARAMETERS] = 10 * UNIT * bf16;
    return 0;
}

/* Six such blocks take 184 units of parameters, gradients and state for M = 1, 124 for 2, 104 for
 * 3, and 84 for 6.  With 64 samples a batch that is 248 for M = 1. */
typedef struct {
    const char *name;
    double units, host_units; /* of device and of host memory; host 0: it is the device's */
    bool bf16, recompute, offload;
    const char *error; /* the end of the error; NULL: it fits */
} Case;

static const Case cases[] = {
    {"fits exactly", 248, 100, true, false, false, NULL},
    {"smaller parts first", 247, 100, true, false, false,
     "it fits with --accumulate 2 (216.0 KiB)"},
    {"recompute next", 184.4, 100, true, false, false,
     "it fits with --recompute --accumulate 64 (184.2 KiB)"},
    {"then submodels", 168, 100, false, false, false,
     "it fits with --submodels 2 --accumulate 2 (156.0 KiB)"},
    {"recompute already", 199, 100, true, true, false, "it fits with --accumulate 2 (192.0 KiB)"},
    {"more submodels than two", 99, 100, true, false, false,
     "it fits with --submodels 6 --accumulate 8 (92.0 KiB)"},
    {"no submodels for offload", 210, 100, true, false, true,
     "it fits with --accumulate 4 (200.0 KiB)"},
    {"only parts are left", 199, 100, true, true, true, "it fits with --accumulate 2 (192.0 KiB)"},
    {"bf16 last", 84.2, 100, true, false, false,
     "it fits with --submodels 6 --recompute --accumulate 64 --precision bf16 (84.1 KiB)"},
    {"no bf16 there", 84.2, 100, false, false, false,
     "with any number of submodels, recompute and a sample at a time it still needs 84.2 KiB"},
    {"the host is too small for bf16", 84.2, 9, true, false, false,
     "with any number of submodels, recompute and a sample at a time it still needs"},
    {"the host is the same memory", 84.2, 0, true, false, false,
     "with any number of submodels, recompute and a sample at a time it still needs 84.2 KiB"},
    {"nothing helps offload", 60, 100, false, false, true,
     "with recompute and a sample at a time it still needs 184.2 KiB"},
    {"nothing helps", 60, 100, false, false, false,
     "with any number of submodels, recompute and a sample at a time it still needs 84.2 KiB"},
};

/* The error names the bytes of each role. */
static const char needs[] =
    " needs 248.0 KiB (parameters 64.0 KiB, gradients 60.0 KiB, state 60.0 KiB, activations "
    "64.0 KiB), FAKE has ";

static const DeviceModule fake = {.memory_plan = plan};

/* Opens a training on the fake device; setup_free is safe either way. */
static bool open_case(Setup *s, const Case *c, int layers, int submodels) {
    const Text spec = text_of("gpt:layers=%d,width=8,heads=1,context=8,vocabulary=8", layers);
    *s = (Setup){.options = {.batch = 64, .accumulate = 1},
                 .device = &fake,
                 .model = model_create(spec.text),
                 .stage_settings = {.batch = 64, .recompute = c->recompute, .offload = c->offload}};
    return CHECK(s->model && partition_balanced(&s->bcd.partition, s->model, submodels, NULL) == 0,
                 "%s", error_message());
}

static void refuses_with_advice(const void *row) {
    const Case *c = row;
    Setup s;
    FitMemory memory = {.name = "FAKE",
                        .bytes = c->units * UNIT,
                        .host_bytes = c->host_units * UNIT,
                        .bf16 = c->bf16};
    if (open_case(&s, c, 6, 1)) {
        int failed = fit_check(&memory, &s);
        if (!c->error)
            CHECK(failed == 0, "refused: %s", error_message());
        else
            CHECK(failed == -1 && strstr(error_message(), c->error) &&
                      (c->recompute || strstr(error_message(), needs)),
                  "\"%s\", expected \"%s\"", error_message(), c->error);
    }
    setup_free(&s);
}

/* In smaller parts of a batch a batch norm sees other samples, and the advice says so. */
static void advice_names_what_changes(void) {
    FitMemory memory = {.name = "FAKE", .bytes = UNIT};
    Setup s = {.options = {.batch = 64, .accumulate = 1},
               .device = &fake,
               .model = model_create("resnet:depth=8,width=2,size=8"),
               .stage_settings = {.batch = 64, .recompute = true, .offload = true}};
    double least = 0;
    if (CHECK(s.model && partition_balanced(&s.bcd.partition, s.model, 1, NULL) == 0, "%s",
              error_message())) {
        const bool refused = fit_check(&memory, &s) == -1;
        const char *needed = strstr(error_message(), "it still needs ");
        CHECK(refused && needed && sscanf(needed, "it still needs %lf KiB", &least) == 1, "%s",
              error_message());
        s.stage_settings.recompute = s.stage_settings.offload = false;
        memory.bytes = 187 * UNIT;
        CHECK(fit_check(&memory, &s) == -1 &&
                  strstr(error_message(), "; it fits with --recompute (140.0 KiB)"),
              "the same update first: %s", error_message());
        s.stage_settings.recompute = s.stage_settings.offload = true;
        memory.bytes = 1024 * least + UNIT;
        CHECK(fit_check(&memory, &s) == -1 &&
                  strstr(error_message(), "it fits with --accumulate ") &&
                  strstr(error_message(), "; its batch norms then see smaller batches"),
              "%s", error_message());
    }
    setup_free(&s);
}

/* A model with too few blocks for more submodels keeps its number of submodels in the search. */
static void too_few_blocks_for_more_submodels(void) {
    Setup s;
    FitMemory memory = {.name = "FAKE", .bytes = 60 * UNIT};
    if (open_case(&s, &(Case){.name = "two layers"}, 2, 1)) {
        CHECK(fit_check(&memory, &s) == -1 && strstr(error_message(), "it still needs 84.2 KiB"),
              "%s", error_message());
        CHECK(s.bcd.partition.submodels == 1 && s.bcd.partition.of_block[3] == 0,
              "the partition of the training is changed");
    }
    setup_free(&s);
}

/* In bf16 each rank keeps 10 units in host memory.  Threads share it, and so do processes of one
 * machine. */
static void counts_the_hosts_of_ranks(void) {
    Setup s;
    Transport world = {.ranks = 2};
    static const int together[] = {0, 0}, apart[] = {0, 1};
    const double work[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    if (open_case(&s, &(Case){.name = "two ranks"}, 6, 1)) {
        const FitMemory memory = {
            .name = "FAKE", .bytes = 1000 * UNIT, .host_bytes = 15 * UNIT, .bf16 = true};
        s.ranks = 2;
        s.options.replicas = 1;
        s.stage_settings.precision = PRECISION_BF16;
        CHECK(placement_make(&s.placement, s.model, PLACEMENT_PLAIN, 2, 1, work,
                             s.bcd.partition.of_block) == 0,
              "%s", error_message());
        s.pipeline = (PipelineSettings){.micro_batches = 1};
        CHECK(fit_check(&memory, &s) == -1 &&
                  strstr(error_message(), "20.0 KiB of host memory for all ranks together"),
              "%s", error_message());
        s.options.world = &world;
        s.machine = together;
        CHECK(fit_check(&memory, &s) == -1 &&
                  strstr(error_message(), "20.0 KiB of host memory for all ranks of a machine"),
              "%s", error_message());
        s.machine = apart;
        CHECK(fit_check(&memory, &s) == 0, "%s", error_message());
        /* Two of 64 samples of 8 x 8 values in bf16, an output and its gradient. */
        static const char *const pipelines[] = {"nccl", "local:2"};
        const size_t batch = (size_t)s.stage_settings.batch;
        for (int i = 0; i < 2; i++) {
            strcpy(s.options.pipeline, pipelines[i]);
            CHECK(fit_message_bytes(&s, 0) == 2 * batch * 64 * 2, "%s: %zu", pipelines[i],
                  fit_message_bytes(&s, 0));
        }
        strcpy(s.options.pipeline, "mpi");
        CHECK(fit_message_bytes(&s, 0) == 0, "messages in host memory");
        strcpy(s.options.pipeline, "local:2");
        s.device = NULL;
        CHECK(fit_message_bytes(&s, 0) == 0, "messages of processors");
    }
    s.options.world = NULL;
    setup_free(&s);
}

/* A rank that infers has the outputs of 4 x 2 samples of 8 x 8 numbers, 2 units, unless it holds
 * the cache, as rank 1 does, which has 12 units and such a batch beside it. */
static void counts_what_ranks_infer(void) {
    static const struct {
        double units;
        int ranks; /* that infer; -1: the training does not fit */
    } rows[] = {{18, 3}, {17, 2}, {16, 2}, {15, 0}, {14, 0}, {13, -1}};
    const double work[8] = {1, 1, 1, 1, 1, 1, 1, 1}, unit = 64 * sizeof(real) * 4;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Setup s;
        const FitMemory memory = {
            .name = "FAKE", .bytes = 1e6 * UNIT, .host_bytes = rows[i].units * unit};
        if (open_case(&s, &(Case){.name = "three ranks"}, 6, 2) &&
            CHECK(placement_make(&s.placement, s.model, PLACEMENT_PLAIN, 3, 1, work, NULL) == 0,
                  "%s", error_message())) {
            s.stage_settings.batch = 4;
            s.ranks = 3;
            s.options.replicas = 1;
            s.options.cache = (size_t)(12 * unit);
            s.pipeline = (PipelineSettings){.micro_batches = 2, .infer_ranks = 3};
            const int failed = fit_check(&memory, &s);
            CHECK(failed == -(rows[i].ranks < 0), "%g units: %s", rows[i].units, error_message());
            CHECK(failed || s.pipeline.infer_ranks == rows[i].ranks, "%g units: %d ranks infer",
                  rows[i].units, s.pipeline.infer_ranks);
        }
        setup_free(&s);
    }
}

/* One submodel has no frozen prefix, so a cache takes nothing. */
static void counts_no_cache_for_one_submodel(void) {
    Setup s;
    FitMemory memory = {.name = "FAKE", .bytes = 248 * UNIT};
    if (open_case(&s, &(Case){.name = "one submodel"}, 6, 1)) {
        s.options.device_cache = 12 * UNIT;
        CHECK(fit_check(&memory, &s) == 0, "refused: %s", error_message());
    }
    setup_free(&s);
}

/* The prefix cache takes its part of the memory, and a batch of 64 samples of 8 x 8 numbers on the
 * way to it takes host memory. */
static void counts_the_cache(void) {
    Setup s;
    const double batch = 64 * 64 * sizeof(real);
    FitMemory memory = {.name = "FAKE", .bytes = 200 * UNIT, .host_bytes = batch};
    if (open_case(&s, &(Case){.name = "two submodels"}, 6, 2)) {
        CHECK(fit_cache_batch_bytes(&s) == 0, "a batch without a cache");
        s.options.device_cache = 12 * UNIT;
        CHECK(fit_cache_batch_bytes(&s) == (size_t)batch && fit_check(&memory, &s) == 0,
              "refused: %s", error_message());
        memory.host_bytes = batch - 1;
        CHECK(fit_check(&memory, &s) == -1 && strstr(error_message(), " of host memory (cache ") &&
                  !strstr(error_message(), "-cache "),
              "%s", error_message());
        memory.host_bytes = 0; /* both are the same memory */
        CHECK(fit_check(&memory, &s) == -1, "the batch is not counted");
        memory.bytes += batch;
        CHECK(fit_check(&memory, &s) == 0, "refused: %s", error_message());
        s.options.device_cache = 3 << 20; /* a cache that does not fit even alone */
        memory.bytes = 188 * UNIT + batch + (2 << 20);
        CHECK(fit_check(&memory, &s) == -1 && strstr(error_message(), "cache 3.0 MiB") &&
                  strstr(error_message(), "; it fits with --device-cache 2M"),
              "%s", error_message());
        memory.bytes -= 1;
        CHECK(fit_check(&memory, &s) == -1 &&
                  strstr(error_message(), "; it fits with --device-cache 1M"),
              "%s", error_message());
        memory.bytes = 83 * UNIT; /* too little memory even without a cache */
        CHECK(fit_check(&memory, &s) == -1 && strstr(error_message(), "still needs"), "%s",
              error_message());
    }
    setup_free(&s);
}

/* Beside the 3 % that are kept for libraries. */
static double free_units;

static int info(DeviceInfo *info) {
    *info = (DeviceInfo){.name = "FAKE", .free_bytes = (size_t)(free_units * UNIT / 0.97) + 1};
    return 0;
}

/* A --cache takes host memory: what it may take, but no more than the samples have outputs of 8 x 8
 * numbers, and a batch of these on their way; and that for each replica. */
static void counts_the_cache_of_the_host(void) {
    Setup s;
    Dataset data = {.samples = 96};
    const double all = 96 * 64 * sizeof(real), part = 12 * UNIT, batch = 64 * 64 * sizeof(real);
    FitMemory memory = {.name = "FAKE", .bytes = 188 * UNIT + part + batch};
    if (open_case(&s, &(Case){.name = "two submodels"}, 6, 2)) {
        s.options.cache = (size_t)part;
        CHECK(fit_cache_bytes(&s) == (size_t)part && fit_cache_batch_bytes(&s) == (size_t)batch &&
                  fit_check(&memory, &s) == 0,
              "refused: %s", error_message());
        memory.bytes -= 1;
        CHECK(fit_check(&memory, &s) == -1 && strstr(error_message(), "; it fits with --cache 0M"),
              "%s", error_message());
        s.options.cache = (size_t)1 << 40;
        s.train = &data;
        memory.bytes = 188 * UNIT + all + batch;
        CHECK((double)fit_cache_bytes(&s) == all && fit_check(&memory, &s) == 0, "refused: %s",
              error_message());
        memory.host_bytes = all + batch - 1;
        CHECK(fit_check(&memory, &s) == -1 && strstr(error_message(), " of host memory (cache "),
              "%s", error_message());
        s.train = NULL;
    }
    setup_free(&s);
}

/* A model that is only evaluated needs its parameters and activations. */
static void a_model_too_large_to_evaluate(void) {
    static const DeviceModule device = {.memory_plan = plan, .info = info};
    Setup s;
    if (open_case(&s, &(Case){.name = "evaluation"}, 6, 1)) {
        s.device = &device;
        s.options.device = DEVICE_CUDA;
        free_units = 128;
        CHECK(fit_check_evaluation_here(&s) == 0, "refused: %s", error_message());
        free_units = 127;
        CHECK(fit_check_evaluation_here(&s) == -1 &&
                  strstr(error_message(), "memory: to evaluate, ") &&
                  strstr(error_message(),
                         "(parameters 64.0 KiB, activations 64.0 KiB), "
                         "FAKE has 127.0 KiB beside a reserve"),
              "%s", error_message());
    }
    setup_free(&s);
}

/* A model that generates keeps the queries, keys and values of its context beside that: of each of
 * six layers, 8 x 24 numbers. */
static void counts_what_generation_keeps(void) {
    Setup s;
    FitBytes bytes;
    const size_t kept = 6 * 8 * 24 * sizeof(real);
    if (open_case(&s, &(Case){.name = "generation"}, 6, 1)) {
        s.generates = true;
        CHECK(fit_plan_evaluation(&bytes, &s) == 0, "%s", error_message());
        CHECK(bytes.device[MEM_CACHE] == kept && bytes.device[MEM_ROLES] == 128 * UNIT + kept,
              "cache %zu, all %zu bytes", bytes.device[MEM_CACHE], bytes.device[MEM_ROLES]);
    }
    setup_free(&s);
}

/* Kept optimizer state does not get smaller with more submodels: it is 60 units, next to 30 of
 * gradients, 64 of parameters and 64 of activations. */
static void counts_kept_state(void) {
    Setup s;
    FitBytes bytes;
    const size_t *device = bytes.device;
    if (open_case(&s, &(Case){.name = "kept state"}, 6, 2)) {
        s.stage_settings.keep_state = true;
        CHECK(fit_plan(&bytes, &s, 0) == 0, "%s", error_message());
        CHECK(device[MEM_STATE] == 60 * UNIT && device[MEM_ROLES] == 218 * UNIT,
              "state %zu, all %zu bytes", device[MEM_STATE], device[MEM_ROLES]);
    }
    setup_free(&s);
}

/* With two submodels each of three ranks takes 128 units, and 68 more while it holds the frozen
 * prefix of the second one, which is without gradients and state.  Messages are in host memory. */
static void as_many_ranks_infer_as_have_room(void) {
    static const struct {
        double units;
        int ranks; /* that infer; -1: the training does not fit */
    } rows[] = {{588, 3}, {587, 2}, {452, 1}, {451, 0}, {384, 0}, {383, -1}};
    static const DeviceModule device = {.memory_plan = plan, .info = info};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Setup s;
        double cost[8] = {1, 1, 1, 1, 1, 1, 1, 1};
        if (open_case(&s, &(Case){.name = "three ranks"}, 6, 2) &&
            CHECK(placement_make(&s.placement, s.model, PLACEMENT_PLAIN, 3, 1, cost, NULL) == 0,
                  "%s", error_message())) {
            s.device = &device;
            s.options.device = DEVICE_CUDA;
            s.stage_settings.batch = 4;
            s.ranks = 3;
            strcpy(s.options.pipeline, "mpi");
            s.pipeline = (PipelineSettings){.micro_batches = 2, .infer_ranks = 3};
            free_units = rows[i].units;
            int failed = fit_check_here(&s);
            CHECK(failed == -(rows[i].ranks < 0), "%g units: %s", free_units, error_message());
            CHECK(failed || s.pipeline.infer_ranks == rows[i].ranks, "%g units: %d ranks infer",
                  free_units, s.pipeline.infer_ranks);
        }
        setup_free(&s);
    }
}

void test_fit(void) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        RUN_ROW(cases[i].name, refuses_with_advice, &cases[i]);
    RUN(advice_names_what_changes);
    RUN(too_few_blocks_for_more_submodels);
    RUN(counts_the_hosts_of_ranks);
    RUN(counts_what_ranks_infer);
    RUN(counts_no_cache_for_one_submodel);
    RUN(counts_the_cache);
    RUN(counts_the_cache_of_the_host);
    RUN(a_model_too_large_to_evaluate);
    RUN(counts_what_generation_keeps);
    RUN(counts_kept_state);
    RUN(as_many_ranks_infer_as_have_room);
}
