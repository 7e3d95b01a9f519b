/* Block coordinate descent: Algorithm 1 of the paper (section 3.1), whatever the device.
 *
 * The parameters w of the network are split into those of M submodels, w_1 ... w_M.  Phase k
 * changes those of one of them, i = i_k, and holds all others where they are:
 *
 *     w_i  <-  argmin over v of  L(w_1, ..., v, ..., w_M),     i_0, i_1, ... = 1, ..., M, 1, ...
 *
 * where "argmin" means some updates by SGD or Adam, as many as the switch rule says.  L is always
 * the loss of the whole network, but the frozen parameters are constants in it, and gradients of
 * constants need not be computed.  The stage makes use of that (stage.h, layout.h); this file only
 * says what happens in which order.  The numbers in the comments below are the paper's steps:
 *
 *     1, 2     a model cut into submodels, data, k = 0
 *     3        repeat
 *     4          select a submodel i_k
 *     5, 6       freeze all parameters but its own
 *     7          build an optimizer for these
 *     8          train the model, updating these alone, "until converged"
 *     9          k = k + 1
 *     10       until a criterion is met (here: settings->steps updates are done)
 *     11       the trained model */
#include "bcd.h"

/* Where a training takes its batches from. */
typedef struct {
    const Dataset *data;
    Sampler sampler;
    Batch batch;
} BatchSource;

/* Returns the batch at `position` of the stream of samples; valid until the next call. */
static const Batch *source_batch(BatchSource *source, uint64_t position) {
    sampler_ids(&source->sampler, source->batch.ids, position, source->batch.n);
    source->data->fetch(source->data, &source->batch, position);
    return &source->batch;
}

/* Returns the learning rate of the next update: that of the schedule, times the submodel's factor;
 * in the first settings->switch_warmup updates of a phase it rises linearly to that. */
static double learning_rate(const BcdState *state, const BcdSettings *settings) {
    double lr = optimizer_lr(&settings->optimizer, state->step, settings->steps);
    uint64_t warmup = (uint64_t)settings->switch_warmup;
    lr *= settings->partition.lr_factor[state->submodel];
    return state->phase_steps < warmup ? lr * (double)(state->phase_steps + 1) / (double)warmup
                                       : lr;
}

/* Steps 4 to 7: selects the submodel of this phase and activates it, with its own optimizer.
 * Returns 1 if a pre-inference was stopped. */
static int start_phase(BcdState *state, const BcdSettings *settings, Engine *engine,
                       BatchSource *source, void *context) {
    /* With dataset reduction (section 3.2.3) each phase draws its own subset of the data. */
    sampler_draw(&source->sampler, settings->fraction < 1 ? state->phase : 0);
    if (state->phase_steps == 0) { /* otherwise a checkpoint resumes the phase in its middle */
        int selected =
            bcd_select(state, settings, engine, source_batch(source, state->position)); /* 4 */
        if (selected < 0) return -1;
        state->submodel = selected;
    }
    if (bcd_activate(settings, engine, state->submodel)) return -1; /* 5, 6, 7 */
    return settings->pre_infer
               ? bcd_pre_infer(state, settings, engine, source->data, &source->sampler, context)
               : 0;
}

/* Step 9: counts the phase and clears what belongs to it. */
static void finish_phase(BcdState *state) {
    state->phase++;
    state->phase_start = state->position;
    state->phase_steps = state->windows = 0;
    state->window_sum = state->last_window_sum = 0;
}

/* Does one update of the active submodel, from the next batch. */
static int train_step(BcdState *state, Engine *engine, BatchSource *source, double lr, Loss *loss) {
    const Batch *batch = source_batch(source, state->position);
    if (engine_step(engine, batch, lr, loss)) return -1;
    state->step++;
    state->phase_steps++;
    state->position += (uint64_t)batch->n;
    return 0;
}

static int train(BcdState *state, const BcdSettings *settings, Engine *engine, BatchSource *source,
                 BcdWatch watch, void *context) {
    while (state->step < settings->steps) {                                  /* 3, 10 */
        int started = start_phase(state, settings, engine, source, context); /* 4, 5, 6, 7 */
        if (started) return started;
        bool over = false;
        while (!over && state->step < settings->steps) { /* 8 */
            Loss loss;
            double lr = learning_rate(state, settings);
            if (train_step(state, engine, source, lr, &loss)) return -1;
            over = bcd_phase_over(state, &settings->rule, source->sampler.used, loss_mean(&loss));
            if (over) finish_phase(state); /* 9 */
            int stop = watch ? watch(context, state, &loss, lr) : 0;
            if (stop) return stop;
        }
    }
    return 0;
}

int bcd_train(BcdState *state, const BcdSettings *settings, Engine *engine, const Dataset *data,
              BcdWatch watch, void *context) {
    BatchSource source = {.data = data};
    int result = -1;
    if (sampler_init(&source.sampler, settings->seed, data->samples, settings->fraction) == 0 &&
        batch_reserve(&source.batch, engine->model, settings->batch) == 0)
        result = train(state, settings, engine, &source, watch, context);
    batch_free(&source.batch);
    sampler_free(&source.sampler);
    return result;
}
