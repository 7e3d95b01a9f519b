/* What `bcd plan` is asked: turns the command line into spaces of settings. */
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "../train/setup.h"
#include "plan.h"

const char *const plan_method_names[PLAN_METHODS] = {"full", "offload", "BCD"};

void choices_add(PlanChoices *choices, int value) {
    for (int i = 0; i < choices->count; i++)
        if (choices->value[i] == value) return;
    if (choices->count < PLAN_CHOICES) choices->value[choices->count++] = value;
}

static int given(const Options *o, const char *name, int value) {
    return options_given(o, name) ? value : PLAN_FREE;
}

const char *plan_unit(const Gpu *gpu) {
    return gpu && !strcmp(gpu->key, "cpu") ? "processor" : "GPU";
}

/* ---- the command line ------------------------------------------------------------------------ */

static int check_sizes(const PlanQuestion *q) {
    const Options *o = &q->line->options;
    const PlanFlags *flags = &o->plan;
    const Model *model = q->model;
    int gpus = q->per_node * flags->nodes, ranks = flags->pipeline * o->replicas;
    long long pieces = (long long)o->replicas * flags->micro_batches;
    const int submodels = question_asks(q, PLAN_BCD) ? o->submodels : 1;
    int max = flags->pipeline > submodels ? flags->pipeline : submodels;
    if (ranks > gpus)
        return error_set(
            "--pipeline %d x --replicas %d are %d ranks, and --per-node %d x --nodes %d are %d %ss",
            flags->pipeline, o->replicas, ranks, q->per_node, flags->nodes, gpus,
            plan_unit(q->gpu));
    if (o->batch % pieces)
        return error_set("--batch %d: it must be a multiple of %lld (--replicas x --micro-batches)",
                         o->batch, pieces);
    if (max > model->blocks)
        return error_set("--%s %d: %s has only %d blocks",
                         max == submodels ? "submodels" : "pipeline", max, model->name,
                         model->blocks);
    return 0;
}

/* Counts the blocks that belong to submodels, and checks those that are always active. */
static int open_partition(PlanQuestion *q) {
    const Options *o = &q->line->options;
    q->blocks = q->model->blocks;
    if (!*o->always_active || !question_asks(q, PLAN_BCD)) return 0;
    Partition partition;
    if (partition_balanced(&partition, q->model, o->submodels, o->always_active))
        return error_set("--always-active: %s", error_message());
    for (int b = 0; b < q->model->blocks; b++) q->blocks -= partition.of_block[b] == ALWAYS_ACTIVE;
    const bool first = partition.of_block[0] == ALWAYS_ACTIVE;
    partition_free(&partition);
    if (first && o->plan.cache)
        return error_set("--cache: the first block is always active, so no prefix is frozen");
    if (o->plan.equal_work) return error_set("--equal-work: not with --always-active");
    if (o->placement != PLACEMENT_AUTO && o->placement != PLACEMENT_PLAIN)
        return error_set("--always-active: only --placement plain has such blocks");
    return 0;
}

/* Replaces the rates that were given. */
static void set_rates(Efficiency *efficiency, const CommandLine *line) {
    const PlanFlags *flags = &line->options.plan;
    for (int p = 0; p < PRECISIONS && flags->efficiency > 0; p++)
        if (p == line->options.precision || !options_given(&line->options, "precision"))
            efficiency->products[p] = flags->efficiency;
    if (flags->host_rate > 0) efficiency->host_process_rate = 1e9 * flags->host_rate;
    efficiency->scores_in_memory = flags->unfused_attention;
}

/* Ranks on this machine are threads of one processor each, and compute in fp32. */
static int open_machine(PlanQuestion *q) {
    const Options *o = &q->line->options;
    const int processors = omp_get_max_threads();
    if (!options_given(o, "per-node")) q->per_node = processors;
    if (q->per_node > processors)
        return error_set("--gpu cpu: this machine has %d processor%s; give --per-node %d, or less",
                         processors, processors == 1 ? "" : "s", processors);
    if (o->precision != PRECISION_FP32)
        return error_set("--precision %s: --gpu cpu computes in fp32",
                         precision_names[o->precision]);
    q->gpu = &q->machine;
    return machine_measure(&q->machine, &q->efficiency, q->per_node);
}

static bool plans_processor(const PlanQuestion *q) {
    return strcmp(q->line->options.plan.gpu, "cpu") == 0;
}

static OptimizerSettings optimizer_of(const Options *o) {
    OptimizerSettings settings = optimizer_defaults(o->optimizer.kind);
    if (options_given(o, "momentum")) settings.momentum = o->optimizer.momentum;
    return settings;
}

/* Refuses flags of another method than the one that is asked for. */
static int check_method(const Options *o) {
    static const struct {
        const char *flag;
        int method;
    } flags[] = {{"cache", PLAN_BCD},      {"submodels", PLAN_BCD},  {"always-active", PLAN_BCD},
                 {"equal-work", PLAN_BCD}, {"multiplier", PLAN_BCD}, {"host-rate", PLAN_OFFLOAD}};
    const int asked = o->plan.method;
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (options_given(o, flags[i].flag) && asked != PLAN_METHODS && asked != flags[i].method)
            return error_set("--%s: it is for %s, and --method asks for %s", flags[i].flag,
                             plan_method_names[flags[i].method], plan_method_names[asked]);
    return 0;
}

/* Returns why offload cannot be planned, or NULL.  Of the processors that update under offload it
 * is known how fast they move bytes, not how fast they multiply matrices. */
static const char *offload_obstacle(const PlanQuestion *q) {
    const OptimizerSettings optimizer = optimizer_of(&q->line->options);
    double flops = 0;
    for (int p = 0; p < q->model->params; p++)
        flops += optimizer_flops(&optimizer, &q->model->param[p]);
    if (flops > 0) return "the time that its products take on a host is not known";
    return plans_processor(q) ? "the memory of a processor is the host's" : NULL;
}

static PlanTask task_of(const PlanQuestion *q) {
    if (!q->model->tokens) return PLAN_IMAGES;
    return *q->line->options.init ? PLAN_TUNING : PLAN_TEXT;
}

int question_open(PlanQuestion *q, const CommandLine *line) {
    static const char *const searched[] = {"budget", "gpus"}; /* ignored without --search */
    const Options *o = &line->options;
    const PlanFlags *flags = &line->options.plan;
    *q =
        (PlanQuestion){.line = line, .per_node = flags->per_node, .efficiency = efficiency_default};
    if (check_method(o) || setup_check_optimizer(o)) return -1;
    if (flags->step_ms > 0 && (flags->search || flags->method == PLAN_METHODS))
        return error_set("--step-ms needs --method, which took so long, and no --search");
    const bool offload = flags->method == PLAN_OFFLOAD;
    const char *const found = offload ? "host-rate" : *flags->trace ? "trace" : "efficiency";
    if (flags->step_ms > 0 && options_given(o, found))
        return error_set("--step-ms finds what --%s says; give one of them", found);
    for (int i = 0; i < 2 && !flags->search; i++)
        if (options_given(o, searched[i])) return error_set("--%s needs --search", searched[i]);
    if (flags->ignore_memory && flags->search)
        return error_set("--ignore-memory: not with --search, which chooses by what fits");
    bool any = strcmp(flags->gpu, "any") == 0 || (flags->search && !options_given(o, "gpu"));
    if (any && !flags->search) return error_set("--gpu any: only with --search; else name one");
    if (plans_processor(q) && flags->search)
        return error_set("--gpu cpu: not with --search, which chooses among GPUs");
    if (plans_processor(q)) {
        if (open_machine(q)) return -1;
    } else if (!any && !(q->gpu = gpu_find(flags->gpu))) {
        return -1;
    }
    /* That of a processor here is of products of one size, and larger ones may be faster. */
    if (flags->efficiency > 1 && !plans_processor(q))
        return error_set("--efficiency %g: more than the peak of %s", flags->efficiency,
                         q->gpu ? q->gpu->name : "any GPU");
    if (*flags->trace && !q->gpu)
        return error_set("--trace %s: name the --gpu it is of", flags->trace);
    double price;
    if (question_price(&price, q, q->gpu ? q->gpu : gpu_table)) return -1;
    if (!*o->model) return error_set("bcd plan needs --model, as in --model G-10B (see bcd info)");
    q->model = setup_model(o->model, 0, o->context);
    if (!q->model || check_sizes(q) || open_partition(q)) return -1;
    q->task = task_of(q);
    q->multiplier = options_given(o, "multiplier") ? flags->multiplier : NAN;
    const char *obstacle = flags->method == PLAN_OFFLOAD ? offload_obstacle(q) : NULL;
    if (obstacle)
        return error_set("--method offload with --gpu %s, %s: %s", flags->gpu,
                         optimizer_names[o->optimizer.kind], obstacle);
    if (*flags->trace && plan_calibrate(&q->efficiency, q->gpu, o->precision, flags->trace))
        return -1;
    set_rates(&q->efficiency, line);
    if (flags->ignore_memory) {
        q->unlimited = *q->gpu;
        q->unlimited.memory_bytes = INFINITY;
        q->gpu = &q->unlimited;
    }
    return 0;
}

bool question_asks(const PlanQuestion *q, int method) {
    const int asked = q->line->options.plan.method;
    return asked == method ||
           (asked == PLAN_METHODS && (method != PLAN_OFFLOAD || !offload_obstacle(q)));
}

bool question_frees_precision(const PlanQuestion *q) {
    const Options *o = &q->line->options;
    return !options_given(o, "precision") && !plans_processor(q) && !*o->plan.trace;
}

void question_free(PlanQuestion *q) {
    model_free(q->model);
    *q = (PlanQuestion){0};
}

/* ---- spaces ---------------------------------------------------------------------------------- */

/* Overwrites *dollars with the price of a GPU per hour: that in the list of --price, such as
 * "rtx4090=0.31,a100=1.12", or else that in gpu_table, 0 if unknown.  -1 and an error if the list
 * is malformed, or names an unknown GPU or one twice. */
static int price_find(double *dollars, const Gpu *gpu, const char *list) {
    Text copy = text_of("%s", list);
    unsigned found = 0;
    *dollars = gpu->dollars_per_hour;
    for (char *item = strtok(copy.text, ","); item; item = strtok(NULL, ",")) {
        char *equals = strchr(item, '='), *end = item;
        double price = equals ? strtod(equals + 1, &end) : NAN;
        if (!equals || *end || !(price > 0 && price < INFINITY))
            return error_set("--price %.80s: it takes GPU=DOLLARS, as in rtx4090=0.31", item);
        *equals = 0;
        const Gpu *named = gpu_find(item);
        if (!named) return error_set("--price: %s", error_message());
        if (found & 1u << (named - gpu_table)) return error_set("--price: %s is given twice", item);
        found |= 1u << (named - gpu_table);
        /* One of unlimited memory is a copy. */
        if (strcmp(named->key, gpu->key) == 0) *dollars = price;
    }
    return 0;
}

/* --price is a number for all GPUs, or a list by GPU. */
int question_price(double *price, const PlanQuestion *q, const Gpu *gpu) {
    const char *text = q->line->options.plan.price;
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
    const Options *o = &q->line->options;
    const PlanFlags *flags = &q->line->options.plan;
    bool bcd = method == PLAN_BCD, narrow = !wide || options_given(o, "submodels");
    *space = (PlanSpace){
        .plan = {.method = method,
                 .configuration = {.model = q->model,
                                   .cluster = {.gpu = gpu,
                                               .network_rate = flags->network * 1e9 / 8,
                                               .efficiency = q->efficiency},
                                   .stage = {.optimizer = optimizer_of(o),
                                             .offload = method == PLAN_OFFLOAD},
                                   .cached = bcd && flags->cache,
                                   .always_active = bcd ? o->always_active : NULL,
                                   .equal_work = flags->equal_work,
                                   .host_memory = flags->host_memory * GIB}},
        .per_node = q->per_node,
        .batch = o->batch,
        .blocks = bcd ? q->blocks : q->model->blocks,
        .task = q->task,
        .multiplier = q->multiplier,
        .pipeline = given(o, "pipeline", flags->pipeline),
        .replicas = given(o, "replicas", o->replicas),
        .micro_batches = given(o, "micro-batches", flags->micro_batches),
        .schedule = given(o, "pipeline-schedule", o->pipeline_schedule),
        .recompute = given(o, "recompute", o->recompute),
        .precision = wide && question_frees_precision(q) ? PLAN_FREE : (int)o->precision,
        /* With one submodel all placements are the same. */
        .placement = !bcd || *o->always_active        ? PLACEMENT_PLAIN
                     : o->placement == PLACEMENT_AUTO ? PLAN_FREE
                                                      : o->placement,
    };
    for (int m = 2; m <= 5; m++)
        choices_add(&space->submodels, !bcd ? 1 : narrow ? o->submodels : m);
    for (int m = 8; bcd && !narrow; m = 2 * m < q->blocks ? 2 * m : q->blocks) {
        choices_add(&space->more_submodels, m);
        if (m >= q->blocks) break;
    }
    return question_price(&space->plan.price, q, gpu);
}
