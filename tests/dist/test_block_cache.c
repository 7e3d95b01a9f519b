/* The cache of blocks gives what is computed without it. */
#include <stdlib.h>
#include <string.h>

#include "../../dist/block_cache.h"
#include "../../ref/base/error.h"
#include "../../ref/blocks/models.h"
#include "../test.h"

enum { BLOCKS = 5, MORE_THAN_KEPT = 5000 };

static Model *tiny(void) {
    Model *model = model_create("gpt:layers=3,width=8,heads=1,context=4,vocabulary=16");
    if (!CHECK(model && model->blocks == BLOCKS, "%s", error_message())) abort();
    return model;
}

/* Asks for the blocks of a setting with and without the cache. */
static void check_same(BlockCache *cache, const Model *model, const StageSettings *settings,
                       const bool *active) {
    BlockCost cost[2][BLOCKS];
    BlockMemory bytes[2][BLOCKS];
    memset(cost, 0, sizeof cost);
    memset(bytes, 0, sizeof bytes);
    for (int i = 0; i < 2; i++)
        if (!CHECK(block_cache_find(i ? cache : NULL, cost[i], bytes[i], model, settings, active,
                                    gpu_find("a100"), &efficiency_default) == 0,
                   "%s", error_message()))
            return;
    CHECK(memcmp(cost[0], cost[1], sizeof cost[0]) == 0 &&
              memcmp(bytes[0], bytes[1], sizeof bytes[0]) == 0,
          "batch %d, %s%s%s, active from %d", settings->batch, precision_names[settings->precision],
          settings->recompute ? ", recompute" : "", settings->deferred ? ", deferred" : "",
          lowest_active(model, active));
}

/* Each setting that a search has, each block active, and each asked for twice. */
static void case_all_settings(void) {
    Model *model = tiny();
    BlockCache *cache = block_cache_create(BLOCKS);
    for (int i = 0; i < 2 * 2 * 2 * 2 * PRECISIONS * BLOCKS; i++) {
        bool active[BLOCKS] = {false};
        const StageSettings settings = {.batch = 1 + i / 2 % 2,
                                        .recompute = i / 4 % 2,
                                        .deferred = i / 8 % 2,
                                        .precision = (Precision)(i / 16 % PRECISIONS),
                                        .optimizer = optimizer_defaults(OPTIMIZER_ADAM)};
        active[i / 16 / PRECISIONS] = true;
        check_same(cache, model, &settings, active);
    }
    block_cache_free(cache);
    model_free(model);
}

/* Asks for the blocks of more micro-batches than it keeps. */
static void case_more_than_it_keeps(void) {
    Model *model = tiny();
    BlockCache *cache = block_cache_create(BLOCKS);
    const bool active[BLOCKS] = {true};
    for (int batch = 1; batch <= MORE_THAN_KEPT; batch++) {
        const StageSettings settings = {.batch = batch};
        BlockCost cost[BLOCKS];
        CHECK(block_cache_find(cache, cost, NULL, model, &settings, active, gpu_find("a100"),
                               &efficiency_default) == 0,
              "%s", error_message());
    }
    const StageSettings last = {.batch = MORE_THAN_KEPT};
    check_same(cache, model, &last, active);
    block_cache_free(cache);
    model_free(model);
}

/* As plan_choose asks, on all threads at once. */
static void case_threads_share_it(void) {
    Model *model = tiny();
    BlockCache *cache = block_cache_create(BLOCKS);
    const bool active[BLOCKS] = {true};
    int failed = 0;
#pragma omp parallel for schedule(dynamic) reduction(+ : failed)
    for (int i = 0; i < 64; i++) {
        const StageSettings settings = {.batch = 1 + i % 8};
        BlockCost cost[2][BLOCKS];
        memset(cost, 0, sizeof cost);
        for (int k = 0; k < 2; k++)
            failed += block_cache_find(k ? cache : NULL, cost[k], NULL, model, &settings, active,
                                       gpu_find("a100"), &efficiency_default) != 0;
        failed += memcmp(cost[0], cost[1], sizeof cost[0]) != 0;
    }
    CHECK(failed == 0, "%d failed or differ", failed);
    block_cache_free(cache);
    model_free(model);
}

void test_block_cache(void) {
    RUN(case_all_settings);
    RUN(case_threads_share_it);
    RUN(case_more_than_it_keeps);
}
