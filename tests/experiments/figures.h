/* What tests of figures share. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* How often `what` is in the text. */
size_t count_of(const char *text, const char *what);

/* Whether there is a Python that can make pages and figures. */
bool has_figures(void);
