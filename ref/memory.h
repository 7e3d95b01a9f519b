/* Bytes a configuration needs, from the shapes alone: nothing is allocated. */
#ifndef REF_MEMORY_H
#define REF_MEMORY_H

#include "alloc.h"
#include "stage.h"

/* Bytes per role while `active` blocks train with these settings: what the CPU stage allocates, to
 * the byte, except that a kept state (keep_state) depends on the history, and the prefix cache on
 * the data; both count as if there were none.  -1 and an error when memory runs out. */
int memory_plan(size_t bytes[MEM_ROLES], const Model *model, const StageSettings *settings,
                const bool *active);

/* The same by block; activations are those stored for the backward pass, of one micro-batch.  A
 * stage has the workspace of its neediest block and of its neediest boundaries, twice, and the
 * loss's where it holds the last block. */
typedef struct {
    size_t parameters, gradients, state, activations, buffers;
    size_t kept_output;                 /* of the activations: the block's output */
    size_t scratch, loss;               /* workspace */
    size_t boundary, boundary_gradient; /* of an output that is not kept, and its gradient; */
    size_t handed_gradient;             /* of that on the stage above */
} BlockMemory;
int memory_blocks(BlockMemory *blocks, const Model *model, const StageSettings *settings,
                  const bool *active);

/* The paper's closed form, in bytes: W (1 + (1 + state vectors) / M), W = 4 bytes per parameter. In
 * bf16 W / 2 for the weights, and the active submodel's share has a float master too. */
double memory_closed_form(const Model *model, const OptimizerSettings *optimizer,
                          Precision precision, double submodels);

/* That form in letters, with `submodels` for M: "W (1 + 3/M)", in bf16 "W (1/2 + 4/M)". */
const char *memory_closed_form_text(char text[48], const OptimizerSettings *optimizer,
                                    Precision precision, const char *submodels);

#endif
