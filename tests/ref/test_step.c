/* A training step of whole models: its gradient against differences, micro-batches, a step that
 * fails, and evaluation.  test_update.c tests what the update does with the gradient. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/base/random.h"
#include "../test.h"
#include "tiny.h"
#include "tolerance.h"

#ifdef BCD_DOUBLE
/* ---- gradients ---- */

static double loss_of(const Tiny *tiny, const Batch *batch) {
    Stage *stage = tiny->stage;
    stage_begin(stage, batch, MODE_TRAIN);
    for (int b = 0; b < tiny->model->blocks; b++) stage_forward(stage, b);
    Loss loss;
    return stage_loss(stage, 1, &loss) ? NAN : loss.loss_sum;
}

static double slope(const Tiny *tiny, const Batch *batch, int param, real *data, size_t i) {
    const double h = 1e-5;
    Stage *stage = tiny->stage;
    double before = data[i], loss[2];
    for (int side = 0; side < 2; side++) {
        data[i] = before + (side ? h : -h);
        stage_write(stage, TENSOR_PARAMETER, param, data);
        loss[side] = loss_of(tiny, batch);
    }
    data[i] = before;
    stage_write(stage, TENSOR_PARAMETER, param, data);
    return (loss[1] - loss[0]) / (2 * h);
}

/* The truncation error is h^2/6 times the third derivative: 2e-11 times up to some thousands, since
 * a few norms follow each other.  The rounding error is the loss, about 100, times eps / h: 2e-9.
 */
static void check_parameter(const Tiny *tiny, const Batch *batch, int param, const real *gradient) {
    enum { SAMPLES = 5 };
    const Param *p = &tiny->model->param[param];
    size_t count;
    real *data = tiny_read(tiny, TENSOR_PARAMETER, param, &count);
    for (uint64_t s = 0; s < SAMPLES; s++) {
        size_t i = random_below(9, (uint32_t)param, s, (uint32_t)count);
        double expected = slope(tiny, batch, param, data, i);
        double error = fabs(gradient[i] - expected), allowed = 1e-6 * fmax(1, fabs(expected));
        CHECK(error <= allowed, "%s[%zu] is %.9g, differences give %.9g", p->name, i, gradient[i],
              expected);
    }
    free(data);
}

static void check_submodel(Tiny *tiny, const Batch *batch, int submodel) {
    const Model *m = tiny->model;
    Stage *stage = tiny->stage;
    const bool corrected = stage->settings.correct_factor > 0;
    tiny_activate(tiny, submodel);
    loss_of(tiny, batch);
    for (int b = m->blocks - 1; b >= 0; b--) {
        stage_input_gradient(stage, b);
        stage_weight_gradient(stage, b);
    }
    for (int p = 0; p < m->params; p++) {
        size_t count;
        real *gradient = tiny_read(tiny, TENSOR_GRADIENT, p, &count);
        int owner = tiny->settings.partition.of_block[m->param[p].block];
        bool trains = owner == submodel || (corrected && owner > submodel);
        CHECK(!!gradient == trains, "%s: gradient %s", m->param[p].name, gradient ? "yes" : "no");
        if (gradient) check_parameter(tiny, batch, p, gradient);
        free(gradient);
    }
}

static void gradients_meet_differences(const void *spec) {
    static const struct {
        int submodels;
        double correct_factor;
    } ways[] = {{1, 0}, {3, 0}, {3, 1}};
    for (FrozenNorm norm = FROZEN_RUNNING; norm <= FROZEN_BATCH; norm++)
        for (int way = 0; way < 3; way++) {
            const int submodels = ways[way].submodels;
            Tiny tiny;
            tiny_open(&tiny, &(Recipe){.spec = spec,
                                       .submodels = submodels,
                                       .correct_factor = ways[way].correct_factor,
                                       .batch = 6,
                                       .recompute = norm == FROZEN_BATCH,
                                       .frozen_norm = norm});
            Batch batch = tiny_batch(&tiny, 6);
            for (int m = 0; m < submodels; m++) check_submodel(&tiny, &batch, m);
            batch_free(&batch);
            tiny_close(&tiny);
        }
}
#endif

/* ---- micro-batches ---- */

/* With and without micro-batches a gradient is summed over the targets in another order.  At a rate
 * of 0.1 and a momentum of 0.9, three steps pass on 0.1 (1 + 1.9 + 2.71) = 0.56 of such a
 * difference. */
static void micro_batches_give_the_same(const void *spec) {
    Recipe recipe = {.spec = spec, .batch = 32, .samples = 40, .steps = 3, .lr = 0.1, .clip = 1};
    Tiny whole, parts;
    tiny_trained(&whole, &recipe);
    for (int n = 4; n <= 7; n += 3) { /* 4 of 8 samples; 6 of 5 and one of 2 */
        recipe.micro_batches = n;
        tiny_trained(&parts, &recipe);
        for (int p = 0; p < whole.model->params; p++) {
            size_t count;
            real *a = tiny_read(&whole, TENSOR_PARAMETER, p, &count);
            real *b = tiny_read(&parts, TENSOR_PARAMETER, p, &count);
            double allowed = tolerance(32 * whole.model->targets, 1);
            for (size_t i = 0; i < count; i++) {
                double error = fabs((double)a[i] - (double)b[i]);
                CHECK(error <= allowed, "%d parts: %s[%zu] is off by %g, allowed %g", n,
                      whole.model->param[p].name, i, error, allowed);
            }
            free(a);
            free(b);
        }
        tiny_close(&parts);
    }
    tiny_close(&whole);
}

/* ---- a step that fails ---- */

/* CHECKs that parameters, running statistics, optimizer state and steps are the same. */
static void check_same_training(const Tiny *a, const Tiny *b, const char *what) {
    tiny_check_same(a, b, what);
    for (int p = 0; p < a->model->params; p++)
        for (TensorRole role = TENSOR_STATE0; role <= TENSOR_STATE1; role++) {
            size_t count, other;
            real *x = tiny_read(a, role, p, &count), *y = tiny_read(b, role, p, &other);
            CHECK(count == other && (!x || memcmp(x, y, count * sizeof *x) == 0),
                  "%s: %s: the state of %s differs", a->model->name, what, a->model->param[p].name);
            free(x);
            free(y);
        }
    for (int i = 0; i < a->model->blocks; i++)
        CHECK(engine_optimizer_step(a->engine, i) == engine_optimizer_step(b->engine, i),
              "%s: %s: the optimizer step of block %d differs", a->model->name, what, i);
}

/* While a parameter of the head is NaN, a step fails and changes nothing.  After the parameter is
 * restored, the next step gives the bits of a training without the failure. */
static void bad_loss_changes_nothing(const void *spec) {
    Tiny tiny, sound;
    Recipe recipe = {.spec = spec, .micro_batches = 2, .optimizer = OPTIMIZER_ADAM};
    tiny_open(&tiny, &recipe);
    tiny_open(&sound, &recipe);
    tiny_activate(&tiny, 0);
    tiny_activate(&sound, 0);
    Batch batch = tiny_batch(&tiny, 4);
    Loss loss;
    int param = tiny.model->block[tiny.model->blocks - 1].first_param;
    real before = tiny_set_first(&tiny, param, (real)NAN);
    CHECK(engine_step(tiny.engine, &batch, 0.1, &loss) == -1, "loss %g", loss.loss_sum);
    CHECK(strstr(error_message(), "loss is"), "\"%s\"", error_message());
    tiny_set_first(&tiny, param, before);
    check_same_training(&tiny, &sound, "a step that failed");
    CHECK(engine_step(tiny.engine, &batch, 0.1, &loss) == 0, "%s", error_message());
    CHECK(engine_step(sound.engine, &batch, 0.1, &loss) == 0, "%s", error_message());
    check_same_training(&tiny, &sound, "after a step that failed");
    batch_free(&batch);
    tiny_close(&tiny);
    tiny_close(&sound);
}

/* The second of two micro-batches has an image of NaN: the gradients of the first, and the running
 * statistics, which have become NaN, must be discarded. */
static void check_failed_micro_batch(Recipe recipe, int submodel) {
    Tiny tiny, sound;
    tiny_open(&tiny, &recipe);
    tiny_open(&sound, &recipe);
    tiny_activate(&tiny, submodel);
    tiny_activate(&sound, submodel);
    Batch good = tiny_batch(&tiny, 4), bad = tiny_batch(&tiny, 4);
    bad.images[3 * shape_count(tiny.model->input)] = (real)NAN;
    Loss loss;
    for (int step = 0; step < 2; step++) {
        CHECK(engine_step(tiny.engine, &bad, 0.1, &loss) == -1, "loss %g", loss.loss_sum);
        check_same_training(&tiny, &sound, "a part that failed");
        CHECK(engine_step(tiny.engine, &good, 0.1, &loss) == 0, "%s", error_message());
        CHECK(engine_step(sound.engine, &good, 0.1, &loss) == 0, "%s", error_message());
        check_same_training(&tiny, &sound, "after a part that failed");
    }
    batch_free(&good);
    batch_free(&bad);
    tiny_close(&tiny);
    tiny_close(&sound);
}

static void a_failed_micro_batch_is_discarded(void) {
    for (FrozenNorm norm = FROZEN_RUNNING; norm <= FROZEN_BATCH; norm++)
        for (int recompute = 0; recompute < 2; recompute++)
            for (int submodel = 0; submodel < 3; submodel++)
                check_failed_micro_batch((Recipe){.spec = tiny_models[0],
                                                  .micro_batches = 2,
                                                  .frozen_norm = norm,
                                                  .recompute = recompute,
                                                  .clip = submodel},
                                         submodel);
}

/* A step that failed has no effect on the submodels that become active after it. */
static void a_failed_step_before_a_switch(void) {
    Tiny tiny, sound;
    Recipe recipe = {.spec = tiny_models[0]};
    tiny_open(&tiny, &recipe);
    tiny_open(&sound, &recipe);
    Batch good = tiny_batch(&tiny, 4), bad = tiny_batch(&tiny, 4);
    bad.images[0] = (real)NAN;
    Loss loss;
    tiny_activate(&tiny, 0);
    CHECK(engine_step(tiny.engine, &bad, 0.1, &loss) == -1, "loss %g", loss.loss_sum);
    for (int submodel = 1; submodel < 3; submodel++) {
        tiny_activate(&tiny, submodel);
        tiny_activate(&sound, submodel);
        CHECK(engine_step(tiny.engine, &good, 0.1, &loss) == 0, "%s", error_message());
        CHECK(engine_step(sound.engine, &good, 0.1, &loss) == 0, "%s", error_message());
    }
    check_same_training(&tiny, &sound, "after a switch");
    batch_free(&good);
    batch_free(&bad);
    tiny_close(&tiny);
    tiny_close(&sound);
}

/* ---- evaluation ---- */

static void evaluation_changes_nothing(const void *spec) {
    Tiny tiny, untouched;
    Recipe recipe = {.spec = spec, .batch = 5};
    tiny_trained(&tiny, &recipe);
    tiny_trained(&untouched, &recipe);
    Batch batch = tiny_batch(&tiny, 12);
    Loss loss = {0}, sum = {0};
    CHECK(engine_evaluate(tiny.engine, &batch, &loss) == 0, "%s", error_message());
    tiny_check_same(&tiny, &untouched, "evaluation");
    for (int i = 0; i < 12; i++) { /* with running statistics samples are independent */
        Batch alone = tiny_batch(&tiny, 1);
        alone.ids[0] = i;
        tiny.data->fetch(tiny.data, &alone, 0);
        CHECK(engine_evaluate(tiny.engine, &alone, &sum) == 0, "%s", error_message());
        batch_free(&alone);
    }
    /* The same losses, added in double in another order. */
    CHECK(fabs(sum.loss_sum - loss.loss_sum) <= 1e-12 * loss.loss_sum && sum.count == loss.count &&
              sum.correct == loss.correct,
          "in one %g, one by one %g", loss.loss_sum, sum.loss_sum);
    batch_free(&batch);
    tiny_close(&tiny);
    tiny_close(&untouched);
}

/* ---- a stage that fails ---- */

static size_t refuse_read(Stage *stage, TensorRole role, int number, real *data) {
    (void)stage;
    (void)role;
    (void)data;
    error_set("test: cannot read output %d", number);
    return READ_FAILED;
}

/* What the prefix cache cannot read it must not keep. */
static void a_value_that_cannot_be_cached(void) {
    Tiny tiny;
    tiny_open(&tiny, &(Recipe){.spec = tiny_models[0], .cache_bytes = 1 << 20});
    StageClass class = *tiny.stage->is;
    class.read = refuse_read;
    tiny_activate(&tiny, 2);
    tiny.stage->is = &class;
    Batch batch = tiny_batch(&tiny, 4);
    Loss loss;
    for (int i = 0; i < 2; i++)
        CHECK(engine_step(tiny.engine, &batch, 0.1, &loss) == -1 &&
                  strcmp(error_message(), "test: cannot read output 2") == 0,
              "step %d: \"%s\"", i, error_message());
    batch_free(&batch);
    tiny_close(&tiny);
}

static int refuse_loss(Stage *stage, double scale, Loss *loss) {
    (void)stage;
    (void)scale;
    *loss = (Loss){0};
    return error_set("test: the device has failed");
}

static int refuse_norm(Stage *stage, double *norm) {
    (void)stage;
    *norm = 0;
    return error_set("test: the device has failed");
}

static void check_failed(Engine *engine, const Batch *batch) {
    Loss loss;
    error_set("none");
    CHECK(engine_step(engine, batch, 0.1, &loss) == -1 &&
              strcmp(error_message(), "test: the device has failed") == 0,
          "step: \"%s\"", error_message());
}

/* A device that fails is reported as such, not as a loss or a norm that is not finite. */
static void a_device_that_fails(void) {
    Tiny tiny;
    Loss loss = {0};
    double norm;
    tiny_open(&tiny, &(Recipe){.spec = tiny_models[0], .clip = 1});
    tiny_activate(&tiny, 0);
    Batch batch = tiny_batch(&tiny, 4);
    Engine *engine = tiny.engine;
    const StageClass *sound = tiny.stage->is;
    StageClass without_norm = *sound, without_loss = *sound;
    without_norm.gradient_norm = refuse_norm;
    without_loss.loss = refuse_loss;
    tiny.stage->is = &without_norm;
    check_failed(engine, &batch);
    CHECK(engine_gradient_norm(engine, &batch, &norm) == -1, "a norm of %g", norm);
    tiny.stage->is = &without_loss;
    check_failed(engine, &batch);
    CHECK(engine_evaluate(engine, &batch, &loss) == -1, "evaluated");
    tiny.stage->is = sound;
    CHECK(engine_step(engine, &batch, 0.1, &loss) == 0, "%s", error_message());
    batch_free(&batch);
    tiny_close(&tiny);
}

void test_step(void) {
#ifdef BCD_DOUBLE
    for (int i = 0; tiny_models[i]; i++)
        RUN_ROW("gradients", gradients_meet_differences, tiny_models[i]);
#endif
    for (int i = 0; tiny_models_without_batchnorm[i]; i++)
        RUN_ROW("micro-batches", micro_batches_give_the_same, tiny_models_without_batchnorm[i]);
    for (int i = 0; tiny_models[i]; i++)
        RUN_ROW("bad loss", bad_loss_changes_nothing, tiny_models[i]);
    RUN(a_failed_micro_batch_is_discarded);
    RUN(a_failed_step_before_a_switch);
    RUN(a_value_that_cannot_be_cached);
    RUN(a_device_that_fails);
    for (int i = 0; tiny_models[i]; i++)
        RUN_ROW("evaluation", evaluation_changes_nothing, tiny_models[i]);
}
