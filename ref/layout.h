/* Where every activation of a training step lives, decided from the tables before anything is
 * allocated.  The rule that makes BCD cheap is here:
 *
 *   - a value needs a gradient only if an active parameter lies below it;
 *   - a value is stored only if the backward pass of some node will read it (saved_for_backward);
 *   - everything else is scratch, shared by all blocks.
 *
 * So a frozen block below the lowest active one stores nothing (but its output, where an active
 * block's weight gradient reads that), and a frozen block above it stores what its input gradients
 * read, but not what weight gradients would: y = x w of a frozen linear layer needs w for dL/dx,
 * and x only for dL/dw, which is not computed; dL/dx of y = gelu(x) needs x, which is stored.  With
 * settings.deferred the gradients that weight gradients read are stored too, by micro-batch, of
 * nodes that train.
 *
 * Besides the activations, which are decided here, a training holds W (1 + (1 + k) / M) bytes, the
 * paper's closed form (memory.h): weights of all blocks, gradients and k vectors of optimizer state
 * of one submodel. */
#ifndef REF_LAYOUT_H
#define REF_LAYOUT_H

#include "stage.h"

/* Sizes and offsets in bytes, for settings.batch samples.  A number of a value takes value_bytes(),
 * one of what a node saves for its backward pass (aux) always sizeof(real).
 *
 * What is not stored lives in the workspace: first scratch, which every block uses anew for its
 * inner values; then two buffers for block outputs and two for their gradients, which even and odd
 * blocks use in turn.  Pieces of the workspace start at multiples of 256. */
typedef struct {
    int lowest;            /* the lowest block with a gradient; blocks if nothing is active */
    bool *trains;          /* [blocks]: active, or corrected (settings.correct_lr) */
    bool *needs_grad;      /* [values]: has a gradient */
    bool *stored;          /* [values]: kept from the forward to the backward pass */
    bool *stored_aux;      /* [nodes] */
    bool *stored_gradient; /* [values]: gradients kept for deferred weight gradients */
    int *gradient_of;      /* [values]: shares the gradient of this value (itself, or a sum's) */
    size_t *value_at;      /* [values]: offset in the workspace, of values that are not stored */
    size_t *aux_at;        /* [nodes]: likewise of aux */
    size_t *gradient_at;   /* [values]: likewise of gradients */
    size_t workspace;      /* its size */
} Layout;

/* -1 and an error where a batch norm would normalise with the statistics of a single value: its
 * batch is one sample of one pixel. */
int layout_check(const Model *model, const StageSettings *settings, const bool *active);
/* -1 and an error when memory runs out. */
int layout_make(Layout *layout, const Model *model, const StageSettings *settings,
                const bool *active);
void layout_free(Layout *layout);
/* What one block adds to the workspace: scratch while it runs, and room for its output and that
 * output's gradient, 0 where they are stored. */
typedef struct {
    size_t scratch, boundary, boundary_gradient;
    size_t handed_gradient; /* on the stage above, which never stores it */
} BlockWorkspace;
BlockWorkspace layout_workspace(Layout *layout, const Model *model, const StageSettings *settings,
                                const bool *active, int block);

size_t value_count(const Model *model, int value, int batch);
/* Numbers from one row of a value to the next: its channels; of the logits, where a linear layer
 * writes them, a multiple of settings.logits_align. */
int value_stride(const Model *model, const StageSettings *settings, int value);
/* Bytes of a value of settings.batch samples, with the gaps between its rows. */
size_t value_memory(const Model *model, const StageSettings *settings, int value);
/* Whether a stage with these settings holds a block; a value (one that its blocks write, or the one
 * that the block below them hands up); a parameter (tied ones too). */
bool block_is_local(const StageSettings *settings, int block);
bool value_is_local(const Model *model, const StageSettings *settings, int value);
bool param_is_local(const Model *model, const StageSettings *settings, int param);
/* Whether it trains a parameter: a tied one is updated where its own block is; elsewhere it is a
 * copy. */
bool param_is_owned(const Model *model, const StageSettings *settings, int param);
/* The lowest active block; the number of blocks if there is none. */
int lowest_active(const Model *model, const bool *active);
/* Micro-batches in flight of a block. */
int block_in_flight(const StageSettings *settings, int block);
/* Bytes of one number of a value, or of a weight. */
size_t value_bytes(const StageSettings *settings);
/* Whether a node trains parameters of a block that trains, its own or a tied one. */
bool node_trains(const Model *model, const Node *node, const bool *trains);
/* Whether a block has such a node. */
bool block_trains(const Model *model, int block, const bool *trains);
/* Which gradients of what it reads a node makes in the backward pass, and whether it adds them to
 * those that later nodes of its block, or for `in` its own skip, have made of the same value. */
typedef struct {
    bool in, skip, add_in, add_skip;
} InputGradients;
InputGradients node_input_gradients(const Layout *layout, const Model *model, const Node *node);
/* Whether a block that is computed again needs this node's output: the last logits have become
 * their gradient, and nothing reads them. */
bool node_is_read_again(const Model *model, const Node *node);
/* Whether a batch norm uses running statistics in a training pass. */
bool node_uses_running(const Model *model, const Node *node, const StageSettings *settings,
                       const bool *active);
/* Whether the sums over channels that the weight gradient of a batch norm hands out are those its
 * input gradient has left in aux: batch statistics, and aux is stored if time passes between. */
bool node_sums_ready(const Layout *layout, const Model *model, const Node *node,
                     const StageSettings *settings, const bool *active);

#endif
