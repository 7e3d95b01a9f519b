/* Data sets and tables. */
#include <hdf5.h>
#include <hdf5_hl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/text.h"
#include "h5.h"

static bool name_dimension(hid_t file, hid_t data, int number, const H5Dim *dim) {
    if (!dim->scale) return H5DSset_label(data, (unsigned)number, dim->name) >= 0;
    hid_t scale = H5Dopen2(file, dim->scale, H5P_DEFAULT);
    if (scale < 0) return false;
    bool ok = (H5DSis_scale(scale) > 0 || H5DSset_scale(scale, dim->name) >= 0) &&
              H5DSattach_scale(data, scale, (unsigned)number) >= 0;
    return H5Dclose(scale) >= 0 && ok;
}

/* Has HDF5 store a checksum with each piece of a data set, at most about a mebibyte of whole rows,
 * and check it at each read.  Pieces have equal sizes, as the last one takes the space of a whole
 * one.  Without elements there is nothing to check. */
static void set_checksum(hid_t creation, const hsize_t *size, int rank, size_t element_bytes) {
    hsize_t chunk[H5_RANK], row_bytes = element_bytes;
    for (int i = 1; i < rank; i++) row_bytes *= chunk[i] = size[i];
    if (!size[0] || !row_bytes) return;
    const hsize_t rows = row_bytes < 1 << 20 ? (1 << 20) / row_bytes : 1;
    const hsize_t pieces = (size[0] + rows - 1) / rows;
    chunk[0] = (size[0] + pieces - 1) / pieces;
    H5Pset_chunk(creation, rank, chunk);
    H5Pset_fletcher32(creation);
}

void h5_write(H5File *file, const char *name, H5Kind kind, const void *data, int rank,
              const H5Dim *dims, const char *unit) {
    if (!h5_make_groups(file, name)) return;
    hsize_t size[H5_RANK];
    for (int i = 0; i < rank; i++) size[i] = dims[i].size;
    hid_t type = h5_memory_type(kind), creation = H5Pcreate(H5P_DATASET_CREATE);
    hid_t space = H5Screate_simple(rank, size, NULL);
    H5Pset_obj_track_times(creation, false);
    set_checksum(creation, size, rank, h5_kind_size(kind));
    hid_t set = H5Dcreate2(file->id, name, type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    bool ok = set >= 0 && H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0;
    for (int i = 0; ok && i < rank; i++) ok = name_dimension(file->id, set, i, &dims[i]);
    if (!ok) h5_fail(file, name);
    if (set >= 0 && H5Dclose(set) < 0) h5_fail(file, name);
    H5Sclose(space);
    H5Pclose(creation);
    H5Tclose(type);
    if (unit) h5_set_text(file, name, "unit", unit);
}

int h5_size(const H5File *file, const char *name, size_t size[H5_RANK]) {
    hsize_t extent[H5S_MAX_RANK];
    int rank;
    if (!h5_exists(file, name)) return h5_refuse(file, name, "is missing");
    if (H5LTget_dataset_ndims(file->id, name, &rank) < 0)
        return h5_refuse(file, name, "is no data set, or damaged");
    if (rank > H5_RANK || H5LTget_dataset_info(file->id, name, extent, NULL, NULL) < 0)
        return h5_refuse(file, name, "has no usable shape");
    for (int i = 0; i < rank; i++) size[i] = (size_t)extent[i];
    return rank;
}

int h5_read(const H5File *file, const char *name, H5Kind kind, void *data, int rank,
            const size_t *size) {
    size_t found[H5_RANK];
    int found_rank = h5_size(file, name, found), failed = 0;
    bool same = found_rank == rank;
    if (found_rank < 0) return -1;
    for (int i = 0; same && i < rank; i++) same = found[i] == size[i];
    hid_t set = H5Dopen2(file->id, name, H5P_DEFAULT), type = h5_memory_type(kind);
    hid_t stored = H5Dget_type(set);
    const bool fixed = H5Tis_variable_str(stored) <= 0, of_kind = h5_is_kind(stored, kind);
    if (!same)
        failed = h5_refuse(file, name, "has another shape than expected");
    else if (!of_kind || !fixed)
        failed = h5_refuse(file, name, "has another type than expected");
    else if (H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) < 0)
        failed = h5_refuse(file, name, "cannot be read; the file is damaged");
    H5Tclose(type);
    H5Dclose(set);
    return failed;
}

/* ---- tables ---------------------------------------------------------------------------------- */

static Text column_path(const char *group, const H5Column *column) {
    return text_of("%s/%s", group, column->name);
}

static void write_column(H5File *file, const char *path, const H5Column *column, const H5Dim *dim,
                         const char *fields, size_t row_size) {
    size_t size = h5_kind_size(column->kind);
    char *values = xmalloc(dim->size * size + 1);
    for (size_t r = 0; r < dim->size; r++) memcpy(values + r * size, fields + r * row_size, size);
    h5_write(file, path, column->kind, values, 1, dim, column->unit);
    free(values);
}

void h5_write_table(H5File *file, const char *group, const char *scale, const H5Column *columns,
                    int count, const void *rows, size_t row_size, size_t row_count) {
    const Text first = column_path(group, columns);
    H5Dim dim = {scale ? "row" : columns->name, row_count, scale};
    for (const H5Column *c = columns; c < columns + count; c++) {
        /* Without rows `rows` may be NULL, to which no offset may be added. */
        const char *fields = row_count ? (const char *)rows + c->offset : NULL;
        write_column(file, column_path(group, c).text, c, &dim, fields, row_size);
        /* The first column becomes a scale when the second is attached to it. */
        if (!scale) dim.scale = first.text;
    }
}

static int read_column(const H5File *file, const char *group, const H5Column *column, char *fields,
                       size_t row_size, size_t row_count) {
    const Text path = column_path(group, column);
    size_t size = h5_kind_size(column->kind);
    bool missing = column->optional && !h5_exists(file, path.text);
    bool text = h5_is_text(column->kind);
    double none = column->kind == H5_DOUBLE ? NAN : 0; /* 0 has only zero bytes, in every kind */
    char *values = calloc(row_count + 1, size);
    if (!values) return h5_refuse(file, path.text, "out of memory");
    int failed = missing ? 0 : h5_read(file, path.text, column->kind, values, 1, &row_count);
    for (size_t r = 0; r < row_count && !failed; r++) {
        if (missing && !text) memcpy(values + r * size, &none, size);
        memcpy(fields + r * row_size, values + r * size, size);
        if (text) fields[r * row_size + size - 1] = 0; /* also if the file is damaged */
    }
    free(values);
    return failed;
}

int h5_read_columns(const H5File *file, const char *group, const H5Column *columns, int count,
                    void *rows, size_t row_size, size_t row_count) {
    for (const H5Column *c = columns; c < columns + count; c++)
        if (read_column(file, group, c, (char *)rows + c->offset, row_size, row_count)) return -1;
    return 0;
}

void *h5_read_table(const H5File *file, const char *group, const H5Column *columns, int count,
                    size_t row_size, size_t *row_count) {
    const Text first = column_path(group, columns);
    size_t size[H5_RANK];
    hsize_t file_bytes = 0;
    const int rank = h5_size(file, first.text, size);
    if (rank < 0) return NULL;
    H5Fget_filesize(file->id, &file_bytes);
    /* A damaged file may state any length; one beyond the bytes of the file is refused. */
    if (rank != 1 || size[0] > file_bytes) {
        h5_refuse(file, first.text, "is not a column");
        return NULL;
    }
    *row_count = size[0];
    char *rows = calloc(*row_count + 1, row_size);
    if (!rows) h5_refuse(file, group, "out of memory");
    if (rows && h5_read_columns(file, group, columns, count, rows, row_size, *row_count) == 0)
        return rows;
    free(rows);
    return NULL;
}
