/* Synthetic images, normalisation and augmentation. */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../data/data.h"
#include "../../data/images.h"
#include "../../ref/base/checksum.h"
#include "scratch.h"

enum { PLANE = IMAGE_SIDE * IMAGE_SIDE, RECORD = 1 + IMAGE_BYTES };

/* Normalises to the byte itself, so that what is fetched can be compared exactly. */
static const Normalisation as_bytes = {{0, 0, 0}, {1.0 / 255, 1.0 / 255, 1.0 / 255}};

static Images synthetic(int samples, Split split, uint64_t seed) {
    Images images;
    if (synthetic_generate(&images, samples, split, seed)) abort();
    return images;
}

static void synthetic_is_the_same_everywhere(void) {
    static const struct {
        Split split;
        uint64_t seed, sum;
    } rows[] = {{SPLIT_TRAIN, 0, 0xB2F0ED118C93434Du},
                {SPLIT_TEST, 0, 0xF0027719B86C8B06u},
                {SPLIT_TEST, 7, 0xEA5EAD9C24A00C0Du}};
    const int threads = omp_get_max_threads();
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (int n = 1; n <= 2; n++) {
            omp_set_num_threads(n);
            Images images = synthetic(100, rows[r].split, rows[r].seed);
            uint64_t sum = checksum_bytes(CHECKSUM_START, images.records, (size_t)100 * RECORD);
            free(images.records);
            CHECK(sum == rows[r].sum, "row %zu, %d threads: checksum %016llx: the images changed",
                  r, n, (unsigned long long)sum);
        }
    omp_set_num_threads(threads);
}

static void synthetic_classes_are_balanced(void) {
    Images images = synthetic(SYNTHETIC_TEST, SPLIT_TEST, 3);
    int count[SYNTHETIC_CLASSES] = {0};
    for (int n = 0; n < images.samples; n++) count[images.records[(size_t)n * RECORD]]++;
    for (int c = 0; c < SYNTHETIC_CLASSES; c++)
        CHECK(count[c] == SYNTHETIC_TEST / SYNTHETIC_CLASSES, "class %d: %d images", c, count[c]);
    free(images.records);
}

static void synthetic_images_all_differ(void) {
    const struct {
        Split split;
        uint64_t seed;
    } made[] = {{SPLIT_TRAIN, 0}, {SPLIT_VALID, 0}, {SPLIT_TEST, 0}, {SPLIT_TRAIN, 1}};
    enum { SETS = 4, EACH = 50 };
    Images images[SETS];
    for (int i = 0; i < SETS; i++) images[i] = synthetic(EACH, made[i].split, made[i].seed);
    for (int a = 0; a < SETS * EACH; a++)
        for (int b = 0; b < a; b++)
            CHECK(memcmp(images[a / EACH].records + (size_t)(a % EACH) * RECORD + 1,
                         images[b / EACH].records + (size_t)(b % EACH) * RECORD + 1,
                         IMAGE_BYTES) != 0,
                  "images %d and %d are the same", a, b);
    for (int i = 0; i < SETS; i++) free(images[i].records);
}

/* Returns mean and deviation of all pixels.  Sums of integers are exact in any order. */
static Normalisation measure(const Images *images) {
    const size_t record = (size_t)images->label_bytes + IMAGE_BYTES;
    Normalisation result;
    for (int c = 0; c < 3; c++) {
        uint64_t sum = 0, squares = 0;
        for (int n = 0; n < images->samples; n++) {
            const unsigned char *pixels =
                images->records + (size_t)n * record + images->label_bytes + c * PLANE;
            for (int i = 0; i < PLANE; i++) {
                sum += pixels[i];
                squares += (uint64_t)pixels[i] * pixels[i];
            }
        }
        double count = (double)images->samples * PLANE;
        double mean = (double)sum / count;
        result.mean[c] = mean / 255;
        result.deviation[c] = sqrt((double)squares / count - mean * mean) / 255;
    }
    return result;
}

static void check_normalisation(const Images *images, const Normalisation *constants,
                                double tolerance) {
    const Normalisation measured = measure(images);
    for (int c = 0; c < 3; c++) {
        CHECK(fabs(measured.mean[c] - constants->mean[c]) <= tolerance, "channel %d: mean %.7f", c,
              measured.mean[c]);
        CHECK(fabs(measured.deviation[c] - constants->deviation[c]) <= tolerance,
              "channel %d: deviation %.7f", c, measured.deviation[c]);
    }
}

static void synthetic_normalisation_is_measured(void) {
    Images images = synthetic(SYNTHETIC_TRAIN, SPLIT_TRAIN, 0);
    check_normalisation(&images, &synthetic_normalisation, 0.5e-4);
    free(images.records);
}

/* The constants agree with those that others publish, to four digits. */
static void cifar_normalisation_is_published(void) {
    static const Normalisation published[2] = {
        [CIFAR_10] = {{0.4914, 0.4822, 0.4465}, {0.2470, 0.2435, 0.2616}},
        [CIFAR_100] = {{0.5071, 0.4865, 0.4409}, {0.2673, 0.2564, 0.2762}}};
    for (int kind = 0; kind < 2; kind++)
        for (int c = 0; c < 3; c++) {
            const Normalisation *ours = &cifar_normalisation[kind], *theirs = &published[kind];
            CHECK(fabs(ours->mean[c] - theirs->mean[c]) < 1e-4 &&
                      fabs(ours->deviation[c] - theirs->deviation[c]) < 1e-4,
                  "set %d, channel %d: mean %g, deviation %g", kind, c, ours->mean[c],
                  ours->deviation[c]);
        }
}

static void check_real(const char *file, CifarKind kind) {
    SKIP_WITHOUT(file);
    char directory[1024];
    const char *path = real_file(file);
    snprintf(directory, sizeof directory, "%.*s", (int)(strlen(path) - strlen(file) - 1), path);
    Images images;
    if (!CHECK(cifar_load(&images, kind, directory, SPLIT_TRAIN) == 0, "%s", error_message()))
        return;
    CHECK(images.samples == 50000, "%d images", images.samples);
    check_normalisation(&images, &cifar_normalisation[kind], 0.5e-6);
    const int classes = images.classes;
    const size_t record = (size_t)images.label_bytes + IMAGE_BYTES;
    int count[100] = {0};
    for (int n = 0; n < images.samples; n++)
        count[images.records[(size_t)n * record + (size_t)images.label_bytes - 1]]++;
    for (int c = 0; c < classes; c++)
        CHECK(count[c] == 50000 / classes, "class %d: %d images", c, count[c]);
    free(images.records);
}

static void cifar10_constants_are_measured(void) {
    check_real("cifar-10-batches-bin/data_batch_1.bin", CIFAR_10);
}

static void cifar100_constants_are_measured(void) {
    check_real("cifar-100-binary/train.bin", CIFAR_100);
}

static void channels_come_last_and_normalised(void) {
    const Normalisation normalisation = {{0.25, 0.5, 0.75}, {0.5, 0.25, 0.125}};
    Images images = synthetic(3, SPLIT_TRAIN, 0);
    unsigned char record[RECORD];
    memcpy(record, images.records + 2 * RECORD, RECORD);
    Dataset *dataset = images_dataset("test", images, &normalisation, false, 0, 0);
    Batch batch = batch_one(dataset, 2, 0);
    CHECK(batch.targets[0] == 2, "class %d", batch.targets[0]);
    for (int i = 0; i < IMAGE_BYTES; i++) {
        const int channel = i % 3, pixel = i / 3;
        const double value =
            (record[1 + channel * PLANE + pixel] / 255.0 - normalisation.mean[channel]) /
            normalisation.deviation[channel];
        CHECK(batch.images[i] == (real)value, "number %d: %g, expected %g", i,
              (double)batch.images[i], value);
    }
    batch_free(&batch);
    dataset->free(dataset);
}

static void limit_takes_the_first(void) {
    for (int limit = 0; limit <= 9; limit += 3) {
        Images images = synthetic(6, SPLIT_TRAIN, 0);
        const int samples = limit == 3 ? 3 : 6;
        const uint64_t sum =
            checksum_bytes(CHECKSUM_START, images.records, (size_t)samples * RECORD);
        Dataset *dataset = images_dataset("test", images, &as_bytes, false, 0, limit);
        CHECK(dataset->samples == samples, "limit %d: %d samples", limit, dataset->samples);
        CHECK(dataset->checksum == sum, "limit %d: the checksum is not of the samples used", limit);
        dataset->free(dataset);
    }
}

/* Returns true if the image is that of `record`, moved by (down, right) and perhaps mirrored. */
static bool is_crop(const real *image, const unsigned char *record, int down, int right,
                    bool mirrored) {
    for (int y = 0; y < IMAGE_SIDE; y++)
        for (int x = 0; x < IMAGE_SIDE; x++)
            for (int c = 0; c < 3; c++) {
                const int from_x = (mirrored ? 31 - x : x) + right, from_y = y + down;
                const bool inside = from_x >= 0 && from_x < 32 && from_y >= 0 && from_y < 32;
                const int byte = inside ? record[1 + c * PLANE + from_y * 32 + from_x] : 0;
                if (lround((double)image[(y * 32 + x) * 3 + c]) != byte) return false;
            }
    return true;
}

/* Returns the number of the crop, 0 to 161, or -1 if it is none. */
static int find_crop(const real *image, const unsigned char *record) {
    for (int crop = 0; crop < 162; crop++)
        if (is_crop(image, record, crop / 2 / 9 - 4, crop / 2 % 9 - 4, crop % 2)) return crop;
    return -1;
}

static void every_crop_and_mirror_image_appears(void) {
    enum {
        POSITIONS = 2000
    }; /* the probability that one of 162 crops is missing is 162 exp(-12) */
    Images images = synthetic(2, SPLIT_TRAIN, 0);
    Dataset *dataset = images_dataset("test", images, &as_bytes, true, 7, 0);
    int drawn[162] = {0}, kinds = 0;
    CHECK(dataset->augmented, "not marked as augmented");
    for (int position = 0; position < POSITIONS; position++) {
        Batch batch = batch_one(dataset, 1, (uint64_t)position);
        const int crop = find_crop(batch.images, images.records + RECORD);
        if (CHECK(crop >= 0, "position %d is no crop of the image", position))
            kinds += drawn[crop]++ == 0;
        batch_free(&batch);
    }
    CHECK(kinds == 162, "%d of 162 crops", kinds);
    dataset->free(dataset);
}

/* The images of a batch, which have one position, are not all moved alike. */
static void every_sample_has_a_crop_of_its_own(void) {
    enum { SAMPLES = 40 }; /* of 162 crops they have 35 or 36, on average */
    Images images = synthetic(SAMPLES, SPLIT_TRAIN, 0);
    Dataset *dataset = images_dataset("test", images, &as_bytes, true, 7, 0);
    bool drawn[162] = {false};
    int kinds = 0;
    for (int sample = 0; sample < SAMPLES; sample++) {
        Batch batch = batch_one(dataset, sample, 3);
        const int crop = find_crop(batch.images, images.records + (size_t)sample * RECORD);
        if (CHECK(crop >= 0, "sample %d is no crop of its image", sample)) {
            kinds += !drawn[crop];
            drawn[crop] = true;
        }
        batch_free(&batch);
    }
    CHECK(kinds > 25, "%d samples have %d crops", SAMPLES, kinds);
    dataset->free(dataset);
}

static Batch augmented(uint64_t seed, int sample, uint64_t position) {
    Dataset *dataset =
        images_dataset("test", synthetic(40, SPLIT_TRAIN, 0), &as_bytes, true, seed, 0);
    Batch batch = batch_one(dataset, sample, position);
    dataset->free(dataset);
    return batch;
}

static void augmentation_is_a_function_of_seed_sample_and_position(void) {
    const size_t bytes = IMAGE_BYTES * sizeof(real);
    Batch batch = augmented(1, 33, 5), same = augmented(1, 33, 5);
    Batch seed = augmented(2, 33, 5), position = augmented(1, 33, 6);
    CHECK(memcmp(batch.images, same.images, bytes) == 0, "the second time differs");
    CHECK(memcmp(batch.images, seed.images, bytes) != 0, "the seed changes nothing");
    CHECK(memcmp(batch.images, position.images, bytes) != 0, "the position changes nothing");
    batch_free(&batch);
    batch_free(&same);
    batch_free(&seed);
    batch_free(&position);
}

/* Writes a test split in the layout of the real one, so that the reader is tested without a
 * download. */
/* Every image is on exactly one side, in its order. */
static void held_out_images_are_the_last(void) {
    for (int training = 0; training < 2; training++) {
        Images images = synthetic(50, SPLIT_TEST, 0);
        for (int i = 0; i < 50; i++) images.records[(size_t)i * RECORD] = (unsigned char)i;
        images_hold_out(&images, 20, training);
        CHECK(images.samples == (training ? 30 : 20), "%d images", images.samples);
        for (int i = 0; i < images.samples; i++)
            CHECK(images.records[(size_t)i * RECORD] == i + (training ? 0 : 30), "image %d", i);
        free(images.records);
    }
}

void test_data_images(void) {
    RUN(synthetic_is_the_same_everywhere);
    RUN(synthetic_classes_are_balanced);
    RUN(synthetic_images_all_differ);
    RUN(synthetic_normalisation_is_measured);
    RUN(cifar_normalisation_is_published);
    RUN(cifar10_constants_are_measured);
    RUN(cifar100_constants_are_measured);
    RUN(channels_come_last_and_normalised);
    RUN(limit_takes_the_first);
    RUN(every_crop_and_mirror_image_appears);
    RUN(every_sample_has_a_crop_of_its_own);
    RUN(augmentation_is_a_function_of_seed_sample_and_position);
    RUN(held_out_images_are_the_last);
}
