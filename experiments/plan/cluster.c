/* `bcd plan` for given GPUs: compares the methods. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../tables/timeline.h"
#include "../train/progress.h"
#include "plan.h"

/* The methods with the sizes asked for, and the cheapest of any sizes. */
enum { ROWS = PLAN_METHODS + 1 };
typedef struct {
    Plan plan;
    bool fits;
    char label[48];
} PlanAnswer;

static int answer(PlanAnswer *a, const PlanQuestion *q, PlanMethod method, bool wide) {
    PlanSpace space;
    Plan plan;
    char name[32];
    if (question_space(&space, q, method, q->gpu, wide)) return -1;
    for (int m = 2; m <= 5 && wide && method == PLAN_BCD; m++) choices_add(&space.submodels, m);
    choices_add(&space.gpus, q->line->plan.per_node * q->line->plan.nodes);
    int found = plan_choose(&plan, &space, PLAN_CHEAPEST);
    if (found < 0) return -1;
    bool better =
        !a->fits || plan_score(&plan, PLAN_CHEAPEST) < plan_score(&a->plan, PLAN_CHEAPEST);
    if (*a->label && !(found && better)) return 0;
    a->plan = plan;
    a->fits = found;
    snprintf(a->label, sizeof a->label, "%s%s", wide ? "cheapest: " : "", plan_method(name, &plan));
    return 0;
}

/* ---- settings -------------------------------------------------------------------------------- */

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
    char list[160] = "";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!options_given(o, names[i])) strcat(strcat(list, *list ? ", --" : "--"), names[i]);
    if (*list) table_note(table, "Chosen, the cheapest that fits: %s.", list);
    table_note(table,
               "The last row may have other submodels, and another precision if none is given.");
    if (q->line->plan.cache) note_cache(table, q->model, (Precision)o->precision);
    for (int p = 0; p < PRECISIONS && *trace; p++)
        if (fabs(q->efficiency.products[p] - efficiency_default.products[p]) > 0)
            table_note(table, "Products in %s at %.3g %% of the peak, as measured (%.200s).",
                       precision_names[p], 100 * q->efficiency.products[p], trace);
}

static void add_settings(Tables *tables, const PlanQuestion *q, const PlanAnswer *a) {
    static const TableColumn columns[] = {
        {"pipeline", "pipeline", "ranks", COLUMN_NUMBER, 0, SOURCE_NONE},
        {"replicas", "replicas", "", COLUMN_NUMBER, 0, SOURCE_NONE},
        {"micro_batches", "micro-batches", "", COLUMN_NUMBER, 0, SOURCE_NONE},
        {"samples", "samples", "of each", COLUMN_NUMBER, 0, SOURCE_NONE},
        {"placement", "placement", "", COLUMN_TEXT, 0, SOURCE_NONE},
        {"schedule", "schedule", "", COLUMN_TEXT, 0, SOURCE_NONE},
        {"precision", "precision", "", COLUMN_TEXT, 0, SOURCE_NONE},
        {"recompute", "recompute", "", COLUMN_TEXT, 0, SOURCE_NONE},
    };
    const PlanFlags *flags = &q->line->plan;
    char title[160], count[32];
    snprintf(title, sizeof title, "%.60s (%s parameters), %d samples per update, on %d x %d %s",
             q->model->name, format_count((double)q->model->param_count, count),
             q->line->options.batch, flags->nodes, flags->per_node, q->gpu->name);
    Table *table = tables_add(tables, "setting", title, "method", columns, 8);
    for (int row = 0; row < ROWS; row++) {
        const Configuration *c = &a[row].plan.configuration;
        table_row(table, "%s", a[row].label);
        table_put(table, 0, c->pipeline, c->replicas, c->micro_batches, c->stage.batch);
        table_text(table, 4, SOURCE_NONE, "%s", placement_names[c->placement]);
        table_text(table, 5, SOURCE_NONE, "%s", schedule_names[c->schedule]);
        table_text(table, 6, SOURCE_NONE, "%s", precision_names[c->stage.precision]);
        table_text(table, 7, SOURCE_NONE, "%s", c->stage.recompute ? "yes" : "no");
    }
    note_choices(table, q);
}

/* ---- memory, time, cost ---------------------------------------------------------------------- */

static void add_memory(Tables *tables, const PlanQuestion *q, const PlanAnswer *a) {
    static const TableColumn columns[] = {
        {"parameters", "parameters", "GiB", COLUMN_NUMBER, 3, SOURCE_CLOSED_FORM},
        {"gradients", "gradients", "GiB", COLUMN_NUMBER, 3, SOURCE_CLOSED_FORM},
        {"state", "state", "GiB", COLUMN_NUMBER, 3, SOURCE_CLOSED_FORM},
        {"activations", "activations", "GiB", COLUMN_NUMBER, 3, SOURCE_CLOSED_FORM},
        {"workspace", "workspace", "GiB", COLUMN_NUMBER, 3, SOURCE_CLOSED_FORM},
        {"total", "total", "GiB", COLUMN_NUMBER, 3, SOURCE_CLOSED_FORM},
        {"usable", "usable", "GiB", COLUMN_NUMBER, 2, SOURCE_GIVEN},
        {"host", "host", "GiB a node", COLUMN_NUMBER, 1, SOURCE_CLOSED_FORM},
        {"fits", "fits", "", COLUMN_TEXT, 0, SOURCE_NONE},
    };
    Table *table = tables_add(tables, "memory", "Memory of the fullest GPU", "method", columns, 9);
    for (int row = 0; row < ROWS; row++) {
        const Prediction *p = &a[row].plan.prediction;
        const double *bytes = p->bytes;
        char text[PLAN_TEXT];
        table_row(table, "%s", a[row].label);
        table_put(table, 0, bytes[MEM_PARAMETERS] / GIB, bytes[MEM_GRADIENTS] / GIB,
                  bytes[MEM_STATE] / GIB, bytes[MEM_ACTIVATIONS] / GIB, bytes[MEM_WORKSPACE] / GIB,
                  p->total_bytes / GIB, gpu_usable_bytes(q->gpu) / GIB,
                  p->host_bytes > 0 ? p->host_bytes / GIB : NAN);
        table_text(table, 8, SOURCE_NONE, "%s",
                   a[row].fits ? "yes" : plan_limit(text, &a[row].plan));
    }
}

static void add_time(Tables *tables, const PlanQuestion *q, const PlanAnswer *a) {
    static const TableColumn columns[] = {
        {"passes", "passes", "ms", COLUMN_NUMBER, 1, SOURCE_SIMULATED},
        {"all_reduce", "all-reduce", "ms", COLUMN_NUMBER, 1, SOURCE_SIMULATED},
        {"update", "update", "ms", COLUMN_NUMBER, 1, SOURCE_SIMULATED},
        {"step", "step", "ms", COLUMN_NUMBER, 1, SOURCE_SIMULATED},
        {"bubble", "bubble", "of passes", COLUMN_PERCENT, 1, SOURCE_SIMULATED},
        {"rate", "images", "1/s", COLUMN_NUMBER, 0, SOURCE_SIMULATED},
        {"limit", "what limits it", "", COLUMN_TEXT, 0, SOURCE_NONE},
    };
    Table *table = tables_add(tables, "time", "Time of a step", "method", columns, 7);
    if (q->model->tokens) strcpy(table->column[5].head, "tokens");
    for (int row = 0; row < ROWS; row++) {
        const Prediction *p = &a[row].plan.prediction;
        char text[PLAN_TEXT];
        table_row(table, "%s", a[row].label);
        table_text(table, 6, SOURCE_NONE, "%s", plan_limit(text, &a[row].plan));
        if (a[row].fits)
            table_put(table, 0, 1e3 * p->passes_s, 1e3 * (p->reduce_s + p->tied_s),
                      1e3 * p->update_s, 1e3 * p->step_s, fmax(0, p->bubble), p->tokens_per_s);
    }
    table_note(
        table,
        "Means over the submodels.  bubble: time that GPUs wait for each other.  all-reduce: of "
        "gradients over the replicas, and of a tied embedding over its ranks.");
}

static void add_cost(Tables *tables, const PlanQuestion *q, const PlanAnswer *a) {
    static const char *const whose[PLAN_MULTIPLIERS] = {"average", "language", "worst", "ours"};
    enum { SAME = 2 };
    TableColumn columns[SAME + PLAN_MULTIPLIERS] = {
        {"gpu_hours", "GPU hours", "h", COLUMN_NUMBER, 1, SOURCE_SIMULATED},
        {"dollars", "cost", "$", COLUMN_NUMBER, 2, SOURCE_SIMULATED},
    };
    const char *what = q->model->tokens ? "tokens" : "images";
    char title[160];
    for (int m = 0; m < q->multipliers; m++) {
        TableColumn *column = &columns[SAME + m];
        *column = columns[1];
        snprintf(column->name, sizeof column->name, "same_loss_%s", whose[m]);
        snprintf(column->head, sizeof column->head, "x %.2f", q->multiplier[m]);
    }
    snprintf(title, sizeof title, "Cost of %.3g %s at %.2f $/h a GPU, and to the same loss",
             q->tokens, what, a->plan.price);
    Table *table = tables_add(tables, "cost", title, "method", columns, SAME + q->multipliers);
    for (int row = 0; row < ROWS; row++) {
        const Plan *plan = &a[row].plan;
        double dollars = plan_dollars(plan, q->tokens);
        table_row(table, "%s", a[row].label);
        if (!a[row].fits) continue;
        table_put(table, 0, plan_gpu_hours(plan, q->tokens), dollars);
        for (int m = 0; m < q->multipliers; m++)
            table_put(table, SAME + m,
                      plan->method == PLAN_BCD ? dollars * q->multiplier[m] : dollars);
    }
    table_note(
        table,
        "BCD takes more %s to the same loss: x the B-F multiplier, which the paper prints as "
        "1.39 on average and 2.77 at worst, and which is 2.44 over its language models.",
        what);
}

/* Adds the timeline of the middle submodel, if the pipeline has few enough ranks to print. */
static void add_timeline(Tables *tables, const Plan *plan) {
    enum { RANKS_SHOWN = 16 };
    const Configuration *c = &plan->configuration;
    if (c->pipeline == 1 || c->pipeline > RANKS_SHOWN) return;
    char title[160];
    int submodel = c->submodels / 2;
    snprintf(title, sizeof title, "Passes of %s, submodel %d", plan_method_names[plan->method],
             submodel + 1);
    timeline_add(tables, "timeline", title, c, submodel);
}

int plan_cluster(Tables *tables, const PlanQuestion *q) {
    PlanAnswer a[ROWS] = {0};
    for (PlanMethod m = 0; m < PLAN_METHODS; m++)
        if (answer(&a[m], q, m, false)) return -1;
    for (PlanMethod m = 0; m < PLAN_METHODS; m++)
        if (answer(&a[PLAN_METHODS], q, m, true)) return -1;
    add_settings(tables, q, a);
    add_memory(tables, q, a);
    add_time(tables, q, a);
    add_cost(tables, q, a);
    if (a[PLAN_BCD].fits) add_timeline(tables, &a[PLAN_BCD].plan);
    return 0;
}
