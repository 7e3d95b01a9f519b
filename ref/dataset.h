/* Data sets of numbered samples, batches of them, and the order in which samples are taken. */
#pragma once

#include "model.h"

typedef struct Dataset Dataset;

/* A batch of n samples.  Exactly one of images and tokens is set. */
typedef struct {
    int n;
    const Dataset *resident; /* if not NULL, a device makes the images from the bytes of
                              * this data set, and `images` is not filled */
    uint64_t position;       /* in the stream of samples; its low 32 bits seed the augmentation */
    int *ids;                /* [n]: sample numbers in the data set; the keys of the prefix cache */
    real *images;            /* [n][h][w][c] */
    int *tokens;             /* [n][t] */
    int *targets;            /* [n] for images, [n][t] for tokens; negative targets are ignored */
} Batch;

/* Allocates the arrays of a batch of n samples of the model's input, for batch_free to free.  -1
 * and an error when memory runs out. */
int batch_reserve(Batch *batch, const Model *model, int n);
void batch_free(Batch *batch);
/* Returns samples first .. end - 1 of a batch, which share its arrays; none if end <= first. */
Batch batch_slice(const Batch *batch, const Model *model, int first, int end);
/* Returns the number of targets that are not ignored, but at least 1, so that a mean divides by
 * it. */
double batch_target_count(const Batch *batch, const Model *model);

/* How fetch makes images from bytes, so that a device can do the same.  The number at (y, x, c) is
 * normal[c][byte], where the byte is that at (y + down, x + right, c) of the sample, or 0 (black)
 * outside of it; if `mirrored`, x counts from the right edge.  Without augmentation all three are
 * 0.  With it, bits = random_bits(seed, STREAM_AUGMENT, position << 32 | sample), p = 2 pad + 1 and
 *
 *     down     = ((bits & 0xffff) p >> 16) - pad
 *     right    = ((bits >> 16 & 0xffff) p >> 16) - pad
 *     mirrored = bits >> 63 */
typedef struct {
    const unsigned char *first; /* the first sample's bytes; each sample has planes[c][h][w] */
    size_t step;                /* bytes from one sample to the next */
    const real *normal;         /* [c][256]: the number that each byte becomes */
    uint64_t seed;
    int pad;
} ImageBytes;

struct Dataset {
    char name[48];
    int samples;
    bool tokens;        /* sequences of tokens, else images */
    Shape input;        /* of one sample; 1 x t x 1 for tokens */
    int classes;        /* classes, or the vocabulary; every target and token is below it */
    char tokenizer[16]; /* the tokenizer that made the tokens; "": unknown */
    bool augmented;     /* fetch depends on the position, so a cached prefix would not be exact */
    uint64_t checksum;  /* of the samples as loaded, for provenance */
    const ImageBytes *bytes; /* NULL if a device cannot make the images */
    bool resident;           /* a device has the bytes, and fetch leaves the images to it */
    /* Overwrites the batch's arrays with the samples batch->ids[batch->n]; of images also sets
     * batch->position and batch->resident.  `position`, in the stream of samples, seeds the
     * augmentation and is never the same twice in a training.  Cannot fail. */
    void (*fetch)(const Dataset *dataset, Batch *batch, uint64_t position);
    void (*free)(Dataset *dataset);
};

void dataset_free(Dataset *dataset); /* NULL is ignored */

/* Returns the bytes that a device needs to keep the images: the table normal[][] and the bytes of
 * all samples; 0 if it cannot make them. */
size_t dataset_resident_bytes(const Dataset *dataset);

/* The order of samples: an endless stream, epoch after epoch, each with a new random permutation.
 * The position in the stream is the number of samples taken so far, which is all that a resume
 * needs.  Every batch has the same size, and one may span two epochs.  With fraction < 1 (dataset
 * reduction) the stream has only a random subset of the samples, a new one for each `draw`, that
 * is, for each phase.  Where a phase begins in the middle of an epoch, some samples of its subset
 * may come twice in its first epoch, and others not at all.
 *
 * Of a data set with more than SAMPLER_ARRAY samples each position is computed by itself, as arrays
 * would take gigabytes, and each epoch would begin with a wait. */
enum { SAMPLER_ARRAY = 1 << 24 };
typedef struct {
    uint64_t seed;
    int samples;    /* in the data set */
    int used;       /* in the subset: max(1, round(fraction * samples)) */
    uint64_t draw;  /* the number of the subset */
    int *subset;    /* [samples], of which the first `used` are the subset, ascending; NULL: all,
                     * or more than SAMPLER_ARRAY */
    int *order;     /* [used]: this epoch's permutation of the subset; NULL: as above */
    uint64_t epoch; /* the epoch that `order` belongs to */
} Sampler;

/* Returns how many samples a subset has. */
int sampler_used(int samples, double fraction);

/* -1 and an error when memory runs out, or unless samples >= 1 and 0 < fraction <= 1. */
int sampler_init(Sampler *sampler, uint64_t seed, int samples, double fraction);
void sampler_free(Sampler *sampler);
/* Draws subset number `draw`; does nothing if that is the current one. */
void sampler_draw(Sampler *sampler, uint64_t draw);
/* Overwrites ids[n] with the samples at stream positions position .. position + n - 1.  With
 * fraction < 1, sampler_draw comes first. */
void sampler_ids(Sampler *sampler, int *ids, uint64_t position, int n);
