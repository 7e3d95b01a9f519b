/* Which submodel was active when, below a plot of losses. */
#include <math.h>
#include <stdlib.h>

#include "figures_parts.h"

enum { STRIP = 24, GAP = 34, PARTS = 400 };

/* The end of the part of a training that is drawn in one shade: a phase, or as many phases as are
 * too short to be seen one by one. */
static size_t part_end(const StudyRow *row, size_t first, double least) {
    double begin = first ? (double)row->curve[first - 1].step : 0;
    size_t end = first + 1;
    while (end < row->curve_rows && (row->curve[end].submodel == row->curve[end - 1].submodel ||
                                     (double)row->curve[end - 1].step - begin < least))
        end++;
    return end;
}

/* "begin end line colour" of each part; the colour is that of the training, the more opaque the
 * nearer its submodels are to the loss. */
static void write_parts(FILE *out, const StudyRow *row, const char *colour, int line,
                        double least) {
    const double faintest = 0.82; /* transparency of the submodel at the input */
    unsigned long rgb = strtoul(colour + 1, NULL, 16);
    for (size_t first = 0, end; first < row->curve_rows; first = end) {
        double sum = 0;
        end = part_end(row, first, least);
        for (size_t i = first; i < end; i++) sum += row->curve[i].submodel;
        double depth = sum / (double)(end - first) / (double)(row->submodels - 1);
        unsigned long alpha = (unsigned long)lround(255 * faintest * (1 - depth));
        fprintf(out, "%.7g %.7g %d 0x%08lX\n", first ? (double)row->curve[first - 1].step : 0.0,
                (double)row->curve[end - 1].step, line, alpha << 24 | rgb);
    }
}

int strip_height(const Figure *figure) {
    int lines = 0;
    for (int m = 0; m < figure_methods(figure); m++) lines += figure_row(figure, m)->submodels > 1;
    return lines ? GAP + STRIP * lines : 0;
}

void strip_plot(const Script *script, const Figure *figure, int top) {
    FILE *out = script->out;
    int line = 0;
    fprintf(out, "$strips << END\n");
    for (int m = 0; m < figure_methods(figure); m++)
        if (figure_row(figure, m)->submodels > 1)
            write_parts(out, figure_row(figure, m), figure_method_colours[m], ++line,
                        figure_last_step(figure) / PARTS);
    fprintf(out,
            "END\nunset arrow\nunset label\nunset key\nunset grid\nset style fill solid noborder\n"
            "set yrange [%d.5:0.5]\nset format x\nset ytics noenhanced (",
            line);
    line = 0;
    for (int m = 0; m < figure_methods(figure); m++) {
        if (figure_row(figure, m)->submodels < 2) continue;
        fputs(line ? ", " : "", out);
        script_method(script, figure, m);
        fprintf(out, " %d", ++line);
    }
    fprintf(out, ")\n");
    script_panel(script, top + GAP, top + strip_height(figure));
    script_label(script, "active submodel: pale at the input, full colour at the loss", top + GAP);
    script_below(script, "updates");
    fprintf(out,
            "plot $strips using (($1+$2)/2):3:1:2:($3-0.42):($3+0.42):4 with boxxyerror lc rgb "
            "variable notitle\n");
}
