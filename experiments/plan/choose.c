/* Lists the possible settings of a space and finds the best one.  Simulating all of them would take
 * minutes.  The work of a step is a lower bound of its time, so settings are simulated in the order
 * of that bound until it exceeds the best time found. */
#include <math.h>
#include <stdlib.h>

#include "../base/alloc.h"
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

static double updates_of(const PlanSpace *s, int submodels) {
    const bool known = submodels > 1 && !isnan(s->multiplier);
    return known ? s->multiplier : plan_updates(s->task, submodels);
}

static bool allows(int given, int value) { return given == PLAN_FREE || given == value; }

/* Returns true when the space allows these kinds, and the model has enough blocks for the stages
 * and submodels.  Without a pipeline all placements and schedules are the same, and only the first
 * of those that are free counts. */
static bool is_possible(const PlanSpace *s, const Configuration *c) {
    int placement = (int)c->placement, schedule = (int)c->schedule;
    if (!allows(s->placement, placement) || !allows(s->schedule, schedule) ||
        !allows(s->recompute, c->stage.recompute) || !allows(s->precision, (int)c->stage.precision))
        return false;
    if (c->pipeline == 1 && ((s->placement == PLAN_FREE && placement > 0) ||
                             (s->schedule == PLAN_FREE && schedule > 0)))
        return false;
    return c->placement == PLACEMENT_PLAIN
               ? c->pipeline <= c->model->blocks && c->submodels <= s->blocks
               : c->pipeline * c->submodels <= s->blocks;
}

/* Adds all combinations of the settings that are no sizes. */
static void add_kinds(PlanList *list, const PlanSpace *s, Plan *plan) {
    Configuration *c = &plan->configuration;
    for (c->placement = 0; c->placement < PLACEMENTS; c->placement++)
        for (c->schedule = 0; c->schedule < SCHEDULE_KINDS; c->schedule++)
            for (int recompute = 0; recompute < 2; recompute++)
                for (Precision precision = 0; precision < PRECISIONS; precision++) {
                    /* One rank has no bubbles, and trains without deferring anything. */
                    c->stage.deferred = c->schedule == SCHEDULE_ZERO_BUBBLE && c->pipeline > 1;
                    c->stage.recompute = recompute;
                    c->stage.precision = precision;
                    if (is_possible(s, c)) append(list, plan);
                }
}

/* Adds the settings of a number of GPUs.  They use all of them, unless the given pipeline does not
 * divide their number. */
static void add_sizes(PlanList *list, const PlanSpace *s, Plan *plan) {
    Configuration *c = &plan->configuration;
    for (c->pipeline = 1; c->pipeline <= plan->gpus; c->pipeline++) {
        int max = plan->gpus / c->pipeline;
        c->replicas = s->replicas == PLAN_FREE ? max : s->replicas;
        while (s->replicas == PLAN_FREE && s->batch % c->replicas) c->replicas--;
        bool uses_all = c->pipeline * c->replicas == plan->gpus;
        if (!allows(s->pipeline, c->pipeline) || c->replicas > max || s->batch % c->replicas ||
            (s->pipeline == PLAN_FREE && !uses_all))
            continue;
        int share = s->batch / c->replicas;
        for (int i = 0; i < s->submodels.count; i++)
            for (int count = 1; count <= share; count++) {
                if (share % count || !allows(s->micro_batches, count)) continue;
                c->submodels = s->submodels.value[i];
                plan->updates = updates_of(s, c->submodels);
                c->micro_batches = count;
                c->stage.batch = share / count;
                add_kinds(list, s, plan);
            }
    }
}

int plan_candidates(Plan **plans, const PlanSpace *s) {
    PlanList list = {0};
    for (int i = 0; i < s->gpus.count; i++) {
        Plan plan = s->plan;
        Cluster *cluster = &plan.configuration.cluster;
        plan.gpus = s->gpus.value[i];
        cluster->per_node = plan.gpus < s->per_node ? plan.gpus : s->per_node;
        cluster->nodes = (plan.gpus + cluster->per_node - 1) / cluster->per_node;
        add_sizes(&list, s, &plan);
    }
    *plans = list.plan;
    if (list.count) return list.count;
    return error_set(
        "plan: no setting has these sizes: replicas x micro-batches must divide the batch of %d "
        "samples, and pipeline x submodels may be at most the %d blocks of %s (with "
        "--placement plain each of the two)",
        s->batch, s->blocks,
        s->blocks < s->plan.configuration.model->blocks ? "the submodels" : "the model");
}

/* ---- the best -------------------------------------------------------------------------------- */

double plan_score(const Plan *plan, PlanGoal goal) {
    double same_loss = plan->prediction.step_s * plan->updates;
    return goal == PLAN_FASTEST ? same_loss : same_loss * plan->gpus;
}

bool plan_is_better(const Plan *plan, const Plan *than, PlanGoal goal) {
    const Prediction *new = &plan->prediction, *old = &than->prediction;
    if (new->fits != old->fits) return new->fits;
    return new->fits ? plan_score(plan, goal) < plan_score(than, goal)
                     : new->missing_bytes < old->missing_bytes;
}

/* Bounds, scores and bytes are summed in different orders, hence this tolerance for rounding. */
static const double rounding = 1 + 1e-9;

static double usable_bytes(const Plan *plan) {
    return gpu_usable_bytes(plan->configuration.cluster.gpu->memory_bytes);
}

/* Lower bounds of what a plan takes. */
typedef struct {
    const Plan *plan;
    double score, bytes;
    bool may_fit;
} PlanBound;

/* Orders what may fit by score, then the others by bytes, and equals as listed. */
static int compare(const void *left, const void *right) {
    const PlanBound *a = left, *b = right;
    if (a->may_fit != b->may_fit) return a->may_fit ? -1 : 1;
    const double x = a->may_fit ? a->score : a->bytes, y = a->may_fit ? b->score : b->bytes;
    if (x < y || x > y) return x < y ? -1 : 1;
    return (a->plan > b->plan) - (a->plan < b->plan);
}

/* What all settings with a micro-batch, a precision and recompute have in common. */
typedef struct {
    double pass_s[PASSES]; /* of a micro-batch if one GPU did all of it with all blocks active */
    double activations;    /* bytes that are stored at least while the lowest submodel trains */
} StepWork;

/* Whatever the submodels are, the lowest one has the first block. */
static int add_work(StepWork *work, const Configuration *c) {
    const size_t blocks = (size_t)c->model->blocks;
    BlockCost *cost = xcalloc(blocks, sizeof *cost);
    BlockMemory *bytes = xcalloc(blocks, sizeof *bytes);
    bool *active = xcalloc(blocks, sizeof *active);
    StageSettings stage = c->stage;
    stage.deferred = false; /* which stores more */
    for (size_t b = 0; b < blocks; b++) active[b] = b == 0 || c->submodels == 1;
    const int failed =
        simulate_full_costs(cost, c) || memory_blocks(bytes, c->model, &stage, active);
    for (size_t b = 0; !failed && b < blocks; b++) {
        for (int pass = 0; pass < PASSES; pass++) work->pass_s[pass] += cost[b].pass_s[pass];
        work->activations += (double)bytes[b].activations;
    }
    free(cost);
    free(bytes);
    free(active);
    return failed;
}

/* Returns the bytes that the fullest GPU needs at least: what an average one has of all parameters
 * and of the activations of a micro-batch or, if that is more, of parameters, gradients and state
 * with a submodel of average size. */
static double least_bytes(const Configuration *c, const StepWork *work) {
    const Model *m = c->model;
    const double count = (double)m->param_count, value = (double)value_bytes(&c->stage);
    const double kept = c->stage.offload ? count * (value + sizeof(float))
                                         : memory_closed_form(m, &c->stage.optimizer,
                                                              c->stage.precision, c->submodels);
    const double whole = c->submodels == 1 ? kept : count * value;
    return fmax(kept, whole + work->activations) / c->pipeline;
}

/* A step takes at least its work, divided evenly.  In a cycle of M phases every weight gradient is
 * computed in one phase, every input gradient in at least one (that of the lowest submodel), and
 * with a cached prefix each block runs forward in at least its own phase. */
static double min_step(const Configuration *c, const double pass_s[PASSES]) {
    double part = 1.0 / c->submodels;
    double once = part * (pass_s[PASS_INPUT_GRADIENT] + pass_s[PASS_WEIGHT_GRADIENT]);
    double forward = (c->cached ? part : 1) * pass_s[PASS_FORWARD];
    return (forward + once) * c->micro_batches / c->pipeline;
}

/* Computes the bounds of all plans and sorts by them. */
static int bound_all(PlanBound *bounds, Plan *plans, int count, PlanGoal goal, int max_batch) {
    typedef StepWork OfBatch[PRECISIONS][2]; /* by recompute; 0 until known */
    OfBatch *works = xcalloc((size_t)max_batch + 1, sizeof *works);
    int failed = 0;
    for (int i = 0; i < count && !failed; i++) {
        const Configuration *c = &plans[i].configuration;
        StepWork *work = &works[c->stage.batch][c->stage.precision][c->stage.recompute];
        failed = work->pass_s[PASS_FORWARD] == 0 && add_work(work, c);
        plans[i].prediction.step_s = min_step(c, work->pass_s);
        const double bytes = least_bytes(c, work);
        bounds[i] = (PlanBound){&plans[i], plan_score(&plans[i], goal), bytes,
                                bytes <= rounding * usable_bytes(&plans[i])};
    }
    qsort(bounds, (size_t)count, sizeof *bounds, compare);
    free(works);
    return failed;
}

typedef struct {
    PlanGoal goal;
    Plan best;
    const Plan *found; /* the candidate that it is; NULL: none was possible */
} PlanBest;

/* Returns true when a candidate may still be the best. */
static bool is_promising(const PlanBest *b, const PlanBound *bound, double score) {
    bool may;
#pragma omp critical(plan_choose)
    may = !b->found ||
          (b->best.prediction.fits
               ? bound->may_fit && score <= plan_score(&b->best, b->goal) * rounding
               : bound->may_fit || bound->bytes <= rounding * (usable_bytes(bound->plan) +
                                                               b->best.prediction.missing_bytes));
    return may;
}

static void attempt(PlanBest *b, const PlanBound *bound) {
    Plan plan = *bound->plan;
    if (!is_promising(b, bound, bound->score) ||
        simulate_bound(&plan.prediction, &plan.configuration))
        return; /* worse, or impossible */
    if (plan.prediction.fits && (!is_promising(b, bound, plan_score(&plan, b->goal)) ||
                                 simulate(&plan.prediction, NULL, &plan.configuration, NULL)))
        return;
#pragma omp critical(plan_choose)
    if (!b->found || plan_is_better(&plan, &b->best, b->goal) ||
        (bound->plan < b->found && !plan_is_better(&b->best, &plan, b->goal))) {
        b->best = plan;
        b->found = bound->plan;
    }
}

static int choose_among(Plan *best, Plan *plans, int count, PlanGoal goal, int max_batch) {
    PlanBest b = {.goal = goal};
    PlanBound *bounds = xcalloc((size_t)count, sizeof *bounds);
    if (bound_all(bounds, plans, count, goal, max_batch)) count = 0;
#pragma omp parallel for schedule(dynamic, 1)
    for (int i = 0; i < count; i++) attempt(&b, &bounds[i]);
    /* Why none is possible another thread may have been told. */
    if (count && !b.found) simulate_bound(&plans->prediction, &plans->configuration);
    free(bounds);
    *best = b.best;
    best->configuration.cache = NULL;
    return b.found ? b.best.prediction.fits : -1;
}

static int choose(Plan *best, const PlanSpace *space, PlanGoal goal) {
    Plan *plans;
    const int count = plan_candidates(&plans, space);
    if (count < 0) return -1;
    BlockCache *cache = block_cache_create(space->plan.configuration.model->blocks);
    for (int i = 0; i < count; i++) plans[i].configuration.cache = cache;
    const int fits = cache ? choose_among(best, plans, count, goal, space->batch) : -1;
    block_cache_free(cache);
    free(plans);
    return fits;
}

int plan_choose(Plan *best, const PlanSpace *space, PlanGoal goal) {
    const int fits = choose(best, space, goal);
    PlanSpace finer = *space;
    Plan other;
    finer.submodels = space->more_submodels;
    if (fits != 0 || !finer.submodels.count) return fits;
    const int more = choose(&other, &finer, goal);
    if (more >= 0 && plan_is_better(&other, best, goal)) *best = other;
    return more > 0;
}
