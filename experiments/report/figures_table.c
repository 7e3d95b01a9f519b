/* A table as a figure: its rows along the x axis, its numeric columns as lines or groups of bars.
 */
#include <math.h>
#include <stdlib.h>

#include "../../ref/error.h"
#include "../tables/timeline.h"
#include "figures_parts.h"
#include "gnuplot.h"

enum { PLOT = 260, KEY_COLUMNS = 2, KEY_ROW = 25 };

static bool is_series(const Table *table, int column) {
    ColumnKind kind = table->column[column].kind;
    return kind == COLUMN_NUMBER || kind == COLUMN_PERCENT;
}

static void write_rows(FILE *out, const Table *table) {
    fprintf(out, "set datafile missing \"?\"\n$rows << END\n");
    for (int r = 0; r < table->rows; r++) {
        for (int c = 0; c < table->columns; c++) {
            double value = table->cell[r * table->columns + c].value;
            if (!is_series(table, c)) continue;
            if (isfinite(value))
                fprintf(out, "%.7g ",
                        table->column[c].kind == COLUMN_PERCENT ? 100 * value : value);
            else
                fprintf(out, "? ");
        }
        putc('\n', out);
    }
    fprintf(out, "END\nset xtics noenhanced (");
    for (int r = 0; r < table->rows; r++) {
        fputs(r ? ", " : "", out);
        gnuplot_quote(out, table->label[r]);
        fprintf(out, " %d", r);
    }
    fprintf(out, ")\nset xrange [-0.6:%d.6]\nset yrange [0:*]\n", table->rows - 1);
}

static void plot_series(FILE *out, const Table *table, int series) {
    int number = 0;
    double wide = 0.8 / series;
    if (table->figure == FIGURE_BARS) fprintf(out, "set style fill solid noborder\n");
    fprintf(out, "plot ");
    for (int c = 0; c < table->columns; c++) {
        if (!is_series(table, c)) continue;
        const char *colour = figure_method_colours[number % FIGURE_METHODS];
        if (table->figure == FIGURE_BARS)
            fprintf(out, "$rows using ($0%+.4f):%d:(%.4f) with boxes lc rgb \"%s\" title ",
                    (number - (series - 1) / 2.0) * wide, number + 1, 0.92 * wide, colour);
        else
            fprintf(out,
                    "$rows using 0:%d with linespoints lw 2 dt %d pt %d ps 0.7 lc rgb \"%s\" "
                    "title ",
                    number + 1, number / FIGURE_METHODS + 1, 5 + 2 * (number % 3), colour);
        gnuplot_quote(out, table->column[c].head);
        fputs(++number < series ? ", " : "\n", out);
    }
}

char *figure_table(const Table *table, const char *id) {
    int series = 0;
    if (timeline_is(table)) return figure_timeline(table, id);
    for (int c = 0; c < table->columns; c++) series += is_series(table, c);
    if (!series || !table->rows) {
        error_set("report: table %s has nothing to draw", table->name);
        return NULL;
    }
    Script script;
    int key_rows = (series + KEY_COLUMNS - 1) / KEY_COLUMNS;
    int top = FIGURE_TOP + (key_rows - 1) * KEY_ROW;
    if (script_begin(&script, id, top + PLOT + FIGURE_BOTTOM)) return NULL;
    script_panel(&script, top, top + PLOT);
    script_heading(&script, table->axis, key_rows);
    script_below(&script, table->row_head);
    write_rows(script.out, table);
    plot_series(script.out, table, series);
    return script_finish(&script);
}
