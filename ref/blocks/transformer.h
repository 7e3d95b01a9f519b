/* What GPT and LLaMA share. */
#ifndef REF_BLOCKS_TRANSFORMER_H
#define REF_BLOCKS_TRANSFORMER_H

#include "family.h"

#define NORM_EPS SELDOM_REAL("eps", 1e-5, 1e-12, 1)

/* The sizes that both families have as settings; the others are 0. */
TransformerSizes transformer_sizes(const Settings *settings);

/* -1 and an error where the heads or the scaling of positions cannot be. */
int transformer_check(const TransformerSizes *sizes);

#endif
