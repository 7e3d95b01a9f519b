/* Tables on the page. */
#include <stdlib.h>
#include <string.h>

#include "../tables/timeline.h"
#include "figures.h"
#include "report_parts.h"

static void put_table_head(FILE *out, const Table *table) {
    fprintf(out, "<div class=\"scroll\"><table class=\"data\"><thead><tr><th scope=\"col\">");
    put_text(out, table->row_head);
    fprintf(out, "</th>");
    for (int c = 0; c < table->columns; c++) {
        fprintf(out, "<th scope=\"col\">");
        put_text(out, table->column[c].head);
        fprintf(out, "<small>");
        put_text(out, table->column[c].unit);
        fprintf(out, "</small></th>");
    }
    fprintf(out, "</tr></thead>\n<tbody>\n");
}

static void put_cell(FILE *out, const Table *table, int row, int column) {
    char text[TABLE_CELL];
    Source source = table->cell[row * table->columns + column].source;
    const char *mark = source_marks[source];
    fprintf(out, *mark ? "<td class=\"%s\">" : "<td>", mark);
    put_text(out, table_format(table, row, column, text));
    if (*mark) fprintf(out, "<sup title=\"%s\">%s</sup>", source_names[source], mark);
    fprintf(out, "</td>");
}

static void put_table(FILE *out, const Table *table) {
    char legend[TABLE_LEGEND];
    put_table_head(out, table);
    for (int r = 0; r < table->rows; r++) {
        fprintf(out, "<tr>");
        put_element(out, "th scope=\"row\"", table->label[r]);
        for (int c = 0; c < table->columns; c++) put_cell(out, table, r, c);
        fprintf(out, "</tr>\n");
    }
    fprintf(out, "</tbody></table></div>\n");
    put_element(out, "p class=\"note\"", table_legend(table, legend));
    for (int n = 0; n < table->notes; n++) put_element(out, "p class=\"note\"", table->note[n]);
}

/* Its tasks are too many to read and are in the file; without a drawing there are letters. */
static void put_timeline(FILE *out, const Table *table, bool drawable) {
    char *text = NULL;
    size_t size;
    for (int n = 0; drawable && n < table->notes; n++)
        put_element(out, "p class=\"note\"", table->note[n]);
    FILE *letters = drawable ? NULL : open_memstream(&text, &size);
    if (!letters) return;
    timeline_print(letters, table);
    if (fclose(letters) == 0) put_element(out, "pre", text);
    free(text);
}

static void put_figure(FILE *out, const Table *table, int file, int number) {
    char id[32];
    snprintf(id, sizeof id, "t%d_%d", file, number);
    char *svg = figure_table(table, id);
    if (!svg) return;
    fprintf(out, "<div class=\"figures\"><figure>");
    put_svg(out, svg, id, table->title);
    fprintf(out, "</figure></div>\n");
    free(svg);
}

static void put_provenance(FILE *out, const Provenance *p) {
    fprintf(out, "<p class=\"note\">Made by <code>");
    put_text(out, p->command);
    fprintf(out, "</code> (commit ");
    put_text(out, p->commit);
    fprintf(out, ", ");
    put_text(out, p->started);
    fprintf(out, ") on ");
    put_text(out, provenance_computer(p));
    fprintf(out, ".</p>\n");
}

void put_contents(FILE *out, const Tables *tables, int number) {
    for (int t = 0; t < tables->tables; t++) {
        fprintf(out, "<li><a href=\"#table%d_%d\">", number, t);
        put_text(out, tables->table[t]->title);
        fprintf(out, "</a></li>\n");
    }
}

static void put_cycle(FILE *out, const Tables *tables, int number) {
    static const char caption[] =
        "One BCD cycle. Parameters are always there; gradients and optimizer state only of the "
        "active blocks (in full colours, on a band); activations of what the backward pass will "
        "read: none below the active blocks but the output that these read.";
    char id[32];
    snprintf(id, sizeof id, "c%d", number);
    char *svg = figure_cycle(tables, id);
    if (!svg) return;
    fprintf(out, "<section>\n<h2>One BCD cycle</h2>\n<div class=\"figures\"><figure>");
    put_svg(out, svg, id, caption);
    put_element(out, "figcaption", caption);
    fprintf(out, "</figure></div>\n</section>\n");
    free(svg);
}

void put_tables(FILE *out, const Tables *tables, int number, bool drawable) {
    if (drawable && figure_is_cycle(tables)) put_cycle(out, tables, number);
    for (int t = 0; t < tables->tables; t++) {
        const Table *table = tables->table[t];
        fprintf(out, "<section id=\"table%d_%d\">\n", number, t);
        put_element(out, "h2", table->title);
        if (drawable && table->figure != FIGURE_NONE) put_figure(out, table, number, t);
        if (timeline_is(table))
            put_timeline(out, table, drawable);
        else
            put_table(out, table);
        fprintf(out, "</section>\n");
    }
    put_provenance(out, &tables->provenance);
}
