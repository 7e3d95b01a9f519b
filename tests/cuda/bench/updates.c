/* Times what is not a node: the loss, the optimizer step, and copies of rows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../cuda/stage/plan.h"
#include "../../../cuda/update.h"
#include "../../../ref/base/error.h"
#include "../../../ref/blocks/models.h"
#include "bench.h"

enum { VERSIONS = 3 };

static Row row_of(const char *work, const char *what, Precision p, int n, int version,
                  double bytes) {
    Row row = {.part = "op", .how = "-", .n = n, .version = version, .times = 1, .bytes = bytes};
    snprintf(row.work, sizeof row.work, "%s", work);
    snprintf(row.what, sizeof row.what, "%s", what);
    snprintf(row.precision, sizeof row.precision, "%s", precision_names[p]);
    return row;
}

/* ---- cross-entropy ---- */

typedef struct {
    char *logits;
    int *targets;
    float *loss, *scale;
    unsigned char *correct;
    int rows, classes, stride;
    size_t set_bytes;
} LossRun;

static void run_loss(const Run *run, void *context, int set) {
    LossRun *r = context;
    cuda_cross_entropy(run, r->loss, r->correct, r->logits + (size_t)set * r->set_bytes, r->targets,
                       r->scale, r->rows, r->classes, r->stride);
}

static int measure_loss(Bench *b, int rows, int classes, Precision p) {
    const int stride = (classes + LOGITS_ALIGN - 1) / LOGITS_ALIGN * LOGITS_ALIGN;
    const size_t count = (size_t)rows * (size_t)stride, n = (size_t)rows;
    const float scale = 1 / (float)rows;
    LossRun r = {.rows = rows,
                 .classes = classes,
                 .stride = stride,
                 .set_bytes = count * precision_bytes(p)};
    const int wanted = timer_sets(b, (double)r.set_bytes);
    const int sets = timer_fits(r.set_bytes * (size_t)wanted) ? wanted : 1;
    char name[H5_NAME];
    if (!timer_fits(r.set_bytes)) {
        printf("cross-entropy of %d x %d, %s: does not fit\n", rows, classes, precision_names[p]);
        return 0;
    }
    snprintf(name, sizeof name, "cross_entropy of %d", classes);
    Row row[VERSIONS];
    for (int version = 0; version < VERSIONS; version++)
        row[version] = row_of(name, "with gradient", p, rows, version,
                              2 * (double)count * (double)precision_bytes(p));
    int begun = bench_begin(b, row, VERSIONS);
    if (begun <= 0) return begun;
    r.set_bytes = (r.set_bytes + 255) / 256 * 256;
    r.logits = device_alloc(r.set_bytes * (size_t)sets);
    r.targets = device_alloc(n * sizeof *r.targets);
    r.loss = device_alloc(n * sizeof *r.loss);
    r.correct = device_alloc(n);
    r.scale = device_alloc(sizeof scale);
    int status = r.logits && r.targets && r.loss && r.correct && r.scale ? 0 : -1;
    if (!status) status = fill_tokens(b, r.targets, n, classes);
    if (!status) copy_to_device(b->stream, r.scale, &scale, sizeof scale);
    if (!status) status = device_wait(b->stream);
    for (int set = 0; set < sets && !status; set++)
        status = fill_values(b, r.logits + (size_t)set * r.set_bytes, count, p, set);
    if (status) status = bench_failure(b); /* of all versions, which are then not tried */
    for (int version = 0; version < VERSIONS && !status; version++) {
        Task task = {
            .run = run_loss, .context = &r, .sets = sets, .how = {b->stream, p, version, NULL}};
        status = timer_row(b, &task, &row[version]);
    }
    device_free(r.logits);
    device_free(r.targets);
    device_free(r.loss);
    device_free(r.correct);
    device_free(r.scale);
    return status;
}

/* ---- optimizer ---- */

typedef struct {
    Updater *updater;
    UpdateTensor *tensor;
    char *memory;
    size_t count; /* numbers */
    bool norm;
} StepRun;

static void run_update(const Run *run, void *context, int set) {
    StepRun *r = context;
    (void)set;
    if (r->norm)
        update_norm(run, r->updater, NULL);
    else
        update_apply(run, r->updater, NULL, NULL); /* its optimizers have no workspace */
}

static size_t padded(size_t count) { return (count + 63) / 64 * 64; }

/* Allocates the tensors of a model: their weights and state, one after the other. */
static int update_open(const Bench *b, StepRun *r, const Model *m, OptimizerSettings settings,
                       Precision p) {
    const int vectors = optimizer_state_vectors(&settings, &(Param){0});
    const bool apart = p == PRECISION_BF16;
    size_t count = 0;
    for (int i = 0; i < m->params; i++) count += padded(m->param[i].count);
    r->count = m->param_count;
    r->tensor = calloc((size_t)m->params, sizeof *r->tensor);
    r->memory = device_alloc(count * sizeof(float) * (size_t)(2 + vectors + apart));
    uint64_t *t = calloc((size_t)m->blocks, sizeof *t);
    if (!r->tensor || !r->memory || !t) {
        free(t);
        return error_set("bench: no memory for the update of %s", m->name);
    }
    float *base = (float *)(void *)r->memory;
    fill_zero(b->stream, base, count * sizeof(float) * (size_t)(2 + vectors + apart));
    int status = fill_values(b, base, count, PRECISION_FP32, 1) ||
                 fill_values(b, base + count, count, PRECISION_FP32, 2);
    size_t at = 0;
    for (int i = 0; i < m->params; at += padded(m->param[i++].count))
        r->tensor[i] =
            (UpdateTensor){.p = apart ? base + (size_t)(2 + vectors) * count + at : base + at,
                           .master = base + at,
                           .g = base + count + at,
                           .state = {vectors > 0 ? base + 2 * count + at : NULL,
                                     vectors > 1 ? base + 3 * count + at : NULL},
                           .count = m->param[i].count,
                           .block = m->param[i].block,
                           .decay = true};
    for (int i = 0; i < m->blocks; i++) t[i] = 10;
    if (!status) {
        r->updater = updater_create(r->tensor, m->params, m->blocks, &settings, b->stream);
        status = r->updater ? 0 : -1;
    }
    if (!status) update_prepare(r->updater, b->stream, 1e-6, 1, t);
    free(t);
    return status ? -1 : device_wait(b->stream);
}

static int measure_update(Bench *b, const Model *m, OptimizerKind kind, Precision p) {
    OptimizerSettings settings = optimizer_defaults(kind);
    settings.clip_norm = 1;
    const int vectors = optimizer_state_vectors(&settings, &(Param){0});
    const double count = (double)m->param_count, each = sizeof(float);
    StepRun r = {0};
    Row row[2 * VERSIONS];
    for (int i = 0; i < 2 * VERSIONS; i++) {
        bool norm = i >= VERSIONS;
        double bytes = norm ? each : each * (3 + 2 * vectors) + (p == PRECISION_BF16 ? 2 : 0);
        row[i] = row_of(norm ? "gradient norm" : optimizer_names[kind], "update", p, 1,
                        i % VERSIONS, count * bytes);
    }
    int begun = bench_begin(b, row, 2 * VERSIONS);
    if (begun <= 0) return begun;
    int status = update_open(b, &r, m, settings, p);
    if (status) status = bench_failure(b);
    for (int i = 0; i < 2 * VERSIONS && !status; i++) {
        Task task = {
            .run = run_update, .context = &r, .sets = 1, .how = {b->stream, p, i % VERSIONS, NULL}};
        r.norm = i >= VERSIONS;
        status = timer_row(b, &task, &row[i]);
    }
    updater_free(r.updater);
    free(r.tensor);
    device_free(r.memory);
    return status;
}

/* ---- rounding ---- */

typedef struct {
    char *y;
    float *x;
    size_t count;
} ConvertRun;

static void run_convert(const Run *run, void *context, int set) {
    ConvertRun *r = context;
    cuda_from_float(run, r->y + (size_t)set * r->count * 2, r->x + (size_t)set * r->count,
                    r->count);
}

static int measure_convert(Bench *b) {
    ConvertRun r = {.count = b->tiny ? 512 : (size_t)1 << 27};
    Row row[VERSIONS];
    for (int version = 0; version < VERSIONS; version++)
        row[version] = row_of("from float", "-", PRECISION_BF16, 1, version, 6 * (double)r.count);
    int begun = bench_begin(b, row, VERSIONS);
    if (begun <= 0) return begun;
    r.y = device_alloc(2 * r.count * 2);
    r.x = device_alloc(2 * r.count * sizeof(float));
    int status = r.x && r.y ? fill_values(b, r.x, 2 * r.count, PRECISION_FP32, 3) : -1;
    if (status) status = bench_failure(b);
    for (int version = 0; version < VERSIONS && !status; version++) {
        Task task = {.run = run_convert,
                     .context = &r,
                     .sets = 2,
                     .how = {b->stream, PRECISION_BF16, version, NULL}};
        status = timer_row(b, &task, &row[version]);
    }
    device_free(r.x);
    device_free(r.y);
    return status;
}

int measure_updates(Bench *b) {
    static const Precision order[] = {PRECISION_BF16, PRECISION_FP32};
    Model *m =
        model_create(b->tiny ? "gpt:layers=1,width=16,heads=2,context=8,vocabulary=40" : "gpt2");
    int status = m ? 0 : -1;
    for (int k = 0; k < 2 && !status; k++) {
        if (!bench_goes_on(b, "loss and optimizer, %s", precision_names[order[k]])) break;
        status = measure_loss(b, b->tiny ? 5 : 32 * 1024, b->tiny ? 1031 : 50257, order[k]);
        if (!status) status = measure_loss(b, b->tiny ? 5 : 1024, 10, order[k]);
        if (!status) status = measure_update(b, m, OPTIMIZER_ADAMW, order[k]);
        if (!status) status = measure_update(b, m, OPTIMIZER_SGD, order[k]);
    }
    model_free(m);
    if (!status && bench_goes_on(b, "rounding")) status = measure_convert(b);
    return status;
}
