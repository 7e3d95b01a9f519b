#include "images.h"

#include <stdio.h>
#include <stdlib.h>

#include "../ref/base/checksum.h"
#include "../ref/base/error.h"
#include "../ref/base/random.h"

typedef struct {
    Dataset base;
    Images images;
    ImageBytes bytes;
    real normal[3][256]; /* the normalised value of each byte, by channel */
} ImageSet;

static size_t record_bytes(const Images *images) {
    return (size_t)images->label_bytes + IMAGE_BYTES;
}

typedef struct {
    int down, right; /* where the crop starts, relative to the unpadded image */
    bool mirrored;
} Crop;

static Crop choose_crop(uint64_t seed, int sample, uint64_t position) {
    const uint32_t places = 2 * IMAGE_PAD + 1;
    uint64_t bits = random_bits(seed, STREAM_AUGMENT, position << 32 | (uint32_t)sample);
    Crop crop;
    crop.down = (int)((bits & 0xFFFF) * places >> 16) - IMAGE_PAD;
    crop.right = (int)((bits >> 16 & 0xFFFF) * places >> 16) - IMAGE_PAD;
    crop.mirrored = bits >> 63;
    return crop;
}

/* Overwrites out[32][32][3] from planes[3][32][32], with black outside of the image. */
static void convert_image(const ImageSet *set, real *out, const unsigned char *planes, Crop crop) {
    for (int y = 0; y < IMAGE_SIDE; y++)
        for (int x = 0; x < IMAGE_SIDE; x++) {
            int from_y = y + crop.down;
            int from_x = (crop.mirrored ? IMAGE_SIDE - 1 - x : x) + crop.right;
            bool inside = from_y >= 0 && from_y < IMAGE_SIDE && from_x >= 0 && from_x < IMAGE_SIDE;
            for (int c = 0; c < 3; c++) {
                int byte = inside ? planes[(c * IMAGE_SIDE + from_y) * IMAGE_SIDE + from_x] : 0;
                out[(y * IMAGE_SIDE + x) * 3 + c] = set->normal[c][byte];
            }
        }
}

static void images_fetch(const Dataset *dataset, Batch *batch, uint64_t position) {
    const ImageSet *set = (const ImageSet *)dataset;
    batch->resident = dataset->resident ? dataset : NULL;
    batch->position = position;
#pragma omp parallel for if (batch->n > 8) /* waking threads costs more than a few images */
    for (int n = 0; n < batch->n; n++) {
        const unsigned char *record =
            set->images.records + (size_t)batch->ids[n] * record_bytes(&set->images);
        Crop crop = {0, 0, false};
        batch->targets[n] = record[set->images.label_bytes - 1];
        if (dataset->resident) continue;
        if (dataset->augmented) crop = choose_crop(set->bytes.seed, batch->ids[n], position);
        convert_image(set, batch->images + (size_t)n * IMAGE_BYTES,
                      record + set->images.label_bytes, crop);
    }
}

static void images_free(Dataset *dataset) {
    ImageSet *set = (ImageSet *)dataset;
    free(set->images.records);
    free(set);
}

Dataset *images_dataset(const char *name, Images images, const Normalisation *normalisation,
                        bool augment, uint64_t seed, int limit) {
    ImageSet *set = calloc(1, sizeof *set);
    if (!set) {
        free(images.records);
        return error_null("%s: out of memory", name);
    }
    if (limit > 0 && limit < images.samples) images.samples = limit;
    set->images = images;
    set->bytes = (ImageBytes){.first = images.records + images.label_bytes,
                              .step = record_bytes(&images),
                              .normal = set->normal[0],
                              .seed = seed,
                              .pad = IMAGE_PAD};
    set->base.bytes = &set->bytes;
    for (int c = 0; c < 3; c++)
        for (int byte = 0; byte < 256; byte++)
            set->normal[c][byte] =
                (real)((byte / 255.0 - normalisation->mean[c]) / normalisation->deviation[c]);
    snprintf(set->base.name, sizeof set->base.name, "%s", name);
    set->base.samples = images.samples;
    set->base.input = (Shape){IMAGE_SIDE, IMAGE_SIDE, 3};
    set->base.classes = images.classes;
    set->base.augmented = augment;
    set->base.checksum = checksum_bytes(CHECKSUM_START, images.records,
                                        (size_t)images.samples * record_bytes(&images));
    set->base.fetch = images_fetch;
    set->base.free = images_free;
    return &set->base;
}
