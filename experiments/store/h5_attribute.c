/* Attributes: one text, whole number or real each. */
#include <errno.h>
#include <hdf5.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "../../ref/base/error.h"
#include "../base/text.h"
#include "h5.h"

/* Writes an attribute; closes `type`. */
static void set(H5File *file, const char *object, const char *name, hid_t type, const void *value) {
    const Text below = text_of("%s/", object); /* so that the group itself is created */
    if (h5_make_groups(file, below.text)) {
        errno = 0;
        hid_t space = H5Screate(H5S_SCALAR);
        hid_t attribute = H5Acreate_by_name(file->id, object, name, type, space, H5P_DEFAULT,
                                            H5P_DEFAULT, H5P_DEFAULT);
        if (attribute < 0 || H5Awrite(attribute, type, value) < 0) h5_fail(file, name);
        if (attribute >= 0) H5Aclose(attribute);
        H5Sclose(space);
    }
    H5Tclose(type);
}

/* Text is stored with a fixed length in the attribute, which has a checksum.  HDF5 keeps text of
 * variable length in a heap without one, and reads past its buffers if a length there is
 * damaged. */
void h5_set_text(H5File *file, const char *object, const char *name, const char *text) {
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, *text ? strlen(text) : 1); /* "" is one zero */
    H5Tset_strpad(type, H5T_STR_NULLPAD);
    H5Tset_cset(type, H5T_CSET_UTF8);
    set(file, object, name, type, text);
}

void h5_set(H5File *file, const char *object, const char *name, H5Kind kind, const void *value) {
    if (h5_is_text(kind))
        h5_set_text(file, object, name, value);
    else if (kind == H5_INT)
        set(file, object, name, h5_memory_type(H5_INT64), &(int64_t){*(const int *)value});
    else
        set(file, object, name, h5_memory_type(kind), value);
}

void h5_set_fields(H5File *file, const char *group, const H5Column *columns, int count,
                   const void *row) {
    for (const H5Column *c = columns; c < columns + count; c++) {
        const char *value = (const char *)row + c->offset;
        if (!(c->optional && h5_is_text(c->kind) && !*value))
            h5_set(file, group, c->name, c->kind, value);
    }
}

bool h5_has(const H5File *file, const char *object, const char *name) {
    return h5_exists(file, object) && H5Aexists_by_name(file->id, object, name, H5P_DEFAULT) != 0;
}

/* Opens a scalar attribute of a kind.  -1 and an error. */
static hid_t open_attribute(const H5File *file, const char *object, const char *name, H5Kind kind) {
    const Text where = text_of("%s attribute %s", object, name);
    if (!h5_has(file, object, name)) return h5_refuse(file, where.text, "is missing");
    hid_t attribute = H5Aopen_by_name(file->id, object, name, H5P_DEFAULT, H5P_DEFAULT);
    if (attribute < 0) return h5_refuse(file, where.text, "cannot be read; the file is damaged");
    hid_t space = H5Aget_space(attribute);
    const hssize_t values = H5Sget_simple_extent_npoints(space);
    H5Sclose(space);
    if (h5_is_kind(H5Aget_type(attribute), kind) && values == 1) return attribute;
    H5Aclose(attribute);
    return h5_refuse(file, where.text, "has another type than expected");
}

/* Text has a fixed length, or a variable one as other programs write it. */
int h5_get_text(const H5File *file, const char *object, const char *name, char *text, size_t size) {
    hid_t attribute = open_attribute(file, object, name, H5_TEXT);
    if (attribute < 0) return -1;
    hid_t stored = H5Aget_type(attribute), type = H5Tcopy(stored);
    bool damaged = false;
    size_t length = H5Tget_size(type);
    if (H5Tis_variable_str(type) > 0) {
        char *found = NULL;
        damaged = H5Aread(attribute, type, &found) < 0 || !found;
        length = damaged ? 0 : strlen(found);
        if (!damaged) snprintf(text, size, "%s", found);
        if (found) H5free_memory(found);
    } else if (length < size) {
        H5Tset_size(type, size); /* to be read with a zero at its end */
        H5Tset_strpad(type, H5T_STR_NULLTERM);
        damaged = H5Aread(attribute, type, text) < 0;
    }
    H5Tclose(stored);
    H5Tclose(type);
    H5Aclose(attribute);
    if (damaged) return h5_refuse(file, name, "cannot be read; the file is damaged");
    return length < size ? 0 : h5_refuse(file, name, "is too long");
}

int h5_get(const H5File *file, const char *object, const char *name, H5Kind kind, void *value) {
    if (h5_is_text(kind)) return h5_get_text(file, object, name, value, h5_kind_size(kind));
    hid_t attribute = open_attribute(file, object, name, kind), type = h5_memory_type(kind);
    int failed = attribute < 0 ? -1 : 0;
    if (!failed && H5Aread(attribute, type, value) < 0)
        failed = h5_refuse(file, name, "cannot be read; the file is damaged");
    H5Tclose(type);
    if (attribute >= 0) H5Aclose(attribute);
    return failed;
}

int h5_get_fields(const H5File *file, const char *group, const H5Column *columns, int count,
                  void *row) {
    for (const H5Column *c = columns; c < columns + count; c++) {
        char *value = (char *)row + c->offset;
        if (c->optional && !h5_has(file, group, c->name))
            memset(value, 0, h5_kind_size(c->kind));
        else if (h5_get(file, group, c->name, c->kind, value))
            return -1;
    }
    return 0;
}

/* ---- format and version ---------------------------------------------------------------------- */

static bool read_format(const H5File *file, char format[H5_NAME]) {
    *format = 0;
    return h5_has(file, "/", "format") && h5_get_text(file, "/", "format", format, H5_NAME) == 0;
}

int h5_format(const char *path, char format[H5_NAME]) {
    H5File file;
    if (h5_open(&file, path)) return -1;
    read_format(&file, format);
    h5_close(&file);
    return 0;
}

int h5_check_replaced(const char *path, const char *format) {
    struct stat status;
    char found[H5_NAME];
    if (stat(path, &status) || !S_ISREG(status.st_mode) || !status.st_size) return 0;
    if (h5_format(path, found) == 0 && strcmp(found, format) == 0) return 0;
    return error_set("--out %s: it is there, and has something else; give another name", path);
}

int h5_create_format(H5File *file, const char *path, const char *format, int version) {
    if (h5_create(file, path)) return -1;
    h5_set_text(file, "/", "format", format);
    h5_set(file, "/", "version", H5_INT, &version);
    return 0;
}

int h5_open_format(H5File *file, const char *path, const char *format, int version,
                   const char *what) {
    char found[H5_NAME];
    int stored, failed = 0;
    if (h5_open(file, path)) return -1;
    if (!read_format(file, found) || strcmp(found, format) != 0)
        failed = error_set("%s: not %s", path, what);
    else if (h5_get(file, "/", "version", H5_INT, &stored))
        failed = -1;
    else if (stored != version)
        failed = error_set("%s: version %d; this program reads version %d", path, stored, version);
    if (failed) h5_close(file);
    return failed;
}
