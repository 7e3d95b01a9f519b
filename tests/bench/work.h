/* The work that is measured on any device: training steps by thirds, and the nodes of a model. */
#pragma once

#include "../../ref/stage.h"

enum { THIRDS = 3, PARTS = 1 + THIRDS }; /* part 0 is the full update */
extern const char *const part_names[PARTS];

/* Sets active[blocks] for a part. The first and the last block belong to no third, as in the usual
 * account of what a submodel costs. */
void work_active(bool *active, const Model *model, int part);

/* Fills the batch with random samples and targets for batch->n samples, numbered from 0. */
void work_fill(Batch *batch, const Model *model);

/* Sets the default settings of the optimizer of this name. Returns 0; on failure -1, with the error
 * set. */
int work_optimizer(OptimizerSettings *settings, const char *name);

/* Returns true if two nodes take the same time: they have the same op, shapes and fusions. */
bool work_alike(const Node *a, const Node *b);
/* Writes the name of a node, such as "conv2d 3x3/1 32x32x16 -> 32x32x16" or "attention 32/8+rope
 * 4096x6144 -> 4096x4096", where 32/8 are heads of queries and of keys. */
void work_name(char *text, size_t size, const Node *node);
