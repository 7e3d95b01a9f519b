/* Files as the readers want them: whole in memory, and written whole or not at all. */
#ifndef DATA_FILE_H
#define DATA_FILE_H

#include <stddef.h>
#include <stdio.h>

enum { PATH_BYTES = 1024 };

/* What to do about a missing data file: the end of an error line. */
#define FETCH_HINT "data/fetch gets it; BCD_DATA says where it is"

/* Overwrites path[PATH_BYTES] with "dir/name".  -1 and an error if it does not fit. */
int path_join(char *path, const char *dir, const char *name);

/* The whole file, with a zero byte behind it that *bytes does not count; to be freed.  NULL and the
 * error "who: path: reason; hint". */
unsigned char *file_read(const char *who, const char *path, const char *hint, size_t *bytes);

/* Where a file that is replaced as a whole goes: path[PATH_BYTES] becomes `name`, or what `name`, a
 * symbolic link, points to.  -1 and an error where that is something else than a regular file, as a
 * device is, or a pipe. */
int file_target(char *path, const char *name);

/* Brings a file that is complete and closed, or flushed, to the disk, and renames it over `path`.
 * -1 and errno; `path` is then as it was. */
int file_replace(const char *path, const char *temporary);

/* A file that appears under its name only when it is complete and on disk; until then it is
 * NAME.tmp, which one process at a time writes. */
typedef struct {
    FILE *file; /* to be written to; NULL when closed */
    char path[PATH_BYTES];
    char temporary[PATH_BYTES + 8];
} AtomicFile;

/* -1 and an error, also where another process is writing the same file. */
int atomic_open(AtomicFile *atomic, const char *path);
/* Flushes, syncs and renames.  On failure the error is set and nothing is left behind. */
int atomic_commit(AtomicFile *atomic);
/* Leaves nothing behind.  Does nothing when the file is closed. */
void atomic_abandon(AtomicFile *atomic);

#endif
