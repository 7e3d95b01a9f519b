#include <stdlib.h>
#include <string.h>

#include "../ref/base/error.h"
#include "file.h"
#include "images.h"

static const struct {
    const char *set;          /* of data/fetch */
    int classes, label_bytes; /* CIFAR-100: coarse label, then fine */
    const char *files[2][6];  /* of training and test, below the data directory; NULL ends */
} kinds[2] = {
    [CIFAR_10] = {"cifar10",
                  10,
                  1,
                  {{"cifar-10-batches-bin/data_batch_1.bin",
                    "cifar-10-batches-bin/data_batch_2.bin",
                    "cifar-10-batches-bin/data_batch_3.bin",
                    "cifar-10-batches-bin/data_batch_4.bin",
                    "cifar-10-batches-bin/data_batch_5.bin"},
                   {"cifar-10-batches-bin/test_batch.bin"}}},
    [CIFAR_100] = {
        "cifar100", 100, 2, {{"cifar-100-binary/train.bin"}, {"cifar-100-binary/test.bin"}}}};

/* Computed from the 50,000 training images and rounded; a test computes them again. */
const Normalisation cifar_normalisation[2] = {
    {{0.491400, 0.482158, 0.446531}, {0.247032, 0.243485, 0.261588}},
    {{0.507075, 0.486549, 0.440918}, {0.267334, 0.256438, 0.276150}}};

static size_t record_bytes(CifarKind kind) { return (size_t)kinds[kind].label_bytes + IMAGE_BYTES; }

int cifar_check(const unsigned char *bytes, size_t count, CifarKind kind, int samples,
                const char *path) {
    const size_t record = record_bytes(kind), expected = (size_t)samples * record;
    if (count != expected)
        return error_set("%s: %s: %zu bytes, expected %zu; download it again", kinds[kind].set,
                         path, count, expected);
    for (int n = 0; n < samples; n++) {
        int label = bytes[(size_t)n * record + (size_t)kinds[kind].label_bytes - 1];
        if (label >= kinds[kind].classes)
            return error_set("%s: %s: image %d has label %d, expected 0 to %d; download it again",
                             kinds[kind].set, path, n, label, kinds[kind].classes - 1);
    }
    return 0;
}

/* Loads DIR/NAME into records, of which `samples` are in the file. */
static int load_file(unsigned char *records, CifarKind kind, const char *dir, const char *name,
                     int samples) {
    char path[PATH_BYTES];
    if (path_join(path, dir, name)) return -1;
    size_t count;
    unsigned char *bytes = file_read_set(kinds[kind].set, path, &count);
    if (!bytes) return -1;
    int failed = cifar_check(bytes, count, kind, samples, path);
    if (!failed) memcpy(records, bytes, count);
    free(bytes);
    return failed;
}

int cifar_load(Images *images, CifarKind kind, const char *dir, Split split) {
    const char *const *file = kinds[kind].files[split != SPLIT_TRAIN];
    const int samples = split == SPLIT_TRAIN ? 50000 : 10000;
    unsigned char *records = malloc((size_t)samples * record_bytes(kind));
    if (!records) return error_set("%s: no memory for %d images", kinds[kind].set, samples);
    int files = 0, failed = 0;
    while (file[files]) files++;
    for (int i = 0, each = samples / files; !failed && i < files; i++)
        failed =
            load_file(records + (size_t)(i * each) * record_bytes(kind), kind, dir, file[i], each);
    if (failed)
        free(records);
    else
        *images = (Images){records, samples, kinds[kind].label_bytes, kinds[kind].classes};
    return failed;
}

void images_hold_out(Images *images, int held_out, bool training) {
    const int trained = images->samples - held_out;
    const size_t record = (size_t)images->label_bytes + IMAGE_BYTES;
    if (!training)
        memmove(images->records, images->records + (size_t)trained * record,
                (size_t)held_out * record);
    images->samples = training ? trained : held_out;
}
