/* Names of files in commands that are suggested: to be typed as they are printed. */
#ifndef EXPERIMENTS_QUOTED_H
#define EXPERIMENTS_QUOTED_H

#include "options.h"

enum { QUOTED = 4 * (OPTION_TEXT + 64) + 3 };

/* `name`, in single quotes where a shell would make something else of it.  Returns `text`. */
const char *quoted(char text[QUOTED], const char *name);

#endif
