/* Quotes file names in suggested commands, so that these can be typed as they are printed. */
#ifndef EXPERIMENTS_QUOTED_H
#define EXPERIMENTS_QUOTED_H

#include "options.h"

enum { QUOTED = 4 * (OPTION_TEXT + 64) + 3 };

/* Overwrites `text` with `name`, in single quotes if it holds characters that mean something to a
 * shell.  Returns `text`. */
const char *quoted(char text[QUOTED], const char *name);

#endif
