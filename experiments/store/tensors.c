#include "tensors.h"

#include <math.h>
#include <stdlib.h>

#include "../base/alloc.h"
#include "../base/text.h"

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

TensorInfo tensor_info(const Model *model, TensorRole role, int number) {
    if (role == TENSOR_BUFFER) {
        const size_t count = (size_t)model->buffer[number].count;
        return (TensorInfo){model->buffer[number].name, {{"channel", count, NULL}}, 1, count};
    }
    const Param *p = &model->param[number];
    TensorInfo info = {.name = p->name, .rank = p->rank, .count = p->count};
    for (int i = 0; i < p->rank; i++) info.dims[i].size = (size_t)p->dim[i];
    name_dims(info.dims, model, number);
    return info;
}

static int write_tensor(H5File *file, const char *group, Engine *engine, TensorRole role,
                        int number, bool finite) {
    const TensorInfo info = tensor_info(engine->model, role, number);
    const Text path = text_of("%s/%s", group, info.name);
    size_t count = 0;
    /* A copy of an embedding may be a tenth of all that a training needs. */
    const real *numbers = engine->is->view ? engine_view(engine, role, number, &count) : NULL;
    real *copy = NULL;
    if (!numbers) {
        numbers = copy = xmalloc(info.count * sizeof *copy);
        count = engine_read(engine, role, number, copy);
    }
    int failed = count == READ_FAILED ? TENSORS_UNREAD : 0;
    for (size_t n = 0; n < count && finite && !failed; n++)
        if (!isfinite(numbers[n])) {
            error_set("%s has a number that is NaN or infinite", path.text + 1);
            failed = TENSORS_NOT_FINITE;
        }
    if (count && !failed) h5_write(file, path.text, H5_REAL, numbers, info.rank, info.dims, NULL);
    free(copy);
    return failed;
}

int tensors_write(H5File *file, const char *group, Engine *engine, TensorRole role, bool finite) {
    int failed = 0;
    for (int i = 0; i < tensor_count(engine->model, role) && !failed; i++)
        failed = write_tensor(file, group, engine, role, i, finite);
    return failed;
}
