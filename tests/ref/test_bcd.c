/* The properties of block coordinate descent, on networks of every family. */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/base/error.h"
#include "../test.h"
#include "tiny.h"
#include "tolerance.h"

/* Runs a case for each tiny model. */
static void for_models(const char *const *specs, const char *name,
                       void (*check)(const void *spec)) {
    for (; *specs; specs++) {
        char title[128];
        snprintf(title, sizeof title, "%s: %s", name, *specs);
        RUN_ROW(title, check, *specs);
    }
}

/* ---- only the active submodel moves ---- */

typedef struct {
    const Tiny *tiny;
    uint64_t *parameters, *all; /* [blocks]: hashes after the step before */
} Watched;

static int check_who_moved(void *context, const BcdState *state, const Loss *loss, double lr) {
    (void)loss;
    (void)lr;
    Watched *w = context;
    for (int b = 0; b < w->tiny->model->blocks; b++) {
        uint64_t parameters = tiny_parameters_hash(w->tiny, b), all = tiny_block_hash(w->tiny, b);
        int submodel = w->tiny->settings.partition.of_block[b];
        bool active = submodel == state->submodel || submodel == ALWAYS_ACTIVE;
        if (active)
            CHECK(parameters != w->parameters[b], "step %d: active %s stays as it was",
                  (int)state->step, w->tiny->model->block[b].name);
        else
            CHECK(all == w->all[b], "step %d: frozen %s moved", (int)state->step,
                  w->tiny->model->block[b].name);
        w->parameters[b] = parameters;
        w->all[b] = all;
    }
    return 0;
}

static void only_active_blocks_move(const void *spec) {
    for (int way = 0; way < 3; way++) {
        Tiny tiny;
        tiny_open(&tiny, &(Recipe){.spec = spec,
                                   .frozen_norm = way == 1 ? FROZEN_BATCH : FROZEN_RUNNING,
                                   .always = way == 2 ? "ends" : NULL,
                                   .steps = 7});
        size_t blocks = (size_t)tiny.model->blocks;
        Watched w = {&tiny, malloc(blocks * sizeof(uint64_t)), malloc(blocks * sizeof(uint64_t))};
        for (int b = 0; b < tiny.model->blocks; b++) {
            w.parameters[b] = tiny_parameters_hash(&tiny, b);
            w.all[b] = tiny_block_hash(&tiny, b);
        }
        CHECK(tiny_train(&tiny, check_who_moved, &w) == 0, "%s", error_message());
        free(w.parameters);
        free(w.all);
        tiny_close(&tiny);
    }
}

/* ---- one submodel is ordinary training ---- */

/* Ordinary training, without submodels and without an engine. */
static void train_plainly(Tiny *tiny) {
    const Model *m = tiny->model;
    Stage *stage = tiny->stage;
    bool *all = malloc((size_t)m->blocks * sizeof *all);
    memset(all, true, (size_t)m->blocks);
    Sampler sampler;
    Batch batch;
    if (sampler_init(&sampler, tiny->settings.seed, tiny->data->samples, 1) ||
        batch_reserve(&batch, m, tiny->settings.batch) || stage_activate(stage, all))
        abort();
    sampler_draw(&sampler, 0);
    for (uint64_t step = 0; step < tiny->settings.steps; step++) {
        uint64_t position = step * (uint64_t)batch.n;
        sampler_ids(&sampler, batch.ids, position, batch.n);
        tiny->data->fetch(tiny->data, &batch, position);
        int counted = 0;
        for (int i = 0; i < batch.n * m->targets; i++) counted += batch.targets[i] >= 0;
        stage_begin(stage, &batch, MODE_TRAIN);
        for (int b = 0; b < m->blocks; b++) stage_forward(stage, b);
        Loss loss;
        CHECK(stage_loss(stage, 1.0 / counted, &loss) == 0, "%s", error_message());
        for (int b = m->blocks - 1; b >= 0; b--) {
            stage_input_gradient(stage, b);
            stage_weight_gradient(stage, b);
        }
        stage_update(stage, tiny->settings.optimizer.lr, 1);
    }
    batch_free(&batch);
    sampler_free(&sampler);
    free(all);
}

static void one_submodel_is_ordinary_training(const void *spec) {
    for (OptimizerKind kind = 0; kind < OPTIMIZER_KINDS; kind++) {
        Recipe recipe = {.spec = spec, .submodels = 1, .optimizer = kind, .augmented = true};
        Tiny bcd, plain;
        tiny_trained(&bcd, &recipe);
        tiny_open(&plain, &recipe);
        train_plainly(&plain);
        tiny_check_same(&bcd, &plain, optimizer_names[kind]);
        tiny_close(&bcd);
        tiny_close(&plain);
    }
}

/* ---- blocks above take a gradient step ---- */

static void step_submodel(Tiny *tiny, int submodel, const Batch *batch) {
    Loss loss;
    tiny_activate(tiny, submodel);
    CHECK(engine_step(tiny->engine, batch, 0.01, &loss) == 0, "%s", error_message());
}

/* CHECKs that a corrected parameter is p - rate g, where g is not clipped, and that it has no
 * optimizer state. */
static void check_corrected(const Tiny *corrected, int param, const real *before, double rate,
                            const real *g) {
    size_t count;
    const Param *p = &corrected->model->param[param];
    real *after = tiny_read(corrected, TENSOR_PARAMETER, param, &count);
    for (size_t i = 0; i < count; i++) {
        double expected = (double)before[i] - rate * (double)g[i];
        double tolerance = REAL_EPS * (fabs((double)before[i]) + 2 * rate * fabs((double)g[i]));
        CHECK(fabs((double)after[i] - expected) <= tolerance, "%s[%zu] is %.9g, not %.9g", p->name,
              i, (double)after[i], expected);
    }
    CHECK(engine_read(corrected->engine, TENSOR_STATE0, param, NULL) == 0, "%s has a state",
          p->name);
    CHECK(engine_optimizer_step(corrected->engine, p->block) == 0, "%s has optimizer steps",
          p->name);
    free(after);
}

/* Blocks above the submodel are corrected, those below do not change, and its own change as they do
 * without the correction.  So do all running statistics: those of a corrected block, which is
 * frozen, stay.  With batch statistics the gradient is that of the full update; with running ones
 * it is the one computed here, which test_step.c compares with differences. */
static void check_correction(const char *spec, FrozenNorm norm) {
    const double factor = 12.5, rate = factor * 0.01; /* step_submodel's */
    Recipe recipe = {.spec = spec,
                     .frozen_norm = norm,
                     .clip = 0.01,
                     .micro_batches = 2,
                     .optimizer = OPTIMIZER_ADAM};
    Recipe with = recipe, all = recipe;
    with.correct_factor = factor;
    all.submodels = 1;
    for (int submodel = 0; submodel < 3; submodel++) {
        Tiny plain, corrected, whole, start;
        tiny_open(&start, &recipe);
        tiny_open(&plain, &recipe);
        tiny_open(&corrected, &with);
        tiny_open(&whole, &all);
        Batch batch = tiny_batch(&plain, plain.settings.batch);
        step_submodel(&plain, submodel, &batch);
        step_submodel(&corrected, submodel, &batch);
        step_submodel(&whole, 0, &batch); /* its gradients can be read until the next step */
        for (int p = 0; p < start.model->params; p++) {
            size_t count;
            int owner = start.settings.partition.of_block[start.model->param[p].block];
            real *before = tiny_read(&start, TENSOR_PARAMETER, p, &count);
            real *without = tiny_read(&plain, TENSOR_PARAMETER, p, &count);
            real *after = tiny_read(&corrected, TENSOR_PARAMETER, p, &count);
            real *g =
                tiny_read(norm == FROZEN_BATCH ? &whole : &corrected, TENSOR_GRADIENT, p, &count);
            if (owner > submodel)
                check_corrected(&corrected, p, before, rate, g);
            else
                CHECK(
                    memcmp(after, owner < submodel ? before : without, count * sizeof *after) == 0,
                    "submodel %d: %s differs", submodel, start.model->param[p].name);
            free(before);
            free(without);
            free(after);
            free(g);
        }
        for (int i = 0; i < start.model->buffers; i++) {
            size_t count;
            real *without = tiny_read(&plain, TENSOR_BUFFER, i, &count);
            real *after = tiny_read(&corrected, TENSOR_BUFFER, i, &count);
            CHECK(memcmp(after, without, count * sizeof *after) == 0, "submodel %d: %s differs",
                  submodel, start.model->buffer[i].name);
            free(without);
            free(after);
        }
        batch_free(&batch);
        tiny_close(&start);
        tiny_close(&plain);
        tiny_close(&corrected);
        tiny_close(&whole);
    }
}

static void blocks_above_are_corrected(const void *spec) {
    for (FrozenNorm norm = FROZEN_RUNNING; norm <= FROZEN_BATCH; norm++)
        check_correction(spec, norm);
}

/* ---- block selection ---- */

/* The squared norms of the submodels' gradients add up to that of the full gradient.  Computing
 * them changes no parameter and no buffer. */
static void gradient_norms_are_the_whole_models(const void *spec) {
    Recipe recipe = {.spec = spec, .micro_batches = 2, .frozen_norm = FROZEN_BATCH};
    Tiny whole, parts;
    tiny_open(&parts, &recipe);
    recipe.submodels = 1;
    tiny_open(&whole, &recipe);
    const Model *m = whole.model;
    Batch batch = tiny_batch(&whole, 4);
    double norm, sum = 0;
    uint64_t before = 0, after = 0;
    for (int b = 0; b < m->blocks; b++) before += tiny_block_hash(&parts, b);
    tiny_activate(&whole, 0);
    CHECK(engine_gradient_norm(whole.engine, &batch, &norm) == 0, "%s", error_message());
    for (int submodel = 0; submodel < 3; submodel++) {
        double one;
        tiny_activate(&parts, submodel);
        CHECK(engine_gradient_norm(parts.engine, &batch, &one) == 0, "%s", error_message());
        CHECK(one > 0, "submodel %d has no gradient", submodel);
        sum += one * one;
    }
    for (int b = 0; b < m->blocks; b++) after += tiny_block_hash(&parts, b);
    CHECK(fabs(sqrt(sum) - norm) <= tolerance((double)m->param_count, norm),
          "norms of submodels make %g, of all %g", sqrt(sum), norm);
    CHECK(before == after, "%s has changed", m->name);
    batch_free(&batch);
    tiny_close(&whole);
    tiny_close(&parts);
}

/* ---- settings that must not change the result ---- */

static void check_same_training(const Recipe *a, const Recipe *b, const char *what) {
    Tiny first, second;
    tiny_trained(&first, a);
    tiny_trained(&second, b);
    tiny_check_same(&first, &second, what);
    tiny_close(&first);
    tiny_close(&second);
}

static void recompute_is_stored(const void *spec) {
    for (FrozenNorm norm = FROZEN_RUNNING; norm <= FROZEN_BATCH; norm++)
        for (int submodels = 1; submodels <= 3; submodels += 2) {
            Recipe stored = {.spec = spec, .frozen_norm = norm, .submodels = submodels};
            Recipe recomputed = stored;
            recomputed.recompute = true;
            check_same_training(&stored, &recomputed, "recompute");
        }
}

static void threads_do_not_matter(const void *spec) {
    Recipe recipe = {.spec = spec,
                     .clip = 0.1,
                     .optimizer = OPTIMIZER_ADAMW,
                     .order = ORDER_GAUSS_SOUTHWELL,
                     .always = "ends"};
    int threads = omp_get_max_threads();
    Tiny one, more;
    omp_set_num_threads(1);
    tiny_trained(&one, &recipe);
    for (int t = 2; t <= 3; t++) {
        omp_set_num_threads(t);
        tiny_trained(&more, &recipe);
        tiny_check_same(&one, &more, t == 2 ? "2 threads" : "3 threads");
        tiny_close(&more);
    }
    omp_set_num_threads(threads);
    tiny_close(&one);
}

/* Returns the numbers of one sample that enter the last submodel. */
static size_t last_input(const Tiny *tiny) {
    int block = 0;
    while (tiny->settings.partition.of_block[block] < tiny->settings.partition.submodels - 1)
        block++;
    return shape_count(tiny->model->value[tiny->model->block[block].in].shape);
}

/* An epoch has two steps and a phase three, so the last step of a phase finds its samples in the
 * cache: in memory, in a file, in both, or only those that fit in memory. */
static void check_cached_prefix(Recipe recipe) {
    enum { SAMPLES = 150, SOME = 64 };
    recipe.samples = SAMPLES;
    recipe.batch = SAMPLES / 2;
    recipe.rule.every = 3;
    Tiny plain;
    tiny_trained(&plain, &recipe);
    size_t bytes = last_input(&plain) * sizeof(real);
    const struct {
        const char *name, *dir;
        size_t bytes;
        bool whole;
    } rows[] = {{"file", "/tmp", 1, true},
                {"memory", NULL, 3 * SOME * bytes, true},
                {"memory and file", "/tmp", SOME * bytes, true},
                {"a part", NULL, SOME * bytes, false}};
    size_t on_its_way = 0; /* a micro-batch, which is all that is in memory beside a file */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        BlockTimes times[32];
        recipe.cache_bytes = rows[i].bytes;
        recipe.cache_dir = rows[i].dir;
        recipe.times = times;
        Tiny tiny;
        tiny_trained(&tiny, &recipe);
        tiny_check_same(&plain, &tiny, rows[i].name);
        size_t kept = engine_memory(tiny.engine)->peak[MEM_CACHE];
        if (i == 0) on_its_way = kept;
        CHECK((kept > on_its_way) == (i > 0) && kept <= rows[i].bytes + on_its_way,
              "%s: %zu bytes kept in memory of %zu", rows[i].name, kept, rows[i].bytes);
        CHECK((times[0].ms[PASS_FORWARD] > 0) == !rows[i].whole,
              "%s: the first block ran for %g ms", rows[i].name, times[0].ms[PASS_FORWARD]);
        CHECK(times[tiny.model->blocks - 1].ms[PASS_FORWARD] > 0, "%s: the head did not run",
              rows[i].name);
        tiny_close(&tiny);
    }
    tiny_close(&plain);
}

static void cached_prefix_is_exact(const void *spec) {
    check_cached_prefix((Recipe){.spec = spec});
    check_cached_prefix((Recipe){.spec = spec, .recompute = true, .micro_batches = 2});
}

static void check_refused(const Recipe *recipe, const char *reason) {
    Tiny tiny;
    tiny_open(&tiny, recipe);
    CHECK(!tiny.engine, "%s: not refused", recipe->spec);
    CHECK(strstr(error_message(), reason), "\"%s\" does not say \"%s\"", error_message(), reason);
    tiny_close(&tiny);
}

static void inexact_cache_is_refused(void) {
    const char *resnet = tiny_models[0], *gpt = tiny_models_without_batchnorm[0];
    check_refused(&(Recipe){.spec = resnet, .cache_bytes = 1 << 20, .augmented = true}, "augment");
    check_refused(&(Recipe){.spec = resnet, .cache_bytes = 1 << 20, .frozen_norm = FROZEN_BATCH},
                  "batch statistics");
    Tiny tiny; /* frozen_norm has no effect on a model without batch norm */
    tiny_open(&tiny, &(Recipe){.spec = gpt, .cache_bytes = 1 << 20, .frozen_norm = FROZEN_BATCH});
    CHECK(tiny.engine, "%s", error_message());
    tiny_close(&tiny);
}

/* ---- what a phase leaves behind ---- */

static int check_windows(void *context, const BcdState *state, const Loss *loss, double lr) {
    (void)context;
    (void)loss;
    (void)lr;
    if (state->phase_steps == 0)
        CHECK(state->window_sum == 0 && state->last_window_sum == 0 && state->windows == 0,
              "phase %d left %g, %g in %d windows", (int)state->phase, state->window_sum,
              state->last_window_sum, (int)state->windows);
    return 0;
}

/* A phase that ends within a window must not add its losses to the first window of the next. */
static void windows_end_with_their_phase(void) {
    Tiny tiny;
    const SwitchRule rule = {.kind = SWITCH_AUTO, .window = 2, .min_steps = 1, .max_steps = 3};
    tiny_open(&tiny, &(Recipe){.spec = tiny_models[0], .rule = rule});
    CHECK(tiny_train(&tiny, check_windows, NULL) == 0 && tiny.state.phase == 3, "%d phases",
          (int)tiny.state.phase);
    tiny_close(&tiny);
}

void test_bcd(void) {
    for_models(tiny_models, "only active blocks move", only_active_blocks_move);
    for_models(tiny_models, "one submodel", one_submodel_is_ordinary_training);
    for_models(tiny_models, "correction", blocks_above_are_corrected);
    for_models(tiny_models, "gradient norms", gradient_norms_are_the_whole_models);
    for_models(tiny_models, "recompute", recompute_is_stored);
    for_models(tiny_models, "threads", threads_do_not_matter);
    for_models(tiny_models, "cache", cached_prefix_is_exact);
    RUN(inexact_cache_is_refused);
    RUN(windows_end_with_their_phase);
}
