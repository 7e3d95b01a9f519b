/* Figures of curves: training loss, validation score. */
#include <math.h>
#include <stdlib.h>

#include "../../ref/error.h"
#include "figures_parts.h"
#include "gnuplot.h"

/* POINTS: two pixels each.  RAW_BANDS: of more methods they would hide each other. */
enum { PLOT = 260, POINTS = 240, BANDS = 100, RAW_BANDS = 3 };

/* What is drawn along: of operations a unit of a thousand, a million ... of them. */
typedef struct {
    StudyAxis axis;
    double unit;
} Along;

static double at(const StudyRow *row, size_t i, Along along) {
    return study_at(row, i, along.axis) / along.unit;
}

/* ---- a method's line and band: at as many places as are seen ----------------------------------
 */

typedef struct {
    double x, sum, least, most;
    int count;
} Place;

static void place_add(Place *place, double x, double y) {
    if (!isfinite(x) || !isfinite(y)) return;
    place->x += x;
    place->sum += y;
    place->least = place->count ? fmin(place->least, y) : y;
    place->most = place->count ? fmax(place->most, y) : y;
    place->count++;
}

static const StudyRow *seed_row(const Figure *figure, int method, int seed) {
    return &figure->cases->study->row[figure->item->method[method].row[seed]];
}

/* Of an interrupted seed the others' curves are cut as well: a mean is of all or none. */
static size_t shortest_curve(const Figure *figure, int method) {
    size_t rows = SIZE_MAX;
    for (int s = 0; s < figure->item->method[method].seeds; s++) {
        const StudyRow *row = seed_row(figure, method, s);
        if (row->curve_rows < rows) rows = row->curve_rows;
    }
    return rows;
}

/* The case's own window: that of its shortest training. */
static size_t figure_window(const Figure *figure) {
    const StudyRow *shortest = figure_row(figure, 0);
    for (int m = 1; m < figure_methods(figure); m++)
        if (figure_row(figure, m)->curve_rows < shortest->curve_rows)
            shortest = figure_row(figure, m);
    return study_window(shortest, shortest);
}

static void write_line(FILE *out, int method, const Place *place, int places) {
    fprintf(out, "$curve%d << END\n", method);
    for (int p = 0; p < places; p++)
        if (place[p].count)
            fprintf(out, "%.6g %.5g\n", place[p].x / place[p].count, place[p].sum / place[p].count);
    fprintf(out, "END\n");
}

static void write_band(FILE *out, int method, const Place *place, int places) {
    fprintf(out, "$band%d << END\n", method);
    for (int p = 0; p < places; p++)
        if (place[p].count)
            fprintf(out, "%.6g %.5g %.5g\n", place[p].x / place[p].count, place[p].least,
                    place[p].most);
    fprintf(out, "END\n");
}

/* Of one seed: the raw loss, the least and the most of each part of the training, so that nothing
 * of it is hidden. */
static void write_raw_band(FILE *out, int method, const StudyRow *row, Along along) {
    enum { FEWEST = 5 };
    Place place[BANDS] = {{0}};
    size_t n = row->curve_rows, parts = n / FEWEST < BANDS ? n / FEWEST : BANDS;
    if (!parts) parts = 1;
    for (size_t p = 0; p < parts; p++)
        for (size_t begin = p * n / parts, end = (p + 1) * n / parts, i = begin; i < end; i++)
            place_add(&place[p], at(row, (begin + end) / 2, along), row->curve[i].loss);
    write_band(out, method, place, (int)parts);
}

static int write_loss(FILE *out, const Figure *figure, int method, Along along) {
    Place place[POINTS] = {{0}};
    size_t n = shortest_curve(figure, method), window = figure_window(figure);
    size_t places = n < POINTS ? n : POINTS;
    int seeds = figure->item->method[method].seeds;
    double *smooth = malloc((n + 1) * sizeof *smooth);
    if (!smooth) return error_set("report: out of memory for a figure");
    for (int s = 0; s < seeds; s++) {
        const StudyRow *row = seed_row(figure, method, s);
        study_smooth(smooth, row->curve, n, window);
        for (size_t p = 0; p < places; p++) {
            size_t i = (p + 1) * n / places - 1;
            place_add(&place[p], at(row, i, along), smooth[i]);
        }
    }
    free(smooth);
    write_line(out, method, place, (int)places);
    if (seeds == 1 && figure_methods(figure) <= RAW_BANDS)
        write_raw_band(out, method, figure_row(figure, method), along);
    else
        write_band(out, method, place, seeds > 1 ? (int)places : 0);
    return 0;
}

/* Bands first, then the lines over them. */
static void plot_curves(const Script *script, const Figure *figure, const char *with) {
    int methods = figure_methods(figure);
    fprintf(script->out, "plot ");
    for (int m = 0; m < methods; m++)
        fprintf(script->out,
                "$band%d using 1:2:3 with filledcurves fs transparent solid 0.18 noborder lc rgb "
                "\"%s\" notitle, ",
                m, figure_method_colours[m]);
    for (int m = 0; m < methods; m++) {
        fprintf(script->out,
                "$curve%d using 1:2 with %s lw 2 dt %d pt %d ps 0.5 lc rgb \"%s\" title ", m, with,
                m % 5 + 1, 5 + 2 * (m % 3), figure_method_colours[m]);
        script_method(script, figure, m);
        fputs(m + 1 < methods ? ", " : "\n", script->out);
    }
}

/* ---- loss ------------------------------------------------------------------------------------ */

/* gnuplot leaves out of a legend what does not fit into its rows. */
static int key_rows(const Figure *figure) {
    enum { SAMPLE = 70 };
    int columns = FIGURE_WIDTH / (SAMPLE + figure_names(figure));
    if (columns < 1) columns = 1;
    return (figure_methods(figure) + columns - 1) / columns;
}

static int plot_top(const Figure *figure) { return FIGURE_TOP + (key_rows(figure) - 1) * KEY_ROW; }

/* Where a training by BCD first was at the level it is compared at, and where the full update was:
 * two dots in its colour, of the means over seeds. */
static void mark_levels(FILE *out, const Figure *figure) {
    for (int m = 0; m < figure_methods(figure); m++) {
        Mean own = {0}, full = {0}, level = {0};
        for (int s = 0; s < figure->item->method[m].seeds; s++) {
            const StudyRow *row = seed_row(figure, m, s);
            if (row->submodels < 2 || !isfinite(row->steps_to_converge + row->multiplier)) continue;
            mean_add(&own, row->steps_to_converge);
            mean_add(&full, row->steps_to_converge / row->multiplier);
            mean_add(&level, row->level);
        }
        const double step[] = {own.mean, full.mean};
        for (int i = 0; i < 2 && level.count; i++)
            fprintf(out,
                    "set label at first %.7g, first %.6g \"\" point pt 7 ps 0.8 lc rgb \"%s\"\n",
                    step[i], level.mean, figure_method_colours[m]);
    }
}

/* From the lowest to the highest of what is drawn. */
typedef struct {
    double least, most;
} Range;

static void range_add(Range *range, double y) {
    if (!isfinite(y)) return;
    range->least = fmin(range->least, y);
    range->most = fmax(range->most, y);
}

/* A logarithmic axis that ends where the data do, with as many numbers as find room. */
static void write_logarithm(FILE *out, Range range) {
    static const double steps[] = {1, 2, 5, 1.5, 3, 7};
    enum { LOWEST = -6, HIGHEST = 12 };
    double ratio = range.most / range.least;
    int used = ratio < 12 ? 6 : ratio < 1200 ? 3 : 1;
    fprintf(out, "set logscale y\nset yrange [*:*] noextend\nset ytics (");
    for (int e = LOWEST; e <= HIGHEST; e++)
        for (int s = 0; s < used; s++)
            fprintf(out, "%s%g", e > LOWEST || s ? ", " : "", steps[s] * pow(10, e));
    fprintf(out, ")\n");
}

/* On easy data the loss falls over orders of magnitude: then only a logarithm shows the end. */
static void write_loss_axis(FILE *out, const Figure *figure) {
    Range range = {INFINITY, 0};
    for (int m = 0; m < figure_methods(figure); m++)
        for (size_t p = 0; p < figure_row(figure, m)->curve_rows; p++)
            range_add(&range, figure_row(figure, m)->curve[p].loss);
    if (range.least > 0 && range.most > 20 * range.least) write_logarithm(out, range);
}

static int begin_losses(Script *script, const Figure *figure, int below, Along along) {
    int top = plot_top(figure), failed = 0;
    for (int m = 0; m < figure_methods(figure); m++)
        if (!shortest_curve(figure, m))
            return error_set("report: %s: no curve to draw", figure_row(figure, m)->name);
    if (script_begin(script, figure->id, top + PLOT + FIGURE_BOTTOM + below)) return -1;
    for (int m = 0; m < figure_methods(figure) && !failed; m++)
        failed = write_loss(script->out, figure, m, along);
    script_panel(script, top, top + PLOT);
    script_heading(script, "training loss, nats per target", key_rows(figure));
    write_loss_axis(script->out, figure);
    if (failed) script_refuse(script, "out of memory for a figure");
    return failed;
}

/* The numbers along the updates: a handful, whatever room the names of the strips leave. */
static void write_updates_axis(FILE *out, const Figure *figure) {
    double last = figure_last_step(figure);
    fprintf(out, "set xrange [0:%.7g]\nset xtics %.7g\n", last, fmax(figure_step(last), 1));
}

char *figure_loss(const Figure *figure) {
    int strip = strip_height(figure);
    Script script;
    if (begin_losses(&script, figure, strip, (Along){AXIS_UPDATES, 1})) return NULL;
    fprintf(script.out, "set multiplot\n");
    write_updates_axis(script.out, figure);
    if (strip) {
        script_names(&script, figure);
        fprintf(script.out, "set format x \"\"\n"); /* the lowest panel has the numbers */
    } else {
        script_below(&script, "updates");
    }
    mark_levels(script.out, figure);
    plot_curves(&script, figure, "lines");
    fprintf(script.out, "unset logscale\nset autoscale y\n");
    if (strip) strip_plot(&script, figure, plot_top(figure) + PLOT);
    fprintf(script.out, "unset multiplot\n");
    return script_finish(&script);
}

static char *loss_along(const Figure *figure, Along along, const char *below) {
    Script script;
    if (begin_losses(&script, figure, 0, along)) return NULL;
    fprintf(script.out, "set xrange [0:*]\n");
    script_below(&script, below);
    plot_curves(&script, figure, "lines");
    return script_finish(&script);
}

char *figure_time(const Figure *figure) {
    bool alike = true;
    for (int m = 0; m < figure_methods(figure); m++)
        for (int s = 0; s < figure->item->method[m].seeds; s++)
            alike &= study_same_clock(seed_row(figure, m, s), figure_row(figure, 0));
    return loss_along(
        figure, (Along){AXIS_SECONDS, 1},
        alike ? "seconds of training" : "seconds, not all on as many threads of the same machine");
}

char *figure_operations(const Figure *figure) {
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P", "E", "Z"};
    double most = 0;
    for (int m = 0; m < figure_methods(figure); m++)
        for (int s = 0; s < figure->item->method[m].seeds; s++) {
            const StudyRow *row = seed_row(figure, m, s);
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

/* ---- score ----------------------------------------------------------------------------------- */

static double score(const StudyRow *row, size_t evaluation) {
    const EvaluationRow *e = &row->evaluation[evaluation];
    return study_is_images(row) ? 100 * e->accuracy : e->perplexity;
}

/* Evaluations come at the same updates whatever the seed. */
static int write_scores(FILE *out, const Figure *figure, int method) {
    size_t n = figure_row(figure, method)->evaluation_rows;
    Place *place = calloc(n + 1, sizeof *place);
    if (!place) return error_set("report: out of memory for a figure");
    for (int s = 0; s < figure->item->method[method].seeds; s++) {
        const StudyRow *row = seed_row(figure, method, s);
        for (size_t e = 0; e < n && e < row->evaluation_rows; e++)
            place_add(&place[e], (double)row->evaluation[e].step, score(row, e));
    }
    write_line(out, method, place, (int)n);
    write_band(out, method, place, (int)n);
    free(place);
    return 0;
}

static void write_perplexity_axis(FILE *out, const Figure *figure) {
    Range range = {INFINITY, 0};
    for (int m = 0; m < figure_methods(figure); m++)
        for (size_t e = 0; e < figure_row(figure, m)->evaluation_rows; e++)
            range_add(&range, score(figure_row(figure, m), e));
    if (range.least > 0 && range.most >= range.least) write_logarithm(out, range);
}

char *figure_score(const Figure *figure) {
    bool images = study_is_images(figure_row(figure, 0));
    int top = plot_top(figure), failed = 0;
    Script script;
    for (int m = 0; m < figure_methods(figure); m++)
        if (!figure_row(figure, m)->evaluation_rows) {
            error_set("report: no evaluations to draw");
            return NULL;
        }
    if (script_begin(&script, figure->id, top + PLOT + FIGURE_BOTTOM)) return NULL;
    for (int m = 0; m < figure_methods(figure) && !failed; m++)
        failed = write_scores(script.out, figure, m);
    if (failed) return script_refuse(&script, "out of memory for a figure");
    script_panel(&script, top, top + PLOT);
    script_heading(&script, images ? "validation accuracy, %" : "validation perplexity",
                   key_rows(figure));
    script_below(&script, "updates");
    write_updates_axis(script.out, figure);
    if (!images) write_perplexity_axis(script.out, figure);
    plot_curves(&script, figure, "linespoints");
    return script_finish(&script);
}
