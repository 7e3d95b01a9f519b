/* Runs one node of a model on the device: ref/node.h with device arrays.  The stage runs a block by
 * calling these for each node; the tests run the case table through them. */
#pragma once

#include "kernels.h"

/* Returns true for an op whose input gradient, where dx is wanted, also computes dweight and dbias
 * where these are.  cuda_node_weight_gradient, which would give the same bits, must then not be
 * called. */
bool cuda_node_one_pass(OpKind kind);

void cuda_node_forward(const Run *run, const Node *node, const DeviceIO *io);
void cuda_node_input_gradient(const Run *run, const Node *node, const DeviceIO *io);
void cuda_node_weight_gradient(const Run *run, const Node *node, const DeviceIO *io);

/* Returns the maximum of the workspace bytes that a pass of the node uses for n samples. */
size_t cuda_node_workspace(const Node *node, int n, Precision precision);

/* Returns how many versions of its kernels a node has in this precision (at least 1), for tests and
 * benchmarks.  A higher version than that runs the same kernels as the last. */
int cuda_node_versions(const Node *node, Precision precision);
