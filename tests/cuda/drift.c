#include "drift.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/base/error.h"
#include "../../ref/base/random.h"
#include "../../ref/blocks/models.h"
#include "../test.h"
#include "device_case.h"

enum { SAMPLES = 8 };

double unit_roundoff(Precision precision) {
    static const double of[PRECISIONS] = {
        [PRECISION_FP32] = 0x1p-24, [PRECISION_TF32] = 0x1p-10, [PRECISION_BF16] = 0x1p-8};
    return of[precision];
}

/* ---- snapshots ---- */

Snapshot snapshot_take(const Tiny *tiny, TensorRole role) {
    const Model *m = tiny->model;
    int tensors = role == TENSOR_BUFFER ? m->buffers : m->params;
    Snapshot snapshot = {tensors, calloc((size_t)tensors + 1, sizeof(size_t)), NULL};
    if (!snapshot.begin) abort();
    for (int i = 0; i < tensors; i++)
        snapshot.begin[i + 1] = snapshot.begin[i] + engine_read(tiny->engine, role, i, NULL);
    snapshot.number = malloc((snapshot.begin[tensors] + 1) * sizeof(real));
    if (!snapshot.number) abort();
    for (int i = 0; i < tensors; i++)
        engine_read(tiny->engine, role, i, snapshot.number + snapshot.begin[i]);
    return snapshot;
}

void snapshot_free(Snapshot *snapshot) {
    free(snapshot->begin);
    free(snapshot->number);
    *snapshot = (Snapshot){0};
}

void snapshot_check_same(const Tiny *a, const Tiny *b, TensorRole role, const char *what) {
    Snapshot one = snapshot_take(a, role), two = snapshot_take(b, role);
    size_t count = one.begin[one.tensors];
    CHECK(count == two.begin[two.tensors] &&
              memcmp(one.number, two.number, count * sizeof(real)) == 0,
          "%s: %s: tensors of role %d differ", a->model->name, what, (int)role);
    snapshot_free(&one);
    snapshot_free(&two);
}

static void subtract(Snapshot *a, const Snapshot *b) {
    for (size_t i = 0; i < a->begin[a->tensors]; i++) a->number[i] -= b->number[i];
}

static double norm(const Snapshot *a, const Snapshot *b, int tensor) {
    double sum = 0;
    for (size_t i = a->begin[tensor]; i < a->begin[tensor + 1]; i++) {
        double difference = (double)a->number[i] - (b ? (double)b->number[i] : 0);
        sum += difference * difference;
    }
    return sqrt(sum);
}

/* ---- one run ---- */

/* The results of a run that are compared. */
typedef struct {
    Snapshot change; /* of the parameters, or their gradients */
    Snapshot held;   /* what was rounded last: the parameters, or the gradients */
    double loss[64];
} Outcome;

/* Changes each weight by up to one rounding; sample 0 changes none. */
static void perturb(Tiny *tiny, double roundoff, int sample) {
    for (int p = 0; p < tiny->model->params && sample; p++) {
        size_t count;
        real *data = tiny_read(tiny, TENSOR_PARAMETER, p, &count);
        for (size_t i = 0; i < count; i++) {
            double part = 2 * random_uniform((uint64_t)sample, (uint32_t)p, i) - 1;
            data[i] = (real)((double)data[i] * (1 + roundoff * part));
        }
        engine_write(tiny->engine, TENSOR_PARAMETER, p, data);
        free(data);
    }
}

static int note_loss(void *context, const BcdState *state, const Loss *loss, double lr) {
    (void)lr;
    ((Outcome *)context)->loss[state->step - 1] = loss_mean(loss);
    return 0;
}

static Outcome train(const Recipe *recipe, double roundoff, int sample) {
    Tiny tiny;
    Outcome outcome = {0};
    tiny_open(&tiny, recipe);
    perturb(&tiny, roundoff, sample);
    Snapshot before = snapshot_take(&tiny, TENSOR_PARAMETER);
    CHECK(tiny_train(&tiny, note_loss, &outcome) == 0, "%s", error_message());
    outcome.change = snapshot_take(&tiny, TENSOR_PARAMETER);
    subtract(&outcome.change, &before);
    outcome.held = before;
    tiny_close(&tiny);
    return outcome;
}

static Outcome differentiate(const Recipe *recipe, double roundoff, int sample) {
    Tiny tiny;
    Outcome outcome = {0};
    tiny_open(&tiny, recipe);
    perturb(&tiny, roundoff, sample);
    tiny_activate(&tiny, 0);
    Batch batch = tiny_batch(&tiny, tiny.stage->settings.batch);
    Stage *stage = tiny.stage;
    stage_begin(stage, &batch, MODE_TRAIN);
    for (int b = 0; b < tiny.model->blocks; b++) stage_forward(stage, b);
    Loss loss;
    CHECK(stage_loss(stage, 1, &loss) == 0, "%s", error_message());
    outcome.loss[0] = loss_mean(&loss);
    for (int b = tiny.model->blocks - 1; b >= 0; b--) {
        stage_input_gradient(stage, b);
        stage_weight_gradient(stage, b);
    }
    outcome.change = snapshot_take(&tiny, TENSOR_GRADIENT);
    outcome.held = snapshot_take(&tiny, TENSOR_GRADIENT);
    batch_free(&batch);
    tiny_close(&tiny);
    return outcome;
}

/* ---- the comparison ---- */

static void outcome_free(Outcome *outcome) {
    snapshot_free(&outcome->change);
    snapshot_free(&outcome->held);
}

typedef Outcome Runner(const Recipe *recipe, double roundoff, int sample);

static void compare_losses(const char *what, const Outcome *device, const Outcome *oracle) {
    for (int step = 0; step < 64 && oracle[0].loss[step] != 0; step++) {
        double allowed = 0, error = fabs(device->loss[step] - oracle[0].loss[step]);
        for (int k = 1; k <= SAMPLES; k++)
            allowed = fmax(allowed, fabs(oracle[k].loss[step] - oracle[0].loss[step]));
        /* The samples of a single number may be close by chance, so its own rounding is added. */
        allowed = DRIFT_FACTOR * (allowed + REAL_EPS * fabs(oracle[0].loss[step]));
        CHECK(error <= allowed, "%s: the loss of step %d is off by %g, allowed %g", what, step,
              error, allowed);
    }
}

static void compare(const Model *m, const char *what, const Outcome *device,
                    const Outcome *oracle) {
    double worst = 0, relative = 0;
    const char *where = "";
    for (int p = 0; p < m->params; p++) {
        double size = norm(&oracle[0].change, NULL, p), allowed = 0;
        double error = norm(&device->change, &oracle[0].change, p);
        for (int k = 1; k <= SAMPLES; k++)
            allowed = fmax(allowed, norm(&oracle[k].change, &oracle[0].change, p));
        allowed = DRIFT_FACTOR * (allowed + REAL_EPS * norm(&oracle[0].held, NULL, p));
        CHECK(error <= allowed, "%s: %s is off by %g, allowed %g, of %g", what, m->param[p].name,
              error, allowed, size);
        if (!(error / allowed > worst)) continue;
        worst = error / allowed;
        relative = error / size;
        where = m->param[p].name;
    }
    test_note("%s: at most %.0f %% of the tolerance, %.1e of the change (%s)", what, 100 * worst,
              relative, where);
}

/* Runs the recipe on the device and compares it with the oracle. Where every access is watched only
 * the device runs, since other builds compare the numbers. */
static void check(const Recipe *recipe, const char *what, Runner *run) {
    Recipe on_cpu = *recipe;
    on_cpu.create = NULL;
    on_cpu.precision = PRECISION_FP32;
    on_cpu.offload = false;
    Outcome device = run(recipe, 0, 0);
    if (!device_is_watched()) {
        Model *model = model_create(recipe->spec);
        Outcome oracle[SAMPLES + 1];
        double roundoff = unit_roundoff(recipe->precision);
        if (!CHECK(model, "%s", error_message())) return;
        for (int k = 0; k <= SAMPLES; k++) oracle[k] = run(&on_cpu, roundoff, k);
        compare(model, what, &device, oracle);
        compare_losses(what, &device, oracle);
        for (int k = 0; k <= SAMPLES; k++) outcome_free(&oracle[k]);
        model_free(model);
    }
    outcome_free(&device);
}

void drift_check_training(const Recipe *recipe, const char *what) { check(recipe, what, train); }

void drift_check_gradients(const Recipe *recipe) {
    Recipe whole = *recipe;
    whole.submodels = 1;
    check(&whole, precision_names[recipe->precision], differentiate);
}
