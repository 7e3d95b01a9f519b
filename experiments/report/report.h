/* `bcd report`: the tables of trainings and of other experiments, in the terminal, as Markdown, and
 * with curves as a page. */
#ifndef EXPERIMENTS_REPORT_H
#define EXPERIMENTS_REPORT_H

#include "../study/cases.h"
#include "../tables/table.h"

/* What a report shows. */
typedef struct {
    Study study;
    Cases cases;
    int files;
    Tables *file; /* [files]; where there are trainings, file 0 holds the tables made of them */
} Report;

/* From the study and the files read: compares the trainings, orders them, makes their tables.  -1
 * and an error. */
int report_prepare(Report *report);
void report_free(Report *report);

/* Writes the page whole, or nothing.  *drawn tells whether gnuplot could draw the figures.  -1 and
 * an error. */
int report_html(const Report *report, const char *path, bool *drawn);

#endif
