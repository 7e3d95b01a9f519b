/* `bcd report`: the tables of trainings and of other experiments, in the terminal and as Markdown;
 * and as a page with figures, which Python draws (page.py). */
#ifndef EXPERIMENTS_REPORT_H
#define EXPERIMENTS_REPORT_H

#include "../study/cases.h"
#include "../tables/table.h"

/* What a report shows. */
typedef struct {
    Study study;
    Cases cases;
    bool runs_alone; /* one's own runs, no experiment: the paper's tables are left out */
    int files;       /* of tables */
    Tables *file;    /* [files]; where there are trainings, file 0 holds the tables made of them */
    char (*path)[OPTION_TEXT]; /* [files]; "" for that one */
} Report;

/* From the study and the files read: compares the trainings, orders them, makes their tables, the
 * answer first.  -1 and an error. */
int report_prepare(Report *report);
void report_free(Report *report);

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
