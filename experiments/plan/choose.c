/* The best of all settings: every candidate has a bound from below that takes no simulation, and
 * they are tried in the order of that bound until it exceeds the best one found. */
#include <math.h>
#include <stdlib.h>

#include "../../ref/memory.h"
#include "plan.h"

/* ---- candidates ------------------------------------------------------------------------------
 */

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
                           .practice = s->practice};
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

/* ---- bounds ----------------------------------------------------------------------------------
 */

double plan_score(const Plan *plan, Goal goal) {
    double step = plan->prediction.step_s;
    return goal == FASTEST ? step : step * plan->gpus;
}

/* Seconds of a micro-batch on one GPU that did all of it, every block active. */
typedef struct {
    Precision precision;
    bool recompute;
    int batch;
    double phase_s[PHASES];
} Work;

typedef struct {
    Work *work;
    int count;
    BlockCost *cost; /* [blocks] */
    bool *active;    /* [blocks], all true */
} Works;

static const Work *work_of(Works *works, const Configuration *c) {
    for (int i = 0; i < works->count; i++) {
        const Work *w = &works->work[i];
        if (w->precision == c->stage.precision && w->recompute == c->stage.recompute &&
            w->batch == c->stage.batch)
            return w;
    }
    Work *larger = realloc(works->work, (size_t)(works->count + 1) * sizeof *larger);
    if (!larger) return NULL;
    works->work = larger;
    Work *w = &larger[works->count];
    *w = (Work){c->stage.precision, c->stage.recompute, c->stage.batch, {0}};
    if (block_costs(works->cost, c->model, &c->stage, works->active, c->cluster.gpu,
                    &c->cluster.practice))
        return NULL;
    for (int b = 0; b < c->model->blocks; b++)
        for (int phase = 0; phase < PHASES; phase++)
            w->phase_s[phase] += works->cost[b].phase_s[phase];
    works->count++;
    return w;
}

/* A step takes at least its work, shared out evenly.  Over the turns of M submodels every weight
 * gradient is computed once, every input gradient at least once (while the lowest submodel trains),
 * and with a cached prefix each block runs forward at least in its own turn. */
static double least_step(const Configuration *c, const Work *w) {
    double part = 1.0 / c->submodels;
    double once = part * (w->phase_s[PHASE_INPUT_GRADIENT] + w->phase_s[PHASE_WEIGHT_GRADIENT]);
    double forward = (c->cached ? part : 1) * w->phase_s[PHASE_FORWARD];
    return (forward + once) * c->micro_batches / c->pipeline;
}

/* Parameters, gradients and state, shared out evenly: bytes that the fullest rank has at least. */
static double least_bytes(const Configuration *c) {
    double count = (double)c->model->param_count, all;
    if (c->stage.offload)
        all = count * (double)(value_bytes(&c->stage) + sizeof(float));
    else
        all = memory_closed_form(c->model, &c->stage.optimizer, c->stage.precision, c->submodels);
    return all / c->pipeline;
}

typedef struct {
    Plan plan;
    int number;    /* as plan_candidates lists them: decides between equals */
    double least;  /* score */
    double needed; /* bytes, at least */
} Candidate;

static int compare(const void *left, const void *right) {
    const Candidate *a = left, *b = right;
    if (a->least != b->least) return a->least < b->least ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

/* Fills the candidates' bounds. */
static int bound_all(Candidate *candidates, int count, Goal goal) {
    size_t blocks = (size_t)candidates->plan.configuration.model->blocks;
    Works works = {.cost = calloc(blocks, sizeof(BlockCost)), .active = malloc(blocks)};
    bool failed = !works.cost || !works.active;
    for (size_t b = 0; b < blocks && !failed; b++) works.active[b] = true;
    for (int i = 0; i < count && !failed; i++) {
        Plan *plan = &candidates[i].plan;
        const Work *work = work_of(&works, &plan->configuration);
        failed = !work;
        if (failed) break;
        plan->prediction.step_s = least_step(&plan->configuration, work);
        candidates[i].least = plan_score(plan, goal);
        candidates[i].needed = least_bytes(&plan->configuration);
    }
    free(works.work);
    free(works.cost);
    free(works.active);
    return failed ? error_set("plan: out of memory") : 0;
}

/* ---- search ----------------------------------------------------------------------------------
 */

typedef struct {
    Goal goal;
    Plan best;
    double score; /* of best; INFINITY: none fits yet */
    int number;
    Plan nearest; /* of those that do not fit */
    int nearest_number;
    int tried;
} Search;

static bool before(double a, int a_number, double b, int b_number) {
    return a < b || (a == b && a_number < b_number);
}

/* Bounds and scores are sums in different orders: equal up to rounding. */
static bool worse(const Search *s, double least) { return least > s->score * (1 + 1e-9); }

static void record(Search *s, const Plan *plan, int number) {
    s->tried++;
    if (plan->prediction.fits) {
        double score = plan_score(plan, s->goal);
        if (!before(score, number, s->score, s->number)) return;
        s->best = *plan;
        s->score = score;
        s->number = number;
        return;
    }
    double bytes = plan->prediction.total_bytes, known = s->nearest.prediction.total_bytes;
    if (s->nearest_number >= 0 && !before(bytes, number, known, s->nearest_number)) return;
    s->nearest = *plan;
    s->nearest_number = number;
}

static void attempt(Search *s, const Candidate *candidate) {
    bool skip;
#pragma omp critical(plan_search)
    skip = worse(s, candidate->least);
    if (skip) return;
    Plan plan = candidate->plan;
    if (simulate_bound(&plan.prediction, &plan.configuration)) return; /* impossible */
#pragma omp critical(plan_search)
    skip = !plan.prediction.fits || worse(s, plan_score(&plan, s->goal));
    if (skip && plan.prediction.fits) return;
    if (!skip && simulate(&plan.prediction, NULL, &plan.configuration, NULL))
        return; /* impossible */
#pragma omp critical(plan_search)
    record(s, &plan, candidate->number);
}

/* Where none can fit: the one that lacks least is among those that need least at any rate. */
static void attempt_smallest(Search *s, const Candidate *candidates, int count) {
    double least = INFINITY;
    for (int i = 0; i < count; i++) least = fmin(least, candidates[i].needed);
    for (int i = 0; i < count; i++)
        if (candidates[i].needed <= least) attempt(s, &candidates[i]);
}

static int search(Search *s, Candidate *candidates, int count) {
    if (bound_all(candidates, count, s->goal)) return -1;
    qsort(candidates, (size_t)count, sizeof *candidates, compare);
    double memory = gpu_usable_bytes(candidates->plan.configuration.cluster.gpu);
#pragma omp parallel for schedule(dynamic, 1)
    for (int i = 0; i < count; i++)
        if (candidates[i].needed <= memory) attempt(s, &candidates[i]);
    if (!s->tried) attempt_smallest(s, candidates, count);
    return s->tried ? 0 : -1; /* simulate() said why */
}

int plan_choose(Plan *best, const Space *space, Goal goal) {
    Plan *plans;
    int count = plan_candidates(&plans, space);
    if (count < 0) return -1;
    Candidate *candidates = calloc((size_t)count, sizeof *candidates);
    Search s = {.goal = goal, .score = INFINITY, .number = count, .nearest_number = -1};
    int failed = candidates ? 0 : error_set("plan: out of memory for %d candidates", count);
    for (int i = 0; i < count && !failed; i++)
        candidates[i] = (Candidate){.plan = plans[i], .number = i};
    failed = failed || search(&s, candidates, count);
    free(candidates);
    free(plans);
    if (failed) return -1;
    bool fits = s.score < INFINITY;
    *best = fits ? s.best : s.nearest;
    return fits;
}
