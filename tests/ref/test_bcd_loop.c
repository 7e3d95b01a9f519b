/* The loop of bcd.c with a mock engine, which records calls and returns prescribed losses: which
 * submodel trains when, on which samples, and at which rate. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/base/error.h"
#include "../../ref/base/random.h"
#include "../../ref/bcd.h"
#include "../../ref/blocks/models.h"
#include "../test.h"
#include "mock_loop.h"
#include "phases.h"
#include "tiny.h"

/* Returns the steps of the phase that begins with step `first`. */
static int phase_length(const MockEngine *n, int first) {
    int end = first;
    while (end < n->steps && n->trained[end] == n->trained[first]) end++;
    return end - first;
}

static void every_phase_has_k_steps(void) {
    Loop loop;
    loop_open(&loop, ORDER_CYCLIC, (SwitchRule){.kind = SWITCH_STEPS, .every = 5}, 16, 4, 62);
    loop_run(&loop);
    for (int i = 0; i < loop.mock.steps; i++)
        CHECK(loop.mock.trained[i] == i / 5 % SUBMODELS, "step %d trained submodel %d", i,
              loop.mock.trained[i]);
    CHECK(loop.mock.activations == 13, "%d activations", loop.mock.activations);
    CHECK(loop.state.phase == 12 && loop.state.phase_steps == 2 && loop.state.step == 62 &&
              loop.state.position == 248,
          "ends at phase %d, step %d of it", (int)loop.state.phase, (int)loop.state.phase_steps);
    loop_close(&loop);
}

static void descending_goes_down(void) {
    Loop loop;
    loop_open(&loop, ORDER_DESCENDING, (SwitchRule){.kind = SWITCH_STEPS, .every = 1}, 8, 1, 9);
    loop_run(&loop);
    for (int i = 0; i < loop.mock.steps; i++)
        CHECK(loop.mock.trained[i] == SUBMODELS - 1 - i % SUBMODELS, "step %d: %d", i,
              loop.mock.trained[i]);
    loop_close(&loop);
}

static int selected(const BcdSettings *settings, uint64_t phase) {
    return bcd_select(&(BcdState){.phase = phase}, settings, NULL, NULL);
}

static void random_order_is_a_fresh_permutation(void) {
    enum { CYCLES = 96 };
    Loop loop;
    int first[SUBMODELS] = {0}, changed = 0;
    loop_open(&loop, ORDER_RANDOM, (SwitchRule){.kind = SWITCH_STEPS, .every = 1}, 8, 1,
              CYCLES * SUBMODELS);
    loop_run(&loop);
    for (int cycle = 0; cycle < CYCLES; cycle++) {
        const int *order = loop.mock.trained + (size_t)cycle * SUBMODELS;
        bool trained[SUBMODELS] = {false};
        for (int i = 0; i < SUBMODELS; i++) trained[order[i]] = true;
        for (int i = 0; i < SUBMODELS; i++) CHECK(trained[i], "cycle %d leaves out %d", cycle, i);
        first[order[0]]++;
        if (cycle) changed += memcmp(order, order - SUBMODELS, SUBMODELS * sizeof *order) != 0;
    }
    for (int i = 1; i < loop.mock.steps; i++)
        CHECK(loop.mock.trained[i] != loop.mock.trained[i - 1], "phase %d trains %d again", i,
              loop.mock.trained[i]);
    CHECK(changed > CYCLES * 4 / 5, "only %d of %d cycles differ from the one before", changed,
          CYCLES);
    for (int i = 0; i < SUBMODELS; i++)
        CHECK(first[i] > 10, "submodel %d came first in %d of %d cycles", i, first[i], CYCLES);
    loop.settings.seed++;
    int differ = 0;
    for (int i = 0; i < loop.mock.steps; i++)
        differ += selected(&loop.settings, (uint64_t)i) != loop.mock.trained[i];
    CHECK(differ > loop.mock.steps / 3, "another seed changes %d of %d", differ, loop.mock.steps);
    loop_close(&loop);
}

/* The random order never trains a submodel twice in a row; any other one may follow. */
static void a_switch_is_to_another_submodel(void) {
    enum { SEEDS = 40, PHASES = 60, MAX_SUBMODELS = 5 };
    for (int submodels = 1; submodels <= MAX_SUBMODELS; submodels++) {
        int begins[MAX_SUBMODELS] = {0}, after[MAX_SUBMODELS][MAX_SUBMODELS] = {{0}};
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            BcdSettings s = {.partition.submodels = submodels, .order = ORDER_RANDOM, .seed = seed};
            begins[selected(&s, 0)]++;
            for (uint64_t phase = 1; phase < PHASES; phase++)
                after[selected(&s, phase - 1)][selected(&s, phase)]++;
        }
        for (int i = 0; i < submodels; i++) {
            CHECK(begins[i] > 0, "%d of %d never begins", i, submodels);
            for (int j = 0; j < submodels; j++)
                CHECK((after[i][j] > 0) == (i != j || submodels == 1),
                      "of %d submodels %d comes after %d %d times", submodels, j, i, after[i][j]);
        }
    }
}

static void epochs_count_samples(void) {
    static const struct {
        double epochs;
        int samples, batch, steps; /* the steps of a phase */
    } rows[] = {{1, 12, 4, 3}, {1, 13, 4, 4}, {0.5, 12, 4, 2}, {2, 10, 4, 5}, {0.01, 10, 4, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Loop loop;
        SwitchRule rule = {.kind = SWITCH_EPOCHS, .every = rows[i].epochs};
        loop_open(&loop, ORDER_CYCLIC, rule, rows[i].samples, rows[i].batch, 40);
        loop_run(&loop);
        for (int first = 0; first + rows[i].steps < 40; first += rows[i].steps)
            CHECK(phase_length(&loop.mock, first) == rows[i].steps,
                  "%g epochs of %d samples in batches of %d: %d steps, not %d", rows[i].epochs,
                  rows[i].samples, rows[i].batch, phase_length(&loop.mock, first), rows[i].steps);
        loop_close(&loop);
    }
}

/* With windows of 3 steps the loss falls for four windows and then stays the same, which the fifth
 * window shows. */
static void auto_leaves_when_the_loss_stands_still(void) {
    double losses[MAX_STEPS];
    for (int i = 0; i < MAX_STEPS; i++) losses[i] = i < 12 ? 4 - 0.25 * i : 1.5;
    static const struct {
        const char *name;
        double tolerance;
        int min_steps, max_steps, steps;
    } rows[] = {{"stands still", 0.01, 1, 1000, 15},
                {"not lower is enough", 0, 1, 1000, 15},
                {"not before min_steps", 0.01, 20, 1000, 21},
                {"not after max_steps", 0.01, 1, 7, 7},
                {"a demanding tolerance", 0.3, 1, 1000, 6}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Loop loop;
        SwitchRule rule = {.kind = SWITCH_AUTO,
                           .window = 3,
                           .tolerance = rows[i].tolerance,
                           .min_steps = rows[i].min_steps,
                           .max_steps = rows[i].max_steps};
        loop_open(&loop, ORDER_CYCLIC, rule, 100, 1, 30);
        loop.mock.losses = losses;
        loop_run(&loop);
        CHECK(phase_length(&loop.mock, 0) == rows[i].steps, "%s: left after %d steps, not %d",
              rows[i].name, phase_length(&loop.mock, 0), rows[i].steps);
        loop_close(&loop);
    }
}

static void reduction_draws_a_subset_for_each_phase(void) {
    enum { SAMPLES = 40, BATCH = 5, USED = 10 };
    Loop loop;
    bool drawn[SUBMODELS][SAMPLES] = {{false}};
    loop_open(&loop, ORDER_CYCLIC, (SwitchRule){.kind = SWITCH_EPOCHS, .every = 3}, SAMPLES, BATCH,
              6 * SUBMODELS);
    loop.settings.fraction = 0.25;
    loop_run(&loop);
    for (int i = 0; i < loop.mock.steps; i++)
        for (int s = 0; s < BATCH; s++) drawn[i / 6][loop.mock.ids[i][s]] = true;
    for (int phase = 0; phase < SUBMODELS; phase++) {
        CHECK(phase_length(&loop.mock, phase * 6) == 6, "three epochs of ten samples");
        int used = 0;
        for (int s = 0; s < SAMPLES; s++) used += drawn[phase][s];
        CHECK(used == USED, "phase %d saw %d samples", phase, used);
        CHECK(phase == 0 || memcmp(drawn[phase], drawn[phase - 1], SAMPLES * sizeof(bool)) != 0,
              "phases %d and %d saw the same", phase - 1, phase);
    }
    loop_close(&loop);
}

static void rate_follows_the_schedule(void) {
    Loop loop;
    loop_open(&loop, ORDER_CYCLIC, (SwitchRule){.kind = SWITCH_STEPS, .every = 3}, 8, 2, 20);
    loop.settings.optimizer.schedule = LR_COSINE;
    loop.settings.optimizer.warmup_steps = 4;
    loop.settings.optimizer.final_fraction = 0.25;
    loop_run(&loop);
    for (int i = 0; i < 20; i++) {
        const double wave = 0.5 * (1 + cos(3.14159265358979323846 * (i - 4) / 16));
        const double lr = i < 4 ? 0.1 * (i + 1) / 4 : 0.1 * (0.25 + 0.75 * wave);
        CHECK(fabs(loop.mock.lr[i] - lr) <= 1e-15, "step %d: rate %.17g, not %.17g", i,
              loop.mock.lr[i], lr);
    }
    loop_close(&loop);
}

/* After a switch the rate rises to that of the schedule, times the submodel's factor. */
static void rate_follows_the_phase(void) {
    Loop loop;
    loop_open(&loop, ORDER_CYCLIC, (SwitchRule){.kind = SWITCH_STEPS, .every = 5}, 8, 2, 22);
    loop.settings.switch_warmup = 4;
    CHECK(partition_lr(&loop.settings.partition, "1,0.5,2,0.25") == 0, "%s", error_message());
    loop_run(&loop);
    for (int i = 0; i < 22; i++) {
        static const double rise[] = {0.25, 0.5, 0.75, 1, 1}, factor[] = {1, 0.5, 2, 0.25};
        double lr = 0.1 * factor[i / 5 % SUBMODELS] * rise[i % 5];
        CHECK(fabs(loop.mock.lr[i] - lr) <= 1e-15, "step %d: rate %g, not %g", i, loop.mock.lr[i],
              lr);
    }
    loop_close(&loop);
}

/* The submodel with the largest gradient trains, the first one on a tie.  The norms are computed
 * once per submodel and phase, on the batch of the phase's first step. */
static void gauss_southwell_takes_the_largest(void) {
    static const double norms[] = {1, 3, 2, 3, /* 1 */ 0, 0, 0, 1e-9, /* 3 */ 5, 4, 4, 4 /* 0 */};
    static const int trained[] = {1, 1, 3, 3, 0, 0};
    Loop loop;
    loop_open(&loop, ORDER_GAUSS_SOUTHWELL, (SwitchRule){.kind = SWITCH_STEPS, .every = 2}, 8, 1,
              6);
    loop.mock.norms = norms;
    loop_run(&loop);
    for (int i = 0; i < 6; i++)
        CHECK(loop.mock.trained[i] == trained[i], "step %d trains %d", i, loop.mock.trained[i]);
    CHECK(loop.mock.norms_asked == 3 * SUBMODELS, "%d norms were asked for", loop.mock.norms_asked);
    CHECK(loop.mock.norm_sample == loop.mock.ids[4][0], "of sample %d, trained on %d",
          loop.mock.norm_sample, loop.mock.ids[4][0]);
    loop_close(&loop);
}

/* A norm that depends on the submodel and on how often one was asked for. */
static int mock_any_norm(Engine *engine, const Batch *batch, double *norm) {
    MockEngine *n = (MockEngine *)(void *)engine;
    (void)batch;
    *norm = (double)random_bits(5, (uint32_t)n->active, (uint64_t)n->norms_asked++);
    return 0;
}

/* Every order chooses a submodel that is there; one by phase chooses each once in a cycle, and only
 * one by gradients asks for a norm. */
static void every_order_stays_in_range(void) {
    enum { CYCLES = 6, MOST = 7 };
    for (Order order = 0; order < ORDER_KINDS; order++)
        for (int submodels = 1; submodels <= MOST; submodels++) {
            EngineClass class = mock_class;
            class.gradient_norm = order_by_gradients[order] ? mock_any_norm : NULL;
            Loop loop;
            loop_open(&loop, order, (SwitchRule){.kind = SWITCH_STEPS, .every = 1}, 8, 1, 1);
            loop.mock.base.is = &class;
            partition_free(&loop.settings.partition);
            if (partition_balanced(&loop.settings.partition, loop.model, submodels, NULL)) abort();
            for (int cycle = 0; cycle < CYCLES; cycle++) {
                int turns[MOST] = {0};
                for (int turn = 0; turn < submodels; turn++) {
                    const BcdState state = {.phase = (uint64_t)(cycle * submodels + turn)};
                    Engine *engine = order_by_phase[order] ? NULL : &loop.mock.base;
                    const int m = bcd_select(&state, &loop.settings, engine, NULL);
                    if (CHECK(m >= 0 && m < submodels, "%s, phase %d: submodel %d of %d; %s",
                              order_names[order], (int)state.phase, m, submodels, error_message()))
                        turns[m]++;
                }
                for (int m = 0; m < submodels && order_by_phase[order]; m++)
                    CHECK(turns[m] == 1,
                          "%s: submodel %d of %d has %d turns in cycle %d, and its row says once",
                          order_names[order], m, submodels, turns[m], cycle);
            }
            CHECK((loop.mock.norms_asked > 0) == (order_by_gradients[order] && submodels > 1),
                  "%s asked for %d norms of %d submodels", order_names[order],
                  loop.mock.norms_asked, submodels);
            loop_close(&loop);
        }
}

static void what_cannot_be_selected_is_an_error(void) {
    static const double none[] = {1, NAN};
    Loop loop;
    loop_open(&loop, ORDER_GAUSS_SOUTHWELL, (SwitchRule){.kind = SWITCH_STEPS, .every = 2}, 8, 1,
              6);
    loop.mock.norms = none;
    Engine *engine = &loop.mock.base;
    CHECK(bcd_train(&loop.state, &loop.settings, engine, loop.data, NULL, NULL) == -1 &&
              strcmp(error_message(), "test: no norm") == 0 && loop.state.step == 0,
          "a norm that fails: %s", error_message());
    EngineClass pipeline = mock_class;
    pipeline.gradient_norm = NULL;
    engine->is = &pipeline;
    CHECK(bcd_train(&loop.state, &loop.settings, engine, loop.data, NULL, NULL) == -1 &&
              strstr(error_message(), "one device"),
          "an engine without norms: %s", error_message());
    loop_close(&loop);
}

/* One device computes no prefix ahead, and says so. */
static void pre_inference_needs_a_pipeline(void) {
    Loop loop;
    loop_open(&loop, ORDER_CYCLIC, (SwitchRule){.kind = SWITCH_STEPS, .every = 3}, 8, 2, 20);
    loop.settings.pre_infer = true;
    CHECK(bcd_train(&loop.state, &loop.settings, &loop.mock.base, loop.data, NULL, NULL) == -1 &&
              strstr(error_message(), "for a pipeline") && loop.mock.steps == 0,
          "%s", error_message());
    loop_close(&loop);
}

static int stop_at_seven(void *context, const BcdState *state, const Loss *loss, double lr) {
    (void)loss;
    (void)lr;
    ++*(int *)context;
    return state->step == 7;
}

static void the_watch_may_stop_it(void) {
    Loop loop;
    int watched = 0;
    loop_open(&loop, ORDER_CYCLIC, (SwitchRule){.kind = SWITCH_STEPS, .every = 3}, 8, 2, 20);
    int result =
        bcd_train(&loop.state, &loop.settings, &loop.mock.base, loop.data, stop_at_seven, &watched);
    CHECK(result == 1 && watched == 7 && loop.mock.steps == 7 && loop.state.step == 7,
          "result %d, watched %d, trained %d", result, watched, loop.mock.steps);
    loop_close(&loop);
}

void test_bcd_loop(void) {
    RUN(every_phase_has_k_steps);
    RUN(descending_goes_down);
    RUN(random_order_is_a_fresh_permutation);
    RUN(a_switch_is_to_another_submodel);
    RUN(epochs_count_samples);
    RUN(fractions_of_an_epoch_are_exact);
    RUN(the_shortest_phases_of_auto);
    RUN(auto_leaves_when_the_loss_stands_still);
    RUN(reduction_draws_a_subset_for_each_phase);
    RUN(rate_follows_the_schedule);
    RUN(rate_follows_the_phase);
    RUN(gauss_southwell_takes_the_largest);
    RUN(every_order_stays_in_range);
    RUN(what_cannot_be_selected_is_an_error);
    RUN(pre_inference_needs_a_pipeline);
    RUN(the_watch_may_stop_it);
}
