/* A step of a pipeline as text: a line for each rank, a letter for what it does. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan.h"

enum { COLUMNS = 88, PIECE = 42, RANKS_SHOWN = 16 };

static char letter(Doing what) {
    switch (what) {
        case DO_FORWARD:
            return 'f';
        case DO_INPUT_GRADIENT:
            return 'b';
        case DO_WEIGHT_GRADIENT:
            return 'w';
        default:
            return 0;
    }
}

/* What a rank does at a time. */
static char doing_at(const TaskList *list, double time) {
    for (int i = 0; i < list->tasks; i++) {
        const Task *task = &list->task[i];
        if (letter(task->what) && task->start <= time && time < task->end)
            return letter(task->what);
    }
    return '.';
}

/* Half of the mean task: so that every one is seen. */
static double column_time(const Schedule *schedule) {
    double sum = 0;
    int tasks = 0;
    for (int r = 0; r < schedule->ranks; r++)
        for (int i = 0; i < schedule->rank[r].tasks; i++) {
            const Task *task = &schedule->rank[r].task[i];
            if (!letter(task->what)) continue;
            sum += task->end - task->start;
            tasks++;
        }
    return sum / tasks / 2;
}

static void print_rank(FILE *out, const Schedule *schedule, int rank, double column_s,
                       int columns) {
    const TaskList *list = &schedule->rank[rank];
    fprintf(out, "  rank %2d  ", rank);
    for (int column = 0; column < columns; column++) {
        if (columns > COLUMNS && column == PIECE) {
            fprintf(out, " .. ");
            column = columns - PIECE;
        }
        fputc(doing_at(list, (column + 0.5) * column_s), out);
    }
    fputc('\n', out);
}

int plan_timeline(FILE *out, const Plan *plan) {
    const Configuration *c = &plan->configuration;
    if (c->pipeline == 1 || c->pipeline > RANKS_SHOWN) return 0;
    Schedule schedule;
    int submodel = c->submodels / 2;
    if (simulate_timeline(&schedule, c, submodel, NULL)) return -1;
    double column_s = fmax(column_time(&schedule), schedule.time / 1e6);
    int columns = (int)ceil(schedule.time / column_s);
    fprintf(out, "Passes of %s, submodel %d, %.3g ms a letter%s:\n", way_names[plan->way],
            submodel + 1, 1e3 * column_s, columns > COLUMNS ? ", its beginning and its end" : "");
    for (int r = 0; r < schedule.ranks; r++) print_rank(out, &schedule, r, column_s, columns);
    fprintf(out, "f forward, b input gradients, w weight gradients, . waits (simulated)\n\n");
    schedule_free(&schedule);
    return 0;
}
