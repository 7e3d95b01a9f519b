/* `bcd plan --search`: which GPUs, how many, and everything else. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "plan.h"

static const char *const goal_names[] = {[CHEAPEST] = "cheapest", [FASTEST] = "fastest"};

static void add_count(Choices *gpus, const Question *q, double price, int count) {
    const Options *o = q->options;
    if (count > o->most_gpus) return;
    if (o->budget > 0 && !(count * price <= o->budget)) return;
    choices_add(gpus, count);
}

/* On one node every divisor of it; then whole nodes, doubling. */
static Choices counts(const Question *q, double price) {
    const Options *o = q->options;
    Choices gpus = {0};
    for (int n = 1; n <= o->per_node; n++)
        if (o->per_node % n == 0) add_count(&gpus, q, price, n);
    for (int nodes = 2; nodes < o->nodes; nodes *= 2)
        add_count(&gpus, q, price, nodes * o->per_node);
    add_count(&gpus, q, price, o->nodes * o->per_node);
    return gpus;
}

/* The best plan of all rows so far. */
typedef struct {
    Plan plan;
    char label[64];
    double score;
} Winner;

/* What is minimised across GPUs: dollars, or seconds. */
static double value_of(const Plan *plan, Goal goal) {
    double score = plan_score(plan, goal);
    return goal == CHEAPEST ? score * plan->price : score;
}

/* One row: the best of a way on one kind of GPU. */
static int add_row(Table *table, const Question *q, const Gpu *gpu, Way way, Goal goal,
                   Winner *winner) {
    Space space;
    Plan plan;
    char label[64], name[32];
    if (question_space(&space, q, way, gpu, true)) return -1;
    space.gpus = counts(q, space.price);
    snprintf(label, sizeof label, "%s, %s", gpu->key, way_names[way]);
    if (!space.gpus.count) {
        plan_row_without(table, label,
                         isnan(space.price) ? "no price: give --price" : "over the budget");
        return 0;
    }
    int found = plan_choose(&plan, &space, goal);
    if (found < 0) {
        plan_row_without(table, label, "no setting has these sizes");
        return 0;
    }
    snprintf(label, sizeof label, "%s, %s", gpu->key, plan_way(name, &plan));
    plan_row(table, q, label, &plan, found);
    if (found && value_of(&plan, goal) < winner->score) {
        winner->plan = plan;
        winner->score = value_of(&plan, goal);
        memcpy(winner->label, label, sizeof label);
    }
    return 0;
}

static int add_goal(Tables *tables, const Question *q, Goal goal) {
    char title[160], text[PLAN_TEXT];
    Winner winner = {.score = INFINITY};
    snprintf(title, sizeof title, "%.60s: the %s setting of each GPU and way, up to %d x %d GPUs",
             q->model->name, goal_names[goal], q->options->nodes, q->options->per_node);
    Table *table = plan_table(tables, q, goal_names[goal], title, "GPU, way");
    if (!table) return -1;
    for (const Gpu *gpu = gpu_table; gpu->key; gpu++)
        for (Way way = 0; way < WAYS && (!q->gpu || q->gpu == gpu); way++)
            if (plan_progress("%s: %s, %s", goal_names[goal], gpu->key, way_names[way]) ||
                add_row(table, q, gpu, way, goal, &winner))
                return -1;
    if (winner.score < INFINITY)
        table_note(table, "The %s: %s, %s.", goal_names[goal], winner.label,
                   plan_setting(text, &winner.plan));
    else
        table_note(table, "Nothing fits.");
    return 0;
}

int plan_search(Tables *tables, const Question *q) {
    return add_goal(tables, q, CHEAPEST) || add_goal(tables, q, FASTEST) ? -1 : 0;
}
