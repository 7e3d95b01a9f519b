/* Times whole training steps through the engine: the full update, each third, with a cached prefix,
 * with offload. Also runs one step for a profiler. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../../cuda/matmul.h"
#include "../../../cuda/stage/plan.h"
#include "../../../cuda/stage/stage_cuda.h"
#include "../../../experiments/inspect/operations.h"
#include "../../../ref/base/error.h"
#include "../../../ref/base/random.h"
#include "../../../ref/blocks/models.h"
#include "../../../ref/engine.h"
#include "../../bench/bench.h"
#include "../../bench/work.h"
#include "bench.h"

typedef enum { MODE_PLAIN, MODE_CACHED, MODE_OFFLOAD, MODES } Way;
static const char *mode_names[MODES] = {"plain", "cached prefix", "offload"};

enum { BATCHES = 4 };

/* One engine, on which the steps of each batch size run one after the other, in ascending order. */
typedef struct {
    const char *spec, *optimizer;
    Precision precision;
    Way mode;
    int batch[BATCHES];
    unsigned parts; /* a bit for each part that the mode has */
} Job;

/* The most important jobs come first, because the time may run out before the list ends. */
/* clang-format off */
enum { FULL = 1, EACH_THIRD = 14, ALL = FULL | EACH_THIRD };
static const Job key_jobs[] = {
    {"gpt2", "adamw", PRECISION_BF16, MODE_PLAIN, {32}, FULL},
    {"resnet20", "sgd", PRECISION_TF32, MODE_PLAIN, {1024}, FULL},
    {"G-1.6B", "adamw", PRECISION_BF16, MODE_PLAIN, {8}, EACH_THIRD},
};
static const Job jobs[] = {
    {"gpt2", "adamw", PRECISION_BF16, MODE_PLAIN, {32}, ALL},
    {"resnet20", "sgd", PRECISION_TF32, MODE_PLAIN, {128, 1024}, ALL},
    {"G-1.6B", "adamw", PRECISION_BF16, MODE_PLAIN, {1, 4, 8, 16}, ALL},
    {"gpt2", "adamw", PRECISION_BF16, MODE_CACHED, {32}, ALL},
    {"gpt2", "adamw", PRECISION_BF16, MODE_OFFLOAD, {32}, ALL},
    {"gpt2", "adamw", PRECISION_TF32, MODE_PLAIN, {32}, ALL},
    {"gpt2", "adamw", PRECISION_FP32, MODE_PLAIN, {32}, ALL},
    {"resnet8", "sgd", PRECISION_TF32, MODE_PLAIN, {128, 1024}, ALL},
    {"resnet14", "sgd", PRECISION_TF32, MODE_PLAIN, {128, 1024}, ALL},
    {"resnet8", "sgd", PRECISION_BF16, MODE_PLAIN, {128, 1024}, ALL},
    {"resnet14", "sgd", PRECISION_BF16, MODE_PLAIN, {128, 1024}, ALL},
    {"resnet20", "sgd", PRECISION_BF16, MODE_PLAIN, {128, 1024}, ALL},
    {"resnet8", "sgd", PRECISION_FP32, MODE_PLAIN, {128, 1024}, ALL},
    {"resnet14", "sgd", PRECISION_FP32, MODE_PLAIN, {128, 1024}, ALL},
    {"resnet20", "sgd", PRECISION_FP32, MODE_PLAIN, {128, 1024}, ALL},
    {"resnet20", "sgd", PRECISION_TF32, MODE_CACHED, {128, 1024}, ALL},
    {"resnet20", "sgd", PRECISION_TF32, MODE_OFFLOAD, {128, 1024}, ALL},
    {"G-1.6B", "adamw", PRECISION_BF16, MODE_CACHED, {1, 4, 8, 16}, ALL},
    {"G-1.6B", "adamw", PRECISION_FP32, MODE_PLAIN, {1}, ALL},
    {"G-1.6B", "adamw", PRECISION_TF32, MODE_PLAIN, {1, 4, 8, 16}, ALL},
    {"G-1.6B", "adamw", PRECISION_BF16, MODE_OFFLOAD, {1, 4, 8, 16}, ALL},
    {"G-1.6B", "adamw", PRECISION_FP32, MODE_PLAIN, {4, 8, 16}, ALL},
};
#define TINY_GPT "gpt:layers=3,width=16,heads=2,context=8,vocabulary=40"
static const Job tiny_key_jobs[] = {
    {TINY_GPT, "adamw", PRECISION_BF16, MODE_PLAIN, {2}, FULL},
    {"resnet:depth=8,width=4,size=8", "sgd", PRECISION_TF32, MODE_PLAIN, {2}, FULL},
};
static const Job tiny_jobs[] = {
    {TINY_GPT, "adamw", PRECISION_BF16, MODE_PLAIN, {1, 2}, ALL},
    {TINY_GPT, "adamw", PRECISION_FP32, MODE_CACHED, {2}, ALL},
    {TINY_GPT, "adamw", PRECISION_BF16, MODE_OFFLOAD, {2}, ALL},
    {"resnet:depth=8,width=4,size=8", "sgd", PRECISION_TF32, MODE_PLAIN, {2}, ALL},
};
/* clang-format on */

typedef struct {
    const Job *job;
    Model *model;
    Engine *engine;
    Batch batch;
    Dataset data; /* images as bytes, which the stage keeps; for tokens only their number */
    ImageBytes bytes;
    StageSettings settings;
    bool *active;
    double loss; /* of the last step */
} Session;

/* ---- images: random bytes, as many as CIFAR-10 has, kept on the device as in a training ---- */

enum { IMAGES = 50000, TINY_IMAGES = 8, PAD = 4 };

/* Creates the images for a model that takes no tokens. They are not augmented, since cached outputs
 * need the same input each time. */
static int images_open(const Bench *b, Session *s) {
    const Model *m = s->model;
    s->data = (Dataset){.name = "random images",
                        .samples = b->tiny ? TINY_IMAGES : IMAGES,
                        .input = m->input,
                        .classes = m->outputs,
                        .augmented = s->job->mode != MODE_CACHED,
                        .bytes = &s->bytes};
    const size_t sample = shape_count(m->input), words = (size_t)s->data.samples * sample / 8 + 1;
    const size_t levels = (size_t)m->input.c * 256;
    uint64_t *planes = malloc(words * sizeof *planes);
    real *normal = malloc(levels * sizeof *normal);
    s->bytes = (ImageBytes){
        .first = (unsigned char *)planes, .step = sample, .normal = normal, .seed = 1, .pad = PAD};
    if (!planes || !normal) return error_set("bench: no memory for %d images", s->data.samples);
#pragma omp parallel for
    for (size_t i = 0; i < words; i++) planes[i] = random_bits(1, STREAM_SYNTHETIC, i);
    for (size_t i = 0; i < levels; i++) normal[i] = (real)((double)(i % 256) / 64 - 2);
    s->settings.image_bytes = dataset_resident_bytes(&s->data);
    return 0;
}

/* Gives the stage the images. The batch consists of some of them, evenly spread. */
static int images_keep(Session *s, Stage *stage) {
    if (stage_keep_images(stage, &s->data)) return -1;
    s->batch.resident = &s->data;
    for (int i = 0; i < s->batch.n; i++) s->batch.ids[i] = i * (s->data.samples / s->batch.n);
    return 0;
}

/* ---- what fits ---- */

/* Returns the planned bytes on the device, or more than any device has when planning fails. */
static double planned(const Session *s, int part, int batch) {
    size_t device[MEM_ROLES], host[MEM_ROLES];
    StageSettings settings = s->settings;
    double bytes = 0;
    settings.batch = batch;
    work_active(s->active, s->model, part);
    if (cuda_memory_plan(device, host, s->model, &settings, s->active)) return 1e18;
    for (int r = 0; r < MEM_ROLES; r++) bytes += (double)device[r];
    return bytes;
}

/* Returns true if a mode measures a part. A cached prefix needs a third; offload is the baseline
 * that BCD is compared with, a full step. */
static bool wanted(const Job *job, int part) {
    if (!(job->parts >> part & 1)) return false;
    if (job->mode == MODE_CACHED) return part > 0;
    return job->mode == MODE_PLAIN || part == 0;
}

/* Returns the largest batch of the job with which the part fits; 0 if none does. A tenth of the
 * memory is left for what cannot be planned: libraries, graphs. */
static int largest_that_fits(const Session *s, int part, double free_bytes) {
    int largest = 0;
    for (int i = 0; i < BATCHES && s->job->batch[i]; i++)
        if (planned(s, part, s->job->batch[i]) <= 0.9 * free_bytes) largest = s->job->batch[i];
    return largest;
}

/* Returns the largest batch that fits for all parts. If even the smallest does not, `fits` says for
 * which parts it does. */
static int settle_batch(const Session *s, bool fits[PARTS], double free_bytes) {
    int all = 0, some = 0;
    for (int part = 0; part < PARTS; part++) {
        int largest = wanted(s->job, part) ? largest_that_fits(s, part, free_bytes) : 0;
        fits[part] = largest > 0;
        if (fits[part] && (!all || largest < all)) all = largest;
        if (largest > some) some = largest;
    }
    for (int i = 0; i < BATCHES && s->job->batch[i]; i++)
        if (some && s->job->batch[i] > all)
            printf("%s, %s, %s: %d samples do not fit\n", s->job->spec,
                   precision_names[s->job->precision], mode_names[s->job->mode], s->job->batch[i]);
    return all;
}

/* ---- rows ---- */

static Row row_of(const Session *s, int part, int n) {
    Row row = {.part = "step", .n = n};
    snprintf(row.work, sizeof row.work, "%s", s->job->spec);
    snprintf(row.what, sizeof row.what, "%s", part_names[part]);
    snprintf(row.how, sizeof row.how, "%s", mode_names[s->job->mode]);
    snprintf(row.precision, sizeof row.precision, "%s", precision_names[s->job->precision]);
    return row;
}

/* Begins the rows of these parts that fit. Returns how many they are, or -1. */
static int begin_parts(Bench *b, const Session *s, const bool fits[PARTS], int first, int end) {
    Row rows[PARTS * BATCHES];
    int count = 0;
    for (int part = first; part < end; part++)
        for (int i = 0; i < BATCHES && s->job->batch[i]; i++)
            if (fits[part] && s->job->batch[i] <= s->settings.batch)
                rows[count++] = row_of(s, part, s->job->batch[i]);
    return bench_begin(b, rows, count);
}

/* ---- a session ---- */

static void session_close(Session *s) {
    if (s->engine) engine_free(s->engine);
    batch_free(&s->batch);
    model_free(s->model);
    free(s->active);
    free((void *)(uintptr_t)s->bytes.first);
    free((void *)(uintptr_t)s->bytes.normal);
}

static int session_prepare(const Bench *b, Session *s, const Job *job) {
    *s = (Session){.job = job, .model = model_create(job->spec)};
    if (!s->model || work_optimizer(&s->settings.optimizer, job->optimizer)) return -1;
    s->settings.skip_init = true; /* session_open writes them */
    s->settings.precision = job->precision;
    s->settings.offload = job->mode == MODE_OFFLOAD;
    s->active = malloc((size_t)s->model->blocks * sizeof *s->active);
    if (!s->active) return error_set("bench: out of memory for %s", job->spec);
    return s->model->tokens ? 0 : images_open(b, s);
}

static int session_open(Session *s) {
    const bool cached = s->job->mode == MODE_CACHED;
    const int batch = s->settings.batch;
    if (s->model->tokens) s->data = (Dataset){.samples = batch};
    if (batch_reserve(&s->batch, s->model, batch)) return -1;
    s->batch.n = batch;
    work_fill(&s->batch, s->model);
    Stage *stage = stage_cuda_create(s->model, s->settings);
    if (!stage) return -1;
    if (fill_parameters(stage) || (!s->model->tokens && images_keep(s, stage))) {
        stage_free(stage);
        return -1;
    }
    size_t widest = 0;
    for (int i = 0; i < s->model->blocks; i++) {
        size_t width = shape_count(s->model->value[s->model->block[i].out].shape);
        if (width > widest) widest = width;
    }
    EngineSettings engine = {
        .micro_batches = 1,
        .cache_device_bytes = cached ? (size_t)batch * widest * sizeof(float) : 0};
    s->engine = engine_single_create(stage, engine, cached ? &s->data : NULL);
    return s->engine ? 0 : -1;
}

/* Random targets cannot be learnt; a low rate keeps the loss finite. */
static int timed_step(Session *s, double *ms) {
    Loss loss;
    double start = bench_now_ms();
    s->batch.position += (uint64_t)s->batch.n;
    int failed = engine_step(s->engine, &s->batch, 1e-3 * s->settings.optimizer.lr, &loss);
    *ms = bench_now_ms() - start;
    if (failed) return -1;
    s->loss = loss_mean(&loss);
    return isfinite(s->loss) ? 0 : error_set("the loss is %g", s->loss);
}

/* The first steps fill the cache, choose algorithms, and are captured as graphs. */
enum { WARM_UP = 3 };

static int measure_part(Bench *b, Session *s, int part, int n) {
    const double enough = b->tiny ? 0 : 800;
    Row row = row_of(s, part, n);
    Times times = {0};
    double ms, all = 0;
    int first = 0, status = 0;
    if (bench_begin(b, &row, 1) < 0) return -1;
    s->batch.n = n;
    bench_progress("%s, %d samples, %s: %s", row.work, n, row.precision, row.what);
    for (int i = 0; i < WARM_UP && !status; i++) status = timed_step(s, &ms);
    row.loss = s->loss;
    while (!status && (times.count < 3 || all < enough) && times.count < 256) {
        status = timed_step(s, &ms);
        times_add(&times, ms);
        all += ms;
    }
    bench_progress_end();
    if (status) return -1;
    work_active(s->active, s->model, part);
    while (s->job->mode == MODE_CACHED && !s->active[first]) first++;
    row.repeats = times.count;
    row.ms = times_median(&times);
    row.min_ms = times_min(&times);
    row.max_ms = times_max(&times);
    if (model_operations(&row.flops, s->model, s->active, first, 0)) return -1;
    row.flops *= n;
    row.floor = b->matrix[s->job->precision] > 0 ? row.flops / b->matrix[s->job->precision] : 0;
    row.memory = planned(s, part, s->settings.batch);
    return bench_add(b, &row);
}

static int measure_parts(Bench *b, Session *s, const bool fits[PARTS]) {
    for (int part = 0; part < PARTS; part++) {
        int begun = begin_parts(b, s, fits, part, part + 1);
        if (begun < 0) return -1;
        if (!begun) continue;
        work_active(s->active, s->model, part);
        if (engine_activate(s->engine, s->active)) return -1;
        for (int i = 0; i < BATCHES && s->job->batch[i]; i++) {
            int n = s->job->batch[i];
            Row row = row_of(s, part, n);
            if (n > s->settings.batch || results_find(&b->results, &row)) continue;
            if (!bench_goes_on(b, "%s, %d samples, %s, %s, %s", row.work, n, row.precision, row.how,
                               row.what))
                continue;
            if (measure_part(b, s, part, n)) return -1;
        }
    }
    return 0;
}

/* Writes the algorithms chosen by now. The file is whole at any time. */
static int save_algorithms(const Bench *b) {
    char path[H5_PATH];
    if (!b->tune) return 0;
    snprintf(path, sizeof path, "%s.new", b->tune);
    if (library_matmul_save(path)) return -1;
    return rename(path, b->tune) ? error_set("%s: %s", b->tune, strerror(errno)) : 0;
}

/* Runs what the results lack of a job. Returns 1 if that ended with a failure, which is one of this
 * session only: the job may have more rows. */
static int run_session(Bench *b, const Job *job) {
    Session s;
    DeviceInfo now;
    bool fits[PARTS];
    int begun = 0;
    int status = session_prepare(b, &s, job) || device_info(&now);
    if (!status) {
        s.settings.batch = settle_batch(&s, fits, (double)now.free_bytes);
        /* It is they that fail if the session cannot be opened. */
        begun = begin_parts(b, &s, fits, 0, PARTS);
        status = begun < 0;
    }
    if (begun > 0 && bench_goes_on(b, "%s, %s, %s", job->spec, precision_names[job->precision],
                                   mode_names[job->mode])) {
        alarm(b->each * 5 / 2); /* a session takes longer to open than a row to measure */
        status = session_open(&s) || measure_parts(b, &s, fits) || save_algorithms(b);
    }
    int lost = status ? bench_failure(b) : 0;
    session_close(&s);
    return lost ? -1 : status && begun > 0;
}

static int run_jobs(Bench *b, const Job *list, size_t count) {
    for (size_t i = 0; i < count; i++) {
        int status;
        while ((status = run_session(b, &list[i])) > 0) continue;
        if (status) return -1;
    }
    return 0;
}

#define RUN(bench, list) run_jobs(bench, list, sizeof(list) / sizeof *(list))
int measure_key_steps(Bench *b) {
    if (b->tune) mode_names[MODE_PLAIN] = TUNED;
    return b->tiny ? RUN(b, tiny_key_jobs) : RUN(b, key_jobs);
}
int measure_steps(Bench *b) { return b->tiny ? RUN(b, tiny_jobs) : RUN(b, jobs); }

/* ---- for a profiler ---- */

static int profile_session(Bench *b, Session *s, const char *model) {
    double ms = 0;
    s->settings.batch = s->job->batch[0];
    int status = session_open(s);
    work_active(s->active, s->model, 0);
    if (!status) status = engine_activate(s->engine, s->active);
    for (int i = 0; i < WARM_UP && !status; i++) status = timed_step(s, &ms);
    if (status || device_wait(b->stream)) return -1;
    profiler_start();
    status = timed_step(s, &ms);
    profiler_stop();
    if (!status) printf("profiled: a step of %s, %d samples, %.3f ms\n", model, s->batch.n, ms);
    return status;
}

int profile_step(Bench *b, const char *model) {
    const Job *list = b->tiny ? tiny_key_jobs : key_jobs;
    const Job *job = NULL;
    Session s;
    for (int i = 0; i < 2; i++)
        if (!strncmp(list[i].spec, model, strcspn(list[i].spec, ":0123456789"))) job = &list[i];
    if (!job)
        return error_set("bench: no step of %s to profile; of gpt2 and resnet20 there is", model);
    int status = session_prepare(b, &s, job) || profile_session(b, &s, model);
    session_close(&s);
    return status ? -1 : 0;
}
