/* The timeline of a pipeline step as a table. */
#include "plan.h"

#include <math.h>
#include <string.h>

static const TableColumn columns[TASK_COLUMNS] = {
    [TASK_WHAT] = {"task", "task", "", COLUMN_TEXT, 0, SOURCE_NONE},
    [TASK_CHUNK] = {"chunk", "chunk", "", COLUMN_NUMBER, 0, SOURCE_NONE},
    [TASK_MICRO_BATCH] = {"micro_batch", "micro-batch", "", COLUMN_NUMBER, 0, SOURCE_NONE},
    [TASK_START] = {"start", "start", "ms", COLUMN_NUMBER, 3, SOURCE_NONE},
    [TASK_END] = {"end", "end", "ms", COLUMN_NUMBER, 3, SOURCE_NONE},
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
        table_number(table, TASK_CHUNK, task->chunk, SOURCE_NONE);
        table_number(table, TASK_MICRO_BATCH, task->micro_batch, SOURCE_NONE);
        table_number(table, TASK_START, 1e3 * task->start, SOURCE_SIMULATED);
        table_number(table, TASK_END, 1e3 * task->end, SOURCE_SIMULATED);
        busy_ms += 1e3 * (task->end - task->start);
    }
    return busy_ms;
}

void timeline_add(Tables *tables, const char *name, const char *title, const Configuration *c,
                  int submodel) {
    Schedule schedule;
    Table *table = tables_add(tables, name, title, "rank", columns, TASK_COLUMNS);
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
