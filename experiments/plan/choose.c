/* Lists the possible settings of a space and finds the best one.  Simulating all of them would take
 * minutes.  The work of a step is a lower bound of its time, so settings are simulated in the order
 * of that bound until it exceeds the best time found. */
#include <math.h>
#include <stdlib.h>

#include "../alloc.h"
#include "plan.h"

/* ---- candidates ------------------------------------------------------------------------------ */

typedef struct {
    Plan *plan;
    int count, capacity;
} PlanList;

static void append(PlanList *list, const Plan *plan) {
    if (list->count == list->capacity) {
        list->capacity = 2 * list->capacity + 256;
        list->plan = xrealloc(list->plan, (size_t)list->capacity * sizeof *list->plan);
    }
    list->plan[list->count++] = *plan;
}

static bool allows(int given, int value) { return given == PLAN_FREE || given == value; }

/* Returns true when the model has enough blocks for its stages and submodels. */
static bool enough_blocks(const Configuration *c) {
    bool plain = c->placement == PLACEMENT_PLAIN;
    int blocks = c->model->blocks;
    return plain ? c->pipeline <= blocks && c->submodels <= blocks
                 : c->pipeline * c->submodels <= blocks;
}

/* Returns true for a repetition: without a pipeline all placements and schedules are the same. */
static bool is_repetition(const PlanSpace *s, int pipeline, int placement, int schedule) {
    return pipeline == 1 && ((s->placement == PLAN_FREE && placement > 0) ||
                             (s->schedule == PLAN_FREE && schedule > 0));
}

/* Adds all combinations of the settings that are no sizes. */
static void add_kinds(PlanList *list, const PlanSpace *s, Plan *plan) {
    Configuration *c = &plan->configuration;
    for (int placement = 0; placement < PLACEMENTS; placement++)
        for (int schedule = 0; schedule < SCHEDULE_KINDS; schedule++)
            for (int recompute = 0; recompute < 2; recompute++)
                for (int precision = 0; precision < PRECISIONS; precision++) {
                    if (!allows(s->placement, placement) || !allows(s->schedule, schedule) ||
                        !allows(s->recompute, recompute) || !allows(s->precision, precision) ||
                        is_repetition(s, c->pipeline, placement, schedule))
                        continue;
                    c->placement = (PlacementKind)placement;
                    c->schedule = (ScheduleKind)schedule;
                    c->stage.deferred = c->schedule == SCHEDULE_ZERO_BUBBLE;
                    c->stage.recompute = recompute;
                    c->stage.precision = (Precision)precision;
                    if (enough_blocks(c)) append(list, plan);
                }
}

static void add_batches(PlanList *list, const PlanSpace *s, Plan *plan) {
    Configuration *c = &plan->configuration;
    int share = s->batch / c->replicas;
    for (int i = 0; i < s->submodels.count && s->batch % c->replicas == 0; i++)
        for (int micro_batches = 1; micro_batches <= share; micro_batches++) {
            if (share % micro_batches || !allows(s->micro_batches, micro_batches)) continue;
            c->submodels = s->submodels.value[i];
            c->micro_batches = micro_batches;
            c->stage.batch = share / micro_batches;
            add_kinds(list, s, plan);
        }
}

/* Uses all GPUs, unless the given pipeline does not divide their number. */
static void add_pipelines(PlanList *list, const PlanSpace *s, Plan *plan) {
    for (int pipeline = 1; pipeline <= plan->gpus; pipeline++) {
        int max_replicas = plan->gpus / pipeline;
        int replicas = s->replicas == PLAN_FREE ? max_replicas : s->replicas;
        bool divides = pipeline * replicas == plan->gpus || s->pipeline != PLAN_FREE;
        if (!allows(s->pipeline, pipeline) || replicas > max_replicas || !divides) continue;
        plan->configuration.pipeline = pipeline;
        plan->configuration.replicas = replicas;
        add_batches(list, s, plan);
    }
}

int plan_candidates(Plan **plans, const PlanSpace *s) {
    PlanList list = {0};
    for (int i = 0; i < s->gpus.count; i++) {
        int gpus = s->gpus.value[i], per_node = gpus < s->per_node ? gpus : s->per_node;
        Plan plan = {.method = s->method,
                     .gpus = gpus,
                     .price = s->price,
                     .configuration = {
                         .model = s->model,
                         .cluster = {s->gpu, per_node, (gpus + per_node - 1) / per_node,
                                     s->network_rate, s->efficiency},
                         .stage = {.optimizer = s->optimizer, .offload = s->method == PLAN_OFFLOAD},
                         .cached = s->cached && s->method == PLAN_BCD}};
        add_pipelines(&list, s, &plan);
    }
    *plans = list.plan;
    if (list.count) return list.count;
    return error_set(
        "plan: no setting has these sizes: replicas x micro-batches must divide the batch of %d "
        "samples, and pipeline x submodels may be at most the model's %d blocks (with "
        "--placement plain each of the two)",
        s->batch, s->model->blocks);
}

/* ---- the best -------------------------------------------------------------------------------- */

double plan_score(const Plan *plan, PlanGoal goal) {
    double step = plan->prediction.step_s;
    return goal == PLAN_FASTEST ? step : step * plan->gpus;
}

typedef struct {
    const Plan *plan;
    double score; /* a lower bound */
} PlanBound;

/* Orders by score, then as listed. */
static int compare(const void *left, const void *right) {
    const PlanBound *a = left, *b = right;
    if (a->score != b->score) return a->score < b->score ? -1 : 1;
    return (a->plan > b->plan) - (a->plan < b->plan);
}

/* Seconds of the passes of a micro-batch if one GPU did all of it with all blocks active. */
typedef struct {
    double pass_s[PASSES];
} PlanWork;

static int find_work(PlanWork *work, const Configuration *c) {
    size_t blocks = (size_t)c->model->blocks;
    BlockCost *cost = xcalloc(blocks, sizeof *cost);
    bool *active = xmalloc(blocks * sizeof *active);
    for (size_t b = 0; b < blocks; b++) active[b] = true;
    int failed =
        block_costs(cost, c->model, &c->stage, active, c->cluster.gpu, &c->cluster.efficiency);
    for (size_t b = 0; !failed && b < blocks; b++)
        for (int pass = 0; pass < PASSES; pass++) work->pass_s[pass] += cost[b].pass_s[pass];
    free(cost);
    free(active);
    return failed;
}

/* A step takes at least its work, divided evenly.  In a cycle of M phases every weight gradient is
 * computed in one phase, every input gradient in at least one (that of the lowest submodel), and
 * with a cached prefix each block runs forward in at least its own phase. */
static double min_step(const Configuration *c, const PlanWork *w) {
    double part = 1.0 / c->submodels;
    double once = part * (w->pass_s[PASS_INPUT_GRADIENT] + w->pass_s[PASS_WEIGHT_GRADIENT]);
    double forward = (c->cached ? part : 1) * w->pass_s[PASS_FORWARD];
    return (forward + once) * c->micro_batches / c->pipeline;
}

/* Computes the bounds of all plans and sorts by them.  work[batch][precision][recompute] is 0 until
 * known. */
static int bound_all(PlanBound *bounds, Plan *plans, int count, PlanGoal goal, PlanWork *work) {
    for (int i = 0; i < count; i++) {
        const Configuration *c = &plans[i].configuration;
        int kind = (c->stage.batch * PRECISIONS + (int)c->stage.precision) * 2;
        PlanWork *w = &work[kind + c->stage.recompute];
        if (w->pass_s[PASS_FORWARD] == 0 && find_work(w, c)) return -1;
        plans[i].prediction.step_s = min_step(c, w);
        bounds[i] = (PlanBound){&plans[i], plan_score(&plans[i], goal)};
    }
    qsort(bounds, (size_t)count, sizeof *bounds, compare);
    return 0;
}

typedef struct {
    PlanGoal goal;
    Plan best;         /* by score among those that fit, else by bytes */
    const Plan *found; /* the candidate that it is; NULL: none was possible */
} PlanBest;

static bool is_better(const Plan *plan, const Plan *number, const PlanBest *b) {
    const Prediction *new = &plan->prediction, *old = &b->best.prediction;
    if (!b->found || new->fits != old->fits) return !b->found || new->fits;
    double score = new->fits ? plan_score(plan, b->goal) : new->total_bytes;
    double best_score = old->fits ? plan_score(&b->best, b->goal) : old->total_bytes;
    return score < best_score || (score == best_score && number < b->found);
}

/* Returns true when a candidate may still be the best.  Bounds and scores are summed in different
 * orders, hence the tolerance for rounding. */
static bool is_promising(const PlanBest *b, double score) {
    bool may;
#pragma omp critical(plan_choose)
    may = !b->found || !b->best.prediction.fits ||
          score <= plan_score(&b->best, b->goal) * (1 + 1e-9);
    return may;
}

static void attempt(PlanBest *b, const PlanBound *bound) {
    Plan plan = *bound->plan;
    if (!is_promising(b, bound->score) || simulate_bound(&plan.prediction, &plan.configuration))
        return; /* worse, or impossible */
    if (plan.prediction.fits && (!is_promising(b, plan_score(&plan, b->goal)) ||
                                 simulate(&plan.prediction, NULL, &plan.configuration, NULL)))
        return;
#pragma omp critical(plan_choose)
    if (is_better(&plan, bound->plan, b)) {
        b->best = plan;
        b->found = bound->plan;
    }
}

int plan_choose(Plan *best, const PlanSpace *space, PlanGoal goal) {
    Plan *plans;
    PlanBest b = {.goal = goal};
    int count = plan_candidates(&plans, space);
    if (count < 0) return -1;
    PlanBound *bounds = xcalloc((size_t)count, sizeof *bounds);
    PlanWork *work = xcalloc(((size_t)space->batch + 1) * PRECISIONS * 2, sizeof *work);
    if (bound_all(bounds, plans, count, goal, work)) count = 0;
#pragma omp parallel for schedule(dynamic, 1)
    for (int i = 0; i < count; i++) attempt(&b, &bounds[i]);
    free(bounds);
    free(work);
    free(plans);
    *best = b.best;
    return b.found ? b.best.prediction.fits : -1; /* simulate_bound() said why */
}
