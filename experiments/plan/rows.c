/* Plans as text, and tables with a row for each plan. */
#include <math.h>
#include <string.h>

#include "plan.h"

Text plan_method(const Plan *plan) {
    return text_of(plan->method == PLAN_BCD ? "%s-1/%d" : "%s", plan_method_names[plan->method],
                   plan->configuration.submodels);
}

void plan_progress(const char *text) {
    if (!is_terminal(stderr)) return;
    fprintf(stderr, "\r\033[K%s", text);
    fflush(stderr);
}

Text plan_setting(const Plan *plan) {
    const Configuration *c = &plan->configuration;
    Text text = text_of("%dx%d", c->replicas, c->pipeline);
    if (c->replicas * c->pipeline < plan->gpus) text_add(&text, " of %d", plan->gpus);
    text_add(&text, " %ss, %dx%d", plan_unit(c->cluster.gpu), c->micro_batches, c->stage.batch);
    if (c->pipeline > 1)
        text_add(&text, ", %s, %s", placement_names[c->placement], schedule_names[c->schedule]);
    text_add(&text, ", %s%s", precision_names[c->stage.precision],
             c->stage.recompute ? ", recompute" : "");
    return text;
}

/* "3.1 GiB", "8 MiB". */
static Text missing_of(double bytes) {
    return bytes < GIB / 10 ? text_of("%.0f MiB", ceil(bytes / MIB))
                            : text_of("%.3g GiB", bytes / GIB);
}

static Text lacks(const Plan *plan) {
    const Prediction *p = &plan->prediction;
    const Configuration *c = &plan->configuration;
    const double missing = p->total_bytes - gpu_usable_bytes(c->cluster.gpu->memory_bytes);
    int largest = 0;
    if (missing <= 0)
        return text_of("host memory: lacks %s", missing_of(p->host_bytes - c->host_memory).text);
    for (int role = 1; role < MEM_ROLES; role++)
        if (p->bytes[role] > p->bytes[largest]) largest = role;
    return text_of("memory: lacks %s, largest: %s", missing_of(missing).text,
                   mem_role_names[largest]);
}

/* Returns the fraction of the passes that free communication would save. */
static double message_share(const Plan *plan) {
    Configuration c = plan->configuration;
    Gpu gpu = *c.cluster.gpu;
    Prediction free;
    gpu.interconnect_bandwidth = INFINITY;
    c.cluster.gpu = &gpu;
    c.cluster.network_rate = INFINITY;
    c.cluster.efficiency.interconnect_latency_s = c.cluster.efficiency.network_latency_s = 0;
    if (c.pipeline == 1 || simulate(&free, NULL, &c, NULL)) return 0;
    return fmax(0, 1 - free.passes_s / plan->prediction.passes_s);
}

/* Says what takes most of a step. */
static Text longest(const Plan *plan) {
    const Prediction *p = &plan->prediction;
    double passes = p->passes_s / p->step_s, messages = passes * message_share(plan);
    const struct {
        const char *what;
        double share;
    } causes[] = {
        {"bubble", fmax(0, passes * p->bubble - messages)},
        {"messages between ranks", messages},
        {"all-reduce of gradients", p->reduce_s / p->step_s},
        {"gradient of the tied head", p->tied_s / p->step_s},
        {plan->method == PLAN_OFFLOAD ? "update in host memory" : "update",
         p->update_s / p->step_s},
    };
    int worst = 0;
    for (int i = 1; i < (int)(sizeof causes / sizeof *causes); i++)
        if (causes[i].share > causes[worst].share) worst = i;
    if (causes[worst].share < 0.1) return text_of("passes %.0f %%", 100 * passes * (1 - p->bubble));
    return text_of("%s %.0f %%", causes[worst].what, 100 * causes[worst].share);
}

Text plan_limit(const Plan *plan) {
    const Prediction *p = &plan->prediction;
    if (!p->fits) return lacks(plan);
    Text text = longest(plan);
    if (plan->method == PLAN_OFFLOAD)
        text_add(&text, "; %.1f GiB of host memory", p->host_bytes / GIB);
    return text;
}

double plan_gpu_hours(const Plan *plan, double tokens) {
    return tokens / plan->prediction.tokens_per_s / 3600 * plan->gpus;
}

double plan_dollars(const Plan *plan, double tokens) {
    return plan_gpu_hours(plan, tokens) * plan->price;
}

/* ---- tables ---------------------------------------------------------------------------------- */

enum { SETTING, BYTES, STEP, HOURS = 5, SAME_LOSS_HOURS = 8, UPDATES, BREAK_EVEN, LIMIT, COLUMNS };

/* The images that are trained on in an epoch. */
enum { CIFAR10_IMAGES = 50000 };

Table *plan_table(Tables *tables, const PlanQuestion *q, const char *name, const char *title,
                  const char *row_head) {
    static const TableColumn fixed[COLUMNS] = {
        {"setting", "setting", "", COLUMN_TEXT, 0, SOURCE_NONE},
        {"memory", "memory", "GiB", COLUMN_NUMBER, 1, SOURCE_CLOSED_FORM},
        {"step", "step", "ms", COLUMN_NUMBER, 1, SOURCE_SIMULATED},
        {"bubble", "bubble", "", COLUMN_PERCENT, 0, SOURCE_SIMULATED},
        {"rate", "images", "1/s", COLUMN_NUMBER, 0, SOURCE_SIMULATED},
        {"gpu_hours", "GPU hours", "h", COLUMN_NUMBER, 1, SOURCE_SIMULATED},
        {"dollars", "cost", "$", COLUMN_NUMBER, 2, SOURCE_SIMULATED},
        {"same_loss", "same loss", "$", COLUMN_NUMBER, 2, SOURCE_SIMULATED},
        {"same_loss_hours", "same loss", "h", COLUMN_NUMBER, 1, SOURCE_SIMULATED},
        {"updates", "updates", "assumed", COLUMN_NUMBER, 2, SOURCE_NONE},
        {"break_even", "break-even", "/ full", COLUMN_NUMBER, 2, SOURCE_SIMULATED},
        {"limit", "limit", "", COLUMN_TEXT, 0, SOURCE_NONE},
    };
    const char *unit = plan_unit(q->gpu);
    const double tokens = q->line->options.plan.tokens;
    Table *table = tables_add(tables, name, title, row_head, fixed, COLUMNS);
    snprintf(table->column[HOURS].head, sizeof table->column[HOURS].head, "%s hours", unit);
    if (q->model->tokens) strcpy(table->column[4].head, "tokens");
    if (!isnan(q->multiplier)) strcpy(table->column[UPDATES].unit, "given");
    table_note(
        table,
        "memory: of the fullest %s.  step: mean over the submodels.  bubble: share of the "
        "passes that %ss wait for each other.  %s hours and cost: of %.9g %s; --tokens N "
        "plans another length.",
        unit, unit, unit, tokens,
        q->model->tokens
            ? "tokens"
            : text_of("images, which are %.6g epochs of CIFAR-10", tokens / CIFAR10_IMAGES).text);
    table_note(table, "same loss: the cost, and the hours on the clock, x updates.");
    if (question_asks(q, PLAN_BCD)) plan_updates_note(table, q);
    return table;
}

void plan_row(Table *table, const PlanQuestion *q, const char *label, const Plan *plan) {
    const Prediction *p = &plan->prediction;
    double tokens = q->line->options.plan.tokens, dollars = plan_dollars(plan, tokens);
    table_row(table, "%s", label);
    table_text(table, SETTING, "%s", plan_setting(plan).text);
    table_put(table, BYTES, p->total_bytes / GIB);
    table_text(table, LIMIT, "%s", plan_limit(plan).text);
    if (p->fits)
        table_put(table, STEP, 1e3 * p->step_s, fmax(0, p->bubble), p->tokens_per_s,
                  plan_gpu_hours(plan, tokens), dollars, dollars * plan->updates,
                  plan_gpu_hours(plan, tokens) / plan->gpus * plan->updates,
                  plan->method == PLAN_BCD ? plan->updates : NAN);
}

void plan_row_without(Table *table, const char *label, const char *why) {
    table_row(table, "%s", label);
    table_text(table, LIMIT, "%s", why);
}

double plan_value(const PlanQuestion *q, const Plan *plan, PlanGoal goal) {
    if (!plan->gpus || !plan->prediction.fits) return NAN;
    return plan_score(plan, goal) * (goal == PLAN_CHEAPEST && !q->gpu ? plan->price : 1);
}

/* Returns the value of the best plan that is not of BCD; NAN if none fits. */
static double best_other(const PlanQuestion *q, const Plan *plans, int count, PlanGoal goal) {
    double best = NAN;
    for (int i = 0; i < count; i++)
        if (plans[i].method != PLAN_BCD) best = fmin(best, plan_value(q, &plans[i], goal));
    return best;
}

void plan_break_even(Table *table, const PlanQuestion *q, const Plan *plans, int named,
                     PlanGoal goal) {
    bool any = false;
    for (int row = 0; row < table->rows; row++) {
        const double best = best_other(q, plans, row < named ? named : table->rows, goal);
        const double even = best * plans[row].updates / plan_value(q, &plans[row], goal);
        if (plans[row].method != PLAN_BCD || !(even > 0)) continue;
        table->cell[row * table->columns + BREAK_EVEN] =
            (Cell){.value = even, .source = SOURCE_SIMULATED};
        any = true;
    }
    if (any)
        table_note(table,
                   "break-even: with so many times the updates BCD %s as the best row of the other "
                   "methods%s.",
                   goal == PLAN_CHEAPEST ? "costs as much" : "takes as long",
                   named ? "; rows of the sizes asked for are compared with each other" : "");
}

void plan_digits(Table *table) {
    enum { MOST = 6 };
    for (int column = BYTES; column <= SAME_LOSS_HOURS; column++) {
        TableColumn *c = &table->column[column];
        double least = INFINITY;
        for (int row = 0; row < table->rows && c->kind == COLUMN_NUMBER; row++) {
            const double value = table->cell[row * table->columns + column].value;
            if (value > 0) least = fmin(least, value);
        }
        /* Two digits that are not leading zeros. */
        const int wanted = isfinite(least) ? 1 - (int)floor(log10(least)) : 0;
        if (wanted > c->decimals) c->decimals = wanted < MOST ? wanted : MOST;
    }
}

/* ---- rates ----------------------------------------------------------------------------------- */

static bool is_changed(const PlanQuestion *q) {
    const PlanFlags *flags = &q->line->options.plan;
    return flags->step_ms > 0 || flags->efficiency > 0 || flags->host_rate > 0 || *flags->trace;
}

void plan_rates(Tables *tables, const PlanQuestion *q, const Gpu *gpu) {
    static const TableColumn columns[] = {
        {"products", "products", "of peak", COLUMN_PERCENT, 1, SOURCE_GIVEN},
        {"memory", "memory", "of peak", COLUMN_PERCENT, 0, SOURCE_GIVEN},
        {"interconnect", "messages", "of peak", COLUMN_PERCENT, 0, SOURCE_GIVEN},
        {"launch", "a kernel", "us", COLUMN_NUMBER, 0, SOURCE_GIVEN},
        {"latency", "a message", "us", COLUMN_NUMBER, 0, SOURCE_GIVEN},
        {"network_latency", "over nodes", "us", COLUMN_NUMBER, 0, SOURCE_GIVEN},
        {"host_process", "host, process", "GB/s", COLUMN_NUMBER, 1, SOURCE_GIVEN},
        {"host_node", "host, node", "GB/s", COLUMN_NUMBER, 1, SOURCE_GIVEN},
    };
    const Options *o = &q->line->options;
    const Efficiency *e = &q->efficiency;
    const char *name = gpu ? gpu->key : "any GPU";
    if (q->machine.key && !is_changed(q) && !o->plan.unfused_attention) return; /* measured */
    Table *table = tables_add(tables, "rates", "Rates that the simulation takes", "GPU", columns,
                              (int)(sizeof columns / sizeof *columns));
    for (int i = 0; i < PRECISIONS; i++) {
        const int precision = (o->precision + i) % PRECISIONS;
        if (i && (options_given(o, "precision") || q->machine.key)) break;
        table_row(table, i ? "%s, %s" : "%s", name, precision_names[precision]);
        table_put(table, 0, e->products[precision], e->memory, e->interconnect, 1e6 * e->launch_s,
                  1e6 * e->interconnect_latency_s, 1e6 * e->network_latency_s,
                  e->host_process_rate / 1e9, efficiency_node_rate(e) / 1e9);
    }
    table_note(
        table,
        "products: matrix products in %s, as a fraction of the peak.  host: what Adam moves "
        "in host memory when the optimizer is there, in the process of one GPU and in a node "
        "at most.%s",
        precision_names[o->precision],
        e->scores_in_memory ? "  Attention scores go through memory." : "");
    if (!is_changed(q))
        table_note(table,
                   "Products and memory are those of cuBLAS and of copies on an H200; the others "
                   "are guesses.  No GPU has run this program: --efficiency, --trace or --step-ms "
                   "replace them by what was measured.");
    if (o->plan.step_ms > 0)
        table_note(
            table,
            "With them a step of --method %s takes %.6g ms (--step-ms), or the nearest that its "
            "schedule can take.",
            plan_names[o->plan.method], o->plan.step_ms);
}
