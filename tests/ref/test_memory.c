/* The bytes that the stage's allocator counts, those that memory.c computes from the shapes, and
 * the paper's closed form. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/blocks/models.h"
#include "../../ref/memory.h"
#include "../test.h"
#include "tiny.h"

/* Vectors of state of a matrix, and of other parameters. */
static const struct {
    int matrix, other;
} state_vectors[] = {
    [OPTIMIZER_SGD] = {1, 1},  [OPTIMIZER_ADAM] = {2, 2}, [OPTIMIZER_ADAMW] = {2, 2},
    [OPTIMIZER_LION] = {1, 1}, [OPTIMIZER_MUON] = {1, 2},
};
_Static_assert(sizeof state_vectors / sizeof *state_vectors == OPTIMIZER_KINDS,
               "state_vectors has a row for every optimizer");

/* Returns the numbers of state of the parameters of a submodel, or of all with submodel -1. */
static size_t state_of(const Tiny *tiny, OptimizerKind kind, int submodel) {
    size_t count = 0;
    for (int p = 0; p < tiny->model->params; p++) {
        const Param *param = &tiny->model->param[p];
        const bool matrix = param->kind == PARAM_MATRIX;
        if (submodel >= 0 && tiny->settings.partition.of_block[param->block] != submodel) continue;
        count += param->count *
                 (size_t)(matrix ? state_vectors[kind].matrix : state_vectors[kind].other);
    }
    return count;
}

static bool *active_of(const Tiny *tiny, int submodel) {
    bool *active = malloc((size_t)tiny->model->blocks * sizeof *active);
    if (!active) abort();
    partition_active(&tiny->settings.partition, tiny->model, submodel, active);
    return active;
}

static size_t total(const size_t bytes[MEM_ROLES]) {
    size_t sum = 0;
    for (MemRole role = 0; role < MEM_ROLES; role++) sum += bytes[role];
    return sum;
}

static void step(Tiny *tiny) {
    Batch batch = tiny_batch(tiny, tiny->settings.batch);
    Loss loss;
    CHECK(engine_step(tiny->engine, &batch, 0.01, &loss) == 0, "%s", error_message());
    CHECK(engine_evaluate(tiny->engine, &batch, &loss) == 0, "%s", error_message());
    batch_free(&batch);
}

/* Trains every submodel in two cycles.  The counted bytes equal the plan, and the peak is that of
 * the submodel that needs most, since a submodel's memory is freed before the next one's is
 * allocated. */
static void check_counted_is_planned(const Recipe *recipe) {
    Tiny tiny;
    tiny_open(&tiny, recipe);
    const MemCount *counted = engine_memory(tiny.engine);
    size_t plan[MEM_ROLES], max[MEM_ROLES] = {0}, max_total = counted->total_current;
    for (MemRole role = 0; role < MEM_ROLES; role++) max[role] = counted->current[role];
    int submodels = tiny.settings.partition.submodels;
    for (int phase = 0; phase < 2 * submodels; phase++) {
        bool *active = active_of(&tiny, phase % submodels);
        CHECK(memory_plan(plan, tiny.model, &tiny.stage->settings, active) == 0, "%s",
              error_message());
        CHECK(engine_activate(tiny.engine, active) == 0, "%s", error_message());
        step(&tiny);
        for (MemRole role = 0; role < MEM_ROLES; role++) {
            CHECK(counted->current[role] == plan[role],
                  "%s, submodel %d: %s %zu bytes, planned %zu", tiny.model->name, phase % submodels,
                  mem_role_names[role], counted->current[role], plan[role]);
            if (plan[role] > max[role]) max[role] = plan[role];
        }
        if (total(plan) > max_total) max_total = total(plan);
        free(active);
    }
    for (MemRole role = 0; role < MEM_ROLES; role++)
        CHECK(counted->peak[role] == max[role], "%s: %s peaked at %zu bytes, planned %zu",
              tiny.model->name, mem_role_names[role], counted->peak[role], max[role]);
    CHECK(counted->total_peak == max_total, "%s: peak of all %zu bytes, planned %zu",
          tiny.model->name, counted->total_peak, max_total);
    tiny_close(&tiny);
}

static void counted_is_planned(const void *spec) {
    for (int submodels = 1; submodels <= 3; submodels += 2)
        for (int recompute = 0; recompute < 2; recompute++)
            for (OptimizerKind kind = 0; kind < OPTIMIZER_KINDS; kind++) {
                Recipe recipe = {
                    .spec = spec,
                    .submodels = submodels,
                    .recompute = recompute,
                    .optimizer = kind,
                    .frozen_norm = kind == OPTIMIZER_SGD ? FROZEN_RUNNING : FROZEN_BATCH};
                check_counted_is_planned(&recipe);
                recipe.correct_factor = 0.01;
                check_counted_is_planned(&recipe);
                recipe.always = "ends";
                check_counted_is_planned(&recipe);
            }
}

/* 3W and 4W for a full update, less with Muon; for BCD, parameters, gradients and state of the
 * largest submodel are the closed form with its share of the parameters, or of the state, in place
 * of 1/M. */
static void closed_form_holds(const void *spec) {
    for (OptimizerKind kind = 0; kind < OPTIMIZER_KINDS; kind++)
        for (int submodels = 1; submodels <= 4; submodels++) {
            Tiny tiny;
            tiny_open(&tiny, &(Recipe){.spec = spec, .submodels = submodels, .optimizer = kind});
            const Partition *p = &tiny.settings.partition;
            double share = (1 + p->imbalance) / submodels, max = 0;
            for (int m = 0; m < submodels; m++) {
                size_t plan[MEM_ROLES];
                bool *active = active_of(&tiny, m);
                memory_plan(plan, tiny.model, &tiny.stage->settings, active);
                CHECK(plan[MEM_STATE] == state_of(&tiny, kind, m) * sizeof(real),
                      "%s, submodel %d: %zu bytes of state", tiny.model->name, m, plan[MEM_STATE]);
                max = fmax(max,
                           (double)(plan[MEM_PARAMETERS] + plan[MEM_GRADIENTS] + plan[MEM_STATE]));
                free(active);
            }
            const OptimizerSettings *o = &tiny.settings.optimizer;
            double form =
                memory_closed_form(tiny.model, o, PRECISION_FP32, 1 / share) * sizeof(real) / 4;
            const bool same = state_vectors[kind].matrix == state_vectors[kind].other;
            CHECK(!same || fabs(max - form) <= 1e-9 * form,
                  "%s, %d submodels: %g bytes, closed form %g", tiny.model->name, submodels, max,
                  form);
            double full = 4.0 * (double)(2 * tiny.model->param_count + state_of(&tiny, kind, -1));
            CHECK(memory_closed_form(tiny.model, o, PRECISION_FP32, 1) == full,
                  "full update: %g bytes", memory_closed_form(tiny.model, o, PRECISION_FP32, 1));
            tiny_close(&tiny);
        }
}

/* The bytes of the blocks add up to the plan.  A frozen block has no gradients and no state; below
 * the active blocks it stores no activations, and above them no more than when it trains. */
static void frozen_blocks_cost_less(const void *spec) {
    Tiny tiny;
    tiny_open(&tiny, &(Recipe){.spec = spec, .optimizer = OPTIMIZER_ADAM});
    const Model *m = tiny.model;
    BlockMemory all[64], some[64];
    bool everything[64];
    for (int b = 0; b < m->blocks; b++) everything[b] = true;
    memory_blocks(all, m, &tiny.stage->settings, everything);
    for (int submodel = 0; submodel < 3; submodel++) {
        bool *active = active_of(&tiny, submodel);
        size_t plan[MEM_ROLES], sum[MEM_ROLES] = {0};
        memory_plan(plan, m, &tiny.stage->settings, active);
        memory_blocks(some, m, &tiny.stage->settings, active);
        bool below = true;
        for (int b = 0; b < m->blocks; b++) {
            below = below && !active[b];
            sum[MEM_PARAMETERS] += some[b].parameters;
            sum[MEM_GRADIENTS] += some[b].gradients;
            sum[MEM_STATE] += some[b].state;
            sum[MEM_ACTIVATIONS] += some[b].activations;
            if (active[b]) continue;
            CHECK(some[b].gradients == 0 && some[b].state == 0, "frozen %s: %zu and %zu bytes",
                  m->block[b].name, some[b].gradients, some[b].state);
            CHECK(some[b].activations <= all[b].activations, "frozen %s stores more",
                  m->block[b].name);
            /* The lowest active block may read the output of the block below. */
            bool next_active = b + 1 < m->blocks && active[b + 1];
            CHECK(!below || next_active || some[b].activations == 0,
                  "%s below the active blocks stores %zu bytes", m->block[b].name,
                  some[b].activations);
        }
        CHECK(sum[MEM_PARAMETERS] == plan[MEM_PARAMETERS] &&
                  sum[MEM_GRADIENTS] == plan[MEM_GRADIENTS] && sum[MEM_STATE] == plan[MEM_STATE] &&
                  sum[MEM_ACTIVATIONS] == plan[MEM_ACTIVATIONS],
              "blocks do not add up to the plan of submodel %d", submodel);
        free(active);
    }
    tiny_close(&tiny);
}

/* A frozen residual block stores its two outputs of relu, which are their masks, and the aux of its
 * two batch norms; with statistics of the batch also the inputs of these, but never those of its
 * convolutions. */
static void frozen_residual_block(void) {
    enum { BATCH = 4, VALUE = BATCH * 8 * 8 * 4, AUX = 4 * 4 };
    Tiny tiny;
    tiny_open(&tiny, &(Recipe){.spec = "resnet:depth=8,width=4,size=8,classes=3"});
    const bool stem[5] = {true};
    for (FrozenNorm norm = FROZEN_RUNNING; norm <= FROZEN_BATCH; norm++) {
        BlockMemory block[5];
        StageSettings settings = tiny.stage->settings;
        settings.frozen_norm = norm;
        CHECK(memory_blocks(block, tiny.model, &settings, stem) == 0, "%s", error_message());
        size_t values = norm == FROZEN_BATCH ? 4 : 2;
        CHECK(block[1].activations == (values * VALUE + 2 * AUX) * sizeof(real),
              "%s stores %zu bytes", tiny.model->block[1].name, block[1].activations);
    }
    tiny_close(&tiny);
}

/* Gradients and state of frozen blocks do not exist; they are not just left out of the count. */
static void frozen_tensors_do_not_exist(const void *spec) {
    Tiny tiny;
    tiny_trained(&tiny, &(Recipe){.spec = spec, .optimizer = OPTIMIZER_ADAM, .steps = 5});
    for (int p = 0; p < tiny.model->params; p++) {
        int submodel = tiny.settings.partition.of_block[tiny.model->param[p].block];
        size_t expected = submodel == tiny.state.submodel ? tiny.model->param[p].count : 0;
        static const TensorRole roles[] = {TENSOR_GRADIENT, TENSOR_STATE0, TENSOR_STATE1};
        for (int r = 0; r < 3; r++) {
            size_t count = engine_read(tiny.engine, roles[r], p, NULL);
            CHECK(count == expected, "%s: role %d has %zu numbers", tiny.model->param[p].name,
                  roles[r], count);
        }
    }
    tiny_close(&tiny);
}

/* Recomputation keeps at most half: of an MLP's layer one of two values, of other blocks less. */
static void recompute_stores_less(const void *spec) {
    Tiny tiny;
    size_t stored[MEM_ROLES], recomputed[MEM_ROLES];
    tiny_open(&tiny, &(Recipe){.spec = spec, .submodels = 1});
    bool *active = active_of(&tiny, 0);
    StageSettings settings = tiny.stage->settings;
    memory_plan(stored, tiny.model, &settings, active);
    settings.recompute = true;
    memory_plan(recomputed, tiny.model, &settings, active);
    CHECK(recomputed[MEM_ACTIVATIONS] <= stored[MEM_ACTIVATIONS] / 2, "%zu bytes of %zu",
          recomputed[MEM_ACTIVATIONS], stored[MEM_ACTIVATIONS]);
    free(active);
    tiny_close(&tiny);
}

/* In bf16 a weight takes two bytes, and an active one also a float master, gradient and state: for
 * Adam 2N + 16N/M, with the submodel's share of the parameters in place of 1/M. */
static void bf16_weights_have_masters(const void *spec) {
    Tiny tiny;
    for (OptimizerKind kind = 0; kind < OPTIMIZER_KINDS; kind++) {
        tiny_open(&tiny, &(Recipe){.spec = spec, .optimizer = kind});
        const Model *m = tiny.model;
        StageSettings settings = tiny.stage->settings;
        settings.precision = PRECISION_BF16;
        size_t states = state_of(&tiny, kind, -1), max = 0, largest = 0;
        for (int submodel = 0; submodel < tiny.settings.partition.submodels; submodel++) {
            size_t plan[MEM_ROLES], count = tiny.settings.partition.params[submodel];
            bool *active = active_of(&tiny, submodel);
            CHECK(memory_plan(plan, m, &settings, active) == 0, "%s", error_message());
            CHECK(plan[MEM_PARAMETERS] == 2 * m->param_count + count * sizeof(real) &&
                      plan[MEM_GRADIENTS] == count * sizeof(real) &&
                      plan[MEM_STATE] == state_of(&tiny, kind, submodel) * sizeof(real),
                  "%s, submodel %d of %zu: %zu, %zu and %zu bytes", m->name, submodel, count,
                  plan[MEM_PARAMETERS], plan[MEM_GRADIENTS], plan[MEM_STATE]);
            size_t held = plan[MEM_PARAMETERS] + plan[MEM_GRADIENTS] + plan[MEM_STATE];
            if (held > max) max = held;
            if (count > largest) largest = count;
            free(active);
        }
        const OptimizerSettings *o = &tiny.settings.optimizer;
        double n = (double)m->param_count, all = (2 * n + (double)states) * 4;
        for (int submodels = 1; submodels < 5; submodels++) {
            double form = memory_closed_form(m, o, PRECISION_BF16, submodels);
            CHECK(form == n * 2 + all / submodels, "%s: closed form %g", m->name, form);
        }
        const bool same = state_vectors[kind].matrix == state_vectors[kind].other;
        if (sizeof(real) == 4 && same) { /* the form counts the program's floats */
            double form = memory_closed_form(m, o, PRECISION_BF16, n / (double)largest);
            CHECK(fabs((double)max - form) <= 1e-9 * form, "%s: %zu bytes, closed form %g", m->name,
                  max, form);
        }
        tiny_close(&tiny);
    }
}

/* In bf16 stored values take half the bytes; aux (statistics, log-sum-exp) stays float. */
static void bf16_halves_the_values(const void *spec) {
    Tiny tiny;
    size_t plain[MEM_ROLES], half[MEM_ROLES], aux = 0;
    tiny_open(&tiny, &(Recipe){.spec = spec, .submodels = 1});
    bool *active = active_of(&tiny, 0);
    StageSettings settings = tiny.stage->settings;
    for (int i = 0; i < tiny.model->nodes; i++)
        aux += node_aux_count(&tiny.model->node[i], settings.batch) * sizeof(real);
    CHECK(memory_plan(plain, tiny.model, &settings, active) == 0, "%s", error_message());
    settings.precision = PRECISION_BF16;
    CHECK(memory_plan(half, tiny.model, &settings, active) == 0, "%s", error_message());
    size_t values = plain[MEM_ACTIVATIONS] - aux;
    CHECK(half[MEM_ACTIVATIONS] == values * 2 / sizeof(real) + aux,
          "%zu bytes, of %zu with %zu aux values", half[MEM_ACTIVATIONS], plain[MEM_ACTIVATIONS],
          aux);
    CHECK(half[MEM_WORKSPACE] < plain[MEM_WORKSPACE], "the scratch did not shrink");
    free(active);
    tiny_close(&tiny);
}

/* With offload, masters and optimizer state are in host memory. */
static void offload_has_no_state_on_the_device(const void *spec) {
    Tiny tiny;
    tiny_open(&tiny, &(Recipe){.spec = spec, .submodels = 1, .optimizer = OPTIMIZER_ADAM});
    bool *active = active_of(&tiny, 0);
    StageSettings settings = tiny.stage->settings;
    settings.offload = true;
    for (Precision precision = 0; precision < PRECISIONS; precision++) {
        size_t plan[MEM_ROLES], n = tiny.model->param_count;
        settings.precision = precision;
        CHECK(memory_plan(plan, tiny.model, &settings, active) == 0, "%s", error_message());
        CHECK(plan[MEM_PARAMETERS] == n * (precision == PRECISION_BF16 ? 2 : sizeof(real)) &&
                  plan[MEM_GRADIENTS] == n * sizeof(real) && plan[MEM_STATE] == 0,
              "%s: %zu, %zu and %zu bytes", precision_names[precision], plan[MEM_PARAMETERS],
              plan[MEM_GRADIENTS], plan[MEM_STATE]);
    }
    free(active);
    tiny_close(&tiny);
}

static void closed_form_as_text(void) {
    static const struct {
        OptimizerKind kind;
        Precision precision;
        const char *text;
    } forms[] = {{OPTIMIZER_SGD, PRECISION_FP32, "W (1 + 2/M)"},
                 {OPTIMIZER_ADAM, PRECISION_TF32, "W (1 + 3/M)"},
                 {OPTIMIZER_LION, PRECISION_FP32, "W (1 + 2/M)"},
                 {OPTIMIZER_MUON, PRECISION_FP32, "W (1 + 2/M) + V/M"},
                 {OPTIMIZER_SGD, PRECISION_BF16, "W (1/2 + 3/M)"},
                 {OPTIMIZER_ADAM, PRECISION_BF16, "W (1/2 + 4/M)"}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        char text[48];
        OptimizerSettings optimizer = optimizer_defaults(forms[i].kind);
        memory_closed_form_text(text, &optimizer, forms[i].precision, "M");
        CHECK(strcmp(text, forms[i].text) == 0, "%s, expected %s", text, forms[i].text);
    }
    char text[128], after[80];
    memset(text, '!', sizeof text);
    memset(after, '!', sizeof after);
    OptimizerSettings muon = optimizer_defaults(OPTIMIZER_MUON);
    memory_closed_form_text(text, &muon, PRECISION_FP32,
                            "more submodels than there is room for in the text");
    CHECK(strlen(text) == 47 && memcmp(text + 48, after, sizeof after) == 0, "%.128s", text);
}

/* Planning a model that is far too large for this machine allocates nothing. */
static void large_models_are_planned(void) {
    Model *model = model_create("L-23B");
    if (!CHECK(model, "%s", error_message())) return;
    bool *active = calloc((size_t)model->blocks, sizeof *active);
    if (!active) abort();
    for (int b = 0; b < model->blocks; b++) active[b] = true;
    StageSettings settings = {.batch = 1, .optimizer = optimizer_defaults(OPTIMIZER_ADAM)};
    size_t plan[MEM_ROLES];
    CHECK(memory_plan(plan, model, &settings, active) == 0, "%s", error_message());
    double gib = (double)(plan[MEM_PARAMETERS] + plan[MEM_GRADIENTS] + plan[MEM_STATE]) * 4 /
                 sizeof(real) / 0x1p30;
    CHECK(fabs(gib - 347.5469) < 1e-4, "%.4f GiB", gib); /* the paper's 347.539, recomputed */
    free(active);
    model_free(model);
}

/* Where a channel has a single value in a batch, batch statistics are refused, as in PyTorch. */
static void one_value_has_no_variance(void) {
    const char *spec = "resnet:depth=8,width=2,size=4,classes=3"; /* its last images are 1 x 1 */
    for (int batch = 1; batch <= 2; batch++) {
        Tiny tiny;
        tiny_open(&tiny, &(Recipe){.spec = spec, .batch = batch});
        for (int submodel = 0; submodel < 3; submodel++) {
            bool *active = active_of(&tiny, submodel);
            size_t plan[MEM_ROLES];
            const bool refused = batch == 1 && submodel == 2;
            CHECK(!memory_plan(plan, tiny.model, &tiny.stage->settings, active) == !refused,
                  "batch %d, submodel %d: %s", batch, submodel, error_message());
            CHECK(!stage_activate(tiny.stage, active) == !refused, "batch %d, submodel %d: %s",
                  batch, submodel, error_message());
            if (refused) CHECK(strstr(error_message(), "no variance"), "%s", error_message());
            free(active);
        }
        tiny_close(&tiny);
    }
}

void test_memory(void) {
    RUN(one_value_has_no_variance);
    RUN(frozen_residual_block);
    for (int i = 0; tiny_models[i]; i++) {
        RUN_ROW("counted is planned", counted_is_planned, tiny_models[i]);
        RUN_ROW("closed form", closed_form_holds, tiny_models[i]);
        RUN_ROW("frozen blocks", frozen_blocks_cost_less, tiny_models[i]);
        RUN_ROW("frozen tensors", frozen_tensors_do_not_exist, tiny_models[i]);
        RUN_ROW("recompute", recompute_stores_less, tiny_models[i]);
        RUN_ROW("bf16 weights", bf16_weights_have_masters, tiny_models[i]);
        RUN_ROW("bf16 values", bf16_halves_the_values, tiny_models[i]);
        RUN_ROW("offload", offload_has_no_state_on_the_device, tiny_models[i]);
    }
    RUN(closed_form_as_text);
    RUN(large_models_are_planned);
}
