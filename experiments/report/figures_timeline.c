/* A step of a pipeline: a line for each rank, a tone for what it computes, nothing where it waits.
 */
#include <math.h>

#include "../tables/timeline.h"
#include "figures_parts.h"
#include "gnuplot.h"

enum { LINE = 40, TOP = FIGURE_TOP + 25, MOST_TASKS = 2000 };

static const char *const pass_colours[PASSES] = {"#56B4E9", "#0072B2", "#E69F00"};

/* "begin end line" of each task of a pass that begins early enough, a little apart. */
static void write_pass(FILE *out, const Table *table, int pass, double until_ms) {
    int line = 0;
    double gap_ms = 2 * until_ms / FIGURE_WIDTH;
    fprintf(out, "$pass%d << END\n", pass);
    for (int first = 0, end; first < table->rows; first = end) {
        end = timeline_rank_end(table, first);
        line++;
        for (int r = first; r < end; r++) {
            double start = timeline_ms(table, r, TASK_START), ms = timeline_ms(table, r, TASK_END);
            if (timeline_pass(table, r) != pass || start >= until_ms) continue;
            ms = fmin(ms, until_ms);
            fprintf(out, "%.7g %.7g %d\n", start, ms - fmin(gap_ms, (ms - start) / 4), line);
        }
    }
    fprintf(out, "END\n");
}

static void write_ranks(FILE *out, const Table *table) {
    int line = 0;
    fprintf(out, "set ytics noenhanced (");
    for (int first = 0; first < table->rows; first = timeline_rank_end(table, first)) {
        fputs(line ? ", " : "", out);
        gnuplot_quote(out, table->label[first]);
        fprintf(out, " %d", ++line);
    }
    fprintf(out, ")\nset yrange [%d.5:0.5]\n", line);
}

static bool has_pass(const Table *table, int pass) {
    for (int r = 0; r < table->rows; r++)
        if (timeline_pass(table, r) == pass) return true;
    return false;
}

char *figure_timeline(const Table *table, const char *id) {
    int ranks = 0;
    for (int r = 0; r < table->rows; r = timeline_rank_end(table, r)) ranks++;
    /* Of a long step the beginning, so that its tasks are seen. */
    double until_ms = timeline_end_ms(table) * fmin(1, (double)MOST_TASKS / table->rows);
    int bottom = TOP + ranks * LINE;
    Script script;
    if (script_begin(&script, id, bottom + FIGURE_BOTTOM)) return NULL;
    for (int p = 0; p < PASSES; p++) write_pass(script.out, table, p, until_ms);
    script_panel(&script, TOP, bottom);
    script_heading(&script, "who computes what, simulated", 2);
    script_below(&script, until_ms < timeline_end_ms(table) ? "ms (beginning)" : "ms");
    write_ranks(script.out, table);
    fprintf(script.out, "set style fill solid noborder\nset xrange [0:%.7g]\nunset grid\nplot ",
            until_ms);
    for (int p = 0; p < PASSES; p++)
        if (has_pass(table, p))
            fprintf(script.out,
                    "$pass%d using (($1+$2)/2):3:1:2:($3-0.4):($3+0.4) with boxxyerror lc rgb "
                    "\"%s\" title \"%s\", ",
                    p, pass_colours[p], timeline_passs[p]);
    fprintf(script.out, "NaN notitle\n");
    return script_finish(&script);
}
