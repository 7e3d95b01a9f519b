/* `bcd plan` for given GPUs: compares the methods. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "plan.h"

/* The methods with the sizes asked for, and the cheapest of any sizes. */
enum { CHEAPEST = PLAN_METHODS, ROWS };

static Text label_of(const Plan *plan, int row) {
    return text_of("%s%s", row == CHEAPEST ? "cheapest: " : "", plan_method(plan).text);
}

/* Finds the cheapest plan of a method.  It replaces *best if that is of no GPUs yet, or if it fits
 * and is cheaper. */
static int answer(Plan *best, const PlanQuestion *q, PlanMethod method, bool wide) {
    PlanSpace space;
    Plan plan;
    if (question_space(&space, q, method, q->gpu, wide)) return -1;
    for (int m = 2; m <= 5 && wide && method == PLAN_BCD; m++) choices_add(&space.submodels, m);
    choices_add(&space.gpus, q->line->plan.per_node * q->line->plan.nodes);
    int fits = plan_choose(&plan, &space, PLAN_CHEAPEST);
    if (fits < 0) return -1;
    if (!best->gpus || (fits && plan_is_better(&plan, best, PLAN_CHEAPEST))) *best = plan;
    return 0;
}

/* Notes the memory that the outputs of a prefix take, for the largest output of a block. */
static void note_cache(Table *table, const Model *model, Precision precision) {
    size_t largest = 0, value = precision == PRECISION_BF16 ? 2 : sizeof(float);
    for (int b = 0; b < model->blocks - 1; b++) {
        size_t count = value_count(model, model->block[b].out, 1);
        if (count > largest) largest = count;
    }
    table_note(table,
               "--cache: up to %.4g GiB on disk or in host memory for each 1000 samples, and a "
               "submodel's turn must see each of them more than once.",
               1000.0 * (double)(largest * value) / GIB);
}

/* Notes which settings were chosen rather than given. */
static void note_choices(Table *table, const PlanQuestion *q) {
    const Options *o = &q->line->options;
    const char *trace = q->line->plan.trace;
    static const char *const names[] = {"pipeline",  "replicas",          "micro-batches",
                                        "placement", "pipeline-schedule", "recompute"};
    Text list = {""};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!options_given(o, names[i]))
            text_add(&list, "%s--%s", *list.text ? ", " : "", names[i]);
    if (*list.text) table_note(table, "Chosen, the cheapest that fits: %s.", list.text);
    table_note(table,
               "The last row may have other submodels, and another precision if none is given.");
    if (q->line->plan.cache) note_cache(table, q->model, (Precision)o->precision);
    for (int p = 0; p < PRECISIONS && *trace; p++)
        if (fabs(q->efficiency.products[p] - efficiency_default.products[p]) > 0)
            table_note(table, "Products in %s at %.3g %% of the peak, as measured (%.200s).",
                       precision_names[p], 100 * q->efficiency.products[p], trace);
}

static void add_plans(Tables *tables, const PlanQuestion *q, const Plan plan[ROWS]) {
    const PlanFlags *flags = &q->line->plan;
    Text title = text_of("%.60s (%s parameters), %d samples per update, on %d x %d %s",
                         q->model->name, format_count((double)q->model->param_count).text,
                         q->line->options.batch, flags->nodes, flags->per_node, q->gpu->name);
    if (plan->price > 0) text_add(&title, ", %.2f $/h each", plan->price);
    Table *table = plan_table(tables, q, "plan", title.text, "method");
    for (int row = 0; row < ROWS; row++)
        plan_row(table, q, label_of(&plan[row], row).text, &plan[row]);
    note_choices(table, q);
}

static void add_memory(Tables *tables, const PlanQuestion *q, const Plan plan[ROWS]) {
    static const TableColumn columns[] = {
        {"parameters", "parameters", "GiB", COLUMN_NUMBER, 3, SOURCE_CLOSED_FORM},
        {"gradients", "gradients", "GiB", COLUMN_NUMBER, 3, SOURCE_CLOSED_FORM},
        {"state", "state", "GiB", COLUMN_NUMBER, 3, SOURCE_CLOSED_FORM},
        {"activations", "activations", "GiB", COLUMN_NUMBER, 3, SOURCE_CLOSED_FORM},
        {"workspace", "workspace", "GiB", COLUMN_NUMBER, 3, SOURCE_CLOSED_FORM},
        {"total", "total", "GiB", COLUMN_NUMBER, 3, SOURCE_CLOSED_FORM},
        {"usable", "usable", "GiB", COLUMN_NUMBER, 2, SOURCE_GIVEN},
        {"host", "host", "GiB a node", COLUMN_NUMBER, 1, SOURCE_CLOSED_FORM},
    };
    Table *table = tables_add(tables, "memory", "Memory of the fullest GPU", "method", columns, 8);
    for (int row = 0; row < ROWS; row++) {
        const Prediction *p = &plan[row].prediction;
        const double *bytes = p->bytes;
        table_row(table, "%s", label_of(&plan[row], row).text);
        table_put(table, 0, bytes[MEM_PARAMETERS] / GIB, bytes[MEM_GRADIENTS] / GIB,
                  bytes[MEM_STATE] / GIB, bytes[MEM_ACTIVATIONS] / GIB, bytes[MEM_WORKSPACE] / GIB,
                  p->total_bytes / GIB, gpu_usable_bytes(q->gpu) / GIB,
                  p->host_bytes > 0 ? p->host_bytes / GIB : NAN);
    }
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
        table_text(table, TASK_WHAT, SOURCE_NONE, "%s", pass);
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
    if (simulate_timeline(&schedule, c, submodel, NULL)) {
        table_fail(table);
        return;
    }
    double busy_ms = 0, all_ms = 1e3 * schedule.time * schedule.ranks;
    for (int r = 0; r < schedule.ranks; r++) busy_ms += put_rank(table, &schedule.rank[r], r);
    table->figure = FIGURE_TIMELINE;
    strcpy(table->axis, "ms");
    table_note(table, "The GPUs wait %.0f %% of the %.4g ms of the passes; %d micro-batch%s.",
               100 * fmax(0, 1 - busy_ms / all_ms), 1e3 * schedule.time, c->micro_batches,
               c->micro_batches > 1 ? "es" : "");
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

int plan_cluster(Tables *tables, const PlanQuestion *q) {
    Plan plan[ROWS] = {0};
    for (PlanMethod m = 0; m < PLAN_METHODS; m++)
        if (answer(&plan[m], q, m, false)) return -1;
    for (PlanMethod m = 0; m < PLAN_METHODS; m++)
        if (answer(&plan[CHEAPEST], q, m, true)) return -1;
    add_plans(tables, q, plan);
    add_memory(tables, q, plan);
    if (plan[PLAN_BCD].prediction.fits) add_timeline(tables, &plan[PLAN_BCD]);
    return 0;
}
