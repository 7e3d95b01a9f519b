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
bool h5_exists(const H5File *file, const char *name); /* data set or group */
/* Number of links in a group, and the name of one; -1 and an error. */
int h5_count(const H5File *file, const char *group);
int h5_name(const H5File *file, const char *group, int index, char name[H5_NAME]);

/* Attributes of a group or data set ("/" for the file); a missing group is created.  A value is in
 * memory as its kind says; INT is stored in 64 bits, text with the length it has. */
void h5_set(H5File *file, const char *object, const char *name, H5Kind kind, const void *value);
void h5_set_text(H5File *file, const char *object, const char *name, const char *text);
void h5_set_int(H5File *file, const char *object, const char *name, int64_t value);
void h5_set_count(H5File *file, const char *object, const char *name, uint64_t value);
bool h5_has(const H5File *file, const char *object, const char *name);
int h5_get(const H5File *file, const char *object, const char *name, H5Kind kind, void *value);
int h5_get_text(const H5File *file, const char *object, const char *name, char *text, size_t size);

/* Overwrites `format` with what the file says it is; "" if nothing.  -1 and an error: no HDF5. */
int h5_format(const char *path, char format[H5_NAME]);
/* Refuses a file that is opened, in another format ("not WHAT") or version.  -1 and an error. */
int h5_check_format(const H5File *file, const char *format, int version, const char *what);

/* A field of a struct: in the file an attribute of a group, or of an array of structs a column. */
typedef struct {
    const char *name;
    H5Kind kind; /* TEXT: a char [H5_NAME] field, LINE: a char [H5_PATH] */
    size_t offset;
    const char *unit, *what; /* attributes of the column; or NULL */
    bool optional;           /* may be missing: then "", 0 or, of a DOUBLE column, NAN */
} H5Column;
#define H5_FIELD(type, field, its_kind) \
    .name = #field, .kind = its_kind, .offset = offsetof(type, field)

/* The fields of one struct, as attributes; an optional text that is "" is left out. */
void h5_set_fields(H5File *file, const char *group, const H5Column *columns, int count,
                   const void *row);
int h5_get_fields(const H5File *file, const char *group, const H5Column *columns, int count,
                  void *row);

/* An array of structs as a group with one data set per column, next to the dimension scale `scale`;
 * NULL: the first column is that of the others. */
void h5_write_table(H5File *file, const char *group, const char *scale, const H5Column *columns,
                    int count, const void *rows, size_t row_size, size_t row_count);
/* Overwrites those fields of the rows.  -1 and an error. */
int h5_read_columns(const H5File *file, const char *group, const H5Column *columns, int count,
                    void *rows, size_t row_size, size_t row_count);
/* Returns malloc'ed rows (at least one byte), and their count; NULL and an error. */
void *h5_read_table(const H5File *file, const char *group, const H5Column *columns, int count,
                    size_t row_size, size_t *row_count);

#endif
