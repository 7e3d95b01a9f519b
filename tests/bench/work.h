/* What is measured, on any device: training steps by thirds, and the nodes of a model. */
#pragma once

#include "../../ref/stage.h"

enum { THIRDS = 3, PARTS = 1 + THIRDS }; /* part 0 is the full update */
extern const char *const part_names[PARTS];

/* active[blocks] of a part.  The first and the last block are in no third, as in the usual account
 * of what a submodel costs. */
void work_active(bool *active, const Model *model, int part);

/* Random samples and targets for batch->n samples, numbered from 0. */
void work_fill(Batch *batch, const Model *model);

/* The defaults of an optimizer by name.  -1 and an error. */
int work_optimizer(OptimizerSettings *settings, const char *name);

/* What the multiply-adds of a step amount to: forward from block `first`, input gradients above the
 * lowest active parameter, weight gradients of active blocks.  0 when memory runs out. */
double work_flops(const Model *model, int n, const bool *active, int first);

/* Nodes that take the same time: same op, shapes and fusions. */
bool work_alike(const Node *a, const Node *b);
/* "conv2d 3x3/1 32x32x16 -> 32x32x16", "attention 32/8+rope 4096x6144 -> 4096x4096": query heads,
 * heads of keys. */
void work_name(char *text, size_t size, const Node *node);
