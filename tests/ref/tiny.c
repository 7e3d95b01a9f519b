#include "tiny.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/base/checksum.h"
#include "../../ref/base/error.h"
#include "../../ref/base/random.h"
#include "../../ref/blocks/models.h"
#include "../test.h"

/* Has what Llama 3.2 has: grouped keys, scaled positions and a tied head.  The sizes are ragged, a
 * head is wider than width / heads, and of its three frequencies one is kept, one interpolated, and
 * one divided by the factor. */
#define GROUPED                                                                                   \
    "llama:layers=3,width=12,heads=6,ffn=20,context=7,vocabulary=17,groups=2,head_size=6,tied=1," \
    "rope_base=500,rope_factor=4,rope_low=0.2,rope_high=2,rope_original=20"

/* Has norms of queries and keys, and biases; norms after the block; a window. */
#define RELATIVES                                                                          \
    "qwen3:layers=3,width=12,heads=6,ffn=20,context=7,vocabulary=17,groups=2,head_size=6," \
    "attention_bias=1",                                                                    \
        "olmo2:layers=3,width=12,heads=6,ffn=20,context=7,vocabulary=17,groups=2",         \
        "mistral:layers=3,width=12,heads=6,ffn=20,context=7,vocabulary=17,groups=2,window=3"

#define MLP "mlp:inputs=5,layers=4,width=37,classes=5"

const char *const tiny_models[] = {
    "resnet:depth=8,width=4,size=8,classes=3",
    "resnet:depth=8,width=3,size=7,classes=5,fused=0",
    "bottleneck:depth=14,width=3,size=8,classes=3",
    "gpt:layers=3,width=16,heads=2,context=9,vocabulary=19",
    "llama:layers=3,width=12,heads=3,ffn=20,context=7,vocabulary=17",
    GROUPED,
    RELATIVES,
    MLP,
    NULL,
};

const char *const tiny_models_without_batchnorm[] = {
    "gpt:layers=3,width=16,heads=2,context=9,vocabulary=19",
    "llama:layers=3,width=12,heads=3,ffn=20,context=7,vocabulary=17",
    GROUPED,
    MLP,
    NULL,
};

/* ---- data ---- */

static void fetch(const Dataset *data, Batch *batch, uint64_t position) {
    size_t inputs = shape_count(data->input), targets = data->tokens ? inputs : 1;
    uint64_t seed = data->augmented ? position : 0;
    for (int s = 0; s < batch->n; s++) {
        uint64_t first = (uint64_t)batch->ids[s] * inputs;
        for (size_t i = 0; i < inputs; i++) {
            size_t to = (size_t)s * inputs + i;
            if (batch->images)
                batch->images[to] = (real)random_normal(seed, 1, first + i);
            else
                batch->tokens[to] = (int)random_below(seed, 2, first + i, (uint32_t)data->classes);
        }
        for (size_t i = 0; i < targets; i++) {
            int target = (int)random_below(0, 3, first + i, (uint32_t)data->classes);
            batch->targets[(size_t)s * targets + i] =
                data->tokens && (i + (size_t)batch->ids[s]) % 7 == 3 ? -1 : target;
        }
    }
}

static void free_dataset(Dataset *data) { free(data); }

Dataset *tiny_dataset(const Model *model, int samples, bool augmented) {
    Dataset *data = malloc(sizeof *data);
    if (!data) abort();
    *data = (Dataset){.name = "tiny",
                      .samples = samples,
                      .tokens = model->tokens,
                      .input = model->input,
                      .classes = model->outputs,
                      .augmented = augmented,
                      .fetch = fetch,
                      .free = free_dataset};
    return data;
}

/* ---- trainings ---- */

/* Ends the program unless `ok`. */
static void need(bool ok, const char *what) {
    if (ok) return;
    fprintf(stderr, "tests: %s: %s\n", what, error_message());
    exit(2);
}

static OptimizerSettings optimizer_of(const Recipe *recipe) {
    OptimizerSettings optimizer = optimizer_defaults(recipe->optimizer);
    if (recipe->momentum > 0) optimizer.momentum = recipe->momentum;
    if (recipe->eps > 0) optimizer.eps = recipe->eps;
    optimizer.lr = recipe->lr > 0 ? recipe->lr : recipe->optimizer == OPTIMIZER_SGD ? 0.05 : 1e-2;
    optimizer.weight_decay = 0.01;
    optimizer.clip_norm = recipe->clip;
    return optimizer;
}

static int or_default(int given, int value) { return given ? given : value; }

void tiny_open(Tiny *tiny, const Recipe *recipe) {
    *tiny = (Tiny){.model = model_create(recipe->spec)};
    need(tiny->model, recipe->spec);
    tiny->data = tiny_dataset(tiny->model, or_default(recipe->samples, 12), recipe->augmented);
    tiny->settings = (BcdSettings){
        .order = recipe->order,
        .rule = recipe->rule,
        .switch_warmup = recipe->switch_warmup,
        .optimizer = optimizer_of(recipe),
        .batch = or_default(recipe->batch, 4),
        .steps = (uint64_t)or_default(recipe->steps, 9),
        .fraction = recipe->fraction > 0 ? recipe->fraction : 1,
        .seed = 5,
    };
    BcdSettings *s = &tiny->settings;
    if (s->rule.kind == SWITCH_STEPS && !(s->rule.every > 0)) s->rule.every = 2;
    need(!partition_balanced(&s->partition, tiny->model, or_default(recipe->submodels, 3),
                             recipe->always),
         recipe->spec);
    if (recipe->submodel_lr)
        need(!partition_lr(&s->partition, recipe->submodel_lr), recipe->submodel_lr);
    int parts = or_default(recipe->micro_batches, 1);
    StageSettings stage = {.batch = (s->batch + parts - 1) / parts,
                           .plain = recipe->plain,
                           .recompute = recipe->recompute,
                           .keep_state = recipe->keep_state,
                           .frozen_norm = recipe->frozen_norm,
                           .correct_factor = recipe->correct_factor,
                           .optimizer = s->optimizer,
                           .seed = s->seed,
                           .precision = recipe->precision,
                           .offload = recipe->offload};
    tiny->stage = (recipe->create ? recipe->create : stage_ref_create)(tiny->model, stage);
    need(tiny->stage, recipe->spec);
    EngineSettings engine = {.micro_batches = parts,
                             .cache_bytes = recipe->cache_bytes,
                             .cache_device_bytes = recipe->cache_device_bytes,
                             .cache_dir = recipe->cache_dir,
                             .times = recipe->times,
                             .update_ms = recipe->times ? &tiny->update_ms : NULL};
    tiny->engine = engine_single_create(tiny->stage, engine, tiny->data);
    if (!tiny->engine) stage_free(tiny->stage);
}

void tiny_close(Tiny *tiny) {
    if (tiny->engine) engine_free(tiny->engine);
    partition_free(&tiny->settings.partition);
    dataset_free(tiny->data);
    model_free(tiny->model);
}

int tiny_train(Tiny *tiny, BcdWatch watch, void *context) {
    return bcd_train(&tiny->state, &tiny->settings, tiny->engine, tiny->data, watch, context);
}

void tiny_trained(Tiny *tiny, const Recipe *recipe) {
    tiny_open(tiny, recipe);
    need(tiny->engine, "engine");
    need(tiny_train(tiny, NULL, NULL) == 0, "training");
}

real tiny_set_first(Tiny *tiny, int param, real value) {
    size_t count;
    real *data = tiny_read(tiny, TENSOR_PARAMETER, param, &count), before = data[0];
    data[0] = value;
    engine_write(tiny->engine, TENSOR_PARAMETER, param, data);
    free(data);
    return before;
}

void tiny_activate(Tiny *tiny, int submodel) {
    bool *active = malloc((size_t)tiny->model->blocks * sizeof *active);
    if (!active) abort();
    partition_active(&tiny->settings.partition, tiny->model, submodel, active);
    CHECK(engine_activate(tiny->engine, active) == 0, "%s", error_message());
    free(active);
}

Batch tiny_batch(const Tiny *tiny, int n) {
    Batch batch;
    if (batch_reserve(&batch, tiny->model, n)) abort();
    for (int i = 0; i < n; i++) batch.ids[i] = i;
    tiny->data->fetch(tiny->data, &batch, 0);
    return batch;
}

/* ---- stop and resume ---- */

int tiny_note_loss(void *context, const BcdState *state, const Loss *loss, double lr) {
    TinyCurve *curve = context;
    (void)state;
    (void)lr;
    curve->loss[curve->steps++] = loss->loss_sum + 1e3 * (double)loss->correct;
    return 0;
}

int tiny_stop_at(void *context, const BcdState *state, const Loss *loss, double lr) {
    (void)loss;
    (void)lr;
    return state->step == *(const uint64_t *)context;
}

static void copy_tensor(const Tiny *from, Tiny *to, TensorRole role, int number) {
    size_t count;
    real *data = tiny_read(from, role, number, &count);
    if (!data) return;
    CHECK(engine_write(to->engine, role, number, data) == 0, "%s", error_message());
    free(data);
}

void tiny_restore(const Tiny *from, Tiny *to) {
    const Model *m = from->model;
    tiny_activate(to, from->state.submodel);
    for (int i = 0; i < m->buffers; i++) copy_tensor(from, to, TENSOR_BUFFER, i);
    for (int p = 0; p < m->params; p++)
        for (TensorRole role = TENSOR_PARAMETER; role <= TENSOR_STATE1; role++)
            if (role != TENSOR_BUFFER && role != TENSOR_GRADIENT) copy_tensor(from, to, role, p);
    for (int b = 0; b < m->blocks; b++)
        engine_set_optimizer_step(to->engine, b, engine_optimizer_step(from->engine, b));
    to->state = from->state;
}

/* ---- compare ---- */

real *tiny_read(const Tiny *tiny, TensorRole role, int number, size_t *count) {
    *count = engine_read(tiny->engine, role, number, NULL);
    if (*count == 0) return NULL;
    real *data = malloc(*count * sizeof *data);
    if (!data) abort();
    engine_read(tiny->engine, role, number, data);
    return data;
}

static uint64_t hash_tensor(const Tiny *tiny, TensorRole role, int number, uint64_t hash) {
    size_t count;
    real *data = tiny_read(tiny, role, number, &count);
    const unsigned char *bytes = (const unsigned char *)data;
    hash = checksum_bytes(hash, bytes, count * sizeof(real));
    free(data);
    return hash;
}

uint64_t tiny_parameters_hash(const Tiny *tiny, int block) {
    uint64_t hash = CHECKSUM_START;
    const Block *b = &tiny->model->block[block];
    for (int p = b->first_param; p < b->end_param; p++)
        hash = hash_tensor(tiny, TENSOR_PARAMETER, p, hash);
    return hash;
}

uint64_t tiny_block_hash(const Tiny *tiny, int block) {
    uint64_t hash = tiny_parameters_hash(tiny, block);
    for (int i = 0; i < tiny->model->buffers; i++)
        if (tiny->model->buffer[i].block == block) hash = hash_tensor(tiny, TENSOR_BUFFER, i, hash);
    return hash;
}

void tiny_check_same(const Tiny *a, const Tiny *b, const char *what) {
    for (int i = 0; i < a->model->blocks; i++)
        CHECK(tiny_block_hash(a, i) == tiny_block_hash(b, i), "%s: %s: %s differs", a->model->name,
              what, a->model->block[i].name);
}

void tiny_check_close(const Tiny *a, const Tiny *b, int steps, const char *what) {
    for (int p = 0; p < a->model->params; p++) {
        size_t count;
        real *x = tiny_read(a, TENSOR_PARAMETER, p, &count);
        real *y = tiny_read(b, TENSOR_PARAMETER, p, &count);
        double largest = 0, error = 0;
        for (size_t i = 0; i < count; i++) {
            largest = fmax(largest, fabs((double)x[i]));
            error = worse(error, fabs((double)x[i] - (double)y[i]));
        }
        CHECK(error <= steps * 8 * (double)REAL_EPS * (largest + 1), "%s: %s: %s is off by %g",
              a->model->name, what, a->model->param[p].name, error);
        free(x);
        free(y);
    }
}

void tiny_read_whole(real *logits, Stage *stage, const int *tokens, size_t count) {
    const Model *m = stage->model;
    const size_t all = (size_t)m->targets;
    Batch batch;
    if (!CHECK(batch_reserve(&batch, m, 1) == 0, "%s", error_message())) return;
    memset(batch.tokens, 0, all * sizeof *tokens);
    memcpy(batch.tokens, tokens, count * sizeof *tokens);
    stage_begin(stage, &batch, MODE_EVALUATE);
    for (int b = 0; b < m->blocks; b++) stage_forward(stage, b);
    CHECK(stage_read(stage, TENSOR_VALUE, m->blocks - 1, logits) == all * (size_t)m->outputs, "%s",
          error_message());
    batch_free(&batch);
}
