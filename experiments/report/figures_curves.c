/* Figures of curves: training loss, the active submodel, validation score. */
#include <math.h>
#include <stdlib.h>

#include "../../ref/error.h"
#include "figures_parts.h"

enum { PLOT = 260, GAP = 34, STRIP = 24 };

/* What is drawn along: of operations a unit of a thousand, a million ... of them. */
typedef struct {
    StudyAxis axis;
    double unit;
} Along;

static double at(const StudyRow *row, size_t i, Along along) {
    return study_at(row, i, along.axis) / along.unit;
}

/* "x least most" of the raw loss in each of at most BANDS parts of the training, so that nothing of
 * it is hidden. */
static void write_band(FILE *out, const StudyRow *row, int number, Along along) {
    enum { BANDS = 100, FEWEST = 5 };
    size_t n = row->curve_rows, parts = n / FEWEST < BANDS ? n / FEWEST : BANDS;
    if (!parts) parts = 1;
    fprintf(out, "$band%d << END\n", number);
    for (size_t p = 0; p < parts; p++) {
        size_t begin = p * n / parts, end = (p + 1) * n / parts;
        double least = INFINITY, most = -INFINITY;
        for (size_t i = begin; i < end; i++) {
            least = fmin(least, row->curve[i].loss);
            most = fmax(most, row->curve[i].loss);
        }
        fprintf(out, "%.7g %.5g %.5g\n", at(row, (begin + end) / 2, along), least, most);
    }
    fprintf(out, "END\n");
}

/* "x smooth" at no more than POINTS places. */
static int write_loss(FILE *out, const StudyRow *row, size_t window, int number, Along along) {
    enum { POINTS = 400 };
    size_t n = row->curve_rows, parts = n < POINTS ? n : POINTS;
    double *smooth = malloc((n + 1) * sizeof *smooth);
    if (!smooth) return error_set("report: out of memory for a figure");
    study_smooth(smooth, row->curve, n, window);
    fprintf(out, "$curve%d << END\n", number);
    for (size_t p = 1; p <= parts; p++) {
        size_t i = p * n / parts - 1;
        fprintf(out, "%.7g %.5g\n", at(row, i, along), smooth[i]);
    }
    fprintf(out, "END\n");
    free(smooth);
    write_band(out, row, number, along);
    return 0;
}

/* Bands first, then the lines over them. */
static void plot_losses(const Script *script, const Figure *figure) {
    fprintf(script->out, "plot ");
    for (int i = 0; i < figure->count; i++)
        fprintf(script->out,
                "$band%d using 1:2:3 with filledcurves fs transparent solid 0.18 noborder lc rgb "
                "\"%s\" notitle, ",
                i, figure_method_colours[i]);
    for (int i = 0; i < figure->count; i++) {
        fprintf(script->out, "$curve%d using 1:2 with lines lw 2 dt %d lc rgb \"%s\" title ", i,
                i % 5 + 1, figure_method_colours[i]);
        script_method(script, figure->row[i]);
        fputs(i + 1 < figure->count ? ", " : "\n", script->out);
    }
}

/* The level of the convergence rule, and where each training first reached it. */
static void mark_level(FILE *out, const Figure *figure) {
    double level = figure->row[0]->level;
    if (isnan(level) || figure->count < 2) return;
    fprintf(out,
            "set arrow from graph 0, first %.6g to graph 1, first %.6g nohead dt 3 lw 1 lc rgb "
            "\"black\"\n",
            level, level);
    for (int i = 0; i < figure->count; i++)
        if (!isnan(figure->row[i]->steps_to_converge))
            fprintf(out,
                    "set label at first %.7g, first %.6g \"\" point pt 7 ps 0.8 lc rgb \"%s\"\n",
                    figure->row[i]->steps_to_converge, level, figure_method_colours[i]);
}

static double last_step(const Figure *figure) {
    double most = 1;
    for (int i = 0; i < figure->count; i++) most = fmax(most, (double)figure->row[i]->steps);
    return most;
}

/* ---- which submodel was active ----------------------------------------------------------------
 */

/* The end of the part of a training that is drawn in one shade: a visit, or as many visits as are
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

static int strips(const Figure *figure) {
    int count = 0;
    for (int i = 0; i < figure->count; i++) count += figure->row[i]->submodels > 1;
    return count;
}

/* A line for each training by BCD, below `top`. */
static void plot_strips(const Script *script, const Figure *figure, int top) {
    enum { PARTS = 400 };
    FILE *out = script->out;
    double last = last_step(figure);
    int line = 0;
    fprintf(out, "$strips << END\n");
    for (int i = 0; i < figure->count; i++)
        if (figure->row[i]->submodels > 1)
            write_parts(out, figure->row[i], figure_method_colours[i], ++line, last / PARTS);
    fprintf(out,
            "END\nunset arrow\nunset label\nunset key\nunset grid\nset style fill solid noborder\n"
            "set yrange [%d.5:0.5]\nset format x\nset ytics noenhanced (",
            line);
    line = 0;
    for (int i = 0; i < figure->count; i++) {
        if (figure->row[i]->submodels < 2) continue;
        fputs(line ? ", " : "", out);
        script_method(script, figure->row[i]);
        fprintf(out, " %d", ++line);
    }
    fprintf(out, ")\n");
    script_label(script, "active submodel: pale at the input, full colour at the loss", top);
    script_below(script, "updates");
    fprintf(out,
            "plot $strips using (($1+$2)/2):3:1:2:($3-0.42):($3+0.42):4 with boxxyerror lc rgb "
            "variable notitle\n");
}

/* On easy data the loss falls over orders of magnitude: then only a logarithm shows the end. */
static bool wants_logarithm(const Figure *figure) {
    double least = INFINITY, most = 0;
    for (int i = 0; i < figure->count; i++)
        for (size_t p = 0; p < figure->row[i]->curve_rows; p++) {
            least = fmin(least, figure->row[i]->curve[p].loss);
            most = fmax(most, figure->row[i]->curve[p].loss);
        }
    return least > 0 && most > 20 * least;
}

static int begin_losses(Script *script, const Figure *figure, int height, Along along) {
    for (int i = 0; i < figure->count; i++)
        if (!figure->row[i]->curve_rows) return error_set("report: no losses to draw");
    if (script_begin(script, figure->id, height)) return -1;
    for (int i = 0; i < figure->count; i++)
        if (write_loss(script->out, figure->row[i], figure->window, i, along)) {
            fclose(script->out);
            free(script->text);
            return -1;
        }
    script_panel(script, FIGURE_TOP, FIGURE_TOP + PLOT);
    script_heading(script, "training loss, nats per target", 1);
    if (wants_logarithm(figure)) fprintf(script->out, "set logscale y\n");
    return 0;
}

char *figure_loss(const Figure *figure) {
    int top = FIGURE_TOP + PLOT, strip = STRIP * strips(figure);
    int height = top + FIGURE_BOTTOM + (strip ? GAP + strip : 0);
    Script script;
    if (begin_losses(&script, figure, height, (Along){AXIS_UPDATES, 1})) return NULL;
    fprintf(script.out, "set multiplot\nset xrange [0:%.7g]\n", last_step(figure));
    if (strip)
        fprintf(script.out, "set format x \"\"\n"); /* the lowest panel has the numbers */
    else
        script_below(&script, "updates");
    mark_level(script.out, figure);
    plot_losses(&script, figure);
    fprintf(script.out, "unset logscale\n");
    if (strip) {
        script_panel(&script, top + GAP, top + GAP + strip);
        plot_strips(&script, figure, top + GAP);
    }
    return script_finish(&script);
}

static char *loss_along(const Figure *figure, Along along, const char *below) {
    Script script;
    if (begin_losses(&script, figure, FIGURE_TOP + PLOT + FIGURE_BOTTOM, along)) return NULL;
    fprintf(script.out, "set xrange [0:*]\n");
    script_below(&script, below);
    plot_losses(&script, figure);
    return script_finish(&script);
}

char *figure_time(const Figure *figure) {
    return loss_along(figure, (Along){AXIS_SECONDS, 1}, "seconds of training");
}

char *figure_operations(const Figure *figure) {
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P", "E", "Z"};
    double most = 0;
    for (int i = 0; i < figure->count; i++) {
        const StudyRow *row = figure->row[i];
        if (!row->operations || !row->curve_rows) {
            error_set("report: %s: its operations are not known", row->name);
            return NULL;
        }
        most = fmax(most, row->operations[row->curve_rows - 1]);
    }
    Along along = {AXIS_OPERATIONS, 1};
    int prefix = 0;
    for (; prefix < 7 && most > 2000 * along.unit; prefix++) along.unit *= 1000;
    char below[40];
    snprintf(below, sizeof below, "operations, %sFLOP", prefixes[prefix]);
    return loss_along(figure, along, below);
}

static void write_scores(FILE *out, const StudyRow *row, int number) {
    fprintf(out, "$curve%d << END\n", number);
    for (size_t e = 0; e < row->evaluation_rows; e++)
        fprintf(out, "%.7g %.6g\n", (double)row->evaluation[e].step,
                study_is_images(row) ? 100 * row->evaluation[e].accuracy
                                     : row->evaluation[e].perplexity);
    fprintf(out, "END\n");
}

char *figure_score(const Figure *figure) {
    bool images = study_is_images(figure->row[0]);
    for (int i = 0; i < figure->count; i++)
        if (!figure->row[i]->evaluation_rows) {
            error_set("report: no evaluations to draw");
            return NULL;
        }
    Script script;
    if (script_begin(&script, figure->id, FIGURE_TOP + PLOT + FIGURE_BOTTOM)) return NULL;
    for (int i = 0; i < figure->count; i++) write_scores(script.out, figure->row[i], i);
    script_panel(&script, FIGURE_TOP, FIGURE_TOP + PLOT);
    script_heading(&script, images ? "validation accuracy, %" : "validation perplexity", 1);
    script_below(&script, "updates");
    fprintf(script.out, "set xrange [0:%.7g]\n%splot ", last_step(figure),
            images ? "" : "set logscale y\n");
    for (int i = 0; i < figure->count; i++) {
        fprintf(script.out,
                "$curve%d using 1:2 with linespoints lw 2 dt %d pt %d ps 0.5 lc rgb \"%s\" title ",
                i, i % 5 + 1, 5 + 2 * (i % 3), figure_method_colours[i]);
        script_method(&script, figure->row[i]);
        fputs(i + 1 < figure->count ? ", " : "\n", script.out);
    }
    return script_finish(&script);
}
