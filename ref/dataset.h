/* What training is fed from: a data set of numbered samples, and the order they are taken in. */
#ifndef REF_DATASET_H
#define REF_DATASET_H

#include "model.h"

typedef struct Dataset Dataset;

/* A batch of n samples.  Exactly one of images and tokens is set. */
typedef struct {
    int n;
    const Dataset *resident; /* a device makes the images, as of `position`: nobody filled them */
    uint64_t position;
    int *ids;     /* [n]: sample numbers in the data set; the keys of the prefix cache */
    real *images; /* [n][h][w][c] */
    int *tokens;  /* [n][t] */
    int *targets; /* [n], or [n][t]; negative: ignored */
} Batch;

/* Reserves arrays for up to n samples of this model's input.  0, or -1 and an error. */
int batch_reserve(Batch *batch, const Model *model, int n);
void batch_free(Batch *batch);
/* Samples first .. end - 1 of a batch, by reference; none if end <= first. */
Batch batch_slice(const Batch *batch, const Model *model, int first, int end);
/* Targets that are not ignored, but at least 1: what the sum of their losses is divided by. */
double batch_counted(const Batch *batch, const Model *model);

/* How fetch makes images of bytes, for a device that does the same.  The number at (y, x, c) of a
 * sample is normal[c][byte], of the byte at (y + down, x + right, c), black (0) outside the image;
 * x is counted from the right where `mirrored`.  Augmented, with bits = random_bits(seed,
 * STREAM_AUGMENT, position << 32 | sample) and p = 2 pad + 1:
 *     down = ((bits & 0xffff) p >> 16) - pad, right = ((bits >> 16 & 0xffff) p >> 16) - pad,
 *     mirrored = bits >> 63;
 * else all three are 0. */
typedef struct {
    const unsigned char *first; /* byte of the first sample; each has planes[c][h][w] */
    size_t step;                /* bytes from one sample to the next */
    const real *normal;         /* [c][256] */
    uint64_t seed;
    int pad;
} ImageBytes;

struct Dataset {
    char name[48];
    int samples;
    bool tokens;        /* sequences of tokens, else images */
    Shape input;        /* of one sample; 1 x t x 1 for tokens */
    int classes;        /* classes, or size of the vocabulary: every token and target is below */
    char tokenizer[16]; /* of tokens: who made them; "": unknown */
    bool augmented;     /* fetch depends on the position: a cached prefix would not be exact */
    uint64_t checksum;  /* of the samples as loaded: provenance */
    const ImageBytes *bytes; /* images; NULL: a device cannot make them */
    bool resident;           /* a device has the bytes: fetch leaves the images to it */
    /* Overwrites the batch's arrays with the n = batch->n samples batch->ids[].  position, in the
     * stream of samples, differs each time training comes by and seeds augmentation.  Cannot fail.
     */
    void (*fetch)(const Dataset *dataset, Batch *batch, uint64_t position);
    void (*free)(Dataset *dataset);
};

void dataset_free(Dataset *dataset); /* NULL is ignored */

/* What a device takes to keep the images: a page of normal[][], and a sample's bytes for each; 0
 * where it cannot. */
size_t dataset_resident_bytes(const Dataset *dataset);

/* The order of samples: an endless stream of samples, epoch after epoch, each epoch a fresh
 * permutation.  A position in the stream is one number, the count of samples taken so far, so
 * batches have a fixed shape (one may straddle two epochs) and a resume needs only that number.
 * With fraction < 1 the stream has only a random subset of that size, drawn anew for each
 * `draw`, e.g. each time a submodel is activated (dataset reduction). */
typedef struct {
    uint64_t seed;
    int samples;    /* in the data set */
    int used;       /* in the subset: max(1, round(fraction * samples)) */
    uint64_t draw;  /* which subset */
    int *subset;    /* [used] sample numbers, ascending */
    int *order;     /* [used] this epoch's permutation of the subset */
    uint64_t epoch; /* that `order` is for */
} Sampler;

int sampler_init(Sampler *sampler, uint64_t seed, int samples, double fraction);
void sampler_free(Sampler *sampler);
/* Draws the subset number `draw`; cheap when it is the current one. */
void sampler_draw(Sampler *sampler, uint64_t draw);
/* Overwrites ids[n] with the samples at stream positions position .. position + n - 1. */
void sampler_ids(Sampler *sampler, int *ids, uint64_t position, int n);

#endif
