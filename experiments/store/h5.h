/* A thin layer over the HDF5 C library: files written whole or not at all, named dimensions, units,
 * tables, and readable errors.
 *
 * A file being written remembers its first failure and skips later writes, and h5_commit reports
 * it, so that a writer is a list of plain calls with one check at the end.  Every read returns -1
 * and an error on failure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../data/file.h"

/* In memory H5_TEXT is a char [H5_NAME], H5_LINE a char [H5_PATH]. */
typedef enum { H5_INT, H5_INT64, H5_UINT64, H5_FLOAT, H5_DOUBLE, H5_TEXT, H5_LINE } H5Kind;
#ifdef BCD_DOUBLE
#define H5_REAL H5_DOUBLE
#else
#define H5_REAL H5_FLOAT
#endif

enum { H5_NAME = 128, H5_PATH = PATH_BYTES, H5_RANK = 8 };

typedef struct {
    int64_t id; /* hid_t */
    char path[H5_PATH];
    AtomicFile out; /* the file being written, through HDF5 alone; closed when reading */
    bool failed;
} H5File;

/* A dimension: its name, its length and, unless NULL, the path of a data set that was written
 * before and holds its coordinates; that becomes a dimension scale. */
typedef struct {
    const char *name;
    size_t size;
    const char *scale;
} H5Dim;

/* Overwrites version with the library's: major, minor, release. */
void h5_version(unsigned version[3]);

/* Starts a file next to `path`, which h5_commit puts there.  -1 and an error, also if another
 * process is writing the same file. */
int h5_create(H5File *file, const char *path);
/* The same, and writes the attributes `format` and `version` of the file. */
int h5_create_format(H5File *file, const char *path, const char *format, int version);
/* Flushes, closes, syncs and renames over `path`.  After any failure since h5_create it removes
 * what was written, leaves an old file unchanged, and returns -1 and an error. */
int h5_commit(H5File *file);
/* Removes a file being written. */
void h5_abandon(H5File *file);

/* Opens a file for reading.  -1 and an error: missing, not an HDF5 file, truncated. */
int h5_open(H5File *file, const char *path);
/* The same, and refuses a file of another format ("not WHAT") or version. */
int h5_open_format(H5File *file, const char *path, const char *format, int version,
                   const char *what);
void h5_close(H5File *file);

/* Writes a data set, creating its groups.  rank >= 1; unit NULL: dimensionless. */
void h5_write(H5File *file, const char *name, H5Kind kind, const void *data, int rank,
              const H5Dim *dims, const char *unit);
/* Overwrites data; a data set of other dimensions is an error. */
int h5_read(const H5File *file, const char *name, H5Kind kind, void *data, int rank,
            const size_t *size);
/* Returns the bytes of an element in memory. */
size_t h5_kind_size(H5Kind kind);
/* Returns the rank of a data set and overwrites size[rank]; -1 and an error. */
int h5_size(const H5File *file, const char *name, size_t size[H5_RANK]);
/* Returns true if there is such a data set or group, or if a damaged file does not tell: reading it
 * is then an error. */
bool h5_exists(const H5File *file, const char *name);

/* Attributes of a group or data set ("/": the file); writing creates a missing group.  H5_INT is
 * stored in 64 bits, and text with its own length. */
void h5_set(H5File *file, const char *object, const char *name, H5Kind kind, const void *value);
void h5_set_text(H5File *file, const char *object, const char *name, const char *text);
bool h5_has(const H5File *file, const char *object, const char *name); /* as h5_exists */
int h5_get(const H5File *file, const char *object, const char *name, H5Kind kind, void *value);
int h5_get_text(const H5File *file, const char *object, const char *name, char *text, size_t size);

/* Overwrites `format` with the file's attribute of that name, or "".  -1 and an error if it is not
 * an HDF5 file. */
int h5_format(const char *path, char format[H5_NAME]);

/* Refuses to replace the file of --out by one of this format if it has something else, such as a
 * user's data.  -1 and an error. */
int h5_check_replaced(const char *path, const char *format);

/* A field of a struct: an attribute of a group or, of an array of structs, a column of a table. */
typedef struct {
    const char *name;
    H5Kind kind;
    size_t offset;
    const char *unit; /* an attribute of the column; or NULL */
    bool optional; /* may be missing, and is then read as "", 0 or, in a column of H5_DOUBLE, NAN */
} H5Column;
#define H5_FIELD(type, field, its_kind) \
    .name = #field, .kind = its_kind, .offset = offsetof(type, field)

/* Writes and reads the fields of a struct as attributes; writing skips an optional text that is
 * "". */
void h5_set_fields(H5File *file, const char *group, const H5Column *columns, int count,
                   const void *row);
int h5_get_fields(const H5File *file, const char *group, const H5Column *columns, int count,
                  void *row);

/* Writes an array of structs as a group with a data set for each column.  `scale` is the path of
 * their dimension scale; NULL: the first column. */
void h5_write_table(H5File *file, const char *group, const char *scale, const H5Column *columns,
                    int count, const void *rows, size_t row_size, size_t row_count);
/* Overwrites those fields of the rows.  -1 and an error. */
int h5_read_columns(const H5File *file, const char *group, const H5Column *columns, int count,
                    void *rows, size_t row_size, size_t row_count);
/* Returns rows that the caller frees, and overwrites their count; NULL and an error. */
void *h5_read_table(const H5File *file, const char *group, const H5Column *columns, int count,
                    size_t row_size, size_t *row_count);

/* ---- shared by the files of the HDF5 layer --------------------------------------------------- */

/* Remembers a failure to write an object with errno, unless there was one before. */
void h5_fail(H5File *file, const char *object);
/* Sets the error "FILE: OBJECT: WHAT" of a read; returns -1. */
int h5_refuse(const H5File *file, const char *object, const char *what);

/* Returns true for H5_TEXT and H5_LINE. */
bool h5_is_text(H5Kind kind);
/* Returns the HDF5 type (hid_t) of a kind in memory, which the caller closes with H5Tclose. */
int64_t h5_memory_type(H5Kind kind);
/* Returns true if a value of an HDF5 type can be read as of this kind; closes the type. */
bool h5_is_kind(int64_t type, H5Kind kind);
/* Creates the groups above `object`.  Returns false if a write has failed. */
bool h5_make_groups(H5File *file, const char *object);
