/* A training over a pipeline of threads has the bits of one over a single stage. */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "../../ref/base/error.h"
#include "../../ref/memory.h"
#include "../../ref/stage_ref.h"
#include "../test.h"
#include "pipeline_cases.h"

static const StageKind cpu = {.name = "cpu"};

static void same_as_one_stage(const void *row) { pipeline_check_same(row, &cpu); }
static void slots_are_not_reused_too_early(const void *ranks) {
    pipeline_check_slots(*(const int *)ranks, &cpu);
}
static void tied_to_rounding(const void *ranks) {
    pipeline_check_tied(*(const int *)ranks, SCHEDULE_1F1B, &cpu);
}
static void tied_zero_bubble(void) { pipeline_check_tied(3, SCHEDULE_ZERO_BUBBLE, &cpu); }
static void frozen_tied_is_exact(void) { pipeline_check_frozen_tied(&cpu); }
static void nan_loss_changes_nothing(void) { pipeline_check_bad_loss(&cpu); }

static int infinite_squares(Stage *stage, double *square) {
    for (int p = 0; p < stage->model->params; p++) square[p] = INFINITY;
    return 0;
}

/* The first stage, with which the ranks are compared, is made before their threads. */
static Stage *with_infinite_gradients(const Model *model, StageSettings settings) {
    static StageClass class;
    Stage *stage = stage_ref_create(model, settings);
    if (!stage) return NULL;
    if (!class.free) {
        class = *stage->is;
        class.gradient_squares = infinite_squares;
    }
    stage->is = &class;
    return stage;
}

/* The loss may be finite where the gradients are not: then, too, all ranks fail alike, and nothing
 * changes. */
static void infinite_gradients_change_nothing(void) {
    Recipe recipe = {
        .spec = LLAMA, .clip = 1, .micro_batches = 4, .create = with_infinite_gradients};
    PipelineRecipe how = pipeline_plain(3, 4);
    Pipeline p;
    Loss loss;
    uint64_t before[8];
    pipeline_open(&p, &recipe, &how);
    const int blocks = p.tiny.model->blocks;
    tiny_activate(&p.tiny, 0);
    for (int b = 0; b < blocks; b++) before[b] = tiny_block_hash(&p.tiny, b);
    Batch batch = tiny_batch(&p.tiny, 4);
    CHECK(engine_step(p.tiny.engine, &batch, 0.1, &loss) == -1, "a step of infinite gradients");
    CHECK(isfinite(loss.loss_sum) && strstr(error_message(), "the gradient's norm is inf"),
          "loss %g: \"%s\"", loss.loss_sum, error_message());
    for (int b = 0; b < blocks; b++)
        CHECK(tiny_block_hash(&p.tiny, b) == before[b], "%s moved", p.tiny.model->block[b].name);
    batch_free(&batch);
    pipeline_close(&p);
}

/* CHECKs that the memory of a pipeline is the sum of that of its stages. */
static void check_sums(const MemCount *all, const Pipeline *p) {
    MemCount sum = {0};
    for (int r = 0; r < p->how.ranks; r++) {
        const MemCount *one = &p->stage[r]->memory;
        for (MemRole role = 0; role < MEM_ROLES; role++) {
            sum.current[role] += one->current[role];
            sum.peak[role] += one->peak[role];
        }
        sum.total_current += one->total_current;
        sum.total_peak += one->total_peak;
    }
    CHECK(memcmp(all, &sum, sizeof sum) == 0, "%zu bytes in all, peak %zu; the ranks have %zu, %zu",
          all->total_current, all->total_peak, sum.total_current, sum.total_peak);
}

/* All ranks together hold each parameter once, and gradients only of the active ones. */
static void memory_is_shared_out(void) {
    Recipe recipe = {.spec = LLAMA, .micro_batches = 4};
    PipelineRecipe how = {.placement = PLACEMENT_VIRTUAL,
                          .ranks = 2,
                          .submodels = 3,
                          .settings = {.micro_batches = 4}};
    Tiny one;
    Pipeline many;
    tiny_open(&one, &recipe);
    pipeline_open(&many, &recipe, &how);
    for (int submodel = 0; submodel < 3; submodel++) {
        tiny_activate(&one, submodel);
        tiny_activate(&many.tiny, submodel);
        const MemCount *a = engine_memory(one.engine);
        const MemCount *b = engine_memory(many.tiny.engine);
        for (MemRole role = MEM_PARAMETERS; role <= MEM_STATE; role++)
            CHECK(a->current[role] == b->current[role], "submodel %d: %s %zu and %zu bytes",
                  submodel + 1, mem_role_names[role], a->current[role], b->current[role]);
        check_sums(b, &many);
    }
    pipeline_close(&many);
    tiny_close(&one);
}

/* Ranks in one process share its threads, and give them back. */
static void threads_are_shared_out(void) {
    const int own = omp_get_max_threads();
    for (int threads = 1; threads <= 9; threads += 4) {
        Recipe recipe = {.spec = LLAMA, .micro_batches = 4};
        PipelineRecipe how = pipeline_plain(4, 4);
        Pipeline p;
        omp_set_num_threads(threads);
        pipeline_open(&p, &recipe, &how);
        engine_memory(p.tiny.engine); /* waits for all ranks */
        for (int r = 0; r < how.ranks; r++)
            CHECK(p.threads[r] == (threads < 4 ? 1 : threads / 4), "rank %d has %d of %d threads",
                  r, p.threads[r], threads);
        pipeline_close(&p);
        CHECK(omp_get_max_threads() == threads, "%d threads are left of %d", omp_get_max_threads(),
              threads);
    }
    omp_set_num_threads(own);
}

static void check_plan(const Pipeline *p, int submodel, const char *what) {
    bool active[32];
    size_t plan[MEM_ROLES];
    partition_active(&p->tiny.settings.partition, p->tiny.model, submodel, active);
    for (int r = 0; r < p->how.ranks; r++) {
        Stage *stage = p->stage[r];
        const MemCount *counted = &stage->memory;
        CHECK(memory_plan(plan, p->tiny.model, &stage->settings, active) == 0, "%s",
              error_message());
        for (MemRole role = 0; role < MEM_ROLES; role++)
            CHECK(counted->current[role] == plan[role],
                  "%s, submodel %d, rank %d of %d: %zu bytes of %s, planned %zu", what,
                  submodel + 1, r, p->how.ranks, counted->current[role], mem_role_names[role],
                  plan[role]);
    }
}

/* The bytes of every rank equal the plan in every role: for local blocks, for the micro-batches in
 * flight, and for deferred gradients. */
static void memory_is_planned(const void *spec) {
    for (int variant = 0; variant < 16; variant++) {
        bool is_virtual = variant & 1, late = variant & 2, full = variant & 8;
        Recipe recipe = {.spec = spec,
                         .batch = 8,
                         .micro_batches = 8,
                         .submodels = full ? 1 : 3,
                         .recompute = variant & 4};
        PipelineRecipe how = {.placement = is_virtual ? PLACEMENT_VIRTUAL : PLACEMENT_PLAIN,
                              .ranks = is_virtual ? 2 : 3,
                              .submodels = is_virtual ? 3 : 1,
                              .settings = {.micro_batches = 8, .kind = (ScheduleKind)late}};
        Pipeline p;
        pipeline_open(&p, &recipe, &how);
        CHECK(p.stage[0]->settings.deferred == late, "deferred");
        for (int submodel = 0; submodel < recipe.submodels; submodel++) {
            tiny_activate(&p.tiny, submodel);
            engine_memory(p.tiny.engine); /* waits for all ranks */
            check_plan(&p, submodel, spec);
        }
        pipeline_close(&p);
    }
}

/* ---- evaluation ---- */

static StageClass with_tenths;

/* Sums of tenths show in which order they were added. */
static int lose_a_tenth(Stage *stage, double scale, Loss *loss) {
    (void)stage;
    (void)scale;
    *loss = (Loss){.loss_sum = 0.1, .count = 1};
    return 0;
}

static Stage *create_with_tenths(const Model *model, StageSettings settings) {
    Stage *stage = stage_ref_create(model, settings);
    if (stage) stage->is = &with_tenths;
    return stage;
}

/* Micro-batches are added to the loss so far one by one, however many go through a pipeline at a
 * time. */
static void evaluation_adds_up_in_order(void) {
    Recipe recipe = {.spec = LLAMA, .batch = 4, .micro_batches = 4};
    const PipelineRecipe how = pipeline_plain(2, 4);
    Tiny one;
    Pipeline many;
    tiny_open(&one, &recipe);
    with_tenths = *one.stage->is;
    with_tenths.loss = lose_a_tenth;
    recipe.create = create_with_tenths;
    pipeline_open(&many, &recipe, &how);
    Batch batch = tiny_batch(&one, 11);
    Loss loss = {.loss_sum = 0.7};
    double sum = 0.7;
    for (int i = 0; i < 11; i++) sum += 0.1;
    CHECK(engine_evaluate(many.tiny.engine, &batch, &loss) == 0, "%s", error_message());
    CHECK(loss.loss_sum == sum && loss.count == 11, "%.17g, not %.17g", loss.loss_sum, sum);
    batch_free(&batch);
    pipeline_close(&many);
    tiny_close(&one);
}

void test_pipeline(void) {
    static const int ranks[] = {1, 2, 3, 4};
    static const char *const names[] = {"8 parts, 1 rank", "8 parts, 2 ranks", "8 parts, 3 ranks",
                                        "8 parts, 4 ranks"};
    for (const PipelineRow *row = pipeline_rows; row->name; row++)
        RUN_ROW(row->name, same_as_one_stage, row);
    for (int i = 0; i < 4; i++) RUN_ROW(names[i], slots_are_not_reused_too_early, &ranks[i]);
    RUN_ROW("tied embedding, 2 ranks", tied_to_rounding, &ranks[1]);
    RUN_ROW("tied embedding, 4 ranks", tied_to_rounding, &ranks[3]);
    RUN(tied_zero_bubble);
    RUN(frozen_tied_is_exact);
    RUN(memory_is_shared_out);
    RUN(threads_are_shared_out);
    RUN_ROW("llama: memory", memory_is_planned, LLAMA);
    RUN_ROW("gpt: memory", memory_is_planned, GPT);
    RUN_ROW("resnet: memory", memory_is_planned, RESNET);
    RUN(evaluation_adds_up_in_order);
    RUN(nan_loss_changes_nothing);
    RUN(infinite_gradients_change_nothing);
}
