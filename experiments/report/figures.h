/* Figures of a study, as scripts of gnuplot (gnuplot.h).  All colours come from a fixed set, so
 * that the page can restyle them for a dark screen: see report_style.h. */
#ifndef EXPERIMENTS_FIGURES_H
#define EXPERIMENTS_FIGURES_H

#include "../study/cases.h"
#include "../tables/table.h"

enum { FIGURE_METHODS = 6 };

/* Okabe & Ito's colours, told apart with any kind of colour vision; line dashes tell them too. */
extern const char *const figure_method_colours[FIGURE_METHODS];
extern const char *const figure_role_colours[MEM_ROLES];

/* One case: its first FIGURE_METHODS methods, a line each.  Of several seeds the line is their
 * mean, the band from the least to the most of them.  `id` is unique on the page.  Each figure is a
 * script to be freed, or NULL and an error: nothing to draw, or no memory. */
typedef struct {
    const char *id;
    const Cases *cases;
    const Case *item;
} Figure;

/* Smoothed training loss against updates, over the range of the raw one where there is one seed;
 * below it which submodel was active (of the first seed). */
char *figure_loss(const Figure *figure);
/* The same loss against seconds of training, and against operations (operations.h). */
char *figure_time(const Figure *figure);
char *figure_operations(const Figure *figure);
/* Accuracy or perplexity on the validation split. */
char *figure_score(const Figure *figure);
/* Peak bytes by role (of the first seed), with the paper's closed form. */
char *figure_memory(const Figure *figure);
/* A table that is to be drawn, in figures_table.c. */
char *figure_table(const Table *table, const char *id);
/* One BCD cycle: what every block holds while each submodel trains.  From the tables of bcd trace,
 * which figure_is_cycle tells from others. */
bool figure_is_cycle(const Tables *tables);
char *figure_cycle(const Tables *tables, const char *id);

/* Writes a drawing as a file of its own, on white, whole or not at all.  -1 and an error. */
int figure_write(const char *path, const char *svg, const char *label);

#endif
