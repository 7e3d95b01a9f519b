/* The top of the page: where each table and figure of the paper is. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "report_parts.h"

typedef struct {
    const char *kind;
    int number;
    const char *what, *experiment; /* NULL: a drawing of the method */
} PaperItem;

static const PaperItem paper_items[] = {
    {"Table", 1, "the two cards", "cost"},
    {"Table", 2, "accuracy and loss of full updates and BCD, and how long they take", "validity"},
    {"Table", 3, "a step with the optimizer offloaded, and of BCD", "timing"},
    {"Table", 4, "a step and the memory of full updates over many GPUs, and of BCD", "timing"},
    {"Table", 5, "cost saved on RTX 4090", "cost"},
    {"Table", 6, "cost saved against A100", "cost"},
    {"Table", 7, "cost saved against A800", "cost"},
    {"Table", 8, "the models, and their memory", "memory"},
    {"Table", 9, "GPT-2 with parts of the data", "compression"},
    {"Table", 10, "ResNet-14 with parts of the data", "compression"},
    {"Table", 11, "GPT-2 in 1 to 4 submodels", "ufp"},
    {"Table", 12, "GPU hours saved on RTX 4090", "cost"},
    {"Table", 13, "GPU hours saved against A100", "cost"},
    {"Table", 14, "GPU hours saved against A800", "cost"},
    {"Table", 15, "a step against the part that trains, GPT-2", "timing"},
    {"Table", 16, "a step against the part that trains, LLaMA", "timing"},
    {"Figure", 1, "a drawing: networks are cut between layers, not through them", NULL},
    {"Figure", 2,
     "a drawing of how submodels lie on GPUs; bcd plan --placement figure2 draws what "
     "such a step does when",
     NULL},
    {"Figure", 3, "a drawing of pre-inference; bcd train --cache does it", NULL},
    {"Figure", 4, "training time by method", "timing"},
    {"Figure", 5, "memory against the part that trains", "memory"},
    {"Figure", 6, "time of a step against the part that trains", "timing"},
};

/* Whether a title begins with "Table 5", "Tables 5 to 7", "Tables 9, 10 and 11: ..." that includes
 * the number. */
static bool names(const char *title, const char *kind, int number) {
    if (strncmp(title, kind, strlen(kind))) return false;
    title += strlen(kind);
    title += *title == 's';
    for (int last = 0; *title == ' ' && isdigit((unsigned char)title[1]);) {
        char *end;
        int found = (int)strtol(title + 1, &end, 10);
        if (found == number || (last && number > last && number < found)) return true;
        last = strncmp(end, " to ", 4) ? 0 : found;
        title = *end == ',' ? end + 1 : last ? end + 3 : strncmp(end, " and ", 5) ? "" : end + 4;
    }
    return false;
}

static void put_link(FILE *out, const Table *table, int file, int number) {
    fprintf(out, "<a href=\"#table%d_%d\">", file, number);
    put_text(out, table->title);
    fprintf(out, "</a>");
}

static void put_item(FILE *out, const Report *report, const PaperItem *item) {
    int found = 0;
    fprintf(out, "<tr><th scope=\"row\">%s %d</th><td>", item->kind, item->number);
    put_text(out, item->what);
    fprintf(out, "</td><td>");
    for (int f = 0; f < report->files; f++)
        for (int t = 0; t < report->file[f].tables; t++) {
            const Table *table = report->file[f].table[t];
            if (!names(table->title, item->kind, item->number)) continue;
            if (found++) fprintf(out, "<br>");
            put_link(out, table, f, t);
        }
    if (!found && item->experiment)
        fprintf(out, "not in these files: <code>bcd experiment %s</code>&nbsp;makes&nbsp;it",
                item->experiment);
    else if (!found)
        fprintf(out, "no numbers in it");
    fprintf(out, "</td></tr>\n");
}

static bool is_of_the_paper(const Table *table) {
    for (size_t i = 0; i < sizeof paper_items / sizeof *paper_items; i++)
        if (names(table->title, paper_items[i].kind, paper_items[i].number)) return true;
    return false;
}

/* The question first. */
static void put_verdicts(FILE *out, const Report *report) {
    for (int f = 0; f < report->files; f++)
        for (int t = 0; t < report->file[f].tables; t++) {
            if (strcmp(report->file[f].table[t]->name, "verdicts")) continue;
            fprintf(out, "<p>");
            put_link(out, report->file[f].table[t], f, t);
            fprintf(out, "</p>\n");
        }
}

static void put_others(FILE *out, const Report *report) {
    int found = 0;
    for (int f = 0; f < report->files; f++)
        for (int t = 0; t < report->file[f].tables; t++) {
            if (is_of_the_paper(report->file[f].table[t])) continue;
            if (!found++) fprintf(out, "<h3>Other tables</h3>\n<ul>\n");
            fprintf(out, "<li>");
            put_link(out, report->file[f].table[t], f, t);
            fprintf(out, "</li>\n");
        }
    if (found) fprintf(out, "</ul>\n");
}

static void put_cases(FILE *out, const Cases *cases) {
    char text[CASE_NAME];
    if (!cases->cases) return;
    fprintf(out, "<h3>Networks and their curves</h3>\n<ul>\n");
    for (int c = 0; c < cases->cases; c++) {
        fprintf(out, "<li><a href=\"#case%d\">", c);
        put_text(out, case_name(case_first(cases, &cases->item[c].method[0]), text));
        fprintf(out, "</a></li>\n");
    }
    fprintf(out, "</ul>\n<p><a href=\"#notes\">How trainings are compared</a></p>\n");
}

static bool has_any(const Report *report) {
    for (int f = 0; f < report->files; f++)
        for (int t = 0; t < report->file[f].tables; t++)
            if (is_of_the_paper(report->file[f].table[t])) return true;
    return false;
}

static void put_paper(FILE *out, const Report *report) {
    fprintf(out, "<h3>The paper's tables and figures</h3>\n<table class=\"index\"><tbody>\n");
    for (size_t i = 0; i < sizeof paper_items / sizeof *paper_items; i++)
        put_item(out, report, &paper_items[i]);
    fprintf(out, "</tbody></table>\n");
}

void put_contents(Page *page, const Report *report) {
    FILE *out = page->out;
    fprintf(out, "<nav>\n<h2>What is where</h2>\n");
    put_verdicts(out, report);
    if (report->study.rows || has_any(report)) put_paper(out, report);
    put_others(out, report);
    put_cases(out, &report->cases);
    fprintf(out, "</nav>\n");
}
