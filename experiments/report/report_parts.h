/* What the files that write the page share. */
#ifndef EXPERIMENTS_REPORT_PARTS_H
#define EXPERIMENTS_REPORT_PARTS_H

#include "report.h"

/* Text with what HTML reserves replaced. */
void put_text(FILE *out, const char *text);
/* <tag>text</tag>; the tag may have attributes. */
void put_element(FILE *out, const char *tag, const char *text);
/* A drawing with its label.  gnuplot gives the marks of every drawing the same ids: told apart by
 * the figure's own. */
void put_svg(FILE *out, const char *svg, const char *id, const char *label);

/* Links to the tables of file `number`, as items of a list. */
void put_contents(FILE *out, const Tables *tables, int number);
/* The tables of file `number`, a section each, those that are drawn with their figure. */
void put_tables(FILE *out, const Tables *tables, int number, bool drawable);

#endif
