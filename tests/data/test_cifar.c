/* The files of CIFAR-10 and CIFAR-100. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../data/data.h"
#include "../../data/images.h"
#include "scratch.h"

enum { RECORD = 1 + IMAGE_BYTES };

static Images ten_thousand(void) {
    Images images;
    if (synthetic_generate(&images, 10000, SPLIT_TEST, 0)) abort();
    return images;
}

static void write_cifar10(Images *images) {
    *images = ten_thousand();
    const char *path = scratch_path("cifar-10-batches-bin/test_batch.bin");
    FILE *file = fopen(path, "wb");
    size_t written = file ? fwrite(images->records, (size_t)images->label_bytes + IMAGE_BYTES,
                                   (size_t)images->samples, file)
                          : 0;
    CHECK(file && fclose(file) == 0 && written == (size_t)images->samples, "cannot write %s", path);
}

static void check_cifar_error(CifarKind kind, Split split) {
    Images images;
    CHECK(cifar_load(&images, kind, scratch_directory(), split) == -1, "loaded all the same");
}

static void cifar10_round_trip_and_damage(void) {
    Images written, images;
    write_cifar10(&written);
    const char *path = scratch_path("cifar-10-batches-bin/test_batch.bin");
    if (CHECK(cifar_load(&images, CIFAR_10, scratch_directory(), SPLIT_VALID) == 0, "%s",
              error_message())) {
        CHECK(images.samples == 10000 && images.classes == 10 && images.label_bytes == 1, "sizes");
        CHECK(memcmp(images.records, written.records, (size_t)10000 * RECORD) == 0, "bytes differ");
        free(images.records);
    }
    check_cifar_error(CIFAR_10, SPLIT_TRAIN);
    CHECK_ERROR(
        "cifar10: %s/cifar-10-batches-bin/data_batch_1.bin: No such file or directory; "
        "data/fetch cifar10 downloads it; BCD_DATA can name another directory",
        scratch_directory());
    written.records[(size_t)9999 * RECORD] = 10;
    scratch_file("cifar-10-batches-bin/test_batch.bin", written.records, (size_t)10000 * RECORD);
    check_cifar_error(CIFAR_10, SPLIT_TEST);
    CHECK_ERROR("cifar10: %s: image 9999 has label 10, expected 0 to 9; download it again", path);
    CHECK(truncate(path, 30729999) == 0, "truncate");
    check_cifar_error(CIFAR_10, SPLIT_TEST);
    CHECK_ERROR("cifar10: %s: 30729999 bytes, expected 30730000; download it again", path);
    CHECK(truncate(path, 0) == 0, "truncate");
    check_cifar_error(CIFAR_10, SPLIT_TEST);
    CHECK_ERROR("cifar10: %s: 0 bytes, expected 30730000; download it again", path);
    free(written.records);
}

/* Writes the five files of the training split; the label of each one's first image is its number.
 * Returns the images of the last one. */
static Images write_cifar10_train(void) {
    Images written = ten_thousand();
    for (int i = 1; i <= 5; i++) {
        char name[64];
        snprintf(name, sizeof name, "cifar-10-batches-bin/data_batch_%d.bin", i);
        written.records[0] = (unsigned char)i;
        scratch_file(name, written.records, (size_t)10000 * RECORD);
    }
    return written;
}

/* By its name a set has its split, its files in order, its normalisation, and crops of the images
 * it trains on alone. */
static void cifar10_opens_by_name(void) {
    static const struct {
        const char *name;
        Split split;
        int samples, first; /* label of the first image */
    } rows[] = {
        {"cifar10", SPLIT_TRAIN, 50000, 1},        {"cifar10", SPLIT_VALID, 10000, 0},
        {"cifar10", SPLIT_TEST, 10000, 0},         {"cifar10-holdout", SPLIT_TRAIN, 45000, 1},
        {"cifar10-holdout", SPLIT_VALID, 5000, 9}, {"cifar10-holdout", SPLIT_TEST, 10000, 0}};
    Images test, train = write_cifar10_train();
    train.records[(size_t)5000 * RECORD] = 9; /* of the last file, the first that is held out */
    scratch_file("cifar-10-batches-bin/data_batch_5.bin", train.records, (size_t)10000 * RECORD);
    write_cifar10(&test);
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        Dataset *set = data_open(&(DataRequest){.name = rows[r].name,
                                                .dir = scratch_directory(),
                                                .split = rows[r].split,
                                                .augment = true});
        if (!CHECK(set, "%s: %s", rows[r].name, error_message())) break;
        CHECK(set->samples == rows[r].samples && set->augmented == (rows[r].split == SPLIT_TRAIN),
              "%s %d: %d samples", rows[r].name, rows[r].split, set->samples);
        Batch batch = batch_one(set, 0, 0);
        CHECK(batch.targets[0] == rows[r].first, "%s %d begins with class %d", rows[r].name,
              rows[r].split, batch.targets[0]);
        if (rows[r].split == SPLIT_TEST) {
            const double red = (test.records[1] / 255.0 - 0.4914) / 0.247032;
            CHECK(fabs((double)batch.images[0] - red) < 1e-5, "%g, not %g", (double)batch.images[0],
                  red);
        }
        batch_free(&batch);
        for (int file = 1; file < 5 && set->samples == 50000; file++) {
            batch = batch_one(set, file * 10000, 0);
            CHECK(batch.targets[0] == file + 1, "file %d is out of place", file);
            batch_free(&batch);
        }
        dataset_free(set);
    }
    free(train.records);
    free(test.records);
}

static void cifar100_is_checked(void) {
    unsigned char *bytes = calloc(2, 2 + IMAGE_BYTES);
    bytes[0] = 250; /* the coarse label is ignored */
    bytes[1] = 99;
    CHECK(cifar_check(bytes, 2 * (2 + IMAGE_BYTES), CIFAR_100, 2, "f") == 0, "%s", error_message());
    bytes[2 + IMAGE_BYTES + 1] = 100;
    CHECK(cifar_check(bytes, 2 * (2 + IMAGE_BYTES), CIFAR_100, 2, "f") == -1, "label 100 passes");
    CHECK_ERROR("cifar100: f: image 1 has label 100, expected 0 to 99; download it again");
    CHECK(cifar_check(bytes, 2 * (2 + IMAGE_BYTES) + 1, CIFAR_100, 2, "f") == -1,
          "a byte too many");
    CHECK_ERROR("cifar100: f: 6149 bytes, expected 6148; download it again");
    free(bytes);
}

static void cifar100_opens_by_name(void) {
    enum { SAMPLES = 10000 };
    unsigned char *bytes = calloc(SAMPLES, 2 + IMAGE_BYTES);
    bytes[0] = 9;  /* the coarse label is ignored */
    bytes[1] = 57; /* the fine one */
    bytes[2] = 200;
    scratch_file("cifar-100-binary/test.bin", bytes, (size_t)SAMPLES * (2 + IMAGE_BYTES));
    Dataset *set = data_open(
        &(DataRequest){.name = "cifar100", .dir = scratch_directory(), .split = SPLIT_TEST});
    if (CHECK(set, "%s", error_message())) {
        Batch batch = batch_one(set, 0, 0);
        const double red = (200 / 255.0 - 0.507075) / 0.267334;
        CHECK(set->classes == 100 && set->samples == SAMPLES && batch.targets[0] == 57,
              "%d classes, %d samples, class %d", set->classes, set->samples, batch.targets[0]);
        CHECK(fabs((double)batch.images[0] - red) < 1e-5, "not %g", red);
        batch_free(&batch);
        dataset_free(set);
    }
    set = data_open(&(DataRequest){
        .name = "cifar100", .dir = scratch_directory(), .split = SPLIT_TEST, .limit = 7});
    CHECK(set && set->samples == 7, "the limit changes nothing");
    dataset_free(set);
    free(bytes);
}

void test_data_cifar(void) {
    RUN(cifar10_round_trip_and_damage);
    RUN(cifar10_opens_by_name);
    RUN(cifar100_is_checked);
    RUN(cifar100_opens_by_name);
}
