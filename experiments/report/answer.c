/* What the tables of a study come to: does BCD match the full update, and at what cost? */
#include <stdio.h>
#include <string.h>

#include "../study/measures.h"
#include "report.h"

enum { MEMORY, TIME, UPDATES, SCORE, AFTER, VERDICT, COLUMNS };

static const TableColumn columns[COLUMNS] = {
    [MEMORY] = {"memory", "memory", "BCD / full", COLUMN_NUMBER, 2, SOURCE_NONE},
    [TIME] = {"time", "time per update", "BCD / full", COLUMN_NUMBER, 2, SOURCE_NONE},
    [UPDATES] = {"updates", "updates", "BCD / full", COLUMN_NUMBER, 2, SOURCE_NONE},
    [SCORE] = {"score", "on the validation split", "", COLUMN_TEXT, 0, SOURCE_NONE},
    [AFTER] = {"after", "after", "", COLUMN_TEXT, 0, SOURCE_NONE},
    [VERDICT] = {"verdict", "verdict", "", COLUMN_TEXT, 0, SOURCE_NONE},
};

static void copy(Table *to, int column, const Table *from, int row, const char *name) {
    for (int c = 0; from && c < from->columns; c++) {
        const Cell *cell = &from->cell[row * from->columns + c];
        if (strcmp(from->column[c].name, name) == 0)
            table_mean(to, column, cell->value, cell->spread, cell->source);
    }
}

static const char *text_of(const Table *table, int row, int column) {
    return table->cell[row * table->columns + column].text;
}

/* The next row, from `row` on, of the scores at equal updates under a label; -1: none. */
static int find_scores(const Table *scores, int row, const char *label) {
    enum { BUDGET = 1 };
    for (; row < scores->rows; row++)
        if (strcmp(scores->label[row], label) == 0 &&
            strstr(text_of(scores, row, BUDGET), " updates"))
            return row;
    return -1;
}

static void put_scores(Table *answer, const Table *scores, int row, bool images) {
    enum { SEEDS, BUDGET, BCD, FULL, DIFFERENCE, AHEAD };
    const Cell *cell = &scores->cell[row * scores->columns];
    const char *verdict = text_of(scores, row, AHEAD), *unit = images ? " %" : "";
    table_text(answer, SCORE, SOURCE_MEASURED, "%s %.2f%s, full update %.2f%s",
               images ? "accuracy" : "perplexity", cell[BCD].value, unit, cell[FULL].value, unit);
    table_text(answer, AFTER, SOURCE_NONE, "%s", text_of(scores, row, BUDGET));
    table_text(answer, VERDICT, SOURCE_NONE, "%s",
               cell[SEEDS].value < 2 ? "a verdict needs at least 2 seeds" : verdict);
}

/* The tables have a row for each of these trainings, in the order of the cases. */
static void put_rows(Table *answer, const Tables *tables, const Cases *cases) {
    const Table *level = tables_find(tables, "same_loss"),
                *step = tables_find(tables, "per_update"),
                *scores = tables_find(tables, "equal_score");
    int row = 0, next = 0;
    for (int c = 0; c < cases->cases; c++)
        for (int m = 0; m < cases->item[c].methods; m++) {
            const Case *item = &cases->item[c];
            if (!study_pairs(cases, item, &item->method[m]) || row >= step->rows) continue;
            table_row(answer, "%s", step->label[row]);
            copy(answer, MEMORY, step, row, "peak");
            copy(answer, TIME, step, row, "time");
            copy(answer, UPDATES, level, row, "updates");
            int found = scores ? find_scores(scores, next, step->label[row]) : -1;
            if (found >= 0) {
                const StudyRow *first = case_first(cases, &item->method[m]);
                put_scores(answer, scores, found, study_is_images(first));
                next = found + 1;
            }
            row++;
        }
}

int answer_add(Tables *tables, const Cases *cases) {
    if (!tables_find(tables, "per_update")) return 0;
    Table *answer = tables_add(tables, "answer", "Does BCD match the full update?", "training",
                               columns, COLUMNS);
    if (!answer) return -1;
    put_rows(answer, tables, cases);
    table_note(answer,
               "Memory: the peak of all roles.  Updates: to the same smoothed training loss.  The "
               "scores are those after as many updates of each.  The tables tell more.");
    memmove(tables->table + 1, tables->table, (size_t)(tables->tables - 1) * sizeof *tables->table);
    tables->table[0] = answer;
    return answer->failed ? -1 : 0;
}

void answer_print(FILE *out, const Table *answer) {
    static const char *const words[] = {" x memory", " x time per update", " x updates"};
    char text[TABLE_CELL], line[640];
    for (int r = 0; r < answer->rows; r++) {
        size_t used = (size_t)snprintf(line, sizeof line, "%s", answer->label[r]);
        const char *before = ": ";
        for (int c = 0; c <= UPDATES; c++) {
            if (!*table_format(answer, r, c, text)) continue;
            text[strcspn(text, " ")] = 0; /* without the spread */
            used +=
                (size_t)snprintf(line + used, sizeof line - used, "%s%s%s", before, text, words[c]);
            before = ", ";
        }
        print_wrapped(out, line);
        if (*text_of(answer, r, SCORE))
            fprintf(out, "    %s, after %s: %s\n", text_of(answer, r, SCORE),
                    text_of(answer, r, AFTER), text_of(answer, r, VERDICT));
    }
    putc('\n', out);
}
