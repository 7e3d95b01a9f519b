/* `bcd report`: the tables of files of results as text, as Markdown, and as a page with figures,
 * which Python makes (page.py). */
#ifndef EXPERIMENTS_REPORT_H
#define EXPERIMENTS_REPORT_H

#include "../study/cases.h"
#include "../tables/table.h"
#include "../train/python.h"

typedef struct {
    Study study;
    Cases cases;
    bool only_runs; /* no files of experiments: the paper's tables are left out */
    int files;
    Tables *file; /* [files]; those of file[0] are made of the trainings */
} Report;

/* ---- answer.c -------------------------------------------------------------------------------- */

/* Adds a summary with a row for each BCD method that has a full update of the same seed: memory,
 * time and updates over those of the full update, and the scores of both.  Adds nothing when there
 * is none. */
void answer_add(Tables *tables, const Cases *cases);
/* Prints the summary as text. */
void answer_print(FILE *out, const Table *answer);

/* ---- page.c ---------------------------------------------------------------------------------- */

/* Write the whole file or nothing.  When Python or a package is missing, they return PYTHON_MISSING
 * with an error set that says what to install. */

/* `figures`: a directory for SVG and PDF of each, or "". */
PythonResult page_write(const Report *report, const char *path, const char *figures);
/* Draws one BCD cycle from the tables of `bcd trace` as an SVG. */
PythonResult page_draw_cycle(const Tables *tables, const char *path);

#endif
