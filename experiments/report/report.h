/* `bcd report`: the tables of files of results as text, as Markdown, and as a page with figures,
 * which Python makes (page.py). */
#pragma once

#include "../tables/table.h"
#include "../train/python.h"

/* Draws one BCD cycle from the tables of `bcd trace` as an SVG: the whole file or nothing.  When
 * Python or a package is missing, returns PYTHON_MISSING with an error that says what to install.
 */
PythonResult page_draw_cycle(const Tables *tables, const char *path);
