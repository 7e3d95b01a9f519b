/* A table as a figure: its rows along the x axis, its numeric columns as lines, as groups of bars
 * or on top of each other. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/error.h"
#include "../tables/timeline.h"
#include "figures_parts.h"
#include "gnuplot.h"

enum { PLOT = 260, KEY_COLUMNS = 2 };

static bool is_series(const Table *table, int column) {
    ColumnKind kind = table->column[column].kind;
    return kind == COLUMN_NUMBER || kind == COLUMN_PERCENT;
}

/* The next column that is one, from `column` on. */
static int series_from(const Table *table, int column) {
    while (column < table->columns && !is_series(table, column)) column++;
    return column;
}

static const Cell *cell_at(const Table *table, int row, int column) {
    return &table->cell[row * table->columns + column];
}

static double scale_of(const Table *table, int column) {
    return table->column[column].kind == COLUMN_PERCENT ? 100 : 1;
}

/* Whether all it holds comes from the closed form: a line to hold the others against. */
static bool is_closed_form(const Table *table, int column) {
    int cells = 0;
    for (int r = 0; r < table->rows; r++) {
        const Cell *cell = cell_at(table, r, column);
        if (!isfinite(cell->value)) continue;
        if (cell->source != SOURCE_CLOSED_FORM) return false;
        cells++;
    }
    return cells > 0;
}

static bool has_spread(const Table *table, int column) {
    for (int r = 0; r < table->rows; r++)
        if (isfinite(cell_at(table, r, column)->spread)) return true;
    return false;
}

static void write_number(FILE *out, double value) {
    if (isfinite(value))
        fprintf(out, "%.7g ", value);
    else
        fprintf(out, "? ");
}

/* Of each series two numbers: the value and its spread; or, stacked, where its part of the bar
 * begins and ends. */
static void write_rows(FILE *out, const Table *table) {
    bool stacked = table->figure == FIGURE_STACKED;
    fprintf(out, "set datafile missing \"?\"\n$rows << END\n");
    for (int r = 0; r < table->rows; r++) {
        double sum = 0;
        for (int c = series_from(table, 0); c < table->columns; c = series_from(table, c + 1)) {
            const Cell *cell = cell_at(table, r, c);
            double value = scale_of(table, c) * cell->value;
            double spread = scale_of(table, c) * cell->spread;
            bool part = stacked && !is_closed_form(table, c);
            write_number(out, part ? sum : value);
            if (part && isfinite(value)) sum += value;
            write_number(out, part ? sum : isfinite(spread) ? spread : 0);
        }
        putc('\n', out);
    }
    fprintf(out, "END\n");
}

/* Labels that would not fit side by side are slanted: the pixels that they take then; else 0. */
static int slant(const Table *table) {
    enum { LETTERS = 56, LETTER = 4 };
    size_t letters = 0, longest = 0;
    for (int r = 0; r < table->rows; r++) {
        size_t length = strlen(table->label[r]);
        letters += length + 2;
        longest = length > longest ? length : longest;
    }
    return letters > LETTERS ? LETTER * (int)longest : 0;
}

/* The highest that is drawn. */
static double most_of(const Table *table) {
    double most = 0;
    for (int r = 0; r < table->rows; r++) {
        double sum = 0;
        for (int c = series_from(table, 0); c < table->columns; c = series_from(table, c + 1)) {
            const Cell *cell = cell_at(table, r, c);
            double value = scale_of(table, c) * cell->value;
            if (!isfinite(value)) continue;
            if (!is_closed_form(table, c)) sum += value;
            if (isfinite(cell->spread)) value += scale_of(table, c) * cell->spread;
            most = fmax(most, table->figure == FIGURE_STACKED ? fmax(sum, value) : value);
        }
    }
    return most;
}

static void write_labels(FILE *out, const Table *table) {
    fprintf(out, "set xtics %s noenhanced (", slant(table) ? "rotate by -30" : "norotate");
    for (int r = 0; r < table->rows; r++) {
        fputs(r ? ", " : "", out);
        gnuplot_quote(out, table->label[r]);
        fprintf(out, " %d", r);
    }
    fprintf(out, ")\nset xrange [-0.6:%d.6]\n", table->rows - 1);
    if (most_of(table) > 0) fprintf(out, "set yrange [0:%.6g]\n", 1.05 * most_of(table));
}

/* ---- series ---------------------------------------------------------------------------------- */

typedef struct {
    int column, at; /* in the table; in $rows */
    int mark;       /* series that belong together have the same colour and mark */
    bool second;    /* dashed, or pale */
    const char *colour;
} Series;

/* Whether a column holds what was simulated of the one before: "x", "x_simulated". */
static bool is_simulation(const Table *table, int column, int before) {
    const char *name = table->column[column].name,
               *of = before < 0 ? "" : table->column[before].name;
    size_t length = strlen(of);
    return length && !strncmp(name, of, length) && !strcmp(name + length, "_simulated");
}

/* A role of memory has its own colour in every figure, and what is left of them a grey. */
static const char *colour_of(const TableColumn *column, int mark) {
    if (strcmp(column->head, "other") == 0) return figure_role_colours[MEM_BUFFERS];
    for (int r = 0; r < MEM_ROLES; r++)
        if (strstr(column->head, mem_role_names[r])) return figure_role_colours[r];
    return figure_method_colours[mark % FIGURE_METHODS];
}

static int list_series(Series series[TABLE_COLUMNS], const Table *table) {
    int count = 0, mark = -1, before = -1;
    for (int c = series_from(table, 0); c < table->columns; c = series_from(table, c + 1)) {
        bool simulation = is_simulation(table, c, before);
        mark += !simulation;
        series[count] = (Series){.column = c,
                                 .at = 2 * count + 1,
                                 .mark = mark,
                                 .second = simulation || mark >= FIGURE_METHODS,
                                 .colour = colour_of(&table->column[c], mark)};
        count++;
        before = c;
    }
    return count;
}

static void plot_line(FILE *out, const Table *table, const Series *s) {
    if (is_closed_form(table, s->column)) {
        fprintf(out, "$rows using 0:%d with lines lw 2 dt 3 lc rgb \"black\"", s->at);
        return;
    }
    if (has_spread(table, s->column))
        fprintf(out, "$rows using 0:%d:%d with yerrorlines", s->at, s->at + 1);
    else
        fprintf(out, "$rows using 0:%d with linespoints", s->at);
    fprintf(out, " lw 2 dt %d pt %d ps 0.7 lc rgb \"%s\"", s->second ? 2 : 1,
            (s->second ? 4 : 5) + 2 * (s->mark % 3), s->colour);
}

static void plot_bar(FILE *out, const Table *table, const Series *s, int series) {
    double wide = 0.8 / series, left = ((s->at - 1) / 2 - (series - 1) / 2.0) * wide;
    if (has_spread(table, s->column))
        fprintf(out, "$rows using ($0%+.4f):%d:%d:(%.4f) with boxerrorbars", left, s->at, s->at + 1,
                0.92 * wide);
    else
        fprintf(out, "$rows using ($0%+.4f):%d:(%.4f) with boxes", left, s->at, 0.92 * wide);
    fprintf(out, " fs solid %s noborder lc rgb \"%s\"", s->second ? "0.45" : "1.0", s->colour);
}

/* A part of every bar; or a line across each, over all that is drawn before. */
static void plot_part(FILE *out, const Table *table, const Series *s) {
    int at = s->at;
    if (is_closed_form(table, s->column))
        fprintf(out, "$rows using ($0-0.4):%d:(0.8):(0) with vectors nohead lw 3 lc rgb \"black\"",
                at);
    else
        fprintf(out, "$rows using 0:%d:($0-0.32):($0+0.32):%d:%d with boxxyerror lc rgb \"%s\"", at,
                at, at + 1, s->colour);
}

static void plot_series(FILE *out, const Table *table, const Series *series, int count) {
    fprintf(out, "set style fill solid noborder\nplot ");
    for (int i = 0; i < count; i++) {
        if (table->figure == FIGURE_STACKED)
            plot_part(out, table, &series[i]);
        else if (table->figure == FIGURE_BARS)
            plot_bar(out, table, &series[i], count);
        else
            plot_line(out, table, &series[i]);
        fprintf(out, " title ");
        gnuplot_quote(out, table->column[series[i].column].head);
        fputs(i + 1 < count ? ", " : "\n", out);
    }
}

char *figure_table(const Table *table, const char *id) {
    Series series[TABLE_COLUMNS];
    if (timeline_is(table)) return figure_timeline(table, id);
    int count = list_series(series, table);
    if (!count || !table->rows) {
        error_set("report: table %s has nothing to draw", table->name);
        return NULL;
    }
    Script script;
    int key_rows = (count + KEY_COLUMNS - 1) / KEY_COLUMNS;
    int top = FIGURE_TOP + (key_rows - 1) * KEY_ROW;
    int bottom = FIGURE_BOTTOM + slant(table);
    if (script_begin(&script, id, top + PLOT + bottom)) return NULL;
    script_panel(&script, top, top + PLOT);
    script_heading(&script, table->axis, key_rows);
    script_below(&script, table->row_head);
    write_rows(script.out, table);
    write_labels(script.out, table);
    plot_series(script.out, table, series, count);
    return script_finish(&script);
}
