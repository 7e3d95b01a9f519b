/* Deferred weight gradients have the bits of those computed block by block, and what they read is
 * not overwritten in the meantime. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/base/error.h"
#include "../../ref/memory.h"
#include "../../ref/stage_ref.h"
#include "../test.h"
#include "tiny.h"

enum { SAMPLES = 2, ROUNDS = 2, MAX_SLOTS = 3 }; /* samples of a micro-batch; uses of each slot */

/* Two stages with the same parameters; only `late` defers weight gradients. */
typedef struct {
    const Model *model;
    const Batch *batch; /* SAMPLES for every micro-batch */
    const int *slots;
    int in_flight;
    Stage *at_once, *late;
} Pair;

static void select_micro_batch(const Pair *p, Stage *stage, int micro) {
    Batch part = batch_slice(p->batch, p->model, micro * SAMPLES, (micro + 1) * SAMPLES);
    stage_select(stage, micro);
    stage_begin(stage, &part, MODE_TRAIN);
}

static void forward(const Pair *p, Stage *stage, int micro) {
    select_micro_batch(p, stage, micro);
    for (int b = 0; b < p->model->blocks; b++) stage_forward(stage, b);
    Loss loss;
    CHECK(stage_loss(stage, 0.5, &loss) == 0, "%s", error_message());
}

/* Fills the values that micro-batches share with NaN. */
static void spoil_workspace(Stage *stage) {
    RefStage *s = (RefStage *)(void *)stage;
    for (size_t i = 0; i < s->layout.workspace / sizeof(real); i++) s->workspace[i] = (real)NAN;
}

/* Computes the weight gradients after the forward and input gradient passes of all micro-batches.
 */
static void round_late(const Pair *p, int first) {
    Stage *stage = p->late;
    for (int k = first; k < first + p->in_flight; k++) {
        forward(p, stage, k);
        for (int b = p->model->blocks - 1; b >= 0; b--) stage_input_gradient(stage, b);
        spoil_workspace(stage);
    }
    for (int k = first; k < first + p->in_flight; k++) {
        select_micro_batch(p, stage, k);
        for (int b = p->model->blocks - 1; b >= 0; b--) {
            stage_weight_gradient(stage, b);
            spoil_workspace(stage);
        }
    }
}

static void round_at_once(const Pair *p, int first) {
    Stage *stage = p->at_once;
    for (int k = first; k < first + p->in_flight; k++) {
        forward(p, stage, k);
        for (int b = p->model->blocks - 1; b >= 0; b--) {
            stage_input_gradient(stage, b);
            stage_weight_gradient(stage, b);
        }
    }
}

static void check_same(const Pair *p, TensorRole role, int number, const char *name) {
    size_t count = stage_read(p->at_once, role, number, NULL);
    real *a = malloc((count + 1) * sizeof *a), *b = malloc((count + 1) * sizeof *b);
    if (!a || !b) abort();
    stage_read(p->at_once, role, number, a);
    CHECK(stage_read(p->late, role, number, b) == count, "%s: other sizes", name);
    CHECK(memcmp(a, b, count * sizeof *a) == 0, "%s, %d slots: taken late it differs", name,
          p->in_flight);
    free(a);
    free(b);
}

static void check_counted(const Pair *p, const bool *active) {
    size_t plan[MEM_ROLES];
    CHECK(memory_plan(plan, p->model, &p->late->settings, active) == 0, "%s", error_message());
    const MemCount *counted = &p->late->memory;
    for (MemRole role = 0; role < MEM_ROLES; role++)
        CHECK(counted->current[role] == plan[role], "%s: %zu bytes, planned %zu",
              mem_role_names[role], counted->current[role], plan[role]);
}

static void check_pair(const Pair *p, const bool *active) {
    for (int both = 0; both < 2; both++) {
        Stage *stage = both ? p->late : p->at_once;
        CHECK(stage_activate(stage, active) == 0, "%s", error_message());
    }
    check_counted(p, active);
    for (int round = 0; round < ROUNDS; round++) {
        round_at_once(p, round * p->in_flight);
        round_late(p, round * p->in_flight);
    }
    for (int i = 0; i < p->model->params; i++)
        check_same(p, TENSOR_GRADIENT, i, p->model->param[i].name);
    for (int i = 0; i < p->model->buffers; i++) check_same(p, TENSOR_BUFFER, i, "buffer");
    stage_discard(p->at_once);
    stage_discard(p->late);
}

static void open_pair(Pair *p, const Tiny *tiny, const int *slots) {
    StageSettings settings = tiny->stage->settings;
    settings.in_flight = slots;
    p->at_once = stage_ref_create(tiny->model, settings);
    settings.deferred = true;
    p->late = stage_ref_create(tiny->model, settings);
    if (!p->at_once || !p->late) abort();
    CHECK(p->late->settings.deferred, "the CPU's stage does not defer");
}

static void late_is_the_same(const void *spec) {
    for (int variant = 0; variant < 8; variant++) {
        Recipe recipe = {.spec = spec,
                         .batch = SAMPLES,
                         .submodels = variant & 1 ? 3 : 1,
                         .recompute = variant & 2,
                         .frozen_norm = variant & 4 ? FROZEN_BATCH : FROZEN_RUNNING};
        if (recipe.submodels == 1 && recipe.frozen_norm == FROZEN_BATCH) continue;
        Tiny tiny;
        tiny_open(&tiny, &recipe);
        Batch batch = tiny_batch(&tiny, SAMPLES * ROUNDS * MAX_SLOTS);
        bool active[64];
        int slots[64];
        for (int n = 1; n <= MAX_SLOTS; n++) {
            Pair pair = {.model = tiny.model, .batch = &batch, .slots = slots, .in_flight = n};
            for (int b = 0; b < tiny.model->blocks; b++) slots[b] = n;
            open_pair(&pair, &tiny, slots);
            for (int submodel = 0; submodel < recipe.submodels; submodel++) {
                partition_active(&tiny.settings.partition, tiny.model, submodel, active);
                check_pair(&pair, active);
            }
            stage_free(pair.at_once);
            stage_free(pair.late);
        }
        batch_free(&batch);
        tiny_close(&tiny);
    }
}

/* ---- bytes ---- */

/* The numbers per sample that a block which trains stores only because its weight gradients are
 * deferred: the gradients of its layers' outputs, for a gpt of 8 tokens and width 16.  The gradient
 * of a layer before a sum is that of the sum.  The gradient of the logits replaces them; it is
 * stored while the embedding, which is also the head's weight, trains. */
enum {
    LAYER = 8 * (16 + 3 * 16 + 16 + 16 + 64 + 16), /* norm, qkv, out, norm, up, down */
    NORM = 8 * 16,
    LOGITS = 8 * 19
};

static size_t stored_more(int block, const bool *active) {
    static const size_t kept[] = {8 * 16, LAYER, LAYER, NORM};
    size_t logits = block == 3 && active[0] ? LOGITS : 0;
    return active[block] ? kept[block] + logits : 0;
}

static void frozen_blocks_store_nothing_more(void) {
    for (int recompute = 0; recompute < 2; recompute++)
        for (int lowest = 0; lowest < 4; lowest++) {
            Tiny tiny;
            tiny_open(&tiny, &(Recipe){.spec = "gpt:layers=2,width=16,heads=2,context=8,"
                                               "vocabulary=19",
                                       .recompute = recompute});
            StageSettings settings = tiny.stage->settings;
            BlockMemory now[4], late[4];
            bool active[4] = {false};
            active[lowest] = true;
            if (lowest == 0) active[1] = active[2] = active[3] = true;
            memory_blocks(now, tiny.model, &settings, active);
            settings.deferred = true;
            memory_blocks(late, tiny.model, &settings, active);
            for (int b = 0; b < 4; b++) {
                size_t more = late[b].activations - now[b].activations;
                size_t numbers = stored_more(b, active) * (size_t)settings.batch;
                CHECK(more == numbers * sizeof(real), "%s keeps %zu bytes more, not %zu",
                      tiny.model->block[b].name, more, numbers * sizeof(real));
            }
            tiny_close(&tiny);
        }
}

void test_deferred(void) {
    for (int i = 0; tiny_models[i]; i++) RUN_ROW(tiny_models[i], late_is_the_same, tiny_models[i]);
    RUN(frozen_blocks_store_nothing_more);
}
