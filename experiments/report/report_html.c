/* The page: one file, nothing loaded from elsewhere. */
#include <stdio.h>

#include "../paper/trainings.h"
#include "gnuplot.h"
#include "report_parts.h"
#include "report_style.h"

static void put_head(Page *page, const Study *study) {
    FILE *out = page->out;
    fprintf(out,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
            "<meta name=\"color-scheme\" content=\"light dark\">\n"
            "<title>Block coordinate descent beside full updates</title>\n<style>%s%s%s</style>\n"
            "</head>\n<body>\n<main>\n<header>\n<h1>Block coordinate descent beside full updates"
            "</h1>\n<p>Training with every parameter updated at each step, and with one of M "
            "submodels updated at a time while the rest stays frozen. A small letter behind a "
            "number says where it comes from: <b class=\"m\">m</b> measured by this program, "
            "<b class=\"s\">s</b> simulated, <b class=\"c\">c</b> computed by the closed form, "
            "<b class=\"p\">p</b> published in the paper, <b class=\"r\">r</b> recomputed from its "
            "other numbers, <b>g</b> given.</p>\n",
            report_style, report_table_style, report_figure_style);
    if (!page->drawable)
        fprintf(
            out,
            "<p class=\"warning\">Figures are missing because gnuplot could not be started. If it "
            "is not installed: <code>apt-get install gnuplot-nox</code>; then make the report "
            "again.</p>\n");
    if (*study->lacking) put_element(out, "p class=\"warning\"", study->lacking);
    if (*study->unfinished) put_element(out, "p class=\"warning\"", study->unfinished);
    fprintf(out, "</header>\n");
}

/* What to know when comparing. */
static void put_notes(FILE *out) {
    fprintf(out,
            "<section id=\"notes\">\n<h2>How trainings are compared</h2>\n"
            "<h3>Convergence</h3>\n");
    put_element(out, "p", study_convergence_rule);
    fprintf(out, "<h3>The published numbers</h3>\n<ul>\n");
    for (int n = 0; paper_notes[n]; n++) put_element(out, "li", paper_notes[n]);
    fprintf(out, "</ul>\n</section>\n");
}

int report_html(const Report *report, const char *path, bool *drawn) {
    Page page;
    *drawn = gnuplot_present();
    if (page_begin(&page, *drawn)) return -1;
    put_head(&page, &report->study);
    put_contents(&page, report);
    for (int f = 0; f < report->files; f++) put_tables(&page, report, f);
    put_networks(&page, report);
    if (report->study.rows) put_notes(page.out);
    fprintf(page.out, "</main>\n</body>\n</html>\n");
    return page_write(&page, path);
}
