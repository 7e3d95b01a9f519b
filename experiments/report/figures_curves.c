/* Figures of curves: training loss and validation score. */
#include <math.h>
#include <stdlib.h>

#include "../../ref/error.h"
#include "figures_parts.h"

enum { PLOT = 260, GAP = 34, ROLL_ROW = 15, ROLL_ROWS = 12 };

static double at(const CurveRow *row, bool seconds) {
    return seconds ? row->seconds : (double)row->step;
}

/* "x least most" of the raw loss in each of at most BANDS parts of the training, so that nothing of
 * it is hidden. */
static void write_band(FILE *out, const StudyRow *row, int number, bool seconds) {
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
        fprintf(out, "%.7g %.5g %.5g\n", at(&row->curve[(begin + end) / 2], seconds), least, most);
    }
    fprintf(out, "END\n");
}

/* "x smooth" at no more than POINTS places. */
static int write_loss(FILE *out, const StudyRow *row, size_t window, int number, bool seconds) {
    enum { POINTS = 400 };
    size_t n = row->curve_rows, parts = n < POINTS ? n : POINTS;
    double *smooth = malloc((n + 1) * sizeof *smooth);
    if (!smooth) return error_set("report: out of memory for a figure");
    study_smooth(smooth, row->curve, n, window);
    fprintf(out, "$curve%d << END\n", number);
    for (size_t p = 1; p <= parts; p++) {
        size_t i = p * n / parts - 1;
        fprintf(out, "%.7g %.5g\n", at(&row->curve[i], seconds), smooth[i]);
    }
    fprintf(out, "END\n");
    free(smooth);
    write_band(out, row, number, seconds);
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

/* "begin end submodel", one line per visit, and the plot of them below `top`. */
static void plot_visits(const Script *script, const StudyRow *row, int number, int top,
                        bool lowest) {
    FILE *out = script->out;
    fprintf(out, "$visits%d << END\n", number);
    for (size_t i = 0, first = 0; i < row->curve_rows; i++) {
        int submodel = row->curve[first].submodel;
        if (i + 1 < row->curve_rows && row->curve[i + 1].submodel == submodel) continue;
        fprintf(out, "%.7g %.7g %d\n", first ? (double)row->curve[first - 1].step : 0,
                (double)row->curve[i].step, submodel + 1);
        first = i + 1;
    }
    fprintf(out,
            "END\nunset arrow\nunset label\nunset key\nunset grid\nset style fill solid noborder\n"
            "set yrange [0.5:%d.5]\nset ytics 1,%d,%d\n",
            (int)row->submodels, row->submodels > ROLL_ROWS ? 5 : 1, (int)row->submodels);
    script_label(script, "active submodel", top);
    if (lowest) {
        fprintf(out, "set format x\n");
        script_below(script, "updates");
    }
    fprintf(out,
            "plot $visits%d using (($1+$2)/2):3:1:2:($3-0.42):($3+0.42) with boxxyerror lc rgb "
            "\"%s\" notitle\n",
            number, figure_method_colours[number]);
}

/* Height of the strip that shows the active submodel; 0: none. */
static int roll_height(const StudyRow *row) {
    if (row->submodels < 2) return 0;
    return (int)(row->submodels < ROLL_ROWS ? row->submodels : ROLL_ROWS) * ROLL_ROW;
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

static double last_step(const Figure *figure) {
    double most = 1;
    for (int i = 0; i < figure->count; i++) most = fmax(most, (double)figure->row[i]->steps);
    return most;
}

static int begin_losses(Script *script, const Figure *figure, int height, bool seconds) {
    for (int i = 0; i < figure->count; i++)
        if (!figure->row[i]->curve_rows) return error_set("report: no losses to draw");
    if (script_begin(script, figure->id, height)) return -1;
    for (int i = 0; i < figure->count; i++)
        if (write_loss(script->out, figure->row[i], figure->window, i, seconds)) {
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
    int top = FIGURE_TOP + PLOT, height = top + FIGURE_BOTTOM, rolls = 0;
    for (int i = 0; i < figure->count; i++)
        if (roll_height(figure->row[i])) {
            height += GAP + roll_height(figure->row[i]);
            rolls++;
        }
    Script script;
    if (begin_losses(&script, figure, height, false)) return NULL;
    fprintf(script.out, "set multiplot\nset xrange [0:%.7g]\n", last_step(figure));
    if (rolls)
        fprintf(script.out, "set format x \"\"\n"); /* the lowest panel has the numbers */
    else
        script_below(&script, "updates");
    mark_level(script.out, figure);
    plot_losses(&script, figure);
    fprintf(script.out, "unset logscale\n");
    for (int i = 0; i < figure->count; i++) {
        if (!roll_height(figure->row[i])) continue;
        script_panel(&script, top + GAP, top + GAP + roll_height(figure->row[i]));
        plot_visits(&script, figure->row[i], i, top + GAP, --rolls == 0);
        top += GAP + roll_height(figure->row[i]);
    }
    return script_finish(&script);
}

char *figure_time(const Figure *figure) {
    Script script;
    if (begin_losses(&script, figure, FIGURE_TOP + PLOT + FIGURE_BOTTOM, true)) return NULL;
    fprintf(script.out, "set xrange [0:*]\n");
    script_below(&script, "seconds of training");
    plot_losses(&script, figure);
    return script_finish(&script);
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
