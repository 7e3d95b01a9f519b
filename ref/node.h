/* Runs one node on the CPU: from a row of the model's table to a function of ops/ops.h, plain or
 * fast.  The stage walks a block with these three calls; the case table of the tests calls them one
 * node at a time. */
#ifndef REF_NODE_H
#define REF_NODE_H

#include "model.h"

/* Everything one call touches; what an op does not have is NULL.  n samples of node->in_shape. */
typedef struct {
    int n;
    bool plain;           /* the op of ref/ops, else that of ref/fast */
    const real *x, *skip; /* inputs */
    const int *tokens;    /* embedding: [n][t] instead of x */
    real *y;
    real *aux; /* node_aux_count numbers, written by forward, read by the gradients */
    const real *weight, *bias;
    real *running_mean, *running_var; /* batchnorm */
    bool use_running;  /* batchnorm: normalise with the running statistics, do not update them */
    bool hold_running; /* batchnorm: batch statistics, but leave the running ones (recompute) */
    bool sums_ready;   /* batchnorm: aux holds the sums, from node_input_gradient in batch mode */
    const real *dy;
    real *dx, *dskip; /* NULL: not wanted */
    bool add_dx, add_dskip;
    real *dweight, *dbias; /* NULL: not wanted */
    bool add_dweight, add_dbias;
} NodeIO;

/* Overwrites y and aux (and updates the running statistics, see above). */
void node_forward(const Node *node, const NodeIO *io);

/* Overwrites dx and dskip, or accumulates where add_* says so.  Needs dy, and x, y, aux as
 * saved_for_backward says. */
void node_input_gradient(const Node *node, const NodeIO *io);

/* Overwrites dweight and dbias, or accumulates where add_* says so. */
void node_weight_gradient(const Node *node, const NodeIO *io);

#endif
