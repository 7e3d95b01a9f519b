/* A pipeline of threads against one stage: the same training, the same bits. */
#include "../../ref/error.h"
#include "../test.h"
#include "pipeline_cases.h"

static const StageKind cpu = {.name = "cpu"};

static void same_as_one_stage(const void *row) { pipeline_check_same(row, &cpu); }
static void places_are_not_used_too_early(const void *ranks) {
    pipeline_check_places(*(const int *)ranks, &cpu);
}
static void tied_to_rounding(const void *ranks) {
    pipeline_check_tied(*(const int *)ranks, SCHEDULE_1F1B, &cpu);
}
static void tied_zero_bubble(void) { pipeline_check_tied(3, SCHEDULE_ZERO_BUBBLE, &cpu); }
static void frozen_tied_is_exact(void) { pipeline_check_frozen_tied(&cpu); }
static void nan_loss_changes_nothing(void) { pipeline_check_bad_loss(&cpu); }

/* All ranks together hold each parameter once, and gradients of the active ones only; the bytes are
 * those of the plan, rank by rank. */
static void memory_is_shared_out(void) {
    Recipe recipe = {.spec = "llama:layers=4,width=8,heads=2,ffn=12,context=6,vocabulary=11",
                     .micro_batches = 4};
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
        const MemCount *a = one.engine->is->memory(one.engine);
        const MemCount *b = many.tiny.engine->is->memory(many.tiny.engine);
        for (MemRole role = MEM_PARAMETERS; role <= MEM_STATE; role++)
            CHECK(a->current[role] == b->current[role], "submodel %d: %s %zu and %zu bytes",
                  submodel + 1, mem_role_names[role], a->current[role], b->current[role]);
    }
    pipeline_close(&many);
    tiny_close(&one);
}

void test_pipeline(void) {
    static const int ranks[] = {1, 2, 3, 4};
    static const char *const names[] = {"8 parts, 1 rank", "8 parts, 2 ranks", "8 parts, 3 ranks",
                                        "8 parts, 4 ranks"};
    for (const PipelineRow *row = pipeline_rows; row->name; row++)
        RUN_ROW(row->name, same_as_one_stage, row);
    for (int i = 0; i < 4; i++) RUN_ROW(names[i], places_are_not_used_too_early, &ranks[i]);
    RUN_ROW("tied embedding, 2 ranks", tied_to_rounding, &ranks[1]);
    RUN_ROW("tied embedding, 4 ranks", tied_to_rounding, &ranks[3]);
    RUN(tied_zero_bubble);
    RUN(frozen_tied_is_exact);
    RUN(memory_is_shared_out);
    RUN(nan_loss_changes_nothing);
}
