/* Pre-inference (section 3.2.2 of the paper): before a phase, the outputs of its frozen prefix are
 * computed for all samples that the phase may see, with parameters alone.  In a pipeline all ranks
 * do so, each for a share of the samples, and the phase then trains on what came out. */
#include <stdlib.h>

#include "base/error.h"
#include "bcd.h"
#include "layout.h"

/* The samples that the rest of a phase may see, each once. */
typedef struct {
    int *id; /* [samples of the data set] */
    int count;
} PhaseSamples;

static int list_samples(PhaseSamples *list, const BcdState *state, const BcdSettings *settings,
                        Sampler *sampler, int samples) {
    const uint64_t left = bcd_steps_left(state, settings, samples) * (uint64_t)settings->batch;
    bool *listed = calloc((size_t)samples, sizeof *listed);
    *list = (PhaseSamples){.id = malloc((size_t)samples * sizeof *list->id)};
    int failed = listed && list->id ? 0 : error_set("bcd: out of memory for %d samples", samples);
    for (uint64_t i = 0; !failed && i < left && list->count < sampler->used; i++) {
        int id;
        sampler_ids(sampler, &id, state->position + i, 1);
        if (!listed[id]) list->id[list->count++] = id;
        listed[id] = true;
    }
    free(listed);
    return failed;
}

/* Returns 1 if the blocks below the active ones are a prefix of at least one block, otherwise 0; -1
 * and an error when memory runs out. */
static int has_prefix(const BcdState *state, const BcdSettings *settings, const Model *model) {
    bool *active = malloc((size_t)model->blocks * sizeof *active);
    if (!active) return error_set("bcd: out of memory");
    partition_active(&settings->partition, model, state->submodel, active);
    const int lowest = lowest_active(model, active);
    free(active);
    return lowest > 0;
}

static int infer_all(const PhaseSamples *list, Batch *batch, const BcdState *state,
                     const BcdSettings *settings, Engine *engine, const Dataset *data,
                     void *context) {
    int stop = 0;
    for (int done = 0; done < list->count && !stop; done += batch->n) {
        batch->n = list->count - done < settings->batch ? list->count - done : settings->batch;
        for (int i = 0; i < batch->n; i++) batch->ids[i] = list->id[done + i];
        data->fetch(data, batch, state->position); /* not augmented: the same at any position */
        if (engine_pre_infer(engine, batch)) return -1;
        if (settings->inferred)
            stop = settings->inferred(context, state, done + batch->n, list->count);
    }
    return stop;
}

int bcd_pre_infer(const BcdState *state, const BcdSettings *settings, Engine *engine,
                  const Dataset *data, Sampler *sampler, void *context) {
    PhaseSamples list = {0};
    Batch batch = {0};
    if (!engine->is->pre_infer)
        return error_set("bcd: pre-inference is for a pipeline, not for one device");
    int result = has_prefix(state, settings, engine->model);
    if (result <= 0) return result;
    if (list_samples(&list, state, settings, sampler, data->samples) ||
        batch_reserve(&batch, engine->model, settings->batch))
        result = -1;
    else
        result = infer_all(&list, &batch, state, settings, engine, data, context);
    batch_free(&batch);
    free(list.id);
    return result;
}
