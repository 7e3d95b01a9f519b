/* The summary of a report: does BCD match the full update, and at what cost? */
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

static void put_scores(Table *answer, const CaseMethod *method) {
    StudyComparison c = study_compare(method, method->of, AXIS_UPDATES);
    bool images = study_is_images(method->row[0]);
    const char *unit = images ? " %" : "";
    char budget[64];
    if (!c.difference.count) return;
    table_text(answer, SCORE, SOURCE_MEASURED, "%s %.2f%s, full update %.2f%s",
               images ? "accuracy" : "perplexity", mean_value(&c.bcd), unit, mean_value(&c.full),
               unit);
    table_text(answer, AFTER, SOURCE_NONE, "%s",
               study_format_budget(budget, mean_value(&c.budget), AXIS_UPDATES));
    table_text(answer, VERDICT, SOURCE_NONE, "%s",
               c.verdict ? verdict_names[c.verdict] : "a verdict needs at least 2 seeds");
}

void answer_add(Tables *tables, const Cases *cases) {
    static const MeasureColumn ratios[] = {
        {NULL, NULL, NULL, 0, SOURCE_MEASURED, measure_peak_ratio, MEAN_ALONE},
        {NULL, NULL, NULL, 0, SOURCE_MEASURED, measure_time_ratio, OVER_SEEDS},
        {NULL, NULL, NULL, 0, SOURCE_MEASURED, measure_multiplier, OVER_SEEDS},
    };
    Table *answer = NULL;
    char label[CASE_LABEL];
    for (int m = 0; m < cases->methods; m++) {
        const CaseMethod *method = &cases->method[m];
        if (!study_is_compared(method)) continue;
        if (!answer)
            answer = tables_add(tables, "answer", "Does BCD match the full update?", "training",
                                columns, COLUMNS);
        table_row(answer, "%s", case_label(method, label));
        measure_put(answer, ratios, 3, method, true);
        put_scores(answer, method);
    }
    if (answer)
        table_note(answer,
                   "Memory: the peak of all roles.  Updates: to the same smoothed training loss.  "
                   "Scores: after the same number of updates.  The tables have more.");
}

void answer_print(FILE *out, const Table *answer) {
    static const char *const words[] = {" x memory", " x time per update", " x updates"};
    char text[TABLE_CELL], line[640];
    for (int r = 0; r < answer->rows; r++) {
        size_t used = (size_t)snprintf(line, sizeof line, "%s", answer->label[r]);
        const Cell *cell = &answer->cell[r * COLUMNS];
        const char *before = ": ";
        for (int c = 0; c <= UPDATES; c++) {
            if (!*table_format(answer, r, c, text)) continue;
            text[strcspn(text, " ")] = 0; /* cut off the spread */
            used +=
                (size_t)snprintf(line + used, sizeof line - used, "%s%s%s", before, text, words[c]);
            before = ", ";
        }
        print_wrapped(out, line);
        if (*cell[SCORE].text)
            fprintf(out, "    %s, after %s: %s\n", cell[SCORE].text, cell[AFTER].text,
                    cell[VERDICT].text);
    }
    putc('\n', out);
}
