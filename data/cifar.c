#include "images.h"

#include <stdlib.h>
#include <string.h>

#include "../ref/error.h"
#include "file.h"

typedef struct {
    const char *path; /* below the data directory; NULL ends */
    int samples;
} CifarFile;

/* Files of the training split, then of the test split. */
static const CifarFile files[2][2][6] = {
    {{{"cifar-10-batches-bin/data_batch_1.bin", 10000},
      {"cifar-10-batches-bin/data_batch_2.bin", 10000},
      {"cifar-10-batches-bin/data_batch_3.bin", 10000},
      {"cifar-10-batches-bin/data_batch_4.bin", 10000},
      {"cifar-10-batches-bin/data_batch_5.bin", 10000}},
     {{"cifar-10-batches-bin/test_batch.bin", 10000}}},
    {{{"cifar-100-binary/train.bin", 50000}}, {{"cifar-100-binary/test.bin", 10000}}}};

static const int class_count[2] = {10, 100};
static const int label_bytes[2] = {1, 2}; /* CIFAR-100: coarse, then fine */

/* Computed from the 50,000 training images and rounded; a test computes them again. */
const Normalisation cifar_normalisation[2] = {
    {{0.491400, 0.482158, 0.446531}, {0.247032, 0.243485, 0.261588}},
    {{0.507075, 0.486549, 0.440918}, {0.267334, 0.256438, 0.276150}}};

int cifar_check(const unsigned char *bytes, size_t count, CifarKind kind, int samples,
                const char *path) {
    const size_t record = (size_t)label_bytes[kind] + IMAGE_BYTES;
    if (count != (size_t)samples * record)
        return error_set("cifar: %s: %zu bytes, expected %zu; download it again", path, count,
                         (size_t)samples * record);
    for (int n = 0; n < samples; n++) {
        int label = bytes[(size_t)n * record + (size_t)label_bytes[kind] - 1];
        if (label >= class_count[kind])
            return error_set(
                "cifar: %s: image %d has label %d, expected 0 to %d; download it again", path, n,
                label, class_count[kind] - 1);
    }
    return 0;
}

static int load_file(unsigned char *records, CifarKind kind, const char *dir,
                     const CifarFile *file) {
    char path[PATH_BYTES];
    if (path_join(path, dir, file->path)) return -1;
    size_t count;
    unsigned char *bytes = file_read("cifar", path, FETCH_HINT, &count);
    if (!bytes) return -1;
    int failed = cifar_check(bytes, count, kind, file->samples, path);
    if (!failed) memcpy(records, bytes, count);
    free(bytes);
    return failed;
}

int cifar_load(Images *images, CifarKind kind, const char *dir, Split split) {
    const CifarFile *file = files[kind][split != SPLIT_TRAIN];
    const int samples = split == SPLIT_TRAIN ? 50000 : 10000;
    const size_t record = (size_t)label_bytes[kind] + IMAGE_BYTES;
    *images =
        (Images){malloc((size_t)samples * record), samples, label_bytes[kind], class_count[kind]};
    if (!images->records) return error_set("cifar: no memory for %d images", samples);
    unsigned char *next = images->records;
    for (int i = 0; i < 6 && file[i].path; i++) {
        if (load_file(next, kind, dir, &file[i])) {
            free(images->records);
            images->records = NULL;
            return -1;
        }
        next += (size_t)file[i].samples * record;
    }
    return 0;
}
