/* Creates, opens and closes HDF5 files. */
#include <errno.h>
#include <hdf5.h>
#include <hdf5_hl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../ref/base/error.h"
#include "../base/text.h"
#include "h5.h"

/* Stops the library from printing its own errors, from flushing at exit once more what it could not
 * write to a full disk, and from locking files itself: it truncates a file before it finds it
 * locked. */
static void silence_library(void) {
    static bool done;
    if (done) return;
    done = true;
    setenv("HDF5_USE_FILE_LOCKING", "FALSE", 1);
    H5dont_atexit();
    H5open();
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

void h5_version(unsigned version[3]) {
    silence_library();
    H5get_libversion(&version[0], &version[1], &version[2]);
}

int h5_refuse(const H5File *file, const char *object, const char *what) {
    return error_set("%s: %s: %s", file->path, object, what);
}

void h5_fail(H5File *file, const char *object) {
    if (file->failed) return;
    int cause = errno;
    file->failed = true;
    error_set("%s: cannot write %s: %s", file->path, object,
              cause ? strerror(cause) : "the HDF5 library refused");
}

/* Checks that there is memory for the library, which does not look at what it is given and crashes
 * where there is none. */
static int check_memory(const char *path) {
    enum { NEEDED = 4 << 20 }; /* its caches, and buffers of what it converts */
    void *memory = malloc(NEEDED);
    free(memory);
    return memory ? 0 : error_set("%s: no memory is left for the HDF5 library", path);
}

int h5_create(H5File *file, const char *path) {
    memset(file, 0, sizeof *file);
    file->id = -1;
    if (check_memory(path)) return -1;
    silence_library();
    if (atomic_open(&file->out, path)) return -1;
    strcpy(file->path, file->out.path);
    /* The newer format has checksums over attributes and its own structures; without them a damaged
     * byte can make the library read past its buffers. */
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110);
    hid_t creation = H5Pcreate(H5P_FILE_CREATE); /* no clock in the root group */
    H5Pset_obj_track_times(creation, false);
    errno = 0;
    file->id = H5Fcreate(file->out.temporary, H5F_ACC_TRUNC, creation, access);
    int cause = errno;
    H5Pclose(access);
    H5Pclose(creation);
    if (file->id >= 0) return 0;
    h5_abandon(file);
    return error_set("%s: cannot create: %s", path, cause ? strerror(cause) : "HDF5 refused");
}

/* Does not close a file that could not be written: the library would write again, fail again and,
 * in HDF5 1.10, sometimes crash. */
void h5_abandon(H5File *file) {
    if (file->id >= 0 && !file->failed) H5Fclose(file->id);
    file->id = -1;
    atomic_abandon(&file->out);
}

int h5_commit(H5File *file) {
    errno = 0;
    if (!file->failed && H5Fclose(file->id) < 0) h5_fail(file, "the end of the file");
    if (!file->failed) return atomic_commit(&file->out);
    h5_abandon(file);
    return -1;
}

int h5_open(H5File *file, const char *path) {
    memset(file, 0, sizeof *file);
    file->id = -1;
    if (check_memory(path)) return -1;
    silence_library();
    snprintf(file->path, sizeof file->path, "%s", path);
    if (access(path, R_OK)) return error_set("%s: cannot read: %s", path, strerror(errno));
    file->id = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    if (file->id < 0)
        return error_set(
            "%s: %s", path,
            H5Fis_hdf5(path) > 0 ? "a damaged or truncated HDF5 file" : "not an HDF5 file");
    return 0;
}

void h5_close(H5File *file) {
    if (file->id >= 0) H5Fclose(file->id);
    file->id = -1;
}

/* ---- groups ---------------------------------------------------------------------------------- */

bool h5_exists(const H5File *file, const char *name) {
    return H5LTpath_valid(file->id, name, true) != 0;
}

static bool make_group(const H5File *file, const char *path) {
    if (h5_exists(file, path)) return true;
    hid_t creation = H5Pcreate(H5P_GROUP_CREATE);
    H5Pset_obj_track_times(creation, false);
    hid_t group = H5Gcreate2(file->id, path, H5P_DEFAULT, creation, H5P_DEFAULT);
    H5Pclose(creation);
    return group >= 0 && H5Gclose(group) >= 0;
}

bool h5_make_groups(H5File *file, const char *object) {
    Text path = text_of("%s", object);
    if (file->failed) return false;
    errno = 0;
    for (char *slash = strchr(path.text + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        if (!make_group(file, path.text)) h5_fail(file, path.text);
        *slash = '/';
    }
    return !file->failed;
}

/* ---- kinds ----------------------------------------------------------------------------------- */

size_t h5_kind_size(H5Kind kind) {
    static const size_t size[] = {
        [H5_INT] = sizeof(int), [H5_INT64] = 8,      [H5_UINT64] = 8,    [H5_FLOAT] = sizeof(float),
        [H5_DOUBLE] = 8,        [H5_TEXT] = H5_NAME, [H5_LINE] = H5_PATH};
    return size[kind];
}

bool h5_is_text(H5Kind kind) { return kind == H5_TEXT || kind == H5_LINE; }

hid_t h5_memory_type(H5Kind kind) {
    if (h5_is_text(kind)) {
        hid_t text = H5Tcopy(H5T_C_S1);
        H5Tset_size(text, h5_kind_size(kind));
        H5Tset_cset(text, H5T_CSET_UTF8);
        return text;
    }
    const hid_t native[] = {[H5_INT] = H5T_NATIVE_INT,
                            [H5_INT64] = H5T_NATIVE_INT64,
                            [H5_UINT64] = H5T_NATIVE_UINT64,
                            [H5_FLOAT] = H5T_NATIVE_FLOAT,
                            [H5_DOUBLE] = H5T_NATIVE_DOUBLE};
    return H5Tcopy(native[kind]);
}

bool h5_is_kind(hid_t type, H5Kind kind) {
    const H5T_class_t class = H5Tget_class(type);
    H5Tclose(type);
    if (h5_is_text(kind)) return class == H5T_STRING;
    return class == H5T_INTEGER || (class == H5T_FLOAT && (kind == H5_FLOAT || kind == H5_DOUBLE));
}
