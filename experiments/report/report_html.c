/* The page: one file, nothing loaded from elsewhere. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../ref/error.h"
#include "figures.h"
#include "gnuplot.h"
#include "report_parts.h"
#include "report_style.h"

void put_text(FILE *out, const char *text) {
    for (; *text; text++) switch (*text) {
            case '&':
                fputs("&amp;", out);
                break;
            case '<':
                fputs("&lt;", out);
                break;
            case '>':
                fputs("&gt;", out);
                break;
            case '"':
                fputs("&quot;", out);
                break;
            case '\'':
                fputs("&#39;", out);
                break;
            default:
                putc(*text, out);
        }
}

void put_element(FILE *out, const char *tag, const char *text) {
    fprintf(out, "<%s>", tag);
    put_text(out, text);
    fprintf(out, "</%.*s>\n", (int)strcspn(tag, " "), tag);
}

/* ---- figures --------------------------------------------------------------------------------- */

void put_svg(FILE *out, const char *svg, const char *id, const char *label) {
    static const char *const before[] = {" id='", " id=\"", "href='#", NULL};
    fprintf(out, "<svg role=\"img\" aria-label=\"");
    put_text(out, label);
    putc('"', out);
    for (svg += strlen("<svg"); *svg; svg++) {
        putc(*svg, out);
        for (int b = 0; before[b]; b++) {
            size_t length = strlen(before[b]);
            if (*svg == before[b][0] && strncmp(svg, before[b], length) == 0) {
                fwrite(svg + 1, 1, length - 1, out);
                fprintf(out, "%s_", id);
                svg += length - 1;
                break;
            }
        }
    }
}

typedef struct {
    char *(*draw)(const Figure *figure);
    const char *name, *caption;
} FigureKind;

static const FigureKind figure_kinds[] = {
    {figure_loss, "loss",
     "Training loss against updates: the line is smoothed, the band holds every batch. Dotted: the "
     "level at which the methods are compared; dots: first reached. Below: which submodel was "
     "being trained; visits too short to be seen are one mean shade."},
    {figure_score, "score", "Validation score as the training went on."},
    {figure_time, "time", "The same training loss against seconds of training."},
    {figure_operations, "operations",
     "The same training loss against operations, counted from shapes: forward everywhere, input "
     "gradients down to the active submodel, weight gradients of the active one."},
    {figure_memory, "memory",
     "Measured peak of each role of memory. The line across a bar: the closed form W (1 + k/M) for "
     "parameters, "
     "gradients and optimizer state, which leaves activations out."},
};

/* Drawing takes time and room on the page: of many groups the first ones.  A figure without data is
 * left out. */
static void put_figures(FILE *out, const ReportGroup *report, int number, bool drawable) {
    enum { GROUPS_DRAWN = 16 };
    if (!drawable) return;
    if (number >= GROUPS_DRAWN) {
        fprintf(out,
                "<p class=\"note\">The first %d groups of a page have figures; a report of fewer "
                "files shows those of this one.</p>\n",
                GROUPS_DRAWN);
        return;
    }
    fprintf(out, "<div class=\"figures\">\n");
    for (size_t k = 0; k < sizeof figure_kinds / sizeof *figure_kinds; k++) {
        char id[32];
        snprintf(id, sizeof id, "g%d_%s", number, figure_kinds[k].name);
        Figure figure = {.id = id, .count = report->rows, .window = report->window};
        memcpy(figure.row, report->row, sizeof figure.row);
        char *svg = figure_kinds[k].draw(&figure);
        if (!svg) continue;
        fprintf(out, "<figure>");
        put_svg(out, svg, id, figure_kinds[k].caption);
        put_element(out, "figcaption", figure_kinds[k].caption);
        fprintf(out, "</figure>\n");
        free(svg);
    }
    fprintf(out, "</div>\n");
}

/* ---- tables ---------------------------------------------------------------------------------- */

static void put_table(FILE *out, const ReportGroup *report) {
    bool images = study_is_images(report->row[0]);
    fprintf(out, "<div class=\"scroll\"><table><thead><tr>");
    for (int c = 0; c < REPORT_CELLS; c++) {
        const ReportColumn *column = &report_columns[c];
        bool is_score = strcmp(column->head, "score") == 0;
        fprintf(out, "<th scope=\"col\" title=\"");
        put_text(out, column->what);
        fprintf(out, "\">%s<small>%s</small></th>",
                !is_score ? column->head
                : images  ? "accuracy"
                          : "perplexity",
                column->unit);
    }
    fprintf(out, "</tr></thead>\n<tbody>\n");
    for (int i = 0; i < report->lines; i++) {
        const ReportLine *line = &report->line[i];
        bool first = i == 0 || strcmp(line->cell[0], report->line[i - 1].cell[0]);
        fprintf(out, "<tr class=\"%.1s%s\">", line->cell[0], first ? " first" : "");
        for (int c = 0; c < REPORT_CELLS; c++)
            put_element(out, c < 2 ? "th scope=\"row\"" : "td", line->cell[c]);
        fprintf(out, "</tr>\n");
    }
    fprintf(out, "</tbody></table></div>\n");
}

static void put_setting(FILE *out, const char *name, const char *value) {
    fprintf(out, "<tr>");
    put_element(out, "th scope=\"row\"", name);
    put_element(out, "td", value);
    fprintf(out, "</tr>\n");
}

/* Every column of the study's table, and the command that ran the row. */
static void put_details(FILE *out, const StudyRow *row) {
    char method[32], text[64];
    fprintf(out,
            "<details><summary>All of %s: settings, results, provenance</summary>\n"
            "<div class=\"scroll\"><table class=\"settings\">\n",
            study_method(row, method));
    for (int c = 0; c < study_column_count; c++) {
        const H5Column *column = &study_columns[c].column;
        const void *at = (const char *)row + column->offset;
        if (column->kind == H5_TEXT)
            put_setting(out, column->name, at);
        else {
            const char *unit = column->unit ? column->unit : "";
            if (column->kind == H5_INT64)
                snprintf(text, sizeof text, "%" PRId64 " %s", *(const int64_t *)at, unit);
            else
                snprintf(text, sizeof text, "%.9g %s", *(const double *)at, unit);
            put_setting(out, column->name, text);
        }
    }
    put_setting(out, "specification", row->spec);
    put_setting(out, "command", row->provenance.command);
    fprintf(out, "</table></div></details>\n");
}

static void put_group(FILE *out, const ReportGroup *report, int number, bool drawable) {
    fprintf(out, "<section>\n");
    put_element(out, "h2", report->title);
    put_element(out, "p class=\"sub\"", report->subtitle);
    put_table(out, report);
    for (int f = 0; f < report->findings; f++) {
        put_element(out, "p class=\"finding\"", report->finding[f]);
        put_element(out, "p class=\"finding\"", report->comparison[f]);
    }
    put_element(out, "p class=\"note\"", report->imbalance);
    put_element(out, "p class=\"note\"", report->published);
    put_figures(out, report, number, drawable);
    for (int r = 0; r < report->rows; r++) put_details(out, report->row[r]);
    fprintf(out, "</section>\n");
}

static void put_means(FILE *out, const Study *study) {
    char line[REPORT_MEANS][160];
    int lines = report_means(study, line);
    fprintf(
        out,
        "<section>\n<h2>What to know when comparing</h2>\n<h3>Mean B-F multipliers</h3>\n<pre>");
    for (int i = 0; i < lines; i++) {
        put_text(out, line[i]);
        putc('\n', out);
    }
    fprintf(out, "</pre>\n<h3>Convergence</h3>\n");
    put_element(out, "p", study_convergence_rule);
    fprintf(out, "<h3>The published numbers</h3>\n<ul>\n");
    for (int n = 0; paper_notes[n]; n++) put_element(out, "li", paper_notes[n]);
    fprintf(out, "</ul>\n<h3>Columns</h3>\n<dl>\n");
    for (int c = 0; c < REPORT_CELLS; c++) {
        const ReportColumn *column = &report_columns[c];
        fprintf(out, "<dt>%s %s</dt>", column->head, column->unit);
        put_element(out, "dd", column->what);
    }
    fprintf(out, "</dl>\n</section>\n");
}

static void put_head(FILE *out, bool drawable) {
    fprintf(out,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
            "<meta name=\"color-scheme\" content=\"light dark\">\n"
            "<title>Block coordinate descent beside full updates</title>\n<style>%s%s</style>\n"
            "</head>\n<body>\n<main>\n<header>\n<h1>Block coordinate descent beside full updates"
            "</h1>\n<p>Training with every parameter updated at each step, and with one of M "
            "submodels updated at a time while the rest stays frozen. Every number says where it "
            "comes from: <b class=\"m\">measured</b> by this program, "
            "<b class=\"s\">simulated</b>, computed by the <b class=\"c\">closed form</b>, "
            "<b class=\"p\">published</b> in the paper, or <b class=\"r\">recomputed</b> from its "
            "other numbers.</p>\n",
            report_style, report_table_style);
    if (!drawable)
        fprintf(out,
                "<p class=\"warning\">Figures are missing because gnuplot was not found. "
                "<code>apt-get install gnuplot-nox</code>, then make the report again.</p>\n");
    fprintf(out, "</header>\n");
}

static int put_study(FILE *out, const Study *study, bool drawable) {
    int *group = calloc((size_t)study->rows + 1, sizeof *group);
    ReportGroup *report = malloc(sizeof *report);
    if (group && report) {
        int groups = study_groups(study, group);
        for (int g = 0; g < groups; g++) {
            report_group(report, study, group, g);
            put_group(out, report, g, drawable);
        }
        put_means(out, study);
    }
    bool failed = !group || !report;
    free(group);
    free(report);
    return failed ? error_set("report: out of memory") : 0;
}

static int put_page(FILE *out, const Report *report, bool drawable) {
    put_head(out, drawable);
    if (report->files || report->trainings.tables) fprintf(out, "<nav><ul>\n");
    put_contents(out, &report->trainings, report->files);
    for (int f = 0; f < report->files; f++) put_contents(out, &report->file[f], f);
    if (report->files || report->trainings.tables) fprintf(out, "</ul></nav>\n");
    if (report->trainings.tables) put_tables(out, &report->trainings, report->files, drawable);
    int failed = report->study.rows ? put_study(out, &report->study, drawable) : 0;
    for (int f = 0; f < report->files; f++) put_tables(out, &report->file[f], f, drawable);
    fprintf(out, "</main>\n</body>\n</html>\n");
    return failed;
}

int report_html(const Report *report, const char *path, bool *drawn) {
    char temporary[H5_PATH];
    snprintf(temporary, sizeof temporary, "%.900s.%ld.part", path, (long)getpid());
    FILE *out = fopen(temporary, "w");
    if (!out) return error_set("report: %s cannot be written; is its directory there?", path);
    *drawn = gnuplot_present();
    int failed = put_page(out, report, *drawn);
    if (fclose(out) && !failed)
        failed = error_set("report: %s: writing failed; is the disk full?", path);
    if (!failed && rename(temporary, path))
        failed = error_set("report: %s cannot be written; is it a directory?", path);
    if (failed) remove(temporary);
    return failed;
}
