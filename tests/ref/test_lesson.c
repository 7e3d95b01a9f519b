/* The lesson (ref/lesson/bcd_lesson.c) and ref/ are the same algorithm: its losses are those of
 * bcd_train on the same numbers, and what it stores is what layout_make says. */
#include <math.h>
#include <stdlib.h>

#include "../../ref/bcd.h"
#include "../../ref/blocks/models.h"
#include "../../ref/memory.h"
#include "../test.h"
#include "lesson.h"

/* ---- the lesson's network and data in ref/ ---- */

static const Lesson *points; /* of this training */

static void fetch(const Dataset *data, Batch *batch, uint64_t position) {
    (void)data;
    (void)position;
    for (int n = 0; n < LESSON_POINTS; n++) {
        batch->images[2 * n] = (real)lesson_points(points)[2 * n];
        batch->images[2 * n + 1] = (real)lesson_points(points)[2 * n + 1];
        batch->targets[n] = lesson_targets(points)[n];
    }
}

static void keep(Dataset *data) { (void)data; }

static StageSettings stage_settings(bool plain) {
    OptimizerSettings adam = optimizer_defaults(OPTIMIZER_ADAM);
    adam.lr = 0.01;
    adam.weight_decay = 0;
    return (StageSettings){.batch = LESSON_POINTS, .plain = plain, .optimizer = adam};
}

static void copy_weights(const Lesson *from, Engine *to) {
    for (int p = 0; p < to->model->params; p++) {
        const Param *param = &to->model->param[p];
        const Param *weight = &to->model->param[p - p % 2]; /* the bias follows its weight */
        const double *numbers = lesson_weights(from, param->block) + (p % 2 ? weight->count : 0);
        real *copy = malloc(param->count * sizeof *copy);
        if (!copy) abort();
        for (size_t i = 0; i < param->count; i++) copy[i] = (real)numbers[i];
        CHECK(engine_write(to, TENSOR_PARAMETER, p, copy) == 0, "%s", error_message());
        free(copy);
    }
}

/* ---- losses ---- */

typedef struct {
    const char *name;
    int submodels;
    bool plain;
    int steps;
} LossRow;

/* Relative.  Two orders of summation differ by some roundings of a loss, and the differences grow
 * over the updates: by less than 1e-13 in double and 3e-6 in float where this was written. */
static const double allowed = sizeof(real) == 8 ? 1e-12 : 2e-5;

static int compare(void *context, const BcdState *state, const Loss *loss, double lr) {
    (void)lr;
    const double expected = lesson_train(context, (int)state->step), got = loss_mean(loss);
    CHECK(fabs(got - expected) <= allowed * expected, "update %d: %.15g, the lesson has %.15g",
          (int)state->step, got, expected);
    return 0;
}

static void losses_are_the_lessons(const void *argument) {
    const LossRow *row = argument;
    Model *model = model_create(LESSON_SPEC);
    Stage *stage = stage_ref_create(model, stage_settings(row->plain));
    Engine *engine = engine_single_create(stage, (EngineSettings){.micro_batches = 1}, NULL);
    Lesson *lesson = lesson_start(row->submodels);
    copy_weights(lesson, engine);
    Lesson *first = lesson_start(1); /* one whose points are there before the first update */
    lesson_train(first, 1);
    points = first;
    const Dataset data = {.name = "lesson",
                          .samples = LESSON_POINTS,
                          .input = model->input,
                          .classes = model->outputs,
                          .fetch = fetch,
                          .free = keep};
    BcdSettings settings = {.rule = {.kind = SWITCH_STEPS, .every = LESSON_PHASE},
                            .optimizer = stage->settings.optimizer,
                            .batch = LESSON_POINTS,
                            .steps = (uint64_t)row->steps,
                            .fraction = 1};
    BcdState state = {0};
    CHECK(partition_balanced(&settings.partition, model, row->submodels, NULL) == 0, "%s",
          error_message());
    CHECK(bcd_train(&state, &settings, engine, &data, compare, lesson) == 0, "%s", error_message());
    CHECK(state.step == settings.steps, "%d updates", (int)state.step);
    partition_free(&settings.partition);
    engine_free(engine);
    model_free(model);
}

/* Four phases and the start of a fifth, so that a submodel trains again. */
static const LossRow losses[] = {
    {"full, plain", 1, true, 120},
    {"full", 1, false, 120},
    {"bcd, plain", 3, true, 4 * LESSON_PHASE + 30},
    {"bcd", 3, false, 4 * LESSON_PHASE + 30},
};

/* ---- what is stored ---- */

static void stored_values_are_the_lessons(void) {
    Model *model = model_create(LESSON_SPEC);
    const StageSettings settings = stage_settings(false);
    CHECK(model->values == LESSON_VALUES && model->blocks == LESSON_BLOCKS, "%s", model->spec);
    for (int phase = -1; phase < LESSON_BLOCKS; phase++) { /* -1: the full update */
        Lesson *lesson = lesson_start(phase < 0 ? 1 : LESSON_BLOCKS);
        lesson_train(lesson, phase < 0 ? 1 : phase * LESSON_PHASE + 1);
        bool active[LESSON_BLOCKS];
        for (int b = 0; b < LESSON_BLOCKS; b++) active[b] = phase < 0 || b == phase;
        Layout layout;
        CHECK(layout_make(&layout, model, &settings, active) == 0, "%s", error_message());
        for (int v = 0; v < LESSON_VALUES; v++) {
            CHECK(layout.value[v].stored == lesson_stored(lesson, v), "phase %d: value %d: stored",
                  phase, v);
            CHECK(layout.value[v].needs_grad == lesson_needs_grad(lesson, v),
                  "phase %d: value %d: gradient", phase, v);
        }
        layout_free(&layout);
        size_t plan[MEM_ROLES];
        CHECK(memory_plan(plan, model, &settings, active) == 0, "%s", error_message());
        const LessonCounts counts = lesson_counts(lesson);
        CHECK(plan[MEM_PARAMETERS] == counts.weights * sizeof(real) &&
                  plan[MEM_GRADIENTS] == counts.gradients * sizeof(real) &&
                  plan[MEM_STATE] == counts.state * sizeof(real) &&
                  plan[MEM_ACTIVATIONS] == counts.activations * sizeof(real),
              "phase %d: %zu weights, %zu gradients, %zu numbers of state, %zu of activations",
              phase, counts.weights, counts.gradients, counts.state, counts.activations);
    }
    model_free(model);
}

void test_lesson(void) {
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++)
        RUN_ROW(losses[i].name, losses_are_the_lessons, &losses[i]);
    RUN(stored_values_are_the_lessons);
}
