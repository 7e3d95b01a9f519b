/* Compares the optimizer step of many tensors with ref/optimizers: every kind, blocks of different
 * steps, clipping, and steps that must be refused. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../cuda/matmul.h"
#include "../../cuda/update.h"
#include "../../ref/base/error.h"
#include "../../ref/base/random.h"
#include "../ref/tolerance.h"
#include "../test.h"
#include "device_case.h"

/* Sizes around the length of a vector and of a launch's chunks; some blocks lack a tensor.  Only
 * Muon looks at the parts of matrices. */
static const struct {
    size_t count;
    int block;
    bool decay;
    int parts, rows[PARAM_PARTS];
} sizes[] = {
    {1, 0, true, 0, {0}},     {3, 0, false, 0, {0}},           {64, 2, true, 1, {8}},
    {257, 2, true, 1, {257}}, {8191, 2, false, 0, {0}},        {8192, 4, true, 3, {32, 16, 16}},
    {8193, 4, true, 1, {3}},  {16384, 4, true, 2, {128, 128}}, {20011, 3, true, 0, {0}}};
enum { TENSORS = sizeof sizes / sizeof *sizes, BLOCKS = 6, STEPS = 3, TOTAL = 61296 };
static const uint64_t first_step[BLOCKS] = {1, 0, 5, 100, 2, 0};

typedef struct {
    const char *name;
    OptimizerSettings settings;
    double scale; /* of the gradients */
} Row;

/* clang-format off */
static const Row rows[] = {
    {"sgd", {.kind = OPTIMIZER_SGD}, 1},
    {"sgd, decay, scaled", {.kind = OPTIMIZER_SGD, .weight_decay = 0.1}, 0.3},
    {"sgd, momentum, decay", {.kind = OPTIMIZER_SGD, .momentum = 0.9, .weight_decay = 0.1}, 1},
    {"sgd, momentum, clipped", {.kind = OPTIMIZER_SGD, .momentum = 0.5, .weight_decay = 0.1, .clip_norm = 3}, 1},
    {"adam", {.kind = OPTIMIZER_ADAM, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8}, 1},
    {"adam, decay, clipped", {.kind = OPTIMIZER_ADAM, .beta1 = 0.8, .beta2 = 0.99, .eps = 1e-3, .weight_decay = 0.1, .clip_norm = 3}, 0.5},
    {"adamw", {.kind = OPTIMIZER_ADAMW, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1}, 1},
    {"lion, decay", {.kind = OPTIMIZER_LION, .beta1 = 0.9, .beta2 = 0.99, .weight_decay = 0.1}, 1},
    {"lion, clipped", {.kind = OPTIMIZER_LION, .beta1 = 0.8, .beta2 = 0.95, .clip_norm = 3}, 0.5},
    {"muon", {.kind = OPTIMIZER_MUON, .momentum = 0.95, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8}, 1},
    {"muon, decay, clipped", {.kind = OPTIMIZER_MUON, .momentum = 0.9, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1, .clip_norm = 3}, 0.5},
    {"adamw, not clipped", {.kind = OPTIMIZER_ADAMW, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1, .clip_norm = 1e6}, 1},
};
/* clang-format on */
static const double LR = 0.05;

/* All tensors, one after the other. */
typedef struct {
    float p[TOTAL], state[2][TOTAL], g[TOTAL], values[TOTAL];
    double norm;
} Numbers;

static Numbers *numbers_create(void) {
    Numbers *n = calloc(1, sizeof *n);
    if (!n) abort();
    for (size_t i = 0; i < TOTAL; i++) n->p[i] = (float)random_normal(2, 0, i);
    return n;
}

static Param param_of(int i) {
    Param param = {.count = sizes[i].count, .block = sizes[i].block, .parts = 1};
    if (sizes[i].decay) param.kind = PARAM_EMBEDDING;
    if (!sizes[i].parts) return param;
    param.kind = PARAM_MATRIX;
    param.rank = 2;
    param.parts = sizes[i].parts;
    for (int k = 0; k < param.parts; k++) param.dim[0] += param.part_rows[k] = sizes[i].rows[k];
    param.dim[1] = (int)param.count / param.dim[0];
    return param;
}

/* Returns the numbers of workspace that the update of any tensor needs. */
static size_t workspace_of(const Row *row) {
    size_t max = 0;
    for (int i = 0; i < TENSORS; i++) {
        const Param param = param_of(i);
        const size_t need = optimizer_workspace(&row->settings, &param);
        if (need > max) max = need;
    }
    return max;
}

static void draw_gradient(Numbers *n, int step) {
    for (size_t i = 0; i < TOTAL; i++) n->g[i] = (float)random_normal(1, (uint32_t)step, i);
}

static double cpu_scale(const Row *row, Numbers *n) {
    n->norm = sqrt(optimizer_square_sum(n->g, TOTAL));
    double clip = row->settings.clip_norm;
    return row->scale * (clip > 0 && n->norm > clip ? clip / n->norm : 1);
}

static void on_cpu(const Row *row, Numbers *n) {
    float *workspace = malloc((workspace_of(row) + 1) * sizeof *workspace);
    if (!workspace) abort();
    for (int step = 0; step < STEPS; step++) {
        size_t at = 0;
        draw_gradient(n, step);
        double scale = cpu_scale(row, n);
        for (int i = 0; i < TENSORS; i++) {
            const Param param = param_of(i);
            const int states = optimizer_state_vectors(&row->settings, &param);
            float *const state[2] = {states > 0 ? n->state[0] + at : NULL,
                                     states > 1 ? n->state[1] + at : NULL};
            uint64_t t = first_step[sizes[i].block] + (uint64_t)step;
            OptimizerSettings settings = row->settings;
            if (!sizes[i].decay) settings.weight_decay = 0;
            optimizer_update(&settings, &param, n->p + at, state, n->g + at, scale, LR, t,
                             workspace);
            at += sizes[i].count;
        }
    }
    free(workspace);
}

/* ---- on the device ---- */

typedef struct {
    UpdateTensor tensor[TENSORS];
    Updater *updater;
    Run run;
    LossSums *sums;
    float *workspace;
    double *norm; /* page-locked */
} Device;

/* An updater of bf16 has float masters next to the values; others have none. */
static bool device_open_updater(Device *d, const Row *row, const Numbers *n, How how) {
    const LossSums finite = {1.5, 1, 0};
    OptimizerSettings settings = row->settings;
    settings.decay_matrices_only = true;
    *d = (Device){.run = {device_test_stream(), how.precision, how.version, NULL}};
    if (!d->run.stream) return false;
    d->run.workspace = device_alloc(cuda_matmul_workspace() + 1);
    d->workspace = device_alloc((workspace_of(row) + 1) * sizeof(float));
    for (size_t i = 0, at = 0; i < TENSORS; at += sizes[i++].count) {
        UpdateTensor *t = &d->tensor[i];
        const size_t count = sizes[i].count, bytes = count * sizeof(float);
        const Param param = param_of((int)i);
        const int states = optimizer_state_vectors(&settings, &param);
        update_describe(t, &settings, &param);
        t->master = device_put(n->p + at, bytes);
        t->p = how.precision == PRECISION_BF16 ? device_put_values(n->p + at, count, how.precision)
                                               : t->master;
        t->g = device_put(n->g + at, bytes);
        for (int s = 0; s < states; s++) t->state[s] = device_put(n->state[s] + at, bytes);
    }
    d->sums = device_put(&finite, sizeof finite);
    d->norm = pinned_alloc(sizeof *d->norm);
    d->updater = updater_create(d->tensor, TENSORS, BLOCKS, &row->settings, d->run.stream);
    device_choose_order(how.order);
    return CHECK(d->updater && d->norm, "%s", error_message());
}

static void device_close_updater(Device *d) {
    device_choose_order(0);
    for (int i = 0; i < TENSORS; i++) {
        if (d->tensor[i].p != d->tensor[i].master) device_free(d->tensor[i].p);
        device_free(d->tensor[i].master);
        device_free(d->tensor[i].state[0]);
        device_free(d->tensor[i].state[1]);
        device_free((void *)(uintptr_t)d->tensor[i].g);
    }
    device_free(d->sums);
    device_free(d->workspace);
    device_free(d->run.workspace);
    pinned_free(d->norm);
    updater_free(d->updater);
}

static void upload_gradient(const Device *d, const Numbers *n) {
    for (size_t i = 0, at = 0; i < TENSORS; at += sizes[i++].count)
        copy_to_device(d->run.stream, (void *)(uintptr_t)d->tensor[i].g, n->g + at,
                       sizes[i].count * sizeof(float));
    device_test_wait();
}

static void read_back(const Device *d, Numbers *n) {
    for (size_t i = 0, at = 0; i < TENSORS; at += sizes[i++].count) {
        const UpdateTensor *t = &d->tensor[i];
        device_get(n->p + at, t->master, t->count * sizeof(float));
        device_get_values(n->values + at, t->p, t->count, d->run.precision);
        for (int s = 0; s < 2; s++)
            if (t->state[s]) device_get(n->state[s] + at, t->state[s], t->count * sizeof(float));
    }
}

static void prepare(const Device *d, double scale, int step) {
    uint64_t t[BLOCKS];
    for (int b = 0; b < BLOCKS; b++) t[b] = first_step[b] + (uint64_t)step;
    update_prepare(d->updater, d->run.stream, LR, scale, t);
}

static void on_device(const Row *row, Numbers *n, How how) {
    Device d;
    if (device_open_updater(&d, row, n, how)) {
        for (int step = 0; step < STEPS; step++) {
            draw_gradient(n, step);
            upload_gradient(&d, n);
            prepare(&d, row->scale, step);
            if (row->settings.clip_norm > 0) update_norm(&d.run, d.updater, d.norm);
            update_apply(&d.run, d.updater, d.sums, d.workspace);
        }
        read_back(&d, n);
        if (row->settings.clip_norm > 0) n->norm = *d.norm;
    }
    device_close_updater(&d);
}

/* ---- checks ---- */

/* Both compute the same equations, but compilers fuse different pairs of operations: a few
 * roundings a step. */
static void check_near(const float *got, const float *truth, const char *what) {
    for (size_t i = 0; i < TOTAL; i++) {
        double allowed = 2 * tolerance(STEPS, fmax(1, fabs((double)truth[i])));
        double error = fabs((double)got[i] - (double)truth[i]);
        CHECK(error <= allowed, "%s[%zu] is %.9g, not %.9g", what, i, (double)got[i],
              (double)truth[i]);
    }
}

/* The same of a matrix of Muon.  A step of Newton-Schulz multiplies an error by 3.4445 at most, its
 * slope at 0: in fp32 each number is held to that, as in tests/ref/test_muon.c.  Where products are
 * rounded to tf32, the norm of the error is 11 roundings of 2^-11 at most, and 64 are allowed. */
static void check_near_matrix(const float *got, const float *truth, const float *start, int i,
                              Precision precision) {
    const Param param = param_of(i);
    const double grown = pow(3.4445, MUON_STEPS), longest = fmax(param.dim[0], param.dim[1]);
    const double step = STEPS * LR * 0.2; /* of the largest numbers, times x's sqrt(longest) */
    double error = 0, moved = 0;
    for (size_t k = 0; k < param.count; k++) {
        const double off = (double)got[k] - (double)truth[k];
        const double allowed = 2 * tolerance(longest, grown * step) +
                               2 * tolerance(STEPS, fmax(1, fabs((double)truth[k])));
        error += off * off;
        moved += pow((double)truth[k] - (double)start[k], 2);
        if (precision != PRECISION_FP32) continue;
        CHECK(fabs(off) <= allowed, "p[%zu] of tensor %d is %.9g, not %.9g", k, i, (double)got[k],
              (double)truth[k]);
    }
    CHECK(sqrt(error) <= 64 * 0x1p-11 * sqrt(moved), "tensor %d moved by %g, and %g away", i,
          sqrt(moved), sqrt(error));
}

static void check_parameters(const Row *row, const Numbers *got, const Numbers *truth,
                             Precision precision) {
    Numbers *start = numbers_create(), *elements = numbers_create();
    memcpy(elements->p, got->p, sizeof elements->p);
    for (size_t i = 0, at = 0; i < TENSORS; at += sizes[i++].count) {
        if (row->settings.kind != OPTIMIZER_MUON || !sizes[i].parts) continue;
        check_near_matrix(got->p + at, truth->p + at, start->p + at, (int)i, precision);
        memcpy(elements->p + at, truth->p + at, sizes[i].count * sizeof(float));
    }
    check_near(elements->p, truth->p, "p");
    free(start);
    free(elements);
}

static void meets_the_oracle(const Row *row, How how) {
    Numbers *truth = numbers_create(), *got = numbers_create();
    on_cpu(row, truth);
    on_device(row, got, how);
    check_parameters(row, got, truth, how.precision);
    check_near(got->state[0], truth->state[0], "state 0");
    check_near(got->state[1], truth->state[1], "state 1");
    for (size_t i = 0; i < TOTAL; i++) {
        float value = how.precision == PRECISION_BF16 ? nearest_bf16(got->p[i]) : got->p[i];
        CHECK(got->values[i] == value, "value %zu is %.9g, its master %.9g", i,
              (double)got->values[i], (double)got->p[i]);
    }
    if (row->settings.clip_norm > 0)
        CHECK(fabs(got->norm - truth->norm) <= 1e-13 * truth->norm, "norm %.17g, not %.17g",
              got->norm, truth->norm);
    for (how.order = 1; how.order < device_orders(); how.order++) {
        Numbers *again = numbers_create();
        on_device(row, again, how);
        CHECK(!memcmp(again, got, sizeof *got), "another order of threads: other bits");
        free(again);
    }
    free(truth);
    free(got);
}

static void update_meets_the_oracle(const void *argument) {
    for (int type = 0; type < VALUE_TYPES; type++)
        for (int version = 1; version <= 2; version++)
            meets_the_oracle(argument, (How){.precision = value_types[type], .version = version});
}

/* An engine that clips call by call gives the bits of clipping on the device. */
static void clipping_by_the_host_is_the_same(const void *clipped_row) {
    const Row *row = clipped_row;
    Numbers *one = numbers_create(), *two = numbers_create();
    Device d;
    on_device(row, one, (How){.version = 2});
    if (device_open_updater(&d, row, two, (How){.version = 2}))
        for (int step = 0; step < STEPS; step++) {
            draw_gradient(two, step);
            upload_gradient(&d, two);
            update_norm(&d.run, d.updater, d.norm);
            device_test_wait();
            double norm = *d.norm, clip = row->settings.clip_norm;
            prepare(&d, norm > clip ? clip / norm : 1, step);
            update_apply(&d.run, d.updater, NULL, d.workspace);
        }
    read_back(&d, two);
    device_close_updater(&d);
    CHECK(!memcmp(one->p, two->p, sizeof one->p), "other bits");
    free(one);
    free(two);
}

/* An update with numbers that are not finite changes nothing, and the next one works. */
static void a_failed_update_changes_nothing(const void *refused_row) {
    static const double losses[] = {1, NAN, INFINITY, -INFINITY};
    static const float gradients[] = {1, NAN, INFINITY, -INFINITY};
    const Row *row = refused_row;
    Numbers *before = numbers_create(), *after = numbers_create();
    Device d;
    if (device_open_updater(&d, row, before, (How){.precision = PRECISION_BF16}))
        for (int loss = 0; loss < 4; loss++)
            for (int gradient = 0; gradient < 4; gradient++) {
                LossSums sums = {losses[loss], 1, 0};
                draw_gradient(before, 0);
                before->g[TOTAL - 5] = gradients[gradient];
                upload_gradient(&d, before);
                copy_to_device(d.run.stream, d.sums, &sums, sizeof sums);
                read_back(&d, before);
                prepare(&d, 1, 0);
                update_norm(&d.run, d.updater, NULL);
                update_apply(&d.run, d.updater, d.sums, d.workspace);
                read_back(&d, after);
                bool moved = memcmp(before->p, after->p, sizeof after->p) ||
                             memcmp(before->state, after->state, sizeof after->state) ||
                             memcmp(before->values, after->values, sizeof after->values);
                CHECK(moved == (!loss && !gradient), "loss %g, a gradient of %g: %s", losses[loss],
                      (double)gradients[gradient], moved ? "moved" : "stayed");
            }
    device_close_updater(&d);
    free(before);
    free(after);
}

/* An update is captured once and repeated with other rates and steps. Only the numbers that prepare
 * sends change. */
static void a_captured_update_takes_new_numbers(const void *captured_row) {
    const Row *row = captured_row;
    Numbers *truth = numbers_create(), *got = numbers_create();
    Device d;
    on_device(row, truth, (How){.version = 2});
    if (device_open_updater(&d, row, got, (How){.version = 2})) {
        CHECK(!graph_begin(d.run.stream), "%s", error_message());
        update_norm(&d.run, d.updater, NULL);
        update_apply(&d.run, d.updater, d.sums, d.workspace);
        Graph graph = graph_end(d.run.stream);
        CHECK(graph, "%s", error_message());
        for (int step = 0; graph && step < STEPS; step++) {
            draw_gradient(got, step);
            upload_gradient(&d, got);
            prepare(&d, row->scale, step);
            CHECK(!graph_launch(graph, d.run.stream), "%s", error_message());
        }
        read_back(&d, got);
        graph_free(graph);
    }
    device_close_updater(&d);
    CHECK(!memcmp(truth->p, got->p, sizeof got->p), "other bits");
    free(truth);
    free(got);
}

static const Row *row_named(const char *name) {
    const Row *row = rows;
    while (strcmp(row->name, name) != 0) row++;
    return row;
}

void test_device_update(void) {
    static const char *const again[] = {"adam, decay, clipped", "muon, decay, clipped"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        RUN_ROW(rows[i].name, update_meets_the_oracle, &rows[i]);
    RUN_ROW("sgd", clipping_by_the_host_is_the_same, row_named("sgd, momentum, clipped"));
    for (int i = 0; i < 2; i++) {
        RUN_ROW(again[i], a_failed_update_changes_nothing, row_named(again[i]));
        RUN_ROW(again[i], a_captured_update_takes_new_numbers, row_named(again[i]));
    }
}
