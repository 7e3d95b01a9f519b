/* `bcd plan --search` chooses the kind and number of GPUs and all else. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "plan.h"

/* Prints the progress of the search on a terminal, over the line before; "" clears it. */
static void progress(const char *text) {
    if (!isatty(STDERR_FILENO)) return;
    fprintf(stderr, "\r\033[K%s", text);
    fflush(stderr);
}

static const char *const goal_names[] = {[PLAN_CHEAPEST] = "cheapest", [PLAN_FASTEST] = "fastest"};

static void add_count(PlanChoices *gpus, const PlanQuestion *q, double price, int count) {
    const PlanFlags *flags = &q->line->plan;
    if (count <= flags->most_gpus && (!(flags->budget > 0) || count * price <= flags->budget))
        choices_add(gpus, count);
}

/* Adds the divisors of a node's GPUs, then whole nodes in powers of two. */
static void add_counts(PlanSpace *space, const PlanQuestion *q) {
    const PlanFlags *flags = &q->line->plan;
    for (int n = 1; n <= flags->per_node; n++)
        if (flags->per_node % n == 0) add_count(&space->gpus, q, space->price, n);
    for (int nodes = 2; nodes < flags->nodes; nodes *= 2)
        add_count(&space->gpus, q, space->price, nodes * flags->per_node);
    add_count(&space->gpus, q, space->price, flags->nodes * flags->per_node);
}

/* Returns what is minimised: dollars (GPU hours if there is only one kind of GPU, whose price may
 * be unknown), or seconds. */
static double value_of(const PlanQuestion *q, const Plan *plan, PlanGoal goal) {
    return plan_score(plan, goal) * (goal == PLAN_CHEAPEST && !q->gpu ? plan->price : 1);
}

/* Adds the best plan of a method on one kind of GPU, labelled "GPU, method".  *best is the best one
 * so far, in row *row. */
static int add_row(Table *table, const PlanQuestion *q, const Gpu *gpu, PlanMethod method,
                   PlanGoal goal, Plan *best, int *row) {
    PlanSpace space;
    Plan plan;
    const char *name = plan_method_names[method], *why = NULL;
    progress(text_of("%s: %s, %s", goal_names[goal], gpu->key, name).text);
    if (question_space(&space, q, method, gpu, true)) return -1;
    add_counts(&space, q);
    int found = space.gpus.count ? plan_choose(&plan, &space, goal) : -1;
    if (!space.gpus.count)
        why = isnan(space.price) ? "no price: give --price" : "over the budget";
    else if (found < 0)
        why = "no setting has these sizes";
    if (why)
        plan_row_without(table, text_of("%s, %s", gpu->key, name).text, why);
    else
        plan_row(table, q, text_of("%s, %s", gpu->key, plan_method(&plan).text).text, &plan, found);
    double known = *row < 0 ? INFINITY : value_of(q, best, goal);
    if (found <= 0 || !(value_of(q, &plan, goal) < known)) return 0;
    *best = plan;
    *row = table->rows - 1;
    return 0;
}

static int add_goal(Tables *tables, const PlanQuestion *q, PlanGoal goal) {
    Plan best;
    int row = -1;
    Text title =
        text_of("%.60s: the %s setting of each GPU and method, up to %d x %d GPUs", q->model->name,
                goal_names[goal], q->line->plan.nodes, q->line->plan.per_node);
    Table *table = plan_table(tables, q, goal_names[goal], title.text, "GPU, method");
    for (const Gpu *gpu = gpu_table; gpu->key; gpu++)
        for (PlanMethod m = 0; m < PLAN_METHODS && (!q->gpu || q->gpu == gpu); m++)
            if (add_row(table, q, gpu, m, goal, &best, &row)) return -1;
    if (row >= 0 && row < table->rows)
        table_note(table, "The %s: %s, %s.", goal_names[goal], table->label[row],
                   plan_setting(&best).text);
    else
        table_note(table, q->gpu || goal == PLAN_FASTEST ? "Nothing fits."
                                                         : "Nothing with a known price fits.");
    progress("");
    return 0;
}

int plan_search(Tables *tables, const PlanQuestion *q) {
    return add_goal(tables, q, PLAN_CHEAPEST) || add_goal(tables, q, PLAN_FASTEST) ? -1 : 0;
}
