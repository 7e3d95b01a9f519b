/* Drawings through the program gnuplot, found at run time. */
#ifndef EXPERIMENTS_GNUPLOT_H
#define EXPERIMENTS_GNUPLOT_H

#include <stdbool.h>
#include <stdio.h>

/* Whether `gnuplot` can be started. */
bool gnuplot_present(void);

/* Runs scripts: svg[count] gets what each drew, from "<svg" to "</svg>", to be freed, or NULL where
 * gnuplot refused it.  Starting gnuplot takes longer than a drawing: one process draws many, two
 * share the work.  Returns how many were drawn; if not all, error_message says why. */
int gnuplot_draw(char **svg, char *const *script, int count);

/* One alone; NULL and an error. */
char *gnuplot_svg(char *script);

/* Writes text as a gnuplot string literal: single quotes, in which nothing is substituted. */
void gnuplot_quote(FILE *script, const char *text);

#endif
