/* Partitions: which blocks are trained together.
 *
 * The algorithm works with any cut.  Submodels that are contiguous in depth save the most: blocks
 * below the active ones need no backward pass and store only the output that the active ones read,
 * which does not change during a phase, so that it can be cached (prefix_cache.h).  Submodels of
 * equal size need the least memory, because the largest one decides how much gradients and
 * optimizer state take. */
#pragma once

#include "model.h"

enum { ALWAYS_ACTIVE = -1 };

typedef struct {
    int submodels;        /* M */
    int *of_block;        /* [blocks]: the submodel that trains each block, or ALWAYS_ACTIVE */
    size_t *params;       /* [submodels]: the parameters in each */
    size_t always_params; /* the parameters in blocks that are always active */
    double imbalance;     /* largest submodel over the mean, minus 1 */
    double *lr_factor; /* [submodels]: multiplies the learning rate in the submodel's phases, also
                        * for blocks that are always active; 1 unless partition_lr set it */
} Partition;

/* Makes M submodels, contiguous in depth, whose squared sizes have the smallest sum.  (Making only
 * the largest one as small as possible could leave a ResNet's head as a submodel of its own.)
 * `always` lists blocks as partition_parse does, or is "ends", the first and the last; they belong
 * to no submodel and train in every phase, as embedding and head do in LISA (Pan et al. 2024).
 * NULL or "" lists none.  -1 and an error unless 1 <= M <= the number of other blocks. */
int partition_balanced(Partition *partition, const Model *model, int submodels, const char *always);

/* Cuts a row of items into contiguous parts of at least `min_items` items, so that the sum of the
 * squares of the parts' costs is smallest.  Overwrites part[items] with the part of each item.
 * 1 <= min_items, parts * min_items <= items.  -1 and an error when memory runs out. */
int cut_contiguous(int *part, const double *cost, int items, int parts, int min_items);

/* Reads a partition from text: submodels are separated by '/', and each is a list of blocks or
 * ranges of blocks by name or number, as "embedding,head/block1-block6/block7-block12" or
 * "0-3/4-9".  -1 and an error unless every block is in exactly one submodel or always active. */
int partition_parse(Partition *partition, const Model *model, const char *text, const char *always);

/* Reads a factor of the learning rate for each submodel, as "1,0.5,2".  -1 and an error if they are
 * not that many numbers above 0 and at most 1e6; some factors may then be overwritten. */
int partition_lr(Partition *partition, const char *text);

/* Returns the fraction of all parameters that trains at once, as the mean over submodels: 1/M, or
 * more if blocks are always active. */
double partition_share(const Partition *partition, const Model *model);

void partition_free(Partition *partition);

/* Overwrites active[blocks] with the blocks of one submodel. */
void partition_active(const Partition *partition, const Model *model, int submodel, bool *active);
