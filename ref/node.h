/* Runs one node on the CPU, with the op of ref/ops or of ref/fast.  The stage runs a block with
 * these three calls; the case table of the tests calls them for one node at a time. */
#pragma once

#include "model.h"

/* The arrays and options of one call, for n samples of node->in_shape.  What an op does not have,
 * or what is not wanted, is NULL. */
typedef struct {
    int n;
    bool plain;           /* use the op of ref/ops instead of that of ref/fast */
    const real *x, *skip; /* inputs */
    const int *tokens;    /* embedding: [n][t], instead of x */
    real *y;
    real *aux; /* node_aux_count elements, written by forward; batchnorm's gradients overwrite
                * the last 2 c of them, the sums over rows */
    const real *weight, *bias;
    real *running_mean, *running_var; /* batchnorm */
    bool use_running;  /* batchnorm: normalise with the running statistics, which do not change */
    bool hold_running; /* batchnorm: do not update the running statistics */
    bool sums_ready;   /* batchnorm: node_input_gradient has left its sums in aux */
    const real *dy;
    real *dx, *dskip;
    real *dweight, *dbias; /* batchnorm, layernorm: both are wanted or neither */
    bool add_dx, add_dskip, add_dweight, add_dbias; /* accumulate instead of overwriting */
} NodeIO;

/* Overwrites y and aux; a batch norm also updates its running statistics, as said above. */
void node_forward(const Node *node, const NodeIO *io);

/* Overwrites or accumulates dx and dskip.  Reads dy, aux, and x or y as saved_for_backward says. */
void node_input_gradient(const Node *node, const NodeIO *io);

/* Overwrites or accumulates dweight and dbias; reads the same. */
void node_weight_gradient(const Node *node, const NodeIO *io);
