/* `bcd plan` for GPUs that are named: every way to train beside the others. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../train/progress.h"
#include "plan.h"

#define GIB (1024.0 * 1024 * 1024)

/* The ways with the sizes asked for, and the cheapest of any sizes. */
enum { ROWS = WAYS + 1 };
typedef struct {
    Plan plan[ROWS];
    bool fits[ROWS];
    char label[ROWS][48];
} Answers;

static int answer(Answers *a, int row, const Question *q, Way way, bool wide) {
    Space space;
    Plan plan;
    if (question_space(&space, q, way, q->gpu, wide)) return -1;
    for (int m = 2; m <= 5 && wide && way == WAY_BCD; m++) choices_add(&space.submodels, m);
    choices_add(&space.gpus, q->options->per_node * q->options->nodes);
    int found = plan_choose(&plan, &space, CHEAPEST);
    if (found < 0) return -1;
    bool first = row < WAYS || way == WAY_FULL;
    bool better = found && (!a->fits[row] ||
                            plan_score(&plan, CHEAPEST) < plan_score(&a->plan[row], CHEAPEST));
    if (!first && !better) return 0;
    char name[32];
    a->plan[row] = plan;
    a->fits[row] = found;
    snprintf(a->label[row], sizeof a->label[row], "%s%s",
             row < WAYS ? "" : "cheapest: ", plan_way(name, &plan));
    return 0;
}

static int answer_all(Answers *a, const Question *q) {
    for (Way way = 0; way < WAYS; way++)
        if (answer(a, (int)way, q, way, false)) return -1;
    for (Way way = 0; way < WAYS; way++)
        if (answer(a, WAYS, q, way, true)) return -1;
    return 0;
}

/* ---- settings --------------------------------------------------------------------------------
 */

enum {
    S_PIPELINE,
    S_REPLICAS,
    S_MICRO,
    S_SAMPLES,
    S_PLACEMENT,
    S_SCHEDULE,
    S_PRECISION,
    S_AGAIN,
    S_COLUMNS
};
static const TableColumn setting_columns[S_COLUMNS] = {
    [S_PIPELINE] = {"pipeline", "pipeline", "ranks", COLUMN_NUMBER, 0, SOURCE_NONE},
    [S_REPLICAS] = {"replicas", "replicas", "", COLUMN_NUMBER, 0, SOURCE_NONE},
    [S_MICRO] = {"micro_batches", "micro-batches", "", COLUMN_NUMBER, 0, SOURCE_NONE},
    [S_SAMPLES] = {"samples", "samples", "of each", COLUMN_NUMBER, 0, SOURCE_NONE},
    [S_PLACEMENT] = {"placement", "placement", "", COLUMN_TEXT, 0, SOURCE_NONE},
    [S_SCHEDULE] = {"schedule", "schedule", "", COLUMN_TEXT, 0, SOURCE_NONE},
    [S_PRECISION] = {"precision", "precision", "", COLUMN_TEXT, 0, SOURCE_NONE},
    [S_AGAIN] = {"recompute", "recompute", "", COLUMN_TEXT, 0, SOURCE_NONE},
};

/* What keeping the prefix's outputs takes: where the blocks' sizes differ, of the largest. */
static void note_cache(Table *table, const Model *model, Precision precision) {
    size_t most = 0, value = precision == PRECISION_BF16 ? 2 : sizeof(float);
    for (int b = 0; b < model->blocks - 1; b++) {
        size_t count = value_count(model, model->block[b].out, 1);
        if (count > most) most = count;
    }
    table_note(table,
               "--cache: up to %.4g GiB on disk or in host memory for each 1000 samples, and a "
               "submodel's turn must see each of them more than once.",
               1000.0 * (double)(most * value) / GIB);
}

/* Which of them were chosen rather than given. */
static void note_choices(Table *table, const Question *q) {
    const Options *o = q->options;
    static const char *const names[] = {"pipeline",  "replicas",          "micro-batches",
                                        "placement", "pipeline-schedule", "recompute"};
    char list[160] = "";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!options_given(o, names[i])) strcat(strcat(list, *list ? ", --" : "--"), names[i]);
    if (*list) table_note(table, "Chosen, the cheapest that fits: %s.", list);
    table_note(table,
               "The last row may have other submodels, and another precision if none is given.");
    if (o->plan_cache) note_cache(table, q->model, (Precision)o->precision);
    for (int p = 0; p < PRECISIONS && *o->trace; p++)
        if (fabs(q->efficiency.products[p] - efficiency_default.products[p]) > 0)
            table_note(table, "Products in %s at %.3g %% of the peak, as measured (%.200s).",
                       precision_names[p], 100 * q->efficiency.products[p], o->trace);
}

static int add_settings(Tables *tables, const Question *q, const Answers *a) {
    const Options *o = q->options;
    char title[160], count[32];
    snprintf(title, sizeof title, "%.60s (%s parameters), %d samples per update, on %d x %d %s",
             q->model->name, format_count((double)q->model->param_count, count), o->batch, o->nodes,
             o->per_node, q->gpu->name);
    Table *table = tables_add(tables, "setting", title, "way", setting_columns, S_COLUMNS);
    if (!table) return -1;
    for (int row = 0; row < ROWS; row++) {
        const Configuration *c = &a->plan[row].configuration;
        table_row(table, "%s", a->label[row]);
        table_number(table, S_PIPELINE, c->pipeline, SOURCE_NONE);
        table_number(table, S_REPLICAS, c->replicas, SOURCE_NONE);
        table_number(table, S_MICRO, c->micro_batches, SOURCE_NONE);
        table_number(table, S_SAMPLES, c->stage.batch, SOURCE_NONE);
        table_text(table, S_PLACEMENT, SOURCE_NONE, "%s", placement_names[c->placement]);
        table_text(table, S_SCHEDULE, SOURCE_NONE, "%s", schedule_names[c->schedule]);
        table_text(table, S_PRECISION, SOURCE_NONE, "%s", precision_names[c->stage.precision]);
        table_text(table, S_AGAIN, SOURCE_NONE, "%s", c->stage.recompute ? "yes" : "no");
    }
    note_choices(table, q);
    return 0;
}

/* ---- memory ----------------------------------------------------------------------------------
 */

enum {
    M_PARAMETERS,
    M_GRADIENTS,
    M_STATE,
    M_ACTIVATIONS,
    M_WORKSPACE,
    M_TOTAL,
    M_USABLE,
    M_HOST,
    M_FITS,
    M_COLUMNS
};
static const TableColumn memory_columns[M_COLUMNS] = {
    [M_PARAMETERS] = {"parameters", "parameters", "GiB", COLUMN_NUMBER, 3, SOURCE_NONE},
    [M_GRADIENTS] = {"gradients", "gradients", "GiB", COLUMN_NUMBER, 3, SOURCE_NONE},
    [M_STATE] = {"state", "state", "GiB", COLUMN_NUMBER, 3, SOURCE_NONE},
    [M_ACTIVATIONS] = {"activations", "activations", "GiB", COLUMN_NUMBER, 3, SOURCE_NONE},
    [M_WORKSPACE] = {"workspace", "workspace", "GiB", COLUMN_NUMBER, 3, SOURCE_NONE},
    [M_TOTAL] = {"total", "total", "GiB", COLUMN_NUMBER, 3, SOURCE_NONE},
    [M_USABLE] = {"usable", "usable", "GiB", COLUMN_NUMBER, 2, SOURCE_NONE},
    [M_HOST] = {"host", "host", "GiB a node", COLUMN_NUMBER, 1, SOURCE_NONE},
    [M_FITS] = {"fits", "fits", "", COLUMN_TEXT, 0, SOURCE_NONE},
};

static int add_memory(Tables *tables, const Question *q, const Answers *a) {
    static const struct {
        int column;
        MemRole role;
    } roles[] = {{M_PARAMETERS, MEM_PARAMETERS},
                 {M_GRADIENTS, MEM_GRADIENTS},
                 {M_STATE, MEM_STATE},
                 {M_ACTIVATIONS, MEM_ACTIVATIONS},
                 {M_WORKSPACE, MEM_WORKSPACE}};
    Table *table =
        tables_add(tables, "memory", "Memory of the fullest GPU", "way", memory_columns, M_COLUMNS);
    if (!table) return -1;
    for (int row = 0; row < ROWS; row++) {
        const Prediction *p = &a->plan[row].prediction;
        char text[PLAN_TEXT];
        table_row(table, "%s", a->label[row]);
        for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
            table_number(table, roles[i].column, p->bytes[roles[i].role] / GIB, SOURCE_CLOSED_FORM);
        table_number(table, M_TOTAL, p->total_bytes / GIB, SOURCE_CLOSED_FORM);
        table_number(table, M_USABLE, gpu_usable_bytes(q->gpu) / GIB, SOURCE_GIVEN);
        table_number(table, M_HOST, p->host_bytes > 0 ? p->host_bytes / GIB : NAN,
                     SOURCE_CLOSED_FORM);
        table_text(table, M_FITS, SOURCE_NONE, "%s",
                   a->fits[row] ? "yes" : plan_limit(text, &a->plan[row]));
    }
    return 0;
}

/* ---- time ------------------------------------------------------------------------------------
 */

enum { T_PASSES, T_REDUCE, T_UPDATE, T_STEP, T_BUBBLE, T_RATE, T_LIMIT, T_COLUMNS };

static int add_time(Tables *tables, const Question *q, const Answers *a) {
    TableColumn columns[T_COLUMNS] = {
        [T_PASSES] = {"passes", "passes", "ms", COLUMN_NUMBER, 1, SOURCE_NONE},
        [T_REDUCE] = {"all_reduce", "all-reduce", "ms", COLUMN_NUMBER, 1, SOURCE_NONE},
        [T_UPDATE] = {"update", "update", "ms", COLUMN_NUMBER, 1, SOURCE_NONE},
        [T_STEP] = {"step", "step", "ms", COLUMN_NUMBER, 1, SOURCE_NONE},
        [T_BUBBLE] = {"bubble", "bubble", "of passes", COLUMN_PERCENT, 1, SOURCE_NONE},
        [T_RATE] = {"rate", "images", "1/s", COLUMN_NUMBER, 0, SOURCE_NONE},
        [T_LIMIT] = {"limit", "what limits it", "", COLUMN_TEXT, 0, SOURCE_NONE},
    };
    if (q->model->tokens) snprintf(columns[T_RATE].head, sizeof columns->head, "tokens");
    Table *table = tables_add(tables, "time", "Time of a step", "way", columns, T_COLUMNS);
    if (!table) return -1;
    for (int row = 0; row < ROWS; row++) {
        const Prediction *p = &a->plan[row].prediction;
        char text[PLAN_TEXT];
        table_row(table, "%s", a->label[row]);
        table_text(table, T_LIMIT, SOURCE_NONE, "%s", plan_limit(text, &a->plan[row]));
        if (!a->fits[row]) continue;
        table_number(table, T_PASSES, 1e3 * p->passes_s, SOURCE_SIMULATED);
        table_number(table, T_REDUCE, 1e3 * (p->reduce_s + p->tied_s), SOURCE_SIMULATED);
        table_number(table, T_UPDATE, 1e3 * p->update_s, SOURCE_SIMULATED);
        table_number(table, T_STEP, 1e3 * p->step_s, SOURCE_SIMULATED);
        table_number(table, T_BUBBLE, fmax(0, p->bubble), SOURCE_SIMULATED);
        table_number(table, T_RATE, p->tokens_per_s, SOURCE_SIMULATED);
    }
    table_note(table,
               "Mean over the submodels.  bubble: the GPUs wait for each other.  all-reduce: of "
               "gradients over the replicas, and of a tied embedding over its ranks.");
    return 0;
}

/* ---- cost ------------------------------------------------------------------------------------
 */

enum { C_HOURS, C_DOLLARS, C_SAME, C_COLUMNS = C_SAME + MULTIPLIERS_SHOWN };

static int add_cost(Tables *tables, const Question *q, const Answers *a) {
    static const char *const whose[MULTIPLIERS_SHOWN] = {"average", "language", "worst", "ours"};
    TableColumn columns[C_COLUMNS] = {
        [C_HOURS] = {"gpu_hours", "GPU hours", "h", COLUMN_NUMBER, 1, SOURCE_NONE},
        [C_DOLLARS] = {"dollars", "cost", "$", COLUMN_NUMBER, 2, SOURCE_NONE},
    };
    for (int m = 0; m < q->multipliers; m++) {
        TableColumn *column = &columns[C_SAME + m];
        *column = (TableColumn){.unit = "$", .kind = COLUMN_NUMBER, .decimals = 2};
        snprintf(column->name, sizeof column->name, "same_loss_%s", whose[m]);
        snprintf(column->head, sizeof column->head, "x %.2f", q->multiplier[m]);
    }
    char title[160];
    snprintf(title, sizeof title, "Cost of %.3g %s at %.2f $/h a GPU, and to the same loss",
             q->tokens, q->model->tokens ? "tokens" : "images", a->plan[0].price);
    Table *table = tables_add(tables, "cost", title, "way", columns, C_SAME + q->multipliers);
    if (!table) return -1;
    for (int row = 0; row < ROWS; row++) {
        const Plan *plan = &a->plan[row];
        table_row(table, "%s", a->label[row]);
        if (!a->fits[row]) continue;
        double dollars = plan_dollars(plan, q->tokens);
        table_number(table, C_HOURS, plan_gpu_hours(plan, q->tokens), SOURCE_SIMULATED);
        table_number(table, C_DOLLARS, dollars, SOURCE_SIMULATED);
        for (int m = 0; m < q->multipliers; m++)
            table_number(table, C_SAME + m,
                         plan->way == WAY_BCD ? dollars * q->multiplier[m] : dollars,
                         SOURCE_SIMULATED);
    }
    table_note(
        table,
        "BCD takes more %s to the same loss: x the B-F multiplier, which the paper prints as "
        "1.39 on average and 2.77 at worst, and which is 2.44 over its language models.",
        q->model->tokens ? "tokens" : "images");
    return 0;
}

int plan_cluster(Tables *tables, const Question *q, Plan *shown) {
    Answers a = {0};
    if (answer_all(&a, q) || add_settings(tables, q, &a) || add_memory(tables, q, &a) ||
        add_time(tables, q, &a) || add_cost(tables, q, &a))
        return -1;
    if (a.fits[WAY_BCD]) *shown = a.plan[WAY_BCD];
    return 0;
}
