/* The bytes a training needs, computed from the shapes alone; nothing is allocated. */
#pragma once

#include "layout.h"

/* Overwrites bytes[role] with what the CPU stage allocates, to the byte, while the `active` blocks
 * train.  The scratch that threads keep for the ops (ref/fast/scratch.c) is not counted, here or by
 * the stage.  The prefix cache and the kept state of other submodels (keep_state) count as 0, since
 * they depend on the data and on which submodels have trained, and so does what generation keeps
 * (memory_extend).  -1 and an error when memory runs out or where layout_check refuses. */
int memory_plan(size_t bytes[MEM_ROLES], const Model *model, const StageSettings *settings,
                const bool *active);

/* Returns the bytes that a stage, here or on a device, takes under MEM_CACHE in addition once it
 * generates (stage_extend): the inputs of all attentions, of one sequence as long as the context.
 */
size_t memory_extend(const Model *model, const StageSettings *settings);

/* The bytes of one block. */
typedef struct {
    size_t parameters, gradients, state, buffers;
    size_t activations;   /* stored for the backward pass, of one micro-batch */
    size_t stored_output; /* the part of `activations` that is the block's output */
    BlockWorkspace workspace;
    size_t loss; /* workspace of the loss; 0 except in the last block */
} BlockMemory;
/* Overwrites blocks[model->blocks], wherever they are (settings->local).  -1 and an error when
 * memory runs out. */
int memory_blocks(BlockMemory *blocks, const Model *model, const StageSettings *settings,
                  const bool *active);
/* Overwrites bytes[role] with the memory of the stage that has the blocks with settings->local:
 * that of its blocks, and of the outputs that it receives from blocks on other stages.  Blocks
 * share the workspace, so it is the largest scratch, and the largest boundary and boundary_gradient
 * of the even and of the odd blocks, or the largest `update` if that is more; and `loss`. */
void memory_stage(size_t bytes[MEM_ROLES], const BlockMemory *blocks, const Model *model,
                  const StageSettings *settings);

/* Returns the numbers of optimizer state of the parameters first, ..., end - 1. */
size_t memory_state_count(const Model *model, const OptimizerSettings *optimizer, int first,
                          int end);

/* Returns the paper's closed form in bytes, W (1 + (1 + k) / M), where W is 4 bytes per parameter
 * and k the number of state vectors, the mean if it depends on the parameter.  In bf16 it is
 * W (1/2 + (2 + k) / M): weights take half, and those of the active submodel have float masters as
 * well. */
double memory_closed_form(const Model *model, const OptimizerSettings *optimizer,
                          Precision precision, double submodels);

/* Writes that form with `submodels` for M, as "W (1 + 3/M)" or in bf16 "W (1/2 + 4/M)".  Where
 * only matrices have one vector less, it ends in "+ V/M": V is the part of W that is no matrix.
 * What does not fit is cut.  Returns text. */
const char *memory_closed_form_text(char text[48], const OptimizerSettings *optimizer,
                                    Precision precision, const char *submodels);
