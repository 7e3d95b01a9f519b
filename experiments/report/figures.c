/* The common look of the figures, and the bars of memory. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/error.h"
#include "figures_parts.h"
#include "gnuplot.h"

const char *const figure_method_colours[FIGURE_METHODS] = {"#0072B2", "#D55E00", "#009E73",
                                                           "#CC79A7", "#56B4E9", "#E69F00"};
const char *const figure_role_colours[MEM_ROLES] = {
    [MEM_PARAMETERS] = "#0072B2", [MEM_BUFFERS] = "#999999",     [MEM_GRADIENTS] = "#E69F00",
    [MEM_STATE] = "#009E73",      [MEM_ACTIVATIONS] = "#56B4E9", [MEM_CACHE] = "#CC79A7",
    [MEM_WORKSPACE] = "#F0E442"};

int script_begin(Script *script, const char *id, int height) {
    enum { RIGHT = 20, FONT = 15 };
    *script = (Script){.height = height, .left = FIGURE_LEFT};
    script->out = open_memstream(&script->text, &script->size);
    if (!script->out) return error_set("report: out of memory for a figure");
    fprintf(script->out,
            "set terminal svg size %d,%d dynamic name \"%s\" font \"sans-serif,%d\"\n"
            "set encoding utf8\nset border 3 lc rgb \"black\"\nset tics nomirror scale 0.4\n"
            "set grid lt 1 lw 0.5 lc rgb \"gray\"\nset lmargin at screen %.6f\n"
            "set rmargin at screen %.6f\n",
            FIGURE_WIDTH, height, id, FONT, (double)FIGURE_LEFT / FIGURE_WIDTH,
            1 - (double)RIGHT / FIGURE_WIDTH);
    return 0;
}

void script_panel(const Script *script, int top, int bottom) {
    fprintf(script->out, "set tmargin at screen %.6f\nset bmargin at screen %.6f\n",
            1 - (double)top / script->height, 1 - (double)bottom / script->height);
}

double figure_step(double length) {
    double least = length / 5, power = pow(10, floor(log10(least)));
    return power * (least <= power ? 1 : least <= 2 * power ? 2 : least <= 5 * power ? 5 : 10);
}

void script_label(const Script *script, const char *text, int top) {
    fputs("set label ", script->out);
    gnuplot_quote(script->out, text);
    fprintf(script->out, " at screen 0.012, screen %.6f left noenhanced\n",
            1 - (top - 12.0) / script->height);
}

void script_heading(const Script *script, const char *text, int key_rows) {
    enum { LINE = 24, KEY = 27 };
    script_label(script, text, LINE);
    fprintf(
        script->out,
        "set key noenhanced at screen 0.012, screen %.6f left top Left reverse vertical maxrows "
        "%d samplen 2.2 width 1\n",
        1 - (double)KEY / script->height, key_rows);
}

void script_below(const Script *script, const char *text) {
    fputs("set label ", script->out);
    gnuplot_quote(script->out, text);
    fprintf(script->out, " at screen %.6f, screen %.6f center noenhanced\n",
            (double)(FIGURE_WIDTH + script->left) / 2 / FIGURE_WIDTH, 12.0 / script->height);
}

char *script_finish(Script *script) {
    bool failed = ferror(script->out);
    char *text = fclose(script->out) || failed ? NULL : script->text;
    if (!text) {
        error_set("report: out of memory for a figure");
        free(script->text);
    }
    *script = (Script){0};
    return text;
}

char *script_refuse(Script *script, const char *why) {
    free(script_finish(script));
    error_set("report: %s", why);
    return NULL;
}

/* ---- methods --------------------------------------------------------------------------------- */

int figure_methods(const Figure *figure) {
    return figure->item->methods < FIGURE_METHODS ? figure->item->methods : FIGURE_METHODS;
}

const StudyRow *figure_row(const Figure *figure, int method) {
    return case_first(figure->cases, &figure->item->method[method]);
}

void script_method(const Script *script, const Figure *figure, int method) {
    char text[CASE_NAME];
    gnuplot_quote(script->out,
                  case_method(figure->cases, figure->item, &figure->item->method[method], text));
}

int figure_names(const Figure *figure) {
    enum { LETTER = 8 };
    int most = 0;
    for (int m = 0; m < figure_methods(figure); m++) {
        char text[CASE_NAME];
        case_method(figure->cases, figure->item, &figure->item->method[m], text);
        if ((int)strlen(text) > most) most = (int)strlen(text);
    }
    return LETTER * most;
}

void script_names(Script *script, const Figure *figure) {
    enum { MARGIN = 16, WIDEST = 290 };
    int wide = MARGIN + figure_names(figure);
    if (wide < FIGURE_LEFT) wide = FIGURE_LEFT;
    if (wide > WIDEST) wide = WIDEST;
    script->left = wide;
    fprintf(script->out, "set lmargin at screen %.6f\n", (double)wide / FIGURE_WIDTH);
}

double figure_last_step(const Figure *figure) {
    double most = 1;
    for (int m = 0; m < figure_methods(figure); m++)
        most = fmax(most, (double)figure_row(figure, m)->steps);
    return most;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static double role_sum(const StudyRow *row, int roles) {
    double sum = 0;
    for (int r = 0; r < roles; r++) sum += row->peak[r];
    return sum;
}

static bool has_role(const Figure *figure, int role) {
    for (int m = 0; m < figure_methods(figure); m++)
        if (figure_row(figure, m)->peak[role] > 0) return true;
    return false;
}

/* "begin end bar" of each method's bytes in one role, stacked on the roles before it. */
static void write_bars(FILE *out, const Figure *figure, int role, double unit) {
    fprintf(out, "$role%d << END\n", role);
    for (int m = 0; m < figure_methods(figure); m++)
        fprintf(out, "%.6g %.6g %d\n", role_sum(figure_row(figure, m), role) / unit,
                role_sum(figure_row(figure, m), role + 1) / unit, m + 1);
    fprintf(out, "END\n");
}

static void write_methods(const Script *script, const Figure *figure) {
    fprintf(script->out, "set ytics noenhanced (");
    for (int m = 0; m < figure_methods(figure); m++) {
        fputs(m ? ", " : "", script->out);
        script_method(script, figure, m);
        fprintf(script->out, " %d", m + 1);
    }
    fprintf(script->out, ")\n");
}

static void write_closed_forms(FILE *out, const Figure *figure, double unit) {
    for (int i = 0; i < figure_methods(figure); i++) {
        double x = figure_row(figure, i)->closed_form / unit;
        if (isfinite(x))
            fprintf(out,
                    "set arrow from %.6g, %.2f to %.6g, %.2f nohead lw 3 lc rgb \"black\" front\n",
                    x, i + 0.58, x, i + 1.42);
    }
}

char *figure_memory(const Figure *figure) {
    enum { BAR = 46, KEY_ROWS = 3, MORE_KEY = 44 };
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB"};
    double most = 0;
    int methods = figure_methods(figure);
    for (int m = 0; m < methods; m++) most = fmax(most, role_sum(figure_row(figure, m), MEM_ROLES));
    if (!(most > 0)) {
        error_set("report: no memory to draw");
        return NULL;
    }
    int scale = 0, top = FIGURE_TOP + MORE_KEY, bottom = top + methods * BAR;
    while (scale < 3 && most > 2 * pow(1024, scale + 1)) scale++;
    double unit = pow(1024, scale);
    Script script;
    if (script_begin(&script, figure->id, bottom + FIGURE_BOTTOM)) return NULL;
    for (int r = 0; r < MEM_ROLES; r++) write_bars(script.out, figure, r, unit);
    script_panel(&script, top, bottom);
    script_names(&script, figure);
    fprintf(script.out,
            "set style fill solid noborder\nset yrange [%d.5:0.5]\nset xrange [0:*]\n"
            "unset grid\nset grid x lt 1 lw 0.5 lc rgb \"gray\"\n",
            methods);
    script_below(&script, units[scale]);
    write_methods(&script, figure);
    write_closed_forms(script.out, figure, unit);
    script_heading(&script, "peak memory by role", KEY_ROWS);
    fprintf(script.out, "plot ");
    for (int r = 0; r < MEM_ROLES; r++)
        if (has_role(figure, r))
            fprintf(script.out,
                    "$role%d using (($1+$2)/2):3:1:2:($3-0.32):($3+0.32) with boxxyerror lc rgb "
                    "\"%s\" title \"%s\", ",
                    r, figure_role_colours[r], mem_role_names[r]);
    fprintf(script.out, "NaN with lines lw 3 lc rgb \"black\" title \"closed form\"\n");
    return script_finish(&script);
}
