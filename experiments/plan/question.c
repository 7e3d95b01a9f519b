/* From the command line to spaces of settings. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../cli/price.h"
#include "../paper/published.h"
#include "../paper/trainings.h"
#include "../study/multiplier.h"
#include "../train/setup.h"
#include "plan.h"

void choices_add(Choices *choices, int value) {
    for (int i = 0; i < choices->count; i++)
        if (choices->value[i] == value) return;
    if (choices->count < CHOICES) choices->value[choices->count++] = value;
}

/* What was given, or every value below `count`. */
static Choices given_or_all(const Options *o, const char *name, int given, int count) {
    Choices choices = {0};
    if (options_given(o, name))
        choices_add(&choices, given);
    else
        for (int i = 0; i < count; i++) choices_add(&choices, i);
    return choices;
}

static Choices given_or_none(const Options *o, const char *name, int given) {
    return given_or_all(o, name, given, 0);
}

/* ---- what contradicts itself -----------------------------------------------------------------
 */

static int check_sizes(const Options *o, const Model *model) {
    int gpus = o->per_node * o->nodes, ranks = o->plan_pipeline * o->replicas;
    long long pieces = (long long)o->replicas * o->micro_batches;
    int most = o->plan_pipeline > o->submodels ? o->plan_pipeline : o->submodels;
    if (!o->scale && ranks > gpus)
        return error_set(
            "--pipeline %d x --replicas %d are %d ranks, and --per-node %d x --nodes %d are %d "
            "GPUs",
            o->plan_pipeline, o->replicas, ranks, o->per_node, o->nodes, gpus);
    if (o->batch % pieces)
        return error_set("--batch %d: it must be a multiple of %lld (--replicas x --micro-batches)",
                         o->batch, pieces);
    if (most > model->blocks)
        return error_set("--%s %d: %s has only %d blocks",
                         most == o->submodels ? "submodels" : "pipeline", most, model->name,
                         model->blocks);
    return 0;
}

static int read_multipliers(Question *q) {
    q->multiplier[0] = paper_average_multiplier;
    q->multiplier[1] = paper_mean_multiplier("adam", 0);
    q->multiplier[2] = paper_worst_multiplier;
    if (multiplier_read(&q->multiplier[3], q->options->multiplier)) return -1;
    q->multipliers = isnan(q->multiplier[3]) ? 3 : 4;
    return 0;
}

int question_open(Question *q, const Options *o, const char *spec) {
    *q = (Question){.options = o, .tokens = o->train_tokens, .efficiency = efficiency_default};
    bool any = strcmp(o->gpu, "any") == 0 || (o->search && !options_given(o, "gpu"));
    if (any && !o->search) return error_set("--gpu any: only with --search; else name one");
    if (!any && !(q->gpu = gpu_find(o->gpu))) return -1;
    if (*o->trace && !q->gpu) return error_set("--trace %.200s: name the --gpu it is of", o->trace);
    double price;
    if (question_price(&price, q, q->gpu ? q->gpu : gpu_table) || read_multipliers(q)) return -1;
    if (!*spec) return error_set("bcd plan needs --model, as in --model G-10B (see bcd info)");
    q->model = setup_model(spec, 0, o->context);
    if (!q->model || check_sizes(o, q->model)) return -1;
    return *o->trace ? plan_calibrate(&q->efficiency, q->gpu, o->trace) : 0;
}

void question_free(Question *q) {
    model_free(q->model);
    *q = (Question){0};
}

/* ---- spaces ----------------------------------------------------------------------------------
 */

/* --price: a number, of whichever GPU, or a list by GPU. */
int question_price(double *price, const Question *q, const Gpu *gpu) {
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

int question_space(Space *space, const Question *q, Way way, const Gpu *gpu, bool wide) {
    const Options *o = q->options;
    *space = (Space){
        .way = way,
        .model = q->model,
        .gpu = gpu,
        .per_node = o->per_node,
        .network_rate = o->network * 1e9 / 8,
        .efficiency = q->efficiency,
        .optimizer = optimizer_defaults((OptimizerKind)o->optimizer),
        .batch = o->batch,
        .cached = o->plan_cache,
        .pipeline = given_or_none(o, "pipeline", o->plan_pipeline),
        .replicas = given_or_none(o, "replicas", o->replicas),
        .micro_batches = given_or_none(o, "micro-batches", o->micro_batches),
        .schedule = given_or_all(o, "pipeline-schedule", o->pipeline_schedule, SCHEDULE_KINDS),
        .recompute = given_or_all(o, "recompute", o->recompute, 2),
        .precision = given_or_none(o, "precision", o->precision),
    };
    bool narrow = !wide || options_given(o, "submodels");
    if (way != WAY_BCD)
        choices_add(&space->submodels, 1);
    else
        for (int m = 2; m <= 5; m++) choices_add(&space->submodels, narrow ? o->submodels : m);
    if (way != WAY_BCD)
        choices_add(&space->placement, PLACEMENT_PLAIN); /* one submodel: all are the same */
    else
        for (int p = 0; p < PLACEMENTS; p++)
            if (o->placement == PLACEMENT_AUTO || o->placement == p)
                choices_add(&space->placement, p);
    for (int p = 0; p < PRECISIONS && !options_given(o, "precision"); p++)
        if (wide || p == o->precision) choices_add(&space->precision, p);
    return question_price(&space->price, q, gpu);
}
