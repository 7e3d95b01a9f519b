#include "compare.h"

#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "../data/scratch.h"

int h5_count(const H5File *file, const char *group) {
    H5G_info_t info;
    if (!h5_exists(file, group) || H5Gget_info_by_name(file->id, group, &info, H5P_DEFAULT) < 0)
        return h5_refuse(file, group, "is missing");
    return (int)info.nlinks;
}

int h5_name(const H5File *file, const char *group, int index, char name[H5_NAME]) {
    /* To sort them, HDF5 1.10 makes a table, which it frees uninitialised if the group is
     * damaged. */
    ssize_t length = H5Lget_name_by_idx(file->id, group, H5_INDEX_NAME, H5_ITER_NATIVE,
                                        (hsize_t)index, name, H5_NAME, H5P_DEFAULT);
    if (length < 0) return h5_refuse(file, group, "cannot be listed");
    if (length >= H5_NAME) return h5_refuse(file, group, "holds a name that is too long");
    return 0;
}

static double *read_all(const H5File *file, const char *name, size_t *count) {
    size_t size[H5_RANK];
    int rank = h5_size(file, name, size);
    *count = 1;
    for (int i = 0; i < rank; i++) *count *= size[i];
    double *numbers = calloc(*count, sizeof *numbers);
    if (rank < 0 || h5_read(file, name, H5_DOUBLE, numbers, rank, size)) *count = 0;
    return numbers;
}

/* CHECKs that the distance from a to b is at most `tolerance` of the distance from the start to a
 * (from zero where the start lacks the array). An array that did not move must have the same bits.
 * Returns the ratio of the distances. */
static double compare_tensor(const H5File *a, const H5File *b, const H5File *start,
                             const char *name, double tolerance) {
    size_t count, other, first = 0;
    double *x = read_all(a, name, &count), *y = read_all(b, name, &other), *z = NULL;
    if (h5_exists(start, name)) z = read_all(start, name, &first);
    double apart = 0, moved = 0;
    if (CHECK(count > 0 && count == other && (!z || first == count), "%s: %s", name,
              error_message()))
        for (size_t i = 0; i < count; i++) {
            apart += (x[i] - y[i]) * (x[i] - y[i]);
            moved += (x[i] - (z ? z[i] : 0)) * (x[i] - (z ? z[i] : 0));
        }
    CHECK(sqrt(apart) <= tolerance * sqrt(moved), "%s: %g apart, moved by %g", name, sqrt(apart),
          sqrt(moved));
    free(x);
    free(y);
    free(z);
    return moved > 0 ? sqrt(apart / moved) : 0;
}

void compare_checkpoints(const char *a, const char *b, const char *start, double tolerance) {
    static const char *const groups[] = {"/parameters", "/buffers", "/optimizer/first",
                                         "/optimizer/second"};
    H5File x, y, z;
    double largest = 0;
    if (!CHECK(!h5_open(&x, scratch_path(a)) && !h5_open(&y, scratch_path(b)) &&
                   !h5_open(&z, scratch_path(start)),
               "%s", error_message()))
        return;
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++) {
        bool there = h5_exists(&x, groups[g]);
        int count = there ? h5_count(&x, groups[g]) : 0;
        CHECK(h5_exists(&y, groups[g]) == there && (!there || h5_count(&y, groups[g]) == count),
              "%s: not the same tensors", groups[g]);
        for (int i = 0; i < count; i++) {
            char name[H5_NAME], path[2 * H5_NAME];
            if (!CHECK(h5_name(&x, groups[g], i, name) == 0, "%s", error_message())) break;
            snprintf(path, sizeof path, "%s/%s", groups[g], name);
            largest = fmax(largest, compare_tensor(&x, &y, &z, path, tolerance));
        }
    }
    test_note("%s and %s: at most %.2g of the movement apart", a, b, largest);
    compare_tensor(&x, &y, &z, "/optimizer_step", 0);
    h5_close(&x);
    h5_close(&y);
    h5_close(&z);
}

void change_batch(const char *name, uint64_t batch) {
    hid_t file = H5Fopen(scratch_path(name), H5F_ACC_RDWR, H5P_DEFAULT);
    hid_t group = H5Gopen2(file, "/settings", H5P_DEFAULT), space = H5Screate(H5S_SCALAR);
    H5Adelete(group, "batch");
    hid_t attribute = H5Acreate2(group, "batch", H5T_STD_U64LE, space, H5P_DEFAULT, H5P_DEFAULT);
    CHECK(H5Awrite(attribute, H5T_NATIVE_UINT64, &batch) >= 0, "%s", name);
    H5Aclose(attribute);
    H5Sclose(space);
    H5Gclose(group);
    H5Fclose(file);
}
