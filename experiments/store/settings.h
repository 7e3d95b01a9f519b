/* Settings of a run as attributes of the HDF5 group /settings, one per flag: numbers as numbers,
 * the rest as text. */
#pragma once

#include "../cli/command_line.h"
#include "h5.h"

/* Writes every flag of `bcd train` whose role is at least `min_role`: OPTION_MOVES for those that
 * say where the data are and decide the result to the bit, OPTION_FREE for all that are stored. */
void settings_write(H5File *file, const Options *options, OptionRole min_role);

/* Writes every flag that was given, of any command. */
void settings_write_given(H5File *file, const CommandLine *line);

/* Sets the flags that the file holds, and marks them as given; of a run of no updates not those
 * whose defaults depend on the length, unless it was given them.  -1 and an error: damaged, out of
 * range. */
int settings_read(const H5File *file, Options *options);
/* The same from the file at `path`. */
int settings_read_file(const char *path, Options *options);

/* Checks that two copies of the settings of a run agree in everything that a resume must repeat. -1
 * and an error that begins with `where` and names a flag in which they differ. */
int settings_compare(const Options *a, const Options *b, const char *where);

/* Puts the flags of a resume (`asked`) over the settings that the run stored, and refuses those
 * that would change its result.  -1 and an error. */
int settings_resume(Options *stored, const Options *asked);
