/* Partitions: which blocks are trained together.
 *
 * The algorithm works with any cut.  Contiguous in depth is what saves most: all blocks below the
 * active ones need no backward pass and keep no activations, and their output is the same at each
 * phase of a sample, so that it can be kept (prefix_cache.h).  Equal sizes are what needs least
 * memory, for gradients and optimizer state are those of the largest submodel. */
#ifndef REF_SUBMODEL_H
#define REF_SUBMODEL_H

#include "model.h"

typedef struct {
    int submodels;    /* M */
    int *of_block;    /* [blocks]: which submodel trains each block */
    size_t *params;   /* [submodels]: parameters in each */
    double imbalance; /* largest submodel over the mean, minus 1 */
} Partition;

/* M submodels, contiguous in depth, cut so that the sum of the squares of their sizes is least.
 * (Making only the largest as small as possible would leave a ResNet's head a submodel of its own.)
 * -1 and an error unless 1 <= M <= number of blocks. */
int partition_balanced(Partition *partition, const Model *model, int submodels);

/* Cuts a row of items into `parts` contiguous parts so that the sum of the squares of their costs
 * is least: part[i] is that of item i.  Every part has at least `fewest` items: 1 <= fewest,
 * parts * fewest <= items.  -1 and an error when memory runs out. */
int cut_contiguous(int *part, const double *cost, int items, int parts, int fewest);

/* By hand: submodels separated by '/', each a list of blocks or ranges by number or name:
 * "embedding,head/block1-block6/block7-block12", "0-3/4-9".  Every block must be in exactly one. */
int partition_parse(Partition *partition, const Model *model, const char *text);

void partition_free(Partition *partition);

/* Overwrites active[blocks] with the blocks of one submodel. */
void partition_active(const Partition *partition, const Model *model, int submodel, bool *active);

#endif
