#include "page.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../ref/error.h"
#include "gnuplot.h"

int page_begin(Page *page, bool drawable) {
    *page = (Page){.drawable = drawable};
    page->out = open_memstream(&page->text, &page->size);
    return page->out ? 0 : error_set("report: out of memory");
}

void put_text(FILE *out, const char *text) {
    while (*text) {
        size_t plain = strcspn(text, "&<>\"'");
        fwrite(text, 1, plain, out);
        text += plain;
        if (!*text) return;
        fputs(*text == '&'   ? "&amp;"
              : *text == '<' ? "&lt;"
              : *text == '>' ? "&gt;"
              : *text == '"' ? "&quot;"
                             : "&#39;",
              out);
        text++;
    }
}

void put_element(FILE *out, const char *tag, const char *text) {
    fprintf(out, "<%s>", tag);
    put_text(out, text);
    fprintf(out, "</%.*s>\n", (int)strcspn(tag, " "), tag);
}

/* ---- figures --------------------------------------------------------------------------------- */

void page_figure(Page *page, char *script, const char *id, const char *label, const char *caption) {
    if (!script || fflush(page->out)) {
        free(script);
        return;
    }
    if (page->figures == page->room) {
        int room = page->room ? 2 * page->room : 32;
        PageFigure *grown = realloc(page->figure, (size_t)room * sizeof *grown);
        if (!grown) {
            free(script);
            return;
        }
        page->figure = grown;
        page->room = room;
    }
    PageFigure *figure = &page->figure[page->figures++];
    *figure = (PageFigure){.at = page->size, .script = script};
    snprintf(figure->id, sizeof figure->id, "%s", id);
    snprintf(figure->label, sizeof figure->label, "%s", label);
    snprintf(figure->caption, sizeof figure->caption, "%s", caption);
}

/* gnuplot gives the marks of every drawing the same ids: told apart by the figure's own. */
static void put_svg(FILE *out, const char *svg, const char *id) {
    static const char *const before[] = {" id='", " id=\"", "href='#", NULL};
    while (*svg) {
        size_t plain = strcspn(svg + 1, " h") + 1;
        for (int b = 0; before[b]; b++) {
            size_t length = strlen(before[b]);
            if (strncmp(svg, before[b], length)) continue;
            fwrite(svg, 1, length, out);
            fprintf(out, "%s_", id);
            svg += length;
            plain = 0;
            break;
        }
        fwrite(svg, 1, plain, out);
        svg += plain;
    }
}

static void put_figure(FILE *out, const PageFigure *figure) {
    fprintf(out, "<figure><div class=\"scroll\"><svg role=\"img\" aria-label=\"");
    put_text(out, figure->label);
    putc('"', out);
    put_svg(out, figure->svg + strlen("<svg"), figure->id);
    fprintf(out, "</div>");
    if (*figure->caption) put_element(out, "figcaption", figure->caption);
    fprintf(out, "</figure>\n");
}

static void put_missing(FILE *out, const PageFigure *figure) {
    fprintf(out, "<p class=\"warning\">A figure is missing here, gnuplot did not draw it: ");
    put_text(out, figure->label);
    fprintf(out, ".</p>\n");
}

static void draw_figures(Page *page) {
    char **svg = calloc((size_t)page->figures + 1, sizeof *svg);
    char **script = calloc((size_t)page->figures + 1, sizeof *script);
    for (int f = 0; f < page->figures && script; f++) script[f] = page->figure[f].script;
    if (svg && script) gnuplot_draw(svg, script, page->figures);
    for (int f = 0; f < page->figures && svg; f++) page->figure[f].svg = svg[f];
    free(svg);
    free(script);
}

/* ---- writing --------------------------------------------------------------------------------- */

static void put_page(FILE *out, const Page *page) {
    size_t at = 0;
    for (int f = 0; f < page->figures; f++) {
        const PageFigure *figure = &page->figure[f];
        fwrite(page->text + at, 1, figure->at - at, out);
        if (figure->svg)
            put_figure(out, figure);
        else
            put_missing(out, figure);
        at = figure->at;
    }
    fwrite(page->text + at, 1, page->size - at, out);
}

static int write_whole(const Page *page, const char *path) {
    char temporary[1024];
    snprintf(temporary, sizeof temporary, "%.900s.%ld.part", path, (long)getpid());
    FILE *out = fopen(temporary, "w");
    if (!out) return error_set("report: %s cannot be written; is its directory there?", path);
    put_page(out, page);
    bool failed = ferror(out);
    int status = 0;
    if (fclose(out) || failed)
        status = error_set("report: %s: writing failed; is the disk full?", path);
    if (!status && rename(temporary, path))
        status = error_set("report: %s cannot be written; is it a directory?", path);
    if (status) remove(temporary);
    return status;
}

static void page_free(Page *page) {
    for (int f = 0; f < page->figures; f++) {
        free(page->figure[f].script);
        free(page->figure[f].svg);
    }
    free(page->figure);
    free(page->text);
    *page = (Page){0};
}

int page_write(Page *page, const char *path) {
    bool failed = ferror(page->out);
    int status = 0;
    if (fclose(page->out) || failed) status = error_set("report: out of memory for the page");
    if (!status && page->figures) draw_figures(page);
    if (!status) status = write_whole(page, path);
    page_free(page);
    return status;
}
