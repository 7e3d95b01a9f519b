/* What the figures have in common: a gnuplot script being written. */
#ifndef EXPERIMENTS_FIGURES_PARTS_H
#define EXPERIMENTS_FIGURES_PARTS_H

#include <stdio.h>

#include "figures.h"

/* Pixels of the drawing's own coordinates; the page scales it to its width. */
enum { FIGURE_WIDTH = 580, FIGURE_TOP = 58, FIGURE_BOTTOM = 54, FIGURE_LEFT = 76, KEY_ROW = 25 };

typedef struct {
    FILE *out;
    char *text;
    size_t size;
    int height, left; /* of the drawing; of its panels */
} Script;

/* Starts a script with the common look; id is unique on the page.  -1 and an error when memory runs
 * out. */
int script_begin(Script *script, const char *id, int height);
/* Places the next plot between two heights, in pixels from the top. */
void script_panel(const Script *script, int top, int bottom);
/* The distance of the numbers on an axis: 1, 2 or 5 times a power of ten, at least a fifth of it.
 */
double figure_step(double length);
/* What is drawn, on the first line, and the place of the legend, on the next ones. */
void script_heading(const Script *script, const char *text, int key_rows);
/* Text above a panel whose upper edge is at `top`. */
void script_label(const Script *script, const char *text, int top);
/* Text below the lowest panel; gnuplot's own would vanish when it thinks there is no room. */
void script_below(const Script *script, const char *text);

/* The script's text, to be freed; NULL and an error when memory ran out. */
char *script_finish(Script *script);
/* The same of a figure without data: NULL and this error. */
char *script_refuse(Script *script, const char *why);

/* How many methods of a case are drawn, and the first row of one. */
int figure_methods(const Figure *figure);
const StudyRow *figure_row(const Figure *figure, int method);
/* A method's name as a string literal. */
void script_method(const Script *script, const Figure *figure, int method);
/* Pixels of the longest name of a method. */
int figure_names(const Figure *figure);
/* Room at the left for the methods' names, where they label lines. */
void script_names(Script *script, const Figure *figure);
/* The number of updates of the longest training. */
double figure_last_step(const Figure *figure);

/* Below a plot of losses: which submodel was active when, a line for each training by BCD; and the
 * pixels it takes, 0 without any.  In figures_strip.c. */
int strip_height(const Figure *figure);
void strip_plot(const Script *script, const Figure *figure, int top);

/* A table that timeline_is, in figures_timeline.c. */
char *figure_timeline(const Table *table, const char *id);

#endif
