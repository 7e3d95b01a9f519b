/* Settings of a run as attributes of an HDF5 group, one per flag: whole numbers and reals as
 * numbers, the rest as text. */
#ifndef EXPERIMENTS_SETTINGS_H
#define EXPERIMENTS_SETTINGS_H

#include "../cli/options.h"
#include "h5.h"

/* The attribute `checksum` goes with them: a sum over the settings of the FNV-1a of "NAME=VALUE",
 * the value as it would be typed.
 *
 * Writes every flag of `bcd train` whose role is at least `min_role`: OPTION_ROUNDS for those that
 * decide the result to the bit, OPTION_FREE for all that are stored. */
void settings_write(H5File *file, const char *group, const Options *options, OptionRole min_role);

/* Writes every flag that was given, of any command. */
void settings_write_given(H5File *file, const char *group, const Options *options);

/* Sets what the group holds, and marks it as given.  -1 and an error: damaged, out of range.  A
 * file from before there were checksums has none. */
int settings_read(const H5File *file, const char *group, Options *options);

/* Whether two copies of the settings of a run, as read, say the same of what a resume must repeat.
 * -1 and an error that names a flag in which they differ; `where` is theirs. */
int settings_compare(const Options *a, const Options *b, const char *where);

/* After reading: what the file at `path` did not say, each with the default it has been taken as,
 * overwrites text[size]; "": it said all.  A file misses a flag that came after it, whose default
 * is what was before.  -1 and an error if a flag without default is missing. */
int settings_missing(char *text, size_t size, const Options *options, const char *path);

/* The settings of many runs, `stride` bytes from one to the next: a data set [rows] for each flag
 * that a run stores, next to the dimension scale `scale`; and back, over what the options held. */
void settings_write_columns(H5File *file, const char *group, const char *scale,
                            const Options *first, size_t stride, size_t rows);
int settings_read_columns(const H5File *file, const char *group, Options *first, size_t stride,
                          size_t rows);

/* A resume: what the user gave on the command line (`asked`) goes over what the run stored.
 * Refuses what contradicts it. */
int settings_resume(Options *stored, const Options *asked);

#endif
