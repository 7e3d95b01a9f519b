/* Tables with a plan in each row. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "plan.h"

#define GIB (1024.0 * 1024 * 1024)

enum {
    R_SETTING,
    R_BYTES,
    R_STEP,
    R_BUBBLE,
    R_RATE,
    R_HOURS,
    R_DOLLARS,
    R_SAME,
    R_LIMIT,
    R_COLUMNS
};

Table *plan_table(Tables *tables, const Question *q, const char *name, const char *title,
                  const char *row_head) {
    bool words = q->model->tokens;
    TableColumn columns[R_COLUMNS] = {
        [R_SETTING] = {"setting", "setting", "", COLUMN_TEXT, 0, SOURCE_NONE},
        [R_BYTES] = {"memory", "memory", "GiB", COLUMN_NUMBER, 1, SOURCE_NONE},
        [R_STEP] = {"step", "step", "s", COLUMN_NUMBER, 2, SOURCE_NONE},
        [R_BUBBLE] = {"bubble", "bubble", "", COLUMN_PERCENT, 0, SOURCE_NONE},
        [R_RATE] = {"rate", "images", "1/s", COLUMN_NUMBER, 0, SOURCE_NONE},
        [R_HOURS] = {"gpu_hours", "GPU hours", "h", COLUMN_NUMBER, 0, SOURCE_NONE},
        [R_DOLLARS] = {"dollars", "cost", "$", COLUMN_NUMBER, 2, SOURCE_NONE},
        [R_SAME] = {"same_loss", "same loss", "$", COLUMN_NUMBER, 2, SOURCE_NONE},
        [R_LIMIT] = {"limit", "limit", "", COLUMN_TEXT, 0, SOURCE_NONE},
    };
    if (q->model->tokens) snprintf(columns[R_RATE].head, sizeof columns->head, "tokens");
    Table *table = tables_add(tables, name, title, row_head, columns, R_COLUMNS);
    if (!table) return NULL;
    table_note(
        table,
        "memory: of the fullest GPU.  GPU hours and cost: of %.3g %s.  same loss: BCD's cost "
        "times the B-F multiplier %.4g (%s).",
        q->tokens, words ? "tokens" : "images",
        q->multiplier[q->multipliers == MULTIPLIERS_SHOWN ? q->multipliers - 1 : 0],
        q->multipliers == MULTIPLIERS_SHOWN ? "--multiplier"
                                            : "the paper's average; 2.44 for "
                                              "language models alone");
    return table;
}

void plan_row(Table *table, const Question *q, const char *label, const Plan *plan, bool found) {
    const Prediction *p = &plan->prediction;
    char text[PLAN_TEXT];
    double same = q->multiplier[q->multipliers == MULTIPLIERS_SHOWN ? q->multipliers - 1 : 0];
    table_row(table, "%s", label);
    table_text(table, R_SETTING, SOURCE_NONE, "%s", plan_setting(text, plan));
    table_number(table, R_BYTES, p->total_bytes / GIB, SOURCE_CLOSED_FORM);
    table_text(table, R_LIMIT, SOURCE_NONE, "%s", plan_limit(text, plan));
    if (!found) return;
    double dollars = plan_dollars(plan, q->tokens);
    table_number(table, R_STEP, p->step_s, SOURCE_SIMULATED);
    table_number(table, R_BUBBLE, fmax(0, p->bubble), SOURCE_SIMULATED);
    table_number(table, R_RATE, p->tokens_per_s, SOURCE_SIMULATED);
    table_number(table, R_HOURS, plan_gpu_hours(plan, q->tokens), SOURCE_SIMULATED);
    table_number(table, R_DOLLARS, dollars, SOURCE_SIMULATED);
    table_number(table, R_SAME, plan->way == WAY_BCD ? dollars * same : dollars, SOURCE_SIMULATED);
}

void plan_row_without(Table *table, const char *label, const char *why) {
    table_row(table, "%s", label);
    table_text(table, R_LIMIT, SOURCE_NONE, "%s", why);
}

int plan_progress(const char *format, ...) {
    if (!isatty(STDERR_FILENO)) return 0;
    fprintf(stderr, "\r\033[K");
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fflush(stderr);
    return 0;
}
