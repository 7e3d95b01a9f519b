/* Where every activation of a training step lives.  The layout is worked out from the model's
 * tables before anything is allocated.  layout_rule.c has the rule that makes BCD cheap, which
 * values need a gradient and which are stored for the backward pass, and a table for ResNet-8.
 * layout.c has the rest: the workspace, which all blocks share and which has what is not stored;
 * recompute, which stores block inputs alone; sums that share their gradient with their summands;
 * and for settings.deferred the gradients that weight gradients read, for each micro-batch in
 * flight.
 *
 * Activations are one part of the memory of a training.  The other is W (1 + (1 + k) / M) bytes,
 * the paper's closed form (memory.h): the weights of all blocks, and the gradients and k vectors of
 * optimizer state of one submodel, when the submodels have the same size. */
#pragma once

#include "stage.h"

/* Sizes and offsets in bytes, for settings.batch samples.  An element of a value takes
 * value_bytes(), one of what a node saves for its backward pass (aux) always sizeof(real).
 *
 * What is not stored is in the workspace.  It begins with scratch, which every block reuses for its
 * inner values; then come two buffers for block outputs and two for their gradients, which even and
 * odd blocks use in turn: the logits, larger than all else, have room in one of them.  Pieces of
 * the workspace start at multiples of 256. */
typedef struct {
    bool needs_grad;      /* it has a gradient */
    bool stored;          /* it is kept from the forward to the backward pass */
    bool stored_gradient; /* its gradient is kept for deferred weight gradients */
    int gradient_of;      /* it shares the gradient of this value: itself, or a sum it is part of */
    size_t offset;        /* in the workspace, if it is not stored */
    size_t gradient_offset; /* likewise of its gradient */
} ValueLayout;

typedef struct {
    bool stored_aux;
    bool recomputed;   /* with recompute: it runs again before its block's gradients */
    size_t aux_offset; /* offset in the workspace, if aux is not stored */
} NodeLayout;

/* The bytes that one block needs of the workspace: scratch while it runs, and room for its output
 * and for the gradient of that, 0 where these are stored. */
typedef struct {
    size_t scratch, boundary, boundary_gradient;
    /* Room for the same gradient on the next block's stage, if that is another one: it computes the
     * gradient and sends it down, but never stores it. */
    size_t sent_gradient;
    size_t update; /* for the optimizer, after the passes, in place of all the above */
} BlockWorkspace;

typedef struct {
    /* The arguments of layout_make, which must outlive the layout. */
    const Model *model;
    const StageSettings *settings;
    const bool *active;   /* [blocks] */
    int lowest;           /* the lowest active block; `blocks` if nothing is active */
    bool *trains;         /* [blocks]: active, or corrected (settings.correct_factor) */
    ValueLayout *value;   /* [values] */
    NodeLayout *node;     /* [nodes] */
    BlockWorkspace *need; /* [blocks] */
    size_t workspace;     /* bytes */
} Layout;

/* Returns -1 and an error if a batch norm would compute its statistics from a single value, one
 * sample of one pixel, which has no variance; or if the positions of a batch are more than the int
 * in which ops count them can hold.  The batch is that of the settings.  Nothing checks a last part
 * that is smaller: of a single value in a channel a batch norm gives its shift, and moves the
 * running variance towards 0. */
int layout_check(const Model *model, const StageSettings *settings, const bool *active);
/* Overwrites *layout, which layout_free frees.  -1 and an error when memory runs out. */
int layout_make(Layout *layout, const Model *model, const StageSettings *settings,
                const bool *active);
void layout_free(Layout *layout);

/* ---- sizes ---- */

/* Returns the number of elements of a value of `batch` samples. */
size_t value_count(const Model *model, int value, int batch);
/* Returns the distance between the rows of a value, in elements.  That is its channels; where a
 * linear layer writes the logits, it is rounded up to a multiple of settings.logits_align. */
int value_stride(const Model *model, const StageSettings *settings, int value);
/* Returns the bytes of a value of settings.batch samples, with the gaps between its rows. */
size_t value_memory(const Model *model, const StageSettings *settings, int value);
/* Returns the bytes of one element of a value, or of a weight. */
size_t value_bytes(const StageSettings *settings);
/* Returns the maximum number of micro-batches of a block that are in flight at once. */
int block_in_flight(const StageSettings *settings, int block);

/* ---- what is on a stage; without settings.local, everything is ---- */

bool block_is_local(const StageSettings *settings, int block);
/* Returns true for values that local blocks write, and for the output of the block below them. */
bool value_is_local(const Model *model, const StageSettings *settings, int value);
/* Returns true for parameters that local blocks use; of a tied one the stage may have a copy. */
bool param_is_local(const Model *model, const StageSettings *settings, int param);
/* Returns true if this stage updates a parameter, because it has the parameter's own block. */
bool param_is_owned(const Model *model, const StageSettings *settings, int param);

/* ---- layout_rule.c: the rule; both kinds of stage, ref/ and cuda/, follow it ---- */

/* Set needs_grad of all values, or from that stored and stored_aux, with nothing recomputed. */
void layout_mark_needs_grad(Layout *layout);
void layout_mark_stored(Layout *layout);
/* Returns the lowest active block, or the number of blocks if none is active. */
int lowest_active(const Model *model, const bool *active);
/* Returns true if a node uses parameters of a block that trains, its own block or, where they are
 * tied, another. */
bool node_trains(const Model *model, const Node *node, const bool *trains);
/* Returns true if a batch norm normalises with running statistics in a training pass. */
bool node_uses_running(const Layout *layout, const Node *node);

/* ---- what the passes compute ---- */

/* Returns true if a block has a node that trains. */
bool block_trains(const Model *model, int block, const bool *trains);
/* Which gradients a node computes in the backward pass, of the values `in` and `skip` that it
 * reads.  With add_in or add_skip it adds to a gradient that is already there, from a later node of
 * its block that reads the same value, or because its own `skip` is its `in`. */
typedef struct {
    bool in, skip, add_in, add_skip;
} InputGradients;
InputGradients node_input_gradients(const Layout *layout, const Node *node);
/* Returns true if a batch norm's input gradient leaves sums in aux that are its weight gradient, so
 * that they need not be computed again: it does so with batch statistics, and a deferred weight
 * gradient finds them only if aux is stored. */
bool node_sums_ready(const Layout *layout, const Node *node);
