#include "timeline.h"

#include <math.h>
#include <string.h>

static const char *const pass_names[PASSES] = {"forward", "input gradient", "weight gradient"};

static const TableColumn columns[TASK_COLUMNS] = {
    [TASK_WHAT] = {"task", "task", "", COLUMN_TEXT, 0, SOURCE_NONE},
    [TASK_CHUNK] = {"chunk", "chunk", "", COLUMN_NUMBER, 0, SOURCE_NONE},
    [TASK_MICRO_BATCH] = {"micro_batch", "micro-batch", "", COLUMN_NUMBER, 0, SOURCE_NONE},
    [TASK_START] = {"start", "start", "ms", COLUMN_NUMBER, 3, SOURCE_NONE},
    [TASK_END] = {"end", "end", "ms", COLUMN_NUMBER, 3, SOURCE_NONE},
};

static int pass_of(TaskKind kind) {
    switch (kind) {
        case TASK_FORWARD:
            return PASS_FORWARD;
        case TASK_INPUT_GRADIENT:
            return PASS_INPUT_GRADIENT;
        case TASK_WEIGHT_GRADIENT:
            return PASS_WEIGHT_GRADIENT;
        default:
            return -1;
    }
}

/* Adds the tasks of a rank that compute: no messages, and no tasks without duration, which are part
 * of another one.  Returns their milliseconds. */
static double put_rank(Table *table, const TaskList *list, int rank) {
    double busy_ms = 0;
    for (int i = 0; i < list->tasks; i++) {
        const Task *task = &list->task[i];
        int pass = pass_of(task->kind);
        if (pass < 0 || task->end <= task->start) continue;
        table_row(table, "rank %2d", rank);
        table_text(table, TASK_WHAT, SOURCE_NONE, "%s", pass_names[pass]);
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
                   "A backward pass is one piece: its input gradients (b) include the "
                   "weight gradients.");
    schedule_free(&schedule);
}

static int find_pass(const Table *table, int row) {
    for (int p = 0; p < PASSES; p++)
        if (!strcmp(table->cell[row * table->columns + TASK_WHAT].text, pass_names[p])) return p;
    return -1;
}

static double ms_of(const Table *table, int row, int column) {
    return table->cell[row * table->columns + column].value;
}

bool timeline_is(const Table *table) {
    if (table->figure != FIGURE_TIMELINE || table->columns != TASK_COLUMNS || !table->rows)
        return false;
    for (int c = 0; c < TASK_COLUMNS; c++)
        if (table->column[c].kind != columns[c].kind) return false;
    for (int r = 0; r < table->rows; r++) {
        double start = ms_of(table, r, TASK_START), end = ms_of(table, r, TASK_END);
        if (!(start >= 0 && end >= start && isfinite(end)) || find_pass(table, r) < 0) return false;
    }
    return timeline_end_ms(table) > 0;
}

static int rank_end(const Table *table, int row) {
    int end = row + 1;
    while (end < table->rows && strcmp(table->label[end], table->label[row]) == 0) end++;
    return end;
}

double timeline_end_ms(const Table *table) {
    double max = 0;
    for (int r = 0; r < table->rows; r++) max = fmax(max, ms_of(table, r, TASK_END));
    return max;
}

/* ---- printing -------------------------------------------------------------------------------- */

enum { COLUMNS = 86, PIECE = 41 };

/* Returns the letter of the task that runs at a time. */
static char letter_at(const Table *table, int first, int end, double ms) {
    for (int r = first; r < end; r++)
        if (ms_of(table, r, TASK_START) <= ms && ms < ms_of(table, r, TASK_END))
            return "fbw"[find_pass(table, r)];
    return '.';
}

/* Milliseconds of a letter: half of the mean task, so that few tasks are skipped. */
static double letter_ms(const Table *table) {
    double sum = 0;
    for (int r = 0; r < table->rows; r++)
        sum += ms_of(table, r, TASK_END) - ms_of(table, r, TASK_START);
    return fmax(sum / table->rows / 2, timeline_end_ms(table) / 1e6);
}

void timeline_print(FILE *out, const Table *table) {
    double each_ms = letter_ms(table);
    int letters = (int)ceil(timeline_end_ms(table) / each_ms);
    char title[sizeof table->title + 64];
    snprintf(title, sizeof title, "%s, %.3g ms a letter%s:", table->title, each_ms,
             letters > COLUMNS ? ", its beginning and its end" : "");
    print_wrapped(out, title);
    for (int first = 0, end; first < table->rows; first = end) {
        end = rank_end(table, first);
        fprintf(out, "  %.9s  ", table->label[first]);
        for (int l = 0; l < letters; l++) {
            if (letters > COLUMNS && l == PIECE) {
                fprintf(out, " .. ");
                l = letters - PIECE;
            }
            fputc(letter_at(table, first, end, (l + 0.5) * each_ms), out);
        }
        fputc('\n', out);
    }
    fprintf(out, "f forward, b input gradients, w weight gradients, . waits (simulated)\n");
    for (int n = 0; n < table->notes; n++) print_wrapped(out, table->note[n]);
    fputc('\n', out);
}
