/* The facts about a model that every device and memory.c share. */
#include "model.h"

#include <stdlib.h>

#include "random.h"

const char *const precision_names[PRECISIONS] = {"fp32", "tf32", "bf16"};

const char *const op_names[OP_KINDS] = {
    "linear", "conv2d", "batchnorm", "layernorm", "rmsnorm", "attention",
    "relu",   "gelu",   "swiglu",    "add",       "avgpool", "embedding",
};

size_t shape_count(Shape shape) { return (size_t)shape.h * (size_t)shape.w * (size_t)shape.c; }

void model_free(Model *model) {
    if (!model) return;
    free(model->block);
    free(model->node);
    free(model->param);
    free(model->buffer);
    free(model->value);
    free(model);
}

real model_initial(const Model *model, int param, uint64_t seed, size_t i) {
    const Param *p = &model->param[param];
    if (p->init == INIT_ZEROS) return 0;
    if (p->init == INIT_ONES) return 1;
    return (real)(p->deviation * random_normal(seed, STREAM_INIT + (uint32_t)param, i));
}

double node_flops(const Node *node, Pass pass) {
    double in = (double)shape_count(node->in_shape), out = (double)shape_count(node->out_shape);
    switch (node->kind) {
        case OP_LINEAR:
            return 2 * in * node->out_shape.c;
        case OP_CONV2D:
            return 2 * out * node->in_shape.c * node->kernel * node->kernel;
        case OP_ATTENTION:
            if (pass == PASS_WEIGHT_GRADIENT) return 0;
            return (pass == PASS_FORWARD ? 2 : 5) * out * node->out_shape.w;
        default:
            return 0;
    }
}

size_t node_aux_count(const Node *node, int n) {
    size_t rows = (size_t)n * (size_t)node->in_shape.h * (size_t)node->in_shape.w;
    switch (node->kind) {
        case OP_BATCHNORM:
            return 4 * (size_t)node->in_shape.c; /* mean, rstd, two sums */
        case OP_LAYERNORM:
            return 2 * rows; /* mean, rstd */
        case OP_RMSNORM:
            return rows; /* rrms */
        case OP_ATTENTION:
            return rows * (size_t)node->attention.heads; /* log-sum-exp */
        default:
            return 0;
    }
}

SavedForBackward saved_for_backward(const Node *node, bool input_gradient, bool weight_gradient,
                                    bool running) {
    bool any = input_gradient || weight_gradient;
    switch (node->kind) {
        case OP_LINEAR:
        case OP_CONV2D:
            return (SavedForBackward){.input = weight_gradient};
        case OP_BATCHNORM:
            /* With running statistics the input gradient is a constant factor a channel; in both
             * modes relu's mask is read from the output. */
            return (SavedForBackward){.input = weight_gradient || (input_gradient && !running),
                                      .output = any && node->relu};
        case OP_ATTENTION:
            return (SavedForBackward){.input = input_gradient, .output = input_gradient};
        case OP_RELU:
            return (SavedForBackward){.output = input_gradient};
        case OP_LAYERNORM:
        case OP_RMSNORM:
            return (SavedForBackward){.input = any};
        case OP_GELU:
        case OP_SWIGLU:
            return (SavedForBackward){.input = input_gradient};
        default:
            return (SavedForBackward){false, false};
    }
}
