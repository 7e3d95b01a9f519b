#include "tensors.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../alloc.h"
#include "../text.h"

int tensor_count(const Model *model, TensorRole role) {
    return role == TENSOR_BUFFER ? model->buffers : model->params;
}

const char *tensor_name(const Model *model, TensorRole role, int number) {
    return role == TENSOR_BUFFER ? model->buffer[number].name : model->param[number].name;
}

/* Names the dimensions of a parameter after what its op uses them for. */
static void name_dims(H5Dim dims[4], const Model *model, int param) {
    static const char *const names[5][4] = {{NULL},
                                            {"channel"},
                                            {"out", "in"},
                                            {"", "", ""},
                                            {"out", "kernel_row", "kernel_column", "in"}};
    const Param *p = &model->param[param];
    for (int i = 0; i < p->rank; i++) dims[i].name = names[p->rank][i];
    for (int n = 0; n < model->nodes && p->rank == 2; n++) {
        const Node *node = &model->node[n];
        if (node->kind != OP_EMBEDDING) continue;
        if (node->weight == param) dims[0].name = "token";
        if (node->bias == param) dims[0].name = "position";
        if (node->weight == param || node->bias == param) dims[1].name = "channel";
    }
}

int tensor_shape(H5Dim dims[4], const Model *model, TensorRole role, int number) {
    memset(dims, 0, 4 * sizeof *dims);
    if (role == TENSOR_BUFFER) {
        dims[0] = (H5Dim){"channel", (size_t)model->buffer[number].count, NULL};
        return 1;
    }
    const Param *p = &model->param[number];
    for (int i = 0; i < p->rank; i++) dims[i].size = (size_t)p->dim[i];
    name_dims(dims, model, number);
    return p->rank;
}

size_t tensor_largest(const Model *model) {
    size_t largest = 1;
    for (int p = 0; p < model->params; p++)
        if (model->param[p].count > largest) largest = model->param[p].count;
    for (int b = 0; b < model->buffers; b++)
        if ((size_t)model->buffer[b].count > largest) largest = (size_t)model->buffer[b].count;
    return largest;
}

static int write_tensor(H5File *file, const char *group, Engine *engine, TensorRole role,
                        int number, bool finite, real *buffer) {
    H5Dim dims[4];
    const int rank = tensor_shape(dims, engine->model, role, number);
    const size_t count = engine->is->read(engine, role, number, buffer);
    if (count == READ_FAILED) return -1;
    if (!count) return 0;
    const Text path = text_of("%s/%s", group, tensor_name(engine->model, role, number));
    for (size_t n = 0; n < count && finite; n++)
        if (!isfinite(buffer[n])) {
            error_set("%s has a number that is NaN or infinite", path.text + 1);
            return TENSORS_NOT_FINITE;
        }
    h5_write(file, path.text, H5_REAL, buffer, rank, dims, NULL);
    return 0;
}

int tensors_write(H5File *file, const char *group, Engine *engine, TensorRole role, bool finite) {
    int failed = 0;
    real *buffer = xmalloc(tensor_largest(engine->model) * sizeof *buffer);
    for (int i = 0; i < tensor_count(engine->model, role) && !failed; i++)
        failed = write_tensor(file, group, engine, role, i, finite, buffer);
    free(buffer);
    return failed;
}
