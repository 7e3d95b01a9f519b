/* Runs one node of a model on the device: ref/node.h with device arrays.  The stage runs a block by
 * calling these for each node; the tests run the case table through them. */
#pragma once

#include "../ref/model.h"
#include "kernels.h"

/* As NodeIO of ref/node.h: void arrays are of the run's value type, float arrays are float. */
typedef struct {
    int n;
    const void *x, *skip; /* norm: skip is added to x first, their sum goes to `sum` */
    const int *tokens;
    void *y, *sum;
    int y_stride; /* of a linear layer, from one row of y and dy to the next; 0: its outputs */
    float *aux;   /* node_aux_count numbers */
    const void *weight, *bias;
    float *running_mean, *running_var;
    bool use_running, hold_running, sums_ready;
    const void *dy, *residual; /* norm: added to dx, unless NULL */
    void *dx, *dskip;          /* NULL: not wanted */
    bool add_dx, add_dskip;
    float *dweight, *dbias; /* NULL: not wanted */
    bool add_dweight, add_dbias;
} DeviceIO;

/* Returns true for an op whose input gradient, where dx is wanted, also computes dweight and dbias
 * where these are.  cuda_node_weight_gradient, which would give the same bits, must then not be
 * called. */
bool cuda_node_one_pass(OpKind kind);

void cuda_node_forward(const Run *run, const Node *node, const DeviceIO *io);
void cuda_node_input_gradient(const Run *run, const Node *node, const DeviceIO *io);
void cuda_node_weight_gradient(const Run *run, const Node *node, const DeviceIO *io);

/* Returns the most bytes of workspace that any pass of the node uses for n samples. */
size_t cuda_node_workspace(const Node *node, int n, Precision precision);

/* Returns how many versions of its kernels a node has in this precision (at least 1), for tests and
 * benchmarks.  A higher version than that runs the same kernels as the last. */
int cuda_node_versions(const Node *node, Precision precision);
