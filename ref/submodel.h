/* Partitions: which blocks are trained together.
 *
 * The algorithm works with any cut.  Contiguous in depth is what saves most: all blocks below the
 * active ones need no backward pass and keep no activations, and their output is the same at each
 * phase of a sample, so that it can be kept (prefix_cache.h).  Equal sizes are what needs least
 * memory, for gradients and optimizer state are those of the largest submodel. */
#ifndef REF_SUBMODEL_H
#define REF_SUBMODEL_H

#include "model.h"

enum { ALWAYS_ACTIVE = -1 };

typedef struct {
    int submodels;        /* M */
    int *of_block;        /* [blocks]: which submodel trains each block, or ALWAYS_ACTIVE */
    size_t *params;       /* [submodels]: parameters in each, */
    size_t always_params; /*   and in the blocks that train with each of them */
    double imbalance;     /* largest submodel over the mean, minus 1 */
    double *lr_factor;    /* [submodels], of the learning rate: 1, unless partition_lr changed it */
} Partition;

/* M submodels, contiguous in depth, cut so that the sum of the squares of their sizes is least.
 * (Making only the largest as small as possible would leave a ResNet's head a submodel of its own.)
 * `always` lists blocks as partition_parse does, or is "ends": the first and the last.  They are in
 * no submodel and train in every phase, as embedding and head do in LISA (Pan et al. 2024).  NULL
 * or
 * "": none.  -1 and an error unless 1 <= M <= number of the other blocks. */
int partition_balanced(Partition *partition, const Model *model, int submodels, const char *always);

/* Cuts a row of items into `parts` contiguous parts so that the sum of the squares of their costs
 * is least: part[i] is that of item i.  Every part has at least `min_items` items: 1 <= min_items,
 * parts * min_items <= items.  -1 and an error when memory runs out. */
int cut_contiguous(int *part, const double *cost, int items, int parts, int min_items);

/* By hand: submodels separated by '/', each a list of blocks or ranges by number or name:
 * "embedding,head/block1-block6/block7-block12", "0-3/4-9".  Every block must be in exactly one, or
 * always active. */
int partition_parse(Partition *partition, const Model *model, const char *text, const char *always);

/* Factors of the learning rate, one for each submodel: "1,0.5,2".  -1 and an error. */
int partition_lr(Partition *partition, const char *text);

/* The part of all parameters that trains at once, the mean over submodels: 1/M, or with blocks that
 * are always active more. */
double partition_share(const Partition *partition, const Model *model);

void partition_free(Partition *partition);

/* Overwrites active[blocks] with the blocks of one submodel. */
void partition_active(const Partition *partition, const Model *model, int submodel, bool *active);

#endif
