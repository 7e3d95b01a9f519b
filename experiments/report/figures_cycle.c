/* One BCD cycle, from the tables of bcd trace: for each submodel in its turn what every block holds
 * while that one trains. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/error.h"
#include "figures_parts.h"
#include "gnuplot.h"

/* Pixels: the two halves of a panel, its heading, the lines of its blocks. */
enum { HALVES = 2, LEFT = 92, MIDDLE = 318, SECOND = 392, RIGHT = 562, HEADING = 34 };
enum { LINE = 24, LEAST_LINE = 5, LABEL = 15, ROOM = 288, TOP = 84, MOST = 16 };
enum { ROLES = 4 };

static const struct {
    const char *column, *name;
    MemRole role;
    int half;
} roles[ROLES] = {{"parameters", "parameters", MEM_PARAMETERS, 0},
                  {"gradients", "gradients", MEM_GRADIENTS, 0},
                  {"state", "optimizer state", MEM_STATE, 0},
                  {"activations", "activations", MEM_ACTIVATIONS, 1}};

typedef struct {
    const Table *table[MOST];
    int count, blocks, line;           /* line: pixels of a block */
    double most[HALVES], unit[HALVES]; /* the longest bar, in bytes; what bars are drawn in */
    const char *unit_name[HALVES];
} Cycle;

static double bytes_of(const Table *table, int block, int role) {
    const Cell *cell = table_find(table, table->label[block], roles[role].column);
    return cell && isfinite(cell->value) ? cell->value : 0;
}

static const char *part_of(const Table *table, int block) {
    const Cell *cell = table_find(table, table->label[block], "part");
    return cell ? cell->text : "";
}

static void choose_unit(Cycle *cycle, int half) {
    static const char *const names[] = {"bytes", "KiB", "MiB", "GiB"};
    int scale = 0;
    while (scale < 3 && cycle->most[half] > 2 * pow(1024, scale + 1)) scale++;
    cycle->unit[half] = pow(1024, scale);
    cycle->unit_name[half] = names[scale];
}

/* Finds the tables of the submodels; false where there is nothing to draw. */
static bool collect(Cycle *cycle, const Tables *tables) {
    *cycle = (Cycle){.count = 0};
    for (int t = 0; t < tables->tables && cycle->count < MOST; t++) {
        const Table *table = tables->table[t];
        if (strncmp(table->name, "submodel_", 9) != 0 || !table->rows || !*part_of(table, 0) ||
            (cycle->count && table->rows != cycle->blocks))
            continue;
        cycle->blocks = table->rows;
        cycle->table[cycle->count++] = table;
        for (int b = 0; b < table->rows; b++) {
            double sum[HALVES] = {0};
            for (int r = 0; r < ROLES; r++) sum[roles[r].half] += bytes_of(table, b, r);
            for (int h = 0; h < HALVES; h++) cycle->most[h] = fmax(cycle->most[h], sum[h]);
        }
    }
    if (!cycle->count || !(cycle->most[0] > 0 && cycle->most[1] > 0)) return false;
    for (int h = 0; h < HALVES; h++) choose_unit(cycle, h);
    int room = ROOM / cycle->blocks;
    cycle->line = room > LINE ? LINE : room < LEAST_LINE ? LEAST_LINE : room;
    return true;
}

bool figure_is_cycle(const Tables *tables) {
    Cycle cycle;
    return collect(&cycle, tables);
}

/* Of an axis, in its unit. */
static double length_of(const Cycle *cycle, int half) {
    return 1.05 * cycle->most[half] / cycle->unit[half];
}

/* "begin end top bottom colour" of each bar; those that do not train are paler, behind those that
 * do lies a band. */
static void write_bars(FILE *out, const Cycle *cycle, int panel, int half) {
    const Table *table = cycle->table[panel];
    const unsigned long pale = 0x90, grey = 0xD8808080; /* transparency; that and colour */
    fprintf(out, "$bars%d_%d << END\n", panel, half);
    for (int b = 0; b < table->rows; b++)
        if (strcmp(part_of(table, b), "active") == 0)
            fprintf(out, "0 %.6g %.2f %.2f 0x%08lX\n", length_of(cycle, half), b + 0.5, b + 1.5,
                    grey);
    for (int b = 0; b < table->rows; b++) {
        bool active = strcmp(part_of(table, b), "active") == 0;
        double end = 0;
        for (int r = 0; r < ROLES; r++) {
            double begin = end, bytes = bytes_of(table, b, r);
            if (roles[r].half != half || !(bytes > 0)) continue;
            end += bytes / cycle->unit[half];
            unsigned long rgb = strtoul(figure_role_colours[roles[r].role] + 1, NULL, 16);
            fprintf(out, "%.6g %.6g %.2f %.2f 0x%08lX\n", begin, end, b + 0.66, b + 1.34,
                    (active ? 0 : pale << 24) | rgb);
        }
    }
    fprintf(out, "END\n");
}

/* Names of blocks at the left, what they are now in the middle; not more than there is room for. */
static void write_names(FILE *out, const Cycle *cycle, int panel, int half) {
    const Table *table = cycle->table[panel];
    int each = (LABEL + cycle->line - 1) / cycle->line;
    fprintf(out, "set ytics scale 0 noenhanced (");
    for (int b = 0; b < table->rows; b += each) {
        fputs(b ? ", " : "", out);
        gnuplot_quote(out, half ? part_of(table, b) : table->label[b]);
        fprintf(out, " %d", b + 1);
    }
    fprintf(out, ")\nset yrange [%d.5:0.5]\n", table->rows);
}

static void plot_half(const Script *script, const Cycle *cycle, int panel, int half) {
    FILE *out = script->out;
    const double left[] = {LEFT, SECOND}, right[] = {MIDDLE, RIGHT};
    double length = length_of(cycle, half);
    write_bars(out, cycle, panel, half);
    write_names(out, cycle, panel, half);
    fprintf(out, "set lmargin at screen %.6f\nset rmargin at screen %.6f\nset xrange [0:%.6g]\n",
            left[half] / FIGURE_WIDTH, right[half] / FIGURE_WIDTH, length);
    fprintf(out, "set xtics %.6g nomirror\n", figure_step(length));
    if (panel + 1 < cycle->count)
        fprintf(out, "set format x \"\"\n");
    else
        fprintf(out,
                "set format x \"%%g\"\nset label '%s, %s' at screen %.6f, screen %.6f center\n",
                half ? "activations" : "weights", cycle->unit_name[half],
                (left[half] + right[half]) / 2 / FIGURE_WIDTH, 12.0 / script->height);
    fprintf(out,
            "plot $bars%d_%d using (($1+$2)/2):(($3+$4)/2):1:2:3:4:5 with boxxyerror lc rgb "
            "variable notitle",
            panel, half);
    for (int r = 0; r < ROLES && panel + half == 0; r++)
        fprintf(out, ", NaN with boxes lc rgb \"%s\" title \"%s\"",
                figure_role_colours[roles[r].role], roles[r].name);
    fprintf(out, "\nunset label\nunset key\n");
}

char *figure_cycle(const Tables *tables, const char *id) {
    Cycle cycle;
    Script script;
    if (!collect(&cycle, tables)) {
        error_set("report: no blocks of submodels to draw");
        return NULL;
    }
    int high = cycle.blocks * cycle.line;
    if (script_begin(&script, id, TOP + cycle.count * (HEADING + high) + FIGURE_BOTTOM))
        return NULL;
    script_heading(&script, "what each block holds while a submodel trains", 2);
    fprintf(script.out,
            "set multiplot\nset style fill solid noborder\n"
            "unset grid\nset grid x lt 1 lw 0.5 lc rgb \"gray\"\n");
    for (int p = 0; p < cycle.count; p++) {
        char text[48];
        int top = TOP + p * (HEADING + high) + HEADING;
        script_panel(&script, top, top + high);
        snprintf(text, sizeof text, "submodel %.12s is active", cycle.table[p]->name + 9);
        script_label(&script, text, top);
        for (int h = 0; h < HALVES; h++) plot_half(&script, &cycle, p, h);
    }
    fprintf(script.out, "unset multiplot\n");
    return script_finish(&script);
}
