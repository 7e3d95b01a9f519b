/* Our models against PyTorch's, layer by layer: outputs, loss, every gradient, ten steps of each
 * optimizer, and BCD.  The numbers come from tests/fixtures/generate.py; no Python is needed here.
 *
 * The files hold results computed in float64.  A result may differ from them by a small multiple
 * of what PyTorch's own float32 is off (in the double build: of that error scaled to double's
 * rounding), plus a few units of rounding of its largest element, since we sum in another order. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/bcd.h"
#include "../fixtures/setup.h"
#include "../test.h"

static const double ALLOWED = 8;

/* The worst of a kind of result so far. */
typedef struct {
    double of_tolerance, relative;
    char where[96];
} Worst;

static void note_worst(const FixtureCase *c, const char *kind, const Worst *worst) {
    test_note("%-22s %-22s %.1e of the largest element, %4.0f %% of the tolerance (%s)",
              c->row->name, kind, worst->relative, 100 * worst->of_tolerance, worst->where);
}

static void compare(const FixtureCase *c, Worst *worst, const char *path, const real *ours,
                    size_t count) {
    double *truth = fixture_doubles(&c->file, path, count);
    if (!CHECK(truth, "%s", error_message())) return;
    double largest = 0, error = 0;
    for (size_t i = 0; i < count; i++) {
        largest = fmax(largest, fabs(truth[i]));
        double difference = fabs((double)ours[i] - truth[i]);
        if (!(difference <= error)) error = difference; /* a NaN stays: comparisons with it fail */
    }
    free(truth);
    double float_error = fixture_number(&c->file, path, "float_error", NAN);
    double tolerance = ALLOWED * (float_error * ((double)REAL_EPS / (double)FLT_EPSILON) +
                                  (double)REAL_EPS * largest);
    CHECK(error <= tolerance, "%s: %s: off by %g, allowed %g, largest element %g", c->row->name,
          path, error, tolerance, largest);
    if (error / tolerance >= worst->of_tolerance) {
        worst->of_tolerance = error / tolerance;
        worst->relative = error / fmax(largest, 1e-300);
        snprintf(worst->where, sizeof worst->where, "%s", path);
    }
}

static void compare_number(const FixtureCase *c, const char *path, double ours) {
    Worst worst = {0};
    real number = (real)ours;
    compare(c, &worst, path, &number, 1);
    note_worst(c, path, &worst);
}

/* ---- the comparisons ------------------------------------------------------------------------- */

typedef size_t (*Read)(void *from, TensorRole role, int number, real *data);

static void compare_tensor(const FixtureCase *c, Worst *worst, const char *group, TensorRole role,
                           int number, Read read, void *from) {
    const Model *m = c->model;
    const char *name = role == TENSOR_VALUE    ? m->block[number].name
                       : role == TENSOR_BUFFER ? m->buffer[number].name
                                               : m->param[number].name;
    char path[128];
    snprintf(path, sizeof path, "%s/%s", group, name);
    size_t count = read(from, role, number, NULL);
    real *values = malloc((count ? count : 1) * sizeof *values);
    if (CHECK(count && values && read(from, role, number, values) == count, "no %s", path))
        compare(c, worst, path, values, count);
    free(values);
}

/* Every tensor of a role. */
static void compare_tensors(const FixtureCase *c, const char *group, TensorRole role, int tensors,
                            Read read, void *from) {
    Worst worst = {0};
    for (int i = 0; i < tensors; i++) compare_tensor(c, &worst, group, role, i, read, from);
    if (tensors) note_worst(c, group, &worst);
}

static size_t read_stage(void *from, TensorRole role, int number, real *data) {
    Stage *stage = from;
    return stage->is->read(stage, role, number, data);
}

static size_t read_engine(void *from, TensorRole role, int number, real *data) {
    Engine *engine = from;
    return engine->is->read(engine, role, number, data);
}

static bool *all_active(const Model *model) {
    bool *active = malloc((size_t)model->blocks * sizeof *active);
    for (int b = 0; active && b < model->blocks; b++) active[b] = true;
    return active;
}

/* One pass forward and back, block by block. */
static void check_gradients(const FixtureCase *c) {
    int blocks = c->model->blocks;
    Stage *stage = fixture_stage(c, optimizer_defaults(OPTIMIZER_SGD), c->batch.n);
    bool *active = all_active(c->model);
    if (CHECK(stage && active && !stage->is->activate(stage, active), "%s", error_message())) {
        Worst worst = {0};
        stage->is->begin(stage, &c->batch, PASS_TRAIN);
        for (int b = 0; b < blocks; b++) {
            stage->is->forward(stage, b);
            compare_tensor(c, &worst, "activations", TENSOR_VALUE, b, read_stage, stage);
        }
        note_worst(c, "activations", &worst);
        Loss loss = stage->is->loss(stage, 1.0 / c->counted);
        CHECK(loss.count == (size_t)c->counted, "%zu targets counted", loss.count);
        compare_number(c, "loss", loss_mean(&loss));
        for (int b = blocks - 1; b >= 0; b--) {
            stage->is->input_gradient(stage, b);
            stage->is->weight_gradient(stage, b);
        }
        compare_tensors(c, "gradients", TENSOR_GRADIENT, c->model->params, read_stage, stage);
    }
    free(active);
    if (stage) stage->is->free(stage);
}

static void check_after(const FixtureCase *c, const char *group, Engine *engine) {
    char path[64];
    snprintf(path, sizeof path, "%s/parameters", group);
    compare_tensors(c, path, TENSOR_PARAMETER, c->model->params, read_engine, engine);
    snprintf(path, sizeof path, "%s/buffers", group);
    compare_tensors(c, path, TENSOR_BUFFER, c->model->buffers, read_engine, engine);
}

static void check_evaluation(const FixtureCase *c) {
    Engine *engine = fixture_engine(c, optimizer_defaults(OPTIMIZER_SGD));
    Loss loss;
    if (CHECK(engine && !engine->is->evaluate(engine, &c->batch, &loss), "%s", error_message()))
        compare_number(c, "evaluation/loss", loss_mean(&loss));
    if (engine) engine->is->free(engine);
}

/* Ordinary training on the one batch. */
static void check_training(const FixtureCase *c, const char *optimizer) {
    char group[32], path[48];
    snprintf(group, sizeof group, "train/%s", optimizer);
    snprintf(path, sizeof path, "%s/loss", group);
    size_t steps = fixture_count(&c->file, path);
    if (!steps) return; /* not every fixture has every optimizer */
    OptimizerSettings settings = fixture_optimizer(c, group, optimizer);
    Engine *engine = fixture_engine(c, settings);
    bool *active = all_active(c->model);
    real *losses = calloc(steps, sizeof *losses);
    int status = !engine || !active || !losses || engine->is->activate(engine, active);
    for (size_t i = 0; i < steps && !status; i++) {
        Loss loss;
        status = engine->is->step(engine, &c->batch, settings.lr, &loss);
        losses[i] = (real)(loss_mean(&loss));
    }
    if (CHECK(!status, "%s", error_message())) {
        Worst worst = {0};
        compare(c, &worst, path, losses, steps);
        note_worst(c, path, &worst);
        check_after(c, group, engine);
    }
    free(losses);
    free(active);
    if (engine) engine->is->free(engine);
}

/* ---- BCD ------------------------------------------------------------------------------------- */

/* The batch as a data set: each step visits the same samples, in another order. */
typedef struct {
    Dataset base;
    const FixtureCase *from;
} OneBatch;

static void one_batch_fetch(const Dataset *dataset, Batch *batch, uint64_t visit) {
    const FixtureCase *c = ((const OneBatch *)(const void *)dataset)->from;
    size_t input = shape_count(c->model->input), targets = (size_t)c->model->targets;
    (void)visit;
    for (int i = 0; i < batch->n; i++) {
        size_t to = (size_t)i, id = (size_t)batch->ids[i];
        if (c->model->tokens)
            memcpy(batch->tokens + to * input, c->batch.tokens + id * input, input * sizeof(int));
        else
            memcpy(batch->images + to * input, c->batch.images + id * input, input * sizeof(real));
        memcpy(batch->targets + to * targets, c->batch.targets + id * targets,
               targets * sizeof(int));
    }
}

typedef struct {
    size_t steps;
    real *loss;
    int *submodel;
} History;

static int remember(void *context, const BcdState *state, const Loss *loss, double lr) {
    History *history = context;
    size_t step = (size_t)state->step - 1;
    (void)lr;
    history->loss[step] = (real)(loss_mean(loss));
    history->submodel[step] = state->submodel;
    return 0;
}

static int train_bcd(const FixtureCase *c, Engine *engine, OptimizerSettings optimizer,
                     History *history) {
    char text[128];
    OneBatch data = {{.samples = c->batch.n, .fetch = one_batch_fetch}, c};
    BcdSettings settings = {
        .order = ORDER_CYCLIC,
        .rule = {.kind = SWITCH_STEPS, .every = fixture_number(&c->file, "bcd", "switch", NAN)},
        .optimizer = optimizer,
        .batch = c->batch.n,
        .steps = history->steps,
        .fraction = 1,
        .seed = 1};
    BcdState state = {0};
    if (fixture_text(&c->file, "bcd", "partition", text, sizeof text)) return -1;
    if (partition_parse(&settings.partition, c->model, text)) return -1;
    int status = bcd_train(&state, &settings, engine, &data.base, remember, history);
    partition_free(&settings.partition);
    return status;
}

static void check_bcd(const FixtureCase *c) {
    char kind[16] = "";
    fixture_text(&c->file, "bcd", "optimizer", kind, sizeof kind);
    OptimizerSettings optimizer = fixture_optimizer(c, "bcd", kind);
    Engine *engine = fixture_engine(c, optimizer);
    size_t steps = fixture_count(&c->file, "bcd/loss");
    History history = {steps, calloc(steps, sizeof(real)), calloc(steps, sizeof(int))};
    int *submodel = fixture_integers(&c->file, "bcd/submodel", steps);
    bool ready = engine && history.loss && history.submodel && submodel;
    if (CHECK(ready && !train_bcd(c, engine, optimizer, &history), "%s", error_message())) {
        Worst worst = {0};
        for (size_t i = 0; i < steps; i++)
            CHECK(history.submodel[i] == submodel[i], "step %zu trains submodel %d, not %d", i,
                  history.submodel[i], submodel[i]);
        compare(c, &worst, "bcd/loss", history.loss, steps);
        note_worst(c, "bcd/loss", &worst);
        check_after(c, "bcd", engine);
    }
    free(history.loss);
    free(history.submodel);
    free(submodel);
    if (engine) engine->is->free(engine);
}

static void check_row(const void *row) {
    FixtureCase c;
    if (CHECK(!fixture_case_open(&c, row), "%s", error_message())) {
        check_evaluation(&c);
        check_gradients(&c);
        for (int k = 0; k < OPTIMIZER_KINDS; k++) check_training(&c, optimizer_names[k]);
        check_bcd(&c);
    }
    fixture_case_close(&c);
}

void test_fixtures(void) {
    static const FixtureRow rows[] = {
        {.name = "resnet", .fixture = "resnet"},
        {.name = "resnet, relu apart", .fixture = "resnet", .switch_off = "fused=1"},
        {.name = "resnet, recompute", .fixture = "resnet", .recompute = true},
        {.name = "bottleneck", .fixture = "bottleneck"},
        {.name = "bottleneck, recompute", .fixture = "bottleneck", .recompute = true},
        {.name = "gpt", .fixture = "gpt"},
        {.name = "gpt, recompute", .fixture = "gpt", .recompute = true},
        {.name = "gpt, 2 micro-batches", .fixture = "gpt", .micro_batches = 2},
        {.name = "llama", .fixture = "llama"},
        {.name = "llama, recompute", .fixture = "llama", .recompute = true},
        {.name = "llama, 2 micro-batches", .fixture = "llama", .micro_batches = 2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        RUN_ROW(rows[i].name, check_row, &rows[i]);
}
