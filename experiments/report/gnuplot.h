/* Drawings through the program gnuplot, found at run time. */
#ifndef EXPERIMENTS_GNUPLOT_H
#define EXPERIMENTS_GNUPLOT_H

#include <stdbool.h>
#include <stdio.h>

/* Whether `gnuplot` can be started. */
bool gnuplot_present(void);

/* Runs a script and returns what it drew on standard output, from "<svg" on, to be freed.  NULL and
 * an error when gnuplot is missing or refuses the script. */
char *gnuplot_svg(const char *script);

/* Writes text as a gnuplot string literal: single quotes, in which nothing is substituted. */
void gnuplot_quote(FILE *script, const char *text);

#endif
