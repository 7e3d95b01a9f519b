/* What GPT, LLaMA and its relatives have in common. */
#pragma once

#include "family.h"

#define NORM_EPS OPTIONAL_REAL("eps", 1e-5, 1e-12, 1)

/* Returns the sizes that both families have as settings; the others are 0. */
TransformerSizes transformer_sizes(const Settings *settings);

/* Returns -1 and an error if the heads or the scaling of positions are impossible. */
int transformer_check(const TransformerSizes *sizes);

/* Appends the embedding, the layers and the head.  `block` appends the nodes of layer `layer`, from
 * 0, that reads value x, and returns the value it writes; `norm` is the norm before the head.  With
 * `positions` the embedding learns positions.  -1 and an error when memory runs out. */
typedef int TransformerBlock(Model *m, int x, TransformerSizes sizes, int layer);
typedef int TransformerNorm(Model *m, const char *name, int in, double eps);
int transformer_blocks(Model *m, TransformerSizes sizes, bool positions, TransformerBlock *block,
                       TransformerNorm *norm);
