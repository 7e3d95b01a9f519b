/* All settings of a space that exist, as a list. */
#include <stdlib.h>

#include "plan.h"

typedef struct {
    const Space *space;
    Plan *plan;
    int count, room;
} List;

static int append(List *list, const Plan *plan) {
    if (list->count == list->room) {
        int room = 2 * list->room + 256;
        Plan *larger = realloc(list->plan, (size_t)room * sizeof *larger);
        if (!larger) return error_set("plan: out of memory for %d candidates", room);
        list->plan = larger;
        list->room = room;
    }
    list->plan[list->count++] = *plan;
    return 0;
}

/* Whether the model can be cut so. */
static bool enough_blocks(const Configuration *c) {
    bool plain = c->placement == PLACEMENT_PLAIN;
    int blocks = c->model->blocks;
    return plain ? c->pipeline <= blocks && c->submodels <= blocks
                 : c->pipeline * c->submodels <= blocks;
}

/* Everything that has nothing to do with sizes. */
static int add_kinds(List *list, Plan *plan) {
    const Space *s = list->space;
    Configuration *c = &plan->configuration;
    for (int k = 0; k < s->placement.count; k++)
        for (int z = 0; z < s->schedule.count; z++)
            for (int r = 0; r < s->recompute.count; r++)
                for (int p = 0; p < s->precision.count; p++) {
                    c->placement = (PlacementKind)s->placement.value[k];
                    c->schedule = (ScheduleKind)s->schedule.value[z];
                    c->stage.deferred = c->schedule == SCHEDULE_ZERO_BUBBLE;
                    c->stage.recompute = s->recompute.value[r];
                    c->stage.precision = (Precision)s->precision.value[p];
                    if (c->pipeline == 1 && (k || z)) continue; /* all the same */
                    if (enough_blocks(c) && append(list, plan)) return -1;
                }
    return 0;
}

static int add_batches(List *list, Plan *plan) {
    const Space *s = list->space;
    Configuration *c = &plan->configuration;
    if (s->batch % c->replicas) return 0;
    int share = s->batch / c->replicas;
    for (int i = 0; i < s->submodels.count; i++) {
        c->submodels = s->submodels.value[i];
        if (!s->micro_batches.count) {
            for (c->micro_batches = 1; c->micro_batches <= share; c->micro_batches++) {
                c->stage.batch = share / c->micro_batches;
                if (share % c->micro_batches == 0 && add_kinds(list, plan)) return -1;
            }
            continue;
        }
        for (int m = 0; m < s->micro_batches.count; m++) {
            c->micro_batches = s->micro_batches.value[m];
            c->stage.batch = share / c->micro_batches;
            if (share % c->micro_batches == 0 && add_kinds(list, plan)) return -1;
        }
    }
    return 0;
}

/* All GPUs are used, unless what was given does not divide. */
static int add_pipelines(List *list, Plan *plan) {
    const Space *s = list->space;
    Configuration *c = &plan->configuration;
    for (int pipeline = 1; pipeline <= plan->gpus; pipeline++) {
        if (s->pipeline.count && pipeline != s->pipeline.value[0]) continue;
        int most = plan->gpus / pipeline;
        int replicas = s->replicas.count ? s->replicas.value[0] : most;
        bool divides = pipeline * replicas == plan->gpus || s->pipeline.count;
        if (replicas > most || !divides) continue;
        c->pipeline = pipeline;
        c->replicas = replicas;
        if (add_batches(list, plan)) return -1;
    }
    return 0;
}

int plan_candidates(Plan **plans, const Space *s) {
    List list = {.space = s};
    int failed = 0;
    for (int i = 0; i < s->gpus.count && !failed; i++) {
        int gpus = s->gpus.value[i], per_node = gpus < s->per_node ? gpus : s->per_node;
        Cluster cluster = {.gpu = s->gpu,
                           .per_node = per_node,
                           .nodes = (gpus + per_node - 1) / per_node,
                           .network_rate = s->network_rate,
                           .efficiency = s->efficiency};
        Plan plan = {.way = s->way,
                     .gpus = gpus,
                     .price = s->price,
                     .configuration = {
                         .model = s->model,
                         .cluster = cluster,
                         .stage = {.optimizer = s->optimizer, .offload = s->way == WAY_OFFLOAD},
                         .cached = s->cached && s->way == WAY_BCD}};
        failed = add_pipelines(&list, &plan);
    }
    if (!failed && !list.count)
        failed = error_set(
            "plan: nothing fits these sizes: the batch of %d samples must be divided evenly by "
            "replicas x micro-batches, and the %d blocks of the model must do for pipeline x "
            "submodels (plain placement: for each)",
            s->batch, s->model->blocks);
    *plans = list.plan;
    if (!failed) return list.count;
    free(list.plan);
    *plans = NULL;
    return -1;
}
