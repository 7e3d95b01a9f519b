/* What the files of the options share among themselves. */
#ifndef EXPERIMENTS_OPTIONS_PARTS_H
#define EXPERIMENTS_OPTIONS_PARTS_H

#include "options.h"

/* Sets the field of one row from text, range checked.  Leaves given[] alone.  -1 and an error that
 * names the flag. */
int option_assign(Options *options, int row, const char *text);

/* The nearest of the names a table offers, for "did you mean"; NULL if none is near. */
const char *nearest_option(const char *name, Command command);
const char *nearest_command(const char *name);

#endif
