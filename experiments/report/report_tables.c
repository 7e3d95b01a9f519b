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
        bool words = table->column[c].kind == COLUMN_TEXT;
        fprintf(out, words ? "<th scope=\"col\" class=\"text\">" : "<th scope=\"col\">");
        put_text(out, table->column[c].head);
        fprintf(out, "<small>");
        put_text(out, table->column[c].unit);
        fprintf(out, "</small></th>");
    }
    fprintf(out, "</tr></thead>\n<tbody>\n");
}

static void put_cell(FILE *out, const Table *table, int row, int column, bool marked) {
    char text[TABLE_CELL];
    Source source = table->cell[row * table->columns + column].source;
    const char *mark = source_marks[source];
    bool words = table->column[column].kind == COLUMN_TEXT;
    if (*mark || words)
        fprintf(out, "<td class=\"%s%s%s\">", mark, *mark && words ? " " : "", words ? "text" : "");
    else
        fprintf(out, "<td>");
    put_text(out, table_format_with(table, row, column, PLUS_MINUS, text));
    if (*mark)
        fprintf(out, "<sup title=\"%s\">%s</sup>", source_names[source], mark);
    else if (marked)
        fprintf(out, "<sup></sup>");
    fprintf(out, "</td>");
}

static void put_table(FILE *out, const Table *table) {
    char legend[TABLE_LEGEND];
    bool marked[TABLE_COLUMNS];
    for (int c = 0; c < table->columns; c++) marked[c] = table_marked(table, c);
    put_table_head(out, table);
    for (int r = 0; r < table->rows; r++) {
        fprintf(out, "<tr>");
        put_element(out, "th scope=\"row\"", table->label[r]);
        for (int c = 0; c < table->columns; c++) put_cell(out, table, r, c, marked[c]);
        fprintf(out, "</tr>\n");
    }
    fprintf(out, "</tbody></table></div>\n");
    put_element(out, "p class=\"note\"", table_legend(table, legend));
    for (int n = 0; n < table->notes; n++) put_element(out, "p class=\"note\"", table->note[n]);
}

/* Its tasks are too many to read and are in the file; without a drawing there are letters. */
static void put_timeline(Page *page, const Table *table) {
    char *text = NULL;
    size_t size;
    for (int n = 0; page->drawable && n < table->notes; n++)
        put_element(page->out, "p class=\"note\"", table->note[n]);
    FILE *letters = page->drawable ? NULL : open_memstream(&text, &size);
    if (!letters) return;
    timeline_print(letters, table);
    if (fclose(letters) == 0) put_element(page->out, "pre", text);
    free(text);
}

static void put_figure(Page *page, const Table *table, int file, int number) {
    char id[32];
    snprintf(id, sizeof id, "t%d_%d", file, number);
    fprintf(page->out, "<div class=\"figures\">");
    page_figure(page, figure_table(table, id), id, table->title, "");
    fprintf(page->out, "</div>\n");
}

/* Trainings have theirs each. */
static void put_provenance(FILE *out, const Provenance *p) {
    if (!*p->command) return;
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

static void put_cycle(Page *page, const Tables *tables, int number) {
    static const char caption[] =
        "One BCD cycle. Parameters are always there; gradients and optimizer state only of the "
        "active blocks (in full colours, on a band); activations of what the backward pass will "
        "read: none below the active blocks but the output that these read.";
    char id[32];
    snprintf(id, sizeof id, "c%d", number);
    fprintf(page->out, "<section>\n<h2>One BCD cycle</h2>\n<div class=\"figures\">");
    page_figure(page, figure_cycle(tables, id), id, "One BCD cycle", caption);
    fprintf(page->out, "</div>\n</section>\n");
}

void put_tables(Page *page, const Report *report, int number) {
    const Tables *tables = &report->file[number];
    if (page->drawable && figure_is_cycle(tables)) put_cycle(page, tables, number);
    for (int t = 0; t < tables->tables; t++) {
        const Table *table = tables->table[t];
        fprintf(page->out, "<section id=\"table%d_%d\">\n", number, t);
        put_element(page->out, "h2", table->title);
        if (page->drawable && table->figure != FIGURE_NONE) put_figure(page, table, number, t);
        if (timeline_is(table))
            put_timeline(page, table);
        else
            put_table(page->out, table);
        fprintf(page->out, "</section>\n");
    }
    put_provenance(page->out, &tables->provenance);
}
