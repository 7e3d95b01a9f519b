/* Block coordinate descent: Algorithm 1 of the paper (section 3.1), whatever the device.
 *
 * The parameters w of the network are split into those of M submodels, w_1 ... w_M.  Phase k
 * changes those of one of them, i = i_k, and holds all others where they are:
 *
 *     w_i  <-  argmin over v of  L(w_1, ..., v, ..., w_M),     i_0, i_1, ... = 1, ..., M, 1, ...
 *
 * where "argmin" means: some updates by SGD or Adam, as many as the switch rule says.  L is always
 * the loss of the whole network, but the frozen parameters are constants in it, and gradients of
 * constants need not be computed.  What that saves is the stage's doing (stage.h, layout.h); what
 * is here is the order of things.  The paper's steps, which the comments below number:
 *
 *     1, 2     a model cut into submodels, data, k = 0
 *     3        repeat
 *     4          select a submodel i_k
 *     5, 6       freeze all parameters but its own
 *     7          build an optimizer for these
 *     8          train the model, updating these alone, "until converged"
 *     9          k = k + 1
 *     10, 11   until a criterion is met (here: settings->steps updates are done) */
#include "bcd.h"

#include <stdlib.h>

#include "error.h"
#include "random.h"

const char *const order_names[ORDER_KINDS] = {"cyclic", "descending", "random"};

/* The submodel at place `turn` of a cycle's permutation. */
static int shuffled(const BcdSettings *settings, uint64_t cycle, int turn) {
    int submodels = settings->partition.submodels;
    int chosen = turn; /* Fisher-Yates, followed backwards from there */
    for (int i = 1; i < submodels; i++) {
        int j = (int)random_below(settings->seed, STREAM_ORDER, cycle * 65536 + (uint64_t)i,
                                  (uint32_t)i + 1);
        if (chosen == i)
            chosen = j;
        else if (chosen == j)
            chosen = i;
    }
    return chosen;
}

/* Step 4: select the submodel of phase k.  A random order is a fresh permutation each cycle; where
 * one would begin with the submodel that ended the last, which would be no switch, its first two
 * change places.  Of two submodels that leaves open only which of them begins. */
int bcd_select(const BcdSettings *settings, uint64_t phase) {
    int submodels = settings->partition.submodels;
    int turn = (int)(phase % (uint64_t)submodels);
    if (settings->order == ORDER_DESCENDING) return submodels - 1 - turn;
    if (settings->order == ORDER_CYCLIC) return turn;
    uint64_t cycle = submodels > 2 ? phase / (uint64_t)submodels : 0;
    bool again =
        cycle > 0 && shuffled(settings, cycle, 0) == shuffled(settings, cycle - 1, submodels - 1);
    return shuffled(settings, cycle, again && turn < 2 ? 1 - turn : turn);
}

/* Adds a step's loss to the window; true when a full window is no better than the one before. */
static bool loss_converged(BcdState *state, const SwitchRule *rule, double loss) {
    state->window_sum += loss;
    if (state->phase_steps % (uint64_t)rule->window) return false;
    bool stalled =
        state->windows > 0 && !(state->window_sum < state->last_window_sum * (1 - rule->tolerance));
    state->last_window_sum = state->window_sum;
    state->window_sum = 0;
    state->windows++;
    return stalled;
}

/* The "until converged" of step 8. */
static bool phase_over(BcdState *state, const BcdSettings *settings, int samples, double loss) {
    const SwitchRule *rule = &settings->rule;
    switch (rule->kind) {
        case SWITCH_STEPS:
            return (double)state->phase_steps >= rule->every;
        case SWITCH_EPOCHS:
            return (double)(state->position - state->phase_start) >= rule->every * samples;
        case SWITCH_AUTO:
            break;
    }
    bool converged = loss_converged(state, rule, loss);
    return state->phase_steps >= (uint64_t)rule->max_steps ||
           (converged && state->phase_steps >= (uint64_t)rule->min_steps);
}

/* Steps 5 to 7: freeze all but the submodel, build its optimizer. */
static int start_phase(BcdState *state, const BcdSettings *settings, Engine *engine) {
    const Model *model = engine->model;
    bool *active = malloc((size_t)model->blocks * sizeof *active);
    if (!active) return error_set("bcd: out of memory");
    partition_active(&settings->partition, model, state->submodel, active);
    int failed = engine->is->activate(engine, active);
    free(active);
    return failed;
}

static void finish_phase(BcdState *state) {
    *state = (BcdState){.step = state->step,
                        .position = state->position,
                        .phase = state->phase + 1,
                        .phase_start = state->position,
                        .submodel = state->submodel};
}

/* Where a training takes its batches from. */
typedef struct {
    const Dataset *data;
    Sampler sampler;
    Batch batch;
} Feed;

/* One update of the active submodel, from the next batch of the stream. */
static int train_step(BcdState *state, Engine *engine, Feed *feed, double lr, Loss *loss) {
    Batch *batch = &feed->batch;
    sampler_ids(&feed->sampler, batch->ids, state->position, batch->n);
    feed->data->fetch(feed->data, batch, state->position);
    if (engine->is->step(engine, batch, lr, loss)) return -1;
    state->step++;
    state->phase_steps++;
    state->position += (uint64_t)batch->n;
    return 0;
}

/* The algorithm.  Resumed in the middle of a phase, it goes on with the submodel it stands at. */
static int train(BcdState *state, const BcdSettings *settings, Engine *engine, Feed *feed,
                 BcdWatch watch, void *context) {
    while (state->step < settings->steps) { /* 3, 10: until the steps are used up */
        if (state->phase_steps == 0) state->submodel = bcd_select(settings, state->phase); /* 4 */
        if (start_phase(state, settings, engine)) return -1; /* 5, 6, 7 */
        sampler_draw(&feed->sampler, settings->fraction < 1 ? state->phase : 0);
        bool converged = false;
        while (!converged && state->step < settings->steps) { /* 8 */
            Loss loss;
            double lr = optimizer_lr(&settings->optimizer, state->step, settings->steps);
            if (train_step(state, engine, feed, lr, &loss)) return -1;
            converged = phase_over(state, settings, feed->sampler.used, loss_mean(&loss));
            if (converged) finish_phase(state); /* 9 */
            int stop = watch ? watch(context, state, &loss, lr) : 0;
            if (stop) return stop;
        }
    }
    return 0;
}

int bcd_train(BcdState *state, const BcdSettings *settings, Engine *engine, const Dataset *data,
              BcdWatch watch, void *context) {
    Feed feed = {.data = data};
    int result = -1;
    if (sampler_init(&feed.sampler, settings->seed, data->samples, settings->fraction) == 0 &&
        batch_reserve(&feed.batch, engine->model, settings->batch) == 0)
        result = train(state, settings, engine, &feed, watch, context);
    batch_free(&feed.batch);
    sampler_free(&feed.sampler);
    return result;
}
