/* Turns the command line into spaces of settings. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../paper/published.h"
#include "../paper/trainings.h"
#include "../study/cases.h"
#include "../train/setup.h"
#include "plan.h"

void choices_add(PlanChoices *choices, int value) {
    for (int i = 0; i < choices->count; i++)
        if (choices->value[i] == value) return;
    if (choices->count < PLAN_CHOICES) choices->value[choices->count++] = value;
}

static int given(const Options *o, const char *name, int value) {
    return options_given(o, name) ? value : PLAN_FREE;
}

/* ---- the command line ------------------------------------------------------------------------ */

static int check_sizes(const Options *o, const Model *model) {
    int gpus = o->per_node * o->nodes, ranks = o->plan_pipeline * o->replicas;
    long long pieces = (long long)o->replicas * o->micro_batches;
    int max = o->plan_pipeline > o->submodels ? o->plan_pipeline : o->submodels;
    if (ranks > gpus)
        return error_set(
            "--pipeline %d x --replicas %d are %d ranks, and --per-node %d x --nodes %d are %d "
            "GPUs",
            o->plan_pipeline, o->replicas, ranks, o->per_node, o->nodes, gpus);
    if (o->batch % pieces)
        return error_set("--batch %d: it must be a multiple of %lld (--replicas x --micro-batches)",
                         o->batch, pieces);
    if (max > model->blocks)
        return error_set("--%s %d: %s has only %d blocks",
                         max == o->submodels ? "submodels" : "pipeline", max, model->name,
                         model->blocks);
    return 0;
}

static int read_multipliers(PlanQuestion *q) {
    q->multiplier[0] = paper_average_multiplier;
    q->multiplier[1] = paper_mean_multiplier("adam", 0);
    q->multiplier[2] = paper_worst_multiplier;
    if (multiplier_read(&q->multiplier[3], q->options->multiplier)) return -1;
    q->multipliers = isnan(q->multiplier[3]) ? 3 : 4;
    return 0;
}

int question_open(PlanQuestion *q, const Options *o) {
    *q = (PlanQuestion){.options = o, .tokens = o->train_tokens, .efficiency = efficiency_default};
    bool any = strcmp(o->gpu, "any") == 0 || (o->search && !options_given(o, "gpu"));
    if (any && !o->search) return error_set("--gpu any: only with --search; else name one");
    if (!any && !(q->gpu = gpu_find(o->gpu))) return -1;
    if (*o->trace && !q->gpu) return error_set("--trace %s: name the --gpu it is of", o->trace);
    double price;
    if (question_price(&price, q, q->gpu ? q->gpu : gpu_table) || read_multipliers(q)) return -1;
    if (!*o->model) return error_set("bcd plan needs --model, as in --model G-10B (see bcd info)");
    q->model = setup_model(o->model, 0, o->context);
    if (!q->model || check_sizes(o, q->model)) return -1;
    return *o->trace ? plan_calibrate(&q->efficiency, q->gpu, o->trace) : 0;
}

void question_free(PlanQuestion *q) {
    model_free(q->model);
    *q = (PlanQuestion){0};
}

/* ---- spaces ---------------------------------------------------------------------------------- */

/* --price is a number for all GPUs, or a list by GPU. */
int question_price(double *price, const PlanQuestion *q, const Gpu *gpu) {
    const char *text = q->options->price;
    char *end;
    *price = strtod(text, &end);
    if (end != text && !*end) {
        if (*price > 0 && isfinite(*price)) return 0;
        return error_set("--price %s: dollars per hour of a GPU are more than 0", text);
    }
    if (price_find(price, gpu, text)) return -1;
    if (*price <= 0) *price = NAN;
    return 0;
}

int question_space(PlanSpace *space, const PlanQuestion *q, PlanMethod method, const Gpu *gpu,
                   bool wide) {
    const Options *o = q->options;
    *space = (PlanSpace){
        .method = method,
        .model = q->model,
        .gpu = gpu,
        .per_node = o->per_node,
        .network_rate = o->network * 1e9 / 8,
        .efficiency = q->efficiency,
        .optimizer = optimizer_defaults((OptimizerKind)o->optimizer),
        .batch = o->batch,
        .cached = o->plan_cache,
        .pipeline = given(o, "pipeline", o->plan_pipeline),
        .replicas = given(o, "replicas", o->replicas),
        .micro_batches = given(o, "micro-batches", o->micro_batches),
        .schedule = given(o, "pipeline-schedule", o->pipeline_schedule),
        .recompute = given(o, "recompute", o->recompute),
        .precision = wide ? given(o, "precision", o->precision) : o->precision,
        /* With one submodel all placements are the same. */
        .placement = method != PLAN_BCD               ? PLACEMENT_PLAIN
                     : o->placement == PLACEMENT_AUTO ? PLAN_FREE
                                                      : o->placement,
    };
    bool bcd = method == PLAN_BCD, narrow = !wide || options_given(o, "submodels");
    for (int m = 2; m <= 5; m++)
        choices_add(&space->submodels, !bcd ? 1 : narrow ? o->submodels : m);
    return question_price(&space->price, q, gpu);
}
