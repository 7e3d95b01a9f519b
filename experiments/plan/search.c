/* `bcd plan --search` chooses the kind and number of GPUs and all else. */
#include <math.h>

#include "plan.h"

static const char *const goal_names[] = {[PLAN_CHEAPEST] = "cheapest", [PLAN_FASTEST] = "fastest"};

/* Adds the divisors of a node's GPUs, whole nodes in powers of two, and all GPUs, as far as they
 * are allowed and within the budget. */
static void add_counts(PlanSpace *space, const PlanQuestion *q) {
    const PlanFlags *flags = &q->line->options.plan;
    int all = flags->per_node * flags->nodes;
    for (int n = 1; n <= all && n <= flags->max_gpus; n++) {
        int nodes = n / flags->per_node;
        bool whole = n % flags->per_node == 0 && (nodes & (nodes - 1)) == 0;
        bool affordable = !(flags->budget > 0) || n * space->plan.price <= flags->budget;
        if ((flags->per_node % n == 0 || whole || n == all) && affordable)
            choices_add(&space->gpus, n);
    }
}

/* "rtx4090, BCD-1/3". */
static Text label_of(const Plan *plan) {
    return text_of("%s, %s", plan->configuration.cluster.gpu->key, plan_method(plan).text);
}

/* Adds a row with the best plan of a method on one kind of GPU.  *plan is that; it has no GPUs if
 * there is none. */
static int add_row(Table *table, Plan *plan, const PlanQuestion *q, const Gpu *gpu,
                   PlanMethod method, PlanGoal goal) {
    PlanSpace space;
    const Text what = text_of("%s, %s", gpu->key, plan_method_names[method]);
    plan_progress(text_of("%s: %s", goal_names[goal], what.text).text);
    *plan = (Plan){.method = method};
    if (question_space(&space, q, method, gpu, true)) return -1;
    add_counts(&space, q);
    if (!space.gpus.count)
        plan_row_without(table, what.text,
                         isnan(space.plan.price) ? "no price: give --price" : "over the budget");
    else if (plan_choose(plan, &space, goal) < 0)
        plan_row_without(table, what.text, "no setting has these sizes");
    else
        plan_row(table, q, label_of(plan).text, plan);
    return 0;
}

static int add_goal(Tables *tables, const PlanQuestion *q, PlanGoal goal) {
    enum { GPUS = 16 };
    Plan plans[GPUS * PLAN_METHODS];
    int best = -1;
    Text title =
        text_of("%.60s: the %s setting of each GPU and method, up to %d x %d GPUs", q->model->name,
                goal_names[goal], q->line->options.plan.nodes, q->line->options.plan.per_node);
    Table *table = plan_table(tables, q, goal_names[goal], title.text, "GPU, method");
    for (const Gpu *gpu = gpu_table; gpu->key && gpu < gpu_table + GPUS; gpu++)
        for (PlanMethod m = 0; m < PLAN_METHODS && (!q->gpu || q->gpu == gpu); m++)
            if (question_asks(q, (int)m) && add_row(table, &plans[table->rows], q, gpu, m, goal))
                return -1;
    plan_progress("");
    for (int row = 0; row < table->rows; row++)
        if (plan_value(q, &plans[row], goal) <
            (best < 0 ? INFINITY : plan_value(q, &plans[best], goal)))
            best = row;
    plan_digits(table);
    plan_break_even(table, q, plans, 0, goal);
    plan_notes(table, q, plans);
    if (best < 0)
        table_note(table, "Nothing fits, or is allowed: the last column says why.");
    else
        table_note(table, "The %s to the same loss%s%s: %s, %s.", goal_names[goal],
                   goal == PLAN_CHEAPEST && !q->gpu ? ", of those with a price" : "",
                   plans[best].method == PLAN_BCD ? ", if the updates are as assumed" : "",
                   label_of(&plans[best]).text, plan_setting(&plans[best]).text);
    return 0;
}

int plan_search(Tables *tables, const PlanQuestion *q) {
    if (add_goal(tables, q, PLAN_CHEAPEST) || add_goal(tables, q, PLAN_FASTEST)) return -1;
    plan_rates(tables, q, q->gpu);
    return 0;
}
