/* A training that stops after any step and resumes in a new engine ends with the same bits.  The
 * new engine gets what a checkpoint holds: tensors, optimizer steps and BcdState. */
#include <stdlib.h>
#include <string.h>

#include "../test.h"
#include "tiny.h"

static void check_resumes(const Recipe *recipe, const char *what) {
    Tiny whole, first, second;
    tiny_trained(&whole, recipe);
    for (uint64_t at = 1; at < whole.settings.steps; at++) {
        tiny_open(&first, recipe);
        CHECK(tiny_train(&first, tiny_stop_at, &at) == 1, "%s", error_message());
        tiny_open(&second, recipe);
        tiny_restore(&first, &second);
        CHECK(tiny_train(&second, NULL, NULL) == 0, "%s", error_message());
        tiny_check_same(&whole, &second, what);
        CHECK(memcmp(&whole.state, &second.state, sizeof whole.state) == 0, "%s: BcdState differs",
              what);
        tiny_close(&first);
        tiny_close(&second);
    }
    tiny_close(&whole);
}

static void stopped_is_uninterrupted(const void *spec) {
    Recipe adamw = {.spec = spec, .steps = 7, .optimizer = OPTIMIZER_ADAMW, .clip = 0.5};
    Recipe lion = {.spec = spec, .steps = 7, .optimizer = OPTIMIZER_LION};
    Recipe muon = {.spec = spec, .steps = 7, .optimizer = OPTIMIZER_MUON, .clip = 0.5};
    Recipe muon_kept = {.spec = spec, .steps = 9, .optimizer = OPTIMIZER_MUON, .keep_state = true};
    Recipe kept = {.spec = spec, .steps = 9, .optimizer = OPTIMIZER_ADAM, .keep_state = true};
    Recipe converging = {
        .spec = spec,
        .steps = 9,
        .rule = {
            .kind = SWITCH_AUTO, .window = 2, .tolerance = 0.5, .min_steps = 3, .max_steps = 8}};
    Recipe lisa = {.spec = spec, .steps = 7, .always = "ends", .optimizer = OPTIMIZER_ADAM};
    Recipe rates = {.spec = spec, .steps = 8, .switch_warmup = 3, .submodel_lr = "1,0.5,2"};
    Recipe bread = {.spec = spec, .steps = 7, .correct_factor = 1, .optimizer = OPTIMIZER_ADAM};
    rates.rule.every = 4;
    kept.rule.every = 1;
    for (Order order = 0; order < ORDER_KINDS; order++)
        check_resumes(&(Recipe){.spec = spec, .steps = 7, .fraction = 0.5, .order = order},
                      order_names[order]);
    check_resumes(&adamw, "AdamW, clipped");
    check_resumes(&lion, "Lion");
    check_resumes(&muon, "Muon, clipped");
    check_resumes(&muon_kept, "Muon, state kept");
    check_resumes(&kept, "Adam, state kept");
    check_resumes(&converging, "switched by convergence");
    check_resumes(&lisa, "ends always active");
    check_resumes(&rates, "rates of the phase and the submodel");
    check_resumes(&bread, "blocks above corrected");
}

/* ---- optimizer state at a switch ---- */

typedef struct {
    const Tiny *tiny;
    int param; /* of submodel 0 */
    real *kept;
} StateWatch;

static int check_state(void *context, const BcdState *state, const Loss *loss, double lr) {
    (void)loss;
    (void)lr;
    StateWatch *w = context;
    const Tiny *tiny = w->tiny;
    size_t count;
    real *now = tiny_read(tiny, TENSOR_STATE0, w->param, &count);
    uint64_t t = engine_optimizer_step(tiny->engine, tiny->model->param[w->param].block);
    bool keep = tiny->stage->settings.keep_state;
    if (state->submodel == 0) {
        uint64_t expected = keep ? state->step - state->phase / 3 * 4 : 0;
        if (!keep) expected = state->phase_steps ? state->phase_steps : 2;
        CHECK(now && t == expected, "step %d: optimizer step %d, not %d", (int)state->step, (int)t,
              (int)expected);
        free(w->kept);
        w->kept = now;
        return 0;
    }
    if (keep)
        CHECK(now && memcmp(now, w->kept, count * sizeof *now) == 0,
              "step %d: the state kept for submodel 0 has changed", (int)state->step);
    else
        CHECK(!now && t == 0, "step %d: submodel 0 still has a state", (int)state->step);
    free(now);
    return 0;
}

/* Two cycles of three submodels, two steps each. */
static void state_is_dropped_or_kept(const void *spec) {
    for (int keep = 0; keep < 2; keep++) {
        Tiny tiny;
        tiny_open(&tiny, &(Recipe){.spec = spec, .steps = 12, .momentum = 0.9, .keep_state = keep});
        StateWatch watch = {&tiny, 0, NULL};
        CHECK(tiny_train(&tiny, check_state, &watch) == 0, "%s", error_message());
        free(watch.kept);
        tiny_close(&tiny);
    }
}

/* The optimizer state of blocks that are always active counts every update; the others start again
 * in each phase. */
static int check_steps(void *context, const BcdState *state, const Loss *loss, double lr) {
    (void)loss;
    (void)lr;
    const Tiny *tiny = context;
    uint64_t of_phase = state->phase_steps ? state->phase_steps : 2;
    for (int b = 0; b < tiny->model->blocks; b++) {
        int submodel = tiny->settings.partition.of_block[b];
        uint64_t t = engine_optimizer_step(tiny->engine, b);
        uint64_t expected = submodel == ALWAYS_ACTIVE     ? state->step
                            : submodel == state->submodel ? of_phase
                                                          : 0;
        CHECK(t == expected, "step %d: %s counts %d updates, not %d", (int)state->step,
              tiny->model->block[b].name, (int)t, (int)expected);
    }
    return 0;
}

static void always_active_keeps_its_state(const void *spec) {
    Tiny tiny;
    tiny_open(&tiny, &(Recipe){.spec = spec, .steps = 8, .always = "ends"});
    CHECK(tiny_train(&tiny, check_steps, &tiny) == 0, "%s", error_message());
    tiny_close(&tiny);
}

enum { INFERRED = 12 };
static int inferred[INFERRED];

static int count_inferred(Engine *engine, const Batch *batch) {
    (void)engine;
    for (int i = 0; i < batch->n; i++) inferred[batch->ids[i]]++;
    return 0;
}

/* The rest of a phase may begin within an epoch and go on through the next, where samples come
 * again.  What it reads has to be there, and is computed once. */
static void each_sample_is_inferred_once(void) {
    static const EngineClass class = {.pre_infer = count_inferred};
    Tiny tiny;
    Sampler sampler;
    tiny_open(&tiny, &(Recipe){.spec = tiny_models[0], .samples = INFERRED, .rule.every = 6});
    Engine engine = {&class, tiny.model};
    const BcdState state = {.step = 1, .phase_steps = 1, .position = 4, .submodel = 2};
    memset(inferred, 0, sizeof inferred);
    if (!CHECK(sampler_init(&sampler, 5, INFERRED, 1) == 0, "%s", error_message())) return;
    sampler_draw(&sampler, 0);
    CHECK(bcd_pre_infer(&state, &tiny.settings, &engine, tiny.data, &sampler, NULL) == 0, "%s",
          error_message());
    for (int i = 0; i < INFERRED; i++)
        CHECK(inferred[i] == 1, "sample %d is inferred %d times", i, inferred[i]);
    sampler_free(&sampler);
    tiny_close(&tiny);
}

void test_resume(void) {
    RUN_ROW("resnet: always active", always_active_keeps_its_state, tiny_models[0]);
    RUN_ROW("gpt: always active", always_active_keeps_its_state, tiny_models_without_batchnorm[0]);
    RUN_ROW("resnet", stopped_is_uninterrupted, tiny_models[0]);
    RUN_ROW("gpt", stopped_is_uninterrupted, tiny_models_without_batchnorm[0]);
    RUN_ROW("resnet: state", state_is_dropped_or_kept, tiny_models[0]);
    RUN_ROW("gpt: state", state_is_dropped_or_kept, tiny_models_without_batchnorm[0]);
    RUN(each_sample_is_inferred_once);
}
