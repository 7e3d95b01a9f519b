/* `bcd report`: the tables of files of results as text, as Markdown, and as a page with figures,
 * which Python makes (page.py). */
#pragma once

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

/* ---- page.c ---------------------------------------------------------------------------------- */

/* Write the whole file or nothing.  When Python or a package is missing, they return PYTHON_MISSING
 * with an error set that says what to install. */

/* `figures`: a directory for SVG and PDF of each, or "". */
PythonResult page_write(const Report *report, const char *path, const char *figures);
/* Draws one BCD cycle from the tables of `bcd trace` as an SVG. */
PythonResult page_draw_cycle(const Tables *tables, const char *path);
