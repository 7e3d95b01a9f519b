/* What GPT and LLaMA share. */
#ifndef REF_BLOCKS_TRANSFORMER_H
#define REF_BLOCKS_TRANSFORMER_H

#include "family.h"

#define NORM_EPS OPTIONAL_REAL("eps", 1e-5, 1e-12, 1)

/* The sizes that both families have as settings; the others are 0. */
TransformerSizes transformer_sizes(const Settings *settings);

/* -1 and an error where the heads or the scaling of positions cannot be. */
int transformer_check(const TransformerSizes *sizes);

/* Appends embedding | layers | head to the model: `block` appends the nodes of a layer that reads
 * x, and returns what it writes; `norm` is that before the head.  positions: they are learned. */
typedef int TransformerBlock(Builder *b, int x, TransformerSizes sizes);
typedef int TransformerNorm(Builder *b, const char *name, int in, double eps);
void transformer_blocks(Builder *b, TransformerSizes sizes, bool positions, TransformerBlock *block,
                        TransformerNorm *norm);

#endif
