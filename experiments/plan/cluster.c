/* `bcd plan` for given GPUs: compares the methods. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "plan.h"

/* A row for each method with the sizes asked for, and then, where that leaves more to choose, for
 * the cheapest of any submodels and precision.  With --method there is one row. */
typedef struct {
    int rows, named; /* the first `named` have the sizes asked for */
    Plan plan[2 * PLAN_METHODS];
} Answers;

/* "1 x 8 RTX 4090", "2 processors of this machine". */
static Text machines_of(const PlanQuestion *q) {
    if (q->machine.key)
        return text_of("%d processor%s of %s", q->per_node, q->per_node == 1 ? "" : "s",
                       q->gpu->name);
    return text_of("%d x %d %s", q->line->options.plan.nodes, q->per_node, q->gpu->name);
}

static Text label_of(const Answers *a, int row) {
    const Plan *plan = &a->plan[row];
    const char *best = plan->prediction.fits ? "cheapest: " : "least memory: ";
    return text_of("%s%s", row < a->named ? "" : best, plan_method(plan).text);
}

/* Finds the cheapest plan of a method, or if none fits the one that lacks the least memory. */
static int answer(Plan *plan, const PlanQuestion *q, PlanMethod method, bool wide) {
    PlanSpace space;
    if (question_space(&space, q, method, q->gpu, wide)) return -1;
    for (int m = 2; m <= 5 && wide && method == PLAN_BCD; m++) choices_add(&space.submodels, m);
    choices_add(&space.gpus, q->per_node * q->line->options.plan.nodes);
    plan_progress(text_of("%s%s", wide ? "cheapest: " : "", plan_method_names[method]).text);
    const int fits = plan_choose(plan, &space, PLAN_CHEAPEST);
    plan_progress("");
    return fits < 0 ? -1 : 0;
}

/* Notes the memory that the outputs of a prefix take, for the largest output of a block.  A cache
 * on disk or in host memory has them in float in every precision. */
static void note_cache(Table *table, const Model *model) {
    size_t largest = 0;
    for (int b = 0; b < model->blocks - 1; b++) {
        size_t count = value_count(model, model->block[b].out, 1);
        if (count > largest) largest = count;
    }
    table_note(table,
               "--cache: up to %.4g GiB on disk or in host memory for each 1000 samples, and a "
               "submodel's turn must see each of them more than once.",
               1000.0 * (double)(largest * sizeof(float)) / GIB);
}

static bool has_common_divisor(int a, int b) {
    while (b) {
        const int rest = a % b;
        a = b;
        b = rest;
    }
    return a > 1;
}

/* Notes what a full update takes whose optimizer has no state, and what else is to be tried first:
 * methods that are no row. */
static int note_others(Table *table, const PlanQuestion *q) {
    const Options *o = &q->line->options;
    PlanSpace space;
    Plan plan;
    if (!q->model->tokens || !question_asks(q, PLAN_FULL) || o->optimizer.kind == OPTIMIZER_SGD)
        return 0;
    if (question_space(&space, q, PLAN_FULL, q->gpu, false)) return -1;
    OptimizerSettings *plain = &space.plan.configuration.stage.optimizer;
    *plain = optimizer_defaults(OPTIMIZER_SGD);
    plain->momentum = 0;
    choices_add(&space.gpus, q->per_node * o->plan.nodes);
    if (plan_choose(&plan, &space, PLAN_CHEAPEST) < 0) return -1;
    table_note(table,
               "Not among the rows: the full update by SGD without momentum (--optimizer sgd "
               "--momentum 0), which takes %.1f GiB (closed form) and %s, and LoRA, which this "
               "program does not have.  In the fine-tuning here both ended ahead of BCD: "
               "experiments/choose.md.",
               plan.prediction.total_bytes / GIB, plan.prediction.fits ? "fits" : "does not fit");
    return 0;
}

/* Notes which of all rows is the cheapest. */
static void note_best(Table *table, const Answers *a) {
    int best = 0;
    for (int row = 1; row < a->rows; row++)
        if (plan_is_better(&a->plan[row], &a->plan[best], PLAN_CHEAPEST)) best = row;
    if (a->rows > 1 && a->plan[best].prediction.fits)
        table_note(table, "The cheapest of all to the same loss%s: %s, %s.",
                   a->plan[best].method == PLAN_BCD ? ", if the updates are as assumed" : "",
                   plan_method(&a->plan[best]).text, plan_setting(&a->plan[best]).text);
}

/* Notes which settings were chosen rather than given, and whether nothing fits. */
static void note_choices(Table *table, const PlanQuestion *q, const Answers *a) {
    const Options *o = &q->line->options;
    const char *trace = q->line->options.plan.trace;
    static const char *const names[] = {"pipeline",  "replicas",          "micro-batches",
                                        "placement", "pipeline-schedule", "recompute"};
    Text list = {""};
    int fitting = 0;
    for (int row = 0; row < a->rows; row++) fitting += a->plan[row].prediction.fits;
    if (!fitting) table_note(table, "Nothing fits: the last column says why.");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!options_given(o, names[i]))
            text_add(&list, "%s--%s", *list.text ? ", " : "", names[i]);
    if (*list.text)
        table_note(table, "Chosen, the cheapest that fits%s: %s.",
                   fitting == a->rows ? "" : ", else what lacks the least memory", list.text);
    if (a->named < a->rows)
        table_note(table,
                   "cheapest, or least memory: of a method, when its submodels%s may be others.",
                   question_frees_precision(q) ? " and its precision" : "");
    note_best(table, a);
    const int gpus = q->per_node * o->plan.nodes;
    if (gpus > 1 && !has_common_divisor(o->batch, gpus) && !options_given(o, "replicas"))
        table_note(table,
                   "--batch %d: it has no divisor in common with the %d %ss, so there are no "
                   "replicas.",
                   o->batch, gpus, plan_unit(q->gpu));
    if (question_asks(q, PLAN_BCD) && *o->always_active)
        table_note(table, "BCD: blocks that train in every phase: %s.", o->always_active);
    else if (question_asks(q, PLAN_BCD) && !q->model->tokens)
        table_note(table,
                   "BCD is planned without blocks that are always active, as bcd train "
                   "--always-active none; on images it trains the first and the last one in every "
                   "phase: --always-active ends.");
    if (q->line->options.plan.cache) note_cache(table, q->model);
    for (int p = 0; p < PRECISIONS && *trace; p++)
        if (fabs(q->efficiency.products[p] - efficiency_default.products[p]) > 0)
            table_note(table, "Products in %s at %.3g %% of the peak, as measured (%.200s).",
                       precision_names[p], 100 * q->efficiency.products[p], trace);
}

static int add_plans(Tables *tables, const PlanQuestion *q, const Answers *a) {
    const int batch = q->line->options.batch;
    Text title =
        text_of("%.60s (%s parameters), %d sample%s", q->model->name,
                format_count((double)q->model->param_count).text, batch, batch == 1 ? "" : "s");
    if (q->model->tokens) text_add(&title, " of %d tokens", q->model->input.w);
    text_add(&title, " per update, on %s", machines_of(q).text);
    const double price = a->plan[0].price;
    if (price > 0) text_add(&title, ", %.2f $/h each", price);
    Table *table = plan_table(tables, q, "plan", title.text, "method");
    for (int row = 0; row < a->rows; row++)
        plan_row(table, q, label_of(a, row).text, &a->plan[row]);
    plan_digits(table);
    plan_break_even(table, q, a->plan, a->named, PLAN_CHEAPEST);
    note_choices(table, q, a);
    plan_notes(table, q, a->plan);
    return note_others(table, q);
}

static void add_memory(Tables *tables, const PlanQuestion *q, const Answers *a) {
    static const TableColumn columns[] = {
        {"workspace", "workspace", "GiB", COLUMN_NUMBER, 3, SOURCE_CLOSED_FORM},
        {"total", "total", "GiB", COLUMN_NUMBER, 3, SOURCE_CLOSED_FORM},
        {"usable", "usable", "GiB", COLUMN_NUMBER, 3, SOURCE_GIVEN},
        {"host", "host", "GiB a node", COLUMN_NUMBER, 1, SOURCE_CLOSED_FORM},
    };
    Table *table =
        tables_add(tables, "memory", text_of("Memory of the fullest %s", plan_unit(q->gpu)).text,
                   "method", NULL, 0);
    table_memory_columns(table, "GiB", 3);
    table_columns(table, columns, sizeof columns / sizeof *columns);
    for (int row = 0; row < a->rows; row++) {
        const Prediction *p = &a->plan[row].prediction;
        const double *bytes = p->bytes;
        table_row(table, "%s", label_of(a, row).text);
        table_put(table, 0, bytes[MEM_PARAMETERS] / GIB, bytes[MEM_GRADIENTS] / GIB,
                  bytes[MEM_STATE] / GIB, bytes[MEM_ACTIVATIONS] / GIB, bytes[MEM_WORKSPACE] / GIB,
                  p->total_bytes / GIB,
                  q->line->options.plan.ignore_memory
                      ? NAN
                      : gpu_usable_bytes(q->gpu->memory_bytes) / GIB,
                  p->host_bytes > 0 ? p->host_bytes / GIB : NAN);
    }
    table_note(
        table,
        "usable: 97 %% of the memory; that the driver takes the rest is a guess.  host: what "
        "is offloaded, and in bf16 the parameters in float.");
}

/* Adds the step of each submodel, of which the plan's step is the mean. */
static int add_submodels(Tables *tables, const Plan *plan) {
    static const TableColumn columns[] = {
        {"step", "step", "ms", COLUMN_NUMBER, 1, SOURCE_SIMULATED},
    };
    const Configuration *c = &plan->configuration;
    Prediction p;
    double *step_s = xcalloc((size_t)c->submodels, sizeof *step_s);
    const int failed = simulate(&p, step_s, c, NULL);
    Table *table = tables_add(tables, "submodels", "A step of each submodel", "submodel", columns,
                              (int)(sizeof columns / sizeof *columns));
    for (int m = 0; m < c->submodels && !failed; m++) {
        table_row(table, "%d", m + 1);
        table_put(table, 0, 1e3 * step_s[m]);
    }
    free(step_s);
    return failed;
}

/* ---- the timeline ---------------------------------------------------------------------------- */

static const TableColumn task_columns[TASK_COLUMNS] = {
    [TASK_WHAT] = {"task", "task", "", COLUMN_TEXT, 0, SOURCE_NONE},
    [TASK_CHUNK] = {"chunk", "chunk", "", COLUMN_NUMBER, 0, SOURCE_NONE},
    [TASK_MICRO_BATCH] = {"micro_batch", "micro-batch", "", COLUMN_NUMBER, 0, SOURCE_NONE},
    [TASK_START] = {"start", "start", "ms", COLUMN_NUMBER, 3, SOURCE_SIMULATED},
    [TASK_END] = {"end", "end", "ms", COLUMN_NUMBER, 3, SOURCE_SIMULATED},
};

/* NULL for a message. */
static const char *const pass_names[] = {[TASK_FORWARD] = "forward",
                                         [TASK_INPUT_GRADIENT] = "input gradient",
                                         [TASK_WEIGHT_GRADIENT] = "weight gradient"};

/* Adds the tasks of a rank that compute: no messages, and no tasks without duration, which are part
 * of another one.  Returns their milliseconds. */
static double put_rank(Table *table, const TaskList *list, int rank) {
    double busy_ms = 0;
    for (int i = 0; i < list->tasks; i++) {
        const Task *task = &list->task[i];
        const char *pass = pass_names[task->kind];
        if (!pass || task->end <= task->start) continue;
        table_row(table, "rank %2d", rank);
        table_text(table, TASK_WHAT, "%s", pass);
        table_put(table, TASK_CHUNK, task->chunk, task->micro_batch, 1e3 * task->start,
                  1e3 * task->end);
        busy_ms += 1e3 * (task->end - task->start);
    }
    return busy_ms;
}

void timeline_add(Tables *tables, const char *name, const char *title, const Configuration *c,
                  int submodel) {
    Schedule schedule;
    Table *table = tables_add(tables, name, title, "rank", task_columns, TASK_COLUMNS);
    if (simulate_timeline(&schedule, c, submodel)) {
        table_fail(table);
        return;
    }
    double busy_ms = 0, all_ms = 1e3 * schedule.time * schedule.ranks;
    for (int r = 0; r < schedule.ranks; r++) busy_ms += put_rank(table, &schedule.rank[r], r);
    table->timeline = true;
    table_note(table, "The %ss wait %.0f %% of the %.4g ms of the passes; %d micro-batch%s.",
               plan_unit(c->cluster.gpu), 100 * fmax(0, 1 - busy_ms / all_ms), 1e3 * schedule.time,
               c->micro_batches, c->micro_batches > 1 ? "es" : "");
    if (!c->stage.deferred)
        table_note(table,
                   "A backward pass is one piece: its input gradients include the weight "
                   "gradients.");
    table_note(table, "With --out FILE it is stored, and bcd report FILE draws it on its page.");
    schedule_free(&schedule);
}

/* Adds the timeline of the middle submodel, if the pipeline has few enough ranks to draw. */
static void add_timeline(Tables *tables, const Plan *plan) {
    enum { RANKS_SHOWN = 16 };
    const Configuration *c = &plan->configuration;
    if (c->pipeline == 1 || c->pipeline > RANKS_SHOWN) return;
    int submodel = c->submodels / 2;
    Text title =
        text_of("Passes of %s, submodel %d", plan_method_names[plan->method], submodel + 1);
    timeline_add(tables, "timeline", title.text, c, submodel);
}

/* Plans the methods that are asked for. */
static int answer_all(Answers *a, const PlanQuestion *q) {
    a->rows = 0;
    for (PlanMethod m = 0; m < PLAN_METHODS; m++)
        if (question_asks(q, (int)m) && answer(&a->plan[a->rows++], q, m, false)) return -1;
    a->named = a->rows;
    for (PlanMethod m = 0; m < PLAN_METHODS && question_asks(q, PLAN_METHODS); m++)
        if (question_asks(q, (int)m) && (m == PLAN_BCD || question_frees_precision(q)) &&
            answer(&a->plan[a->rows++], q, m, true))
            return -1;
    return 0;
}

/* Finds the rate at which the step of --method takes --step-ms. */
static int calibrate_step(PlanQuestion *q) {
    const PlanFlags *flags = &q->line->options.plan;
    Plan plan;
    if (answer(&plan, q, (PlanMethod)flags->method, false)) return -1;
    if (!plan.prediction.fits)
        return error_set("--step-ms %g: such a step does not fit: %s", flags->step_ms,
                         plan_limit(&plan).text);
    return plan_calibrate_step(&q->efficiency, &plan, flags->step_ms / 1e3);
}

int plan_cluster(Tables *tables, PlanQuestion *q) {
    const PlanFlags *flags = &q->line->options.plan;
    Answers a;
    if ((flags->step_ms > 0 && calibrate_step(q)) || answer_all(&a, q)) return -1;
    if (add_plans(tables, q, &a)) return -1;
    add_memory(tables, q, &a);
    const Plan *shown = &a.plan[a.named - 1]; /* that of BCD, if it is asked for */
    if (flags->method == PLAN_BCD && shown->prediction.fits && add_submodels(tables, shown))
        return -1;
    plan_rates(tables, q, q->gpu);
    if (q->machine.key) machine_add(tables, &q->machine, &q->efficiency);
    if (shown->prediction.fits) add_timeline(tables, shown);
    return shown->configuration.cached ? plan_inference(tables, shown) : 0;
}
