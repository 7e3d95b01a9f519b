#include "operations.h"

#include "../../ref/layout.h"

int model_operations(double *operations, const Model *model, const bool *active, int first,
                     double correct_factor) {
    StageSettings settings = {.batch = 1, .correct_factor = correct_factor};
    Layout layout;
    if (layout_make(&layout, model, &settings, active)) return -1;
    *operations = 0;
    for (int i = 0; i < model->nodes; i++) {
        const Node *node = &model->node[i];
        if (i >= model->block[first].first_node) *operations += node_flops(node, PASS_FORWARD);
        if (layout.value[node->in].needs_grad) *operations += node_flops(node, PASS_INPUT_GRADIENT);
        if (node_trains(model, node, layout.trains))
            *operations += node_flops(node, PASS_WEIGHT_GRADIENT);
    }
    layout_free(&layout);
    return 0;
}
