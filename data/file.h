/* Files that are read whole, and files that are written whole or not at all. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { PATH_BYTES = 1024 };

/* Overwrites path[PATH_BYTES] with "dir/name".  -1 and an error if it does not fit. */
int path_join(char *path, const char *dir, const char *name);

/* Returns true if the directory has a file of this name; the directory "" has none. */
bool dir_has(const char *dir, const char *name);

/* Returns true if both paths name the same file or directory, and it is there. */
bool file_same(const char *a, const char *b);

/* Reads a whole file and sets *bytes.  Returns its contents, for the caller to free, with a zero
 * byte behind them that *bytes does not count.  NULL and the error "who: path: reason; hint". */
unsigned char *file_read(const char *who, const char *path, const char *hint, size_t *bytes);

/* The same of a file of one of the sets of data/fetch, which the error says. */
unsigned char *file_read_set(const char *set, const char *path, size_t *bytes);

/* Writes a whole file, as below.  -1 and an error. */
int file_write(const char *path, const void *bytes, size_t count);

/* Read and write a whole number as bytes of a file, the lowest byte first. */
static inline uint64_t little_endian_get(const unsigned char *from, int bytes) {
    uint64_t number = 0;
    for (int b = bytes - 1; b >= 0; b--) number = number << 8 | from[b];
    return number;
}

static inline void little_endian_put(unsigned char *to, int bytes, uint64_t number) {
    for (int b = 0; b < bytes; b++) to[b] = (unsigned char)(number >> 8 * b);
}

/* A file that appears under its name only when it is complete and on the disk.  Until then it is
 * NAME.tmp, which only one process at a time can write. */
typedef struct {
    FILE *file; /* to be written to; NULL when closed */
    char path[PATH_BYTES];
    char temporary[PATH_BYTES + 8];
} AtomicFile;

/* A symbolic link stays, and what it points to is replaced.  -1 and an error, also if another
 * process is writing the same file, or if `path` is there and is no regular file, but a device or a
 * pipe for example. */
int atomic_open(AtomicFile *atomic, const char *path);
/* Flushes, syncs, renames and closes the file.  -1 and an error; nothing is left behind then, and a
 * file of that name is as it was. */
int atomic_commit(AtomicFile *atomic);
/* Brings what was written so far to the disk.  -1 and an error, as of a full disk. */
int atomic_sync(AtomicFile *atomic);
/* Closes and removes the file.  Does nothing if it is closed already. */
void atomic_abandon(AtomicFile *atomic);
