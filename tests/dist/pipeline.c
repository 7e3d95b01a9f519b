#include "pipeline.h"

#include <stdio.h>
#include <stdlib.h>

#include "../../dist/engine_team.h"
#include "../../ref/error.h"

static void need(bool ok, const char *what) {
    if (ok) return;
    fprintf(stderr, "tests: %s: %s\n", what, error_message());
    exit(2);
}

static Engine *make_rank(void *context, Link *world) {
    static const int all[] = {0, 1, 2, 3, 4, 5, 6, 7};
    Pipeline *p = context;
    int rank = world->rank;
    Link *link = link_group(world, all, world->ranks);
    need(link, "link");
    RankBlocks blocks;
    need(rank_blocks_create(&blocks, &p->placement, p->tiny.model, rank) == 0, "blocks");
    StageSettings settings = p->stage;
    settings.here = blocks.here;
    settings.slots = blocks.slots;
    Stage *stage = stage_ref_create(p->tiny.model, settings);
    need(stage, "stage");
    return engine_rank_create(stage, link, NULL, &p->placement, blocks, p->recipe->settings);
}

void pipeline_open(Pipeline *p, const Recipe *recipe, const PipelineRecipe *how) {
    *p = (Pipeline){.recipe = how};
    tiny_open(&p->tiny, recipe);
    const Model *model = p->tiny.model;
    p->stage = p->tiny.stage->settings;
    p->tiny.engine->is->free(p->tiny.engine);
    p->tiny.stage = NULL;
    double *cost = malloc((size_t)model->blocks * sizeof *cost);
    need(cost, "memory");
    for (int b = 0; b < model->blocks; b++) cost[b] = 1;
    need(placement_make(&p->placement, model, how->placement, how->ranks, how->submodels, cost,
                        NULL) == 0,
         recipe->spec);
    free(cost);
    int capacity = engine_rank_capacity(&p->placement, how->settings);
    need(link_local_create(p->link, how->ranks, capacity, how->timeout_s > 0 ? how->timeout_s : 60,
                           NULL) == 0,
         "link");
    p->tiny.engine = engine_team_create(model, p->link, make_rank, p);
}

void pipeline_close(Pipeline *p) {
    tiny_close(&p->tiny);
    placement_free(&p->placement);
}
