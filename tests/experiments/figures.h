/* What the tests of figures share. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Returns how often `what` occurs in the text. */
size_t count_of(const char *text, const char *what);

/* Returns true if there is a Python that can make pages and figures. */
bool has_figures(void);
