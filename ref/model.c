/* What every reader of a model's tables needs. */
#include "model.h"

#include <stdlib.h>

#include "base/random.h"

const char *const precision_names[PRECISIONS] = {"fp32", "tf32", "bf16"};

size_t shape_count(Shape shape) { return (size_t)shape.h * (size_t)shape.w * (size_t)shape.c; }

int node_block(const Model *model, const Node *node) { return model->value[node->out].block; }

size_t block_params(const Model *model, int block) {
    size_t count = 0;
    for (int p = model->block[block].first_param; p < model->block[block].end_param; p++)
        count += model->param[p].count;
    return count;
}

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
