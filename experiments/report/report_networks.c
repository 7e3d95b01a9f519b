/* The curves of each case: one network on one data set by one optimizer, in every way it was
 * trained. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "figures.h"
#include "report_parts.h"

typedef struct {
    char *(*draw)(const Figure *figure);
    const char *name, *label, *caption;
} FigureKind;

static const FigureKind figure_kinds[] = {
    {figure_loss, "loss", "Training loss against updates",
     "Training loss against updates, smoothed. Band: of several seeds from the lowest to the "
     "highest; of one, where there are few lines, every batch. Dots, in BCD's colour: where BCD "
     "and the full update first "
     "were at the loss they are compared at. Below: which submodel was being trained; phases too "
     "short to be seen are one mean shade."},
    {figure_score, "score", "Validation score against updates",
     "Validation score as the training went on; of several seeds the mean and the range."},
    {figure_time, "time", "Training loss against time",
     "The same training loss against seconds of training."},
    {figure_operations, "operations", "Training loss against operations",
     "The same training loss against operations, counted from shapes: forward everywhere, input "
     "gradients down to the active submodel, weight gradients of the active one."},
    {figure_memory, "memory", "Peak memory by role",
     "Measured peak of each role of memory. The line across a bar: the closed form W (1 + k/M) for "
     "parameters, gradients and optimizer state, which leaves activations out."},
};

/* Drawing takes time and room on the page, 20 ms and 200 kB a case: of many the first ones.  A
 * figure without data is left out. */
static void put_figures(Page *page, const Cases *cases, int number) {
    enum { CASES_DRAWN = 16 };
    const Case *item = &cases->item[number];
    if (!page->drawable) return;
    if (number >= CASES_DRAWN) {
        fprintf(page->out,
                "<p class=\"note\">The first %d networks of a page have figures, so that a report "
                "of hundreds is made in a second and opens on a phone; a report of fewer files "
                "shows those of this one.</p>\n",
                CASES_DRAWN);
        return;
    }
    fprintf(page->out, "<div class=\"figures\">\n");
    for (size_t k = 0; k < sizeof figure_kinds / sizeof *figure_kinds; k++) {
        const FigureKind *kind = &figure_kinds[k];
        char id[32];
        snprintf(id, sizeof id, "g%d_%s", number, kind->name);
        Figure figure = {.id = id, .cases = cases, .item = item};
        page_figure(page, kind->draw(&figure), id, kind->label, kind->caption);
    }
    fprintf(page->out, "</div>\n");
    if (item->methods > FIGURE_METHODS)
        fprintf(page->out,
                "<p class=\"note\">Drawn are the first %d of %d ways it was trained; the tables "
                "have all.</p>\n",
                FIGURE_METHODS, item->methods);
}

static void put_subtitle(FILE *out, const Cases *cases, const Case *item) {
    const StudyRow *row = case_first(cases, &item->method[0]);
    int64_t least = row->steps, most = row->steps;
    int trainings = 0;
    for (int m = 0; m < item->methods; m++) {
        int64_t steps = case_first(cases, &item->method[m])->steps;
        least = steps < least ? steps : least;
        most = steps > most ? steps : most;
        trainings += item->method[m].seeds;
    }
    fprintf(out, "<p class=\"sub\">%" PRId64 " parameters, batch %" PRId64 ", rate %g, %" PRId64,
            row->parameters, row->batch, row->lr, least);
    if (most > least) fprintf(out, " to %" PRId64, most);
    fprintf(out, " updates; %d training%s</p>\n", trainings, trainings > 1 ? "s" : "");
}

void put_networks(Page *page, const Report *report) {
    const Cases *cases = &report->cases;
    char text[CASE_NAME];
    for (int c = 0; c < cases->cases; c++) {
        const Case *item = &cases->item[c];
        fprintf(page->out, "<section id=\"case%d\">\n", c);
        put_element(page->out, "h2", case_name(case_first(cases, &item->method[0]), text));
        put_subtitle(page->out, cases, item);
        put_figures(page, cases, c);
        put_details(page->out, cases, item);
        fprintf(page->out, "</section>\n");
    }
}
