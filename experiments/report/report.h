/* `bcd report`: the tables of trainings and of other experiments, in the terminal and as Markdown;
 * and as a page with figures, which Python draws (page.py). */
#ifndef EXPERIMENTS_REPORT_H
#define EXPERIMENTS_REPORT_H

#include "../study/cases.h"
#include "../tables/table.h"

typedef struct {
    Tables tables;
    char path[OPTION_TEXT];
} ReportFile;

/* What a report shows. */
typedef struct {
    Study study;
    Cases cases;
    bool only_runs; /* one's own runs, no experiment: the paper's tables are left out */
    int files;
    ReportFile *file; /* [files]; the first is none: its tables are made of the trainings */
} Report;

/* ---- answer.c -------------------------------------------------------------------------------- */

/* Adds what all tables of trainings come to, a row for each training by BCD with a full update of
 * the same seed: memory, time and updates over those of the full update, and the scores of both.
 * Nothing where there is none. */
void answer_add(Tables *tables, const Cases *cases);
/* A line of text for each row. */
void answer_print(FILE *out, const Table *answer);

/* ---- page.c ---------------------------------------------------------------------------------- */

/* What became of a page: PAGE_NO_PYTHON where Python or one of its packages is missing, with an
 * error that tells the line to type; PAGE_FAILED with another error. */
typedef enum { PAGE_WRITTEN, PAGE_NO_PYTHON, PAGE_FAILED } PageResult;

/* Writes the page whole, or nothing; `figures`: a directory for each figure as SVG and PDF, or "".
 */
PageResult page_write(const Report *report, const char *path, const char *figures);
/* Draws one BCD cycle from the tables of `bcd trace` as an SVG. */
PageResult page_draw_cycle(const Tables *tables, const char *path);

#endif
