/* A thin layer over the HDF5 C library: files written whole or not at all, named dimensions, units,
 * tables, and error lines for people.
 *
 * A file being written remembers its first failure; later writes are skipped and h5_commit reports
 * it.  So a writer is a list of plain calls with one check at the end.  Reads return -1 and an
 * error each. */
#ifndef EXPERIMENTS_H5_H
#define EXPERIMENTS_H5_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* TEXT: char [H5_NAME]; LINE: char [H5_PATH]. */
typedef enum { H5_INT, H5_INT64, H5_UINT64, H5_FLOAT, H5_DOUBLE, H5_TEXT, H5_LINE } H5Kind;
#ifdef BCD_DOUBLE
#define H5_REAL H5_DOUBLE
#else
#define H5_REAL H5_FLOAT
#endif

enum { H5_NAME = 128, H5_PATH = 1024, H5_RANK = 8 };

typedef struct {
    int64_t id;                             /* hid_t */
    char path[H5_PATH], temporary[H5_PATH]; /* temporary: "" when reading */
    bool failed;
} H5File;

/* A dimension: its name, its length and, where it has coordinates, the path of the data set that
 * holds them (written before, or NULL); that one becomes a dimension scale. */
typedef struct {
    const char *name;
    size_t size;
    const char *scale;
} H5Dim;

/* Starts a file next to `path`; nothing is at `path` before h5_commit. */
int h5_create(H5File *file, const char *path);
/* Flushes, closes, syncs and renames over `path`.  On any failure so far removes the part written,
 * leaves the old file as it was, and returns -1 with an error. */
int h5_commit(H5File *file);
/* Remembers a failure, the first one and its errno: h5_commit will report it. */
void h5_fail(H5File *file, const char *object);
/* Gives up a file being written. */
void h5_abandon(H5File *file);

/* Opens for reading.  -1 and an error: not there, no HDF5 file, truncated. */
int h5_open(H5File *file, const char *path);
void h5_close(H5File *file);

/* Creates a data set with its groups.  unit NULL: dimensionless.  H5_TEXT: data is char
 * [..][H5_NAME], H5_LINE: char [..][H5_PATH].  rank 0 is a scalar. */
void h5_write(H5File *file, const char *name, H5Kind kind, const void *data, int rank,
              const H5Dim *dims, const char *unit);
/* Overwrites data with exactly these dimensions; anything else in the file is an error. */
int h5_read(const H5File *file, const char *name, H5Kind kind, void *data, int rank,
            const size_t *size);
/* Bytes of an element in memory. */
size_t h5_kind_size(H5Kind kind);
/* Rank (and size[H5_RANK]) of a data set, or -1 and an error. */
int h5_size(const H5File *file, const char *name, size_t size[H5_RANK]);
/* Length of a data set of rank 1, or -1 and an error: a damaged file may claim any, only what its
 * bytes could hold is believed. */
int h5_length(const H5File *file, const char *name, size_t *length);
bool h5_exists(const H5File *file, const char *name); /* data set or group */
/* Number of links in a group, and the name of one; -1 and an error. */
int h5_count(const H5File *file, const char *group);
int h5_name(const H5File *file, const char *group, int index, char name[H5_NAME]);

/* Attributes of a group or data set ("/" for the file); a missing group is created. */
void h5_set_text(H5File *file, const char *object, const char *name, const char *text);
void h5_set_int(H5File *file, const char *object, const char *name, int64_t value);
void h5_set_count(H5File *file, const char *object, const char *name, uint64_t value);
void h5_set_real(H5File *file, const char *object, const char *name, double value);
bool h5_has(const H5File *file, const char *object, const char *name);
int h5_get_text(const H5File *file, const char *object, const char *name, char *text, size_t size);
int h5_get_int(const H5File *file, const char *object, const char *name, int64_t *value);
int h5_get_count(const H5File *file, const char *object, const char *name, uint64_t *value);
int h5_get_real(const H5File *file, const char *object, const char *name, double *value);

/* A table in C is an array of structs, in the file a group with one data set per column; the first
 * column is the dimension scale of the others. */
typedef struct {
    const char *name;
    H5Kind kind; /* TEXT: a char [H5_NAME] field */
    size_t offset;
    const char *unit; /* or NULL */
} H5Column;

void h5_write_table(H5File *file, const char *group, const H5Column *columns, int count,
                    const void *rows, size_t row_size, size_t row_count);
/* Returns malloc'ed rows (at least one byte), and their count; NULL and an error. */
void *h5_read_table(const H5File *file, const char *group, const H5Column *columns, int count,
                    size_t row_size, size_t *row_count);

#endif
