/* The rule that makes BCD cheap: what needs a gradient, and what is stored for the backward pass.
 *
 *   - A value needs a gradient if its node, or a node below, has a parameter that trains.
 *   - A value is stored if a gradient that is computed will read it.  The rows of op_table.c say
 *     which gradient of an op reads what: a convolution's input gradient reads neither input nor
 *     output, its weight gradient reads the input; a relu reads its output.
 *
 * So nothing below the lowest active block is stored but what its own weight gradients read, and a
 * frozen block above it stores what its input gradients read.
 *
 * ResNet-8 in three submodels: stem and block1 (1), block2 (2), block3 and head (3).  A row is a
 * node, and the letters tell of the value that it writes: S, it is stored; G, it has a gradient.
 *
 *   block   node           reads   writes   full   1     2     3
 *   stem    conv2d         0           1    S G   S G   .     .
 *           batchnorm relu 1           2    S G   S G   .     .
 *   block1  conv2d         2           3    S G   S G   .     .
 *           batchnorm relu 3           4    S G   S G   .     .
 *           conv2d         4           5    S G   S G   .     .
 *           batchnorm relu 5, 2        6    S G   S G   S     .
 *   block2  conv2d         6           7    S G     G   S G   .
 *           batchnorm      7           8      G     G     G   .
 *           conv2d         6           9    S G     G   S G   .
 *           batchnorm relu 9          10    S G   S G   S G   .
 *           conv2d         10         11    S G     G   S G   .
 *           batchnorm relu 11, 8      12    S G   S G   S G   S
 *   block3  conv2d         12         13    S G     G     G   S G
 *           batchnorm      13         14      G     G     G     G
 *           conv2d         12         15    S G     G     G   S G
 *           batchnorm relu 15         16    S G   S G   S G   S G
 *           conv2d         16         17    S G     G     G   S G
 *           batchnorm relu 17, 14     18    S G   S G   S G   S G
 *   head    avgpool        18         19    S G     G     G   S G
 *           linear         19         20      G     G     G     G
 *
 * Submodel 1: every value has a gradient.  Above block1, what convolutions read is stored only
 * where a relu wrote it, which reads its output again; and what batch norms read is not stored, as
 * a frozen one with running statistics reads nothing.  Submodel 2: value 6, block1's output, is
 * stored without having a gradient, for the weight gradients of block2's first two convolutions.
 * Submodel 3 stores least. */
#include "layout.h"

int lowest_active(const Model *model, const bool *active) {
    int lowest = 0;
    while (lowest < model->blocks && !active[lowest]) lowest++;
    return lowest;
}

static bool param_trains(const Model *model, int param, const bool *trains) {
    return param >= 0 && trains[model->param[param].block];
}

bool node_trains(const Model *model, const Node *node, const bool *trains) {
    return param_trains(model, node->weight, trains) || param_trains(model, node->bias, trains);
}

bool node_uses_running(const Layout *l, const Node *node) {
    return l->settings->frozen_norm == FROZEN_RUNNING && !l->active[node_block(l->model, node)];
}

static bool input_needs_grad(const Layout *l, const Node *node) {
    return l->value[node->in].needs_grad || (node->skip >= 0 && l->value[node->skip].needs_grad);
}

void layout_mark_needs_grad(Layout *l) {
    for (int i = 0; i < l->model->nodes; i++) {
        const Node *node = &l->model->node[i];
        l->value[node->out].needs_grad =
            input_needs_grad(l, node) || node_trains(l->model, node, l->trains);
    }
}

void layout_mark_stored(Layout *l) {
    for (int i = 0; i < l->model->nodes; i++) {
        const Node *node = &l->model->node[i];
        if (!l->value[node->out].needs_grad) continue;
        const SavedForBackward saved =
            saved_for_backward(node, input_needs_grad(l, node),
                               node_trains(l->model, node, l->trains), node_uses_running(l, node));
        if (saved.input) l->value[node->in].stored = true;
        if (saved.output) l->value[node->out].stored = true;
        l->node[i].stored_aux = true;
    }
}
