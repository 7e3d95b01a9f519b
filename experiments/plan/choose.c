/* The best of all settings: every candidate has a bound from below that takes no simulation, and
 * they are tried in the order of that bound until it exceeds the best one found. */
#include <math.h>
#include <stdlib.h>

#include "../../ref/memory.h"
#include "plan.h"

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
    BlockCost *block; /* [blocks] */
    double pass_s[PASSES];
} Work;

typedef struct {
    Work *work;
    int count;
    bool *active; /* [blocks], all true */
} Works;

static void works_free(Works *works) {
    for (int i = 0; i < works->count; i++) free(works->work[i].block);
    free(works->work);
    free(works->active);
}

/* The number of the candidate's work, computed when it is not there yet; -1 when memory runs out.
 */
static int work_of(Works *works, const Configuration *c) {
    for (int i = 0; i < works->count; i++) {
        const Work *w = &works->work[i];
        if (w->precision == c->stage.precision && w->recompute == c->stage.recompute &&
            w->batch == c->stage.batch)
            return i;
    }
    Work *larger = realloc(works->work, (size_t)(works->count + 1) * sizeof *larger);
    if (!larger) return -1;
    works->work = larger;
    Work *w = &larger[works->count++];
    *w = (Work){.precision = c->stage.precision,
                .recompute = c->stage.recompute,
                .batch = c->stage.batch,
                .block = calloc((size_t)c->model->blocks, sizeof *w->block)};
    if (!w->block || block_costs(w->block, c->model, &c->stage, works->active, c->cluster.gpu,
                                 &c->cluster.efficiency))
        return -1;
    for (int b = 0; b < c->model->blocks; b++)
        for (int pass = 0; pass < PASSES; pass++) w->pass_s[pass] += w->block[b].pass_s[pass];
    return works->count - 1;
}

/* A step takes at least its work, shared out evenly.  Over the turns of M submodels every weight
 * gradient is computed once, every input gradient at least once (while the lowest submodel trains),
 * and with a cached prefix each block runs forward at least in its own turn. */
static double least_step(const Configuration *c, const Work *w) {
    double part = 1.0 / c->submodels;
    double once = part * (w->pass_s[PASS_INPUT_GRADIENT] + w->pass_s[PASS_WEIGHT_GRADIENT]);
    double forward = (c->cached ? part : 1) * w->pass_s[PASS_FORWARD];
    return (forward + once) * c->micro_batches / c->pipeline;
}

/* The same knowing which submodel trains which block: with submodel k input gradients run down to
 * its lowest block, and a cached prefix ends there.  0 when it cannot be known. */
static double least_step_placed(const Configuration *c, const Work *w) {
    double *work = calloc((size_t)c->model->blocks, sizeof *work), sum = 0;
    Placement p;
    for (int b = 0; work && b < c->model->blocks; b++)
        for (int pass = 0; pass < PASSES; pass++) work[b] += w->block[b].pass_s[pass];
    bool failed =
        !work || placement_make(&p, c->model, c->placement, c->pipeline, c->submodels, work, NULL);
    free(work);
    if (failed) return 0;
    for (int k = 0; k < c->submodels; k++) {
        int lowest = 0;
        while (lowest < c->model->blocks - 1 && p.submodel_of[lowest] != k) lowest++;
        for (int b = 0; b < c->model->blocks; b++) {
            if (b >= lowest || !c->cached) sum += w->block[b].pass_s[PASS_FORWARD];
            if (b > lowest) sum += w->block[b].pass_s[PASS_INPUT_GRADIENT];
        }
    }
    placement_free(&p);
    sum += w->pass_s[PASS_WEIGHT_GRADIENT];
    return sum / c->submodels * c->micro_batches / c->pipeline;
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
    int work;      /* number of its work */
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
static int bound_all(Works *works, Candidate *candidates, int count, Goal goal) {
    size_t blocks = (size_t)candidates->plan.configuration.model->blocks;
    works->active = malloc(blocks);
    if (!works->active) return error_set("plan: out of memory");
    for (size_t b = 0; b < blocks; b++) works->active[b] = true;
    for (int i = 0; i < count; i++) {
        Candidate *one = &candidates[i];
        const Configuration *c = &one->plan.configuration;
        one->work = work_of(works, c);
        if (one->work < 0) return error_set("plan: out of memory");
        one->plan.prediction.step_s = least_step(c, &works->work[one->work]);
        one->least = plan_score(&one->plan, goal);
        one->needed = least_bytes(c);
    }
    return 0;
}

/* ---- search ----------------------------------------------------------------------------------
 */

typedef struct {
    Goal goal;
    Works works;
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

/* Whether the candidate, of which so much is known, may still be the best. */
static bool promising(const Search *s, double least) {
    bool may;
#pragma omp critical(plan_search)
    may = !worse(s, least);
    return may;
}

/* Each bound is nearer to the truth than the one before, and takes longer. */
static void attempt(Search *s, const Candidate *candidate) {
    Plan plan = candidate->plan;
    const Configuration *c = &plan.configuration;
    if (!promising(s, candidate->least)) return;
    plan.prediction.step_s = least_step_placed(c, &s->works.work[candidate->work]);
    if (!promising(s, plan_score(&plan, s->goal))) return;
    if (simulate_bound(&plan.prediction, c)) return; /* impossible */
    if (plan.prediction.fits) {
        if (!promising(s, plan_score(&plan, s->goal))) return;
        if (simulate(&plan.prediction, NULL, c, NULL)) return;
    }
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
    if (bound_all(&s->works, candidates, count, s->goal)) return -1;
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
    works_free(&s.works);
    free(candidates);
    free(plans);
    if (failed) return -1;
    bool fits = s.score < INFINITY;
    *best = fits ? s.best : s.nearest;
    return fits;
}
