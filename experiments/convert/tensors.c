/* A safetensors file under our own names. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/error.h"
#include "../store/checkpoint.h"
#include "convert.h"

bool convert_is_tensors(const char *init) {
    static const char ending[] = ".safetensors";
    const size_t length = strlen(init), tail = sizeof ending - 1;
    return length > tail && strcmp(init + length - tail, ending) == 0;
}

static const char *name_of(const Model *model, TensorRole role, int number) {
    return role == TENSOR_BUFFER ? model->buffer[number].name : model->param[number].name;
}

static bool is_known(const Model *model, TensorRole role, const char *name) {
    for (int i = 0; i < checkpoint_tensors(model, role); i++)
        if (strcmp(name_of(model, role, i), name) == 0) return true;
    return false;
}

/* Names that differ are tensors that were meant for another model.  Returns how many of the file's
 * tensors are running statistics, or -1 and an error. */
static int count_buffers(const Safetensors *file, const Model *model) {
    int buffers = 0;
    for (int i = 0; i < file->tensors; i++) {
        const char *name = file->tensor[i].name;
        if (is_known(model, TENSOR_BUFFER, name))
            buffers++;
        else if (!is_known(model, TENSOR_PARAMETER, name))
            return error_set("%s: holds %.80s, which %s has not", file->path, name, model->name);
    }
    return buffers;
}

static int check_shape(const Safetensors *file, const SafeTensor *t, const H5Dim *dims, int rank) {
    char ours[96] = "";
    bool same = t->rank == rank;
    for (int i = 0; i < rank; i++) {
        same = same && t->dim[i] == dims[i].size;
        snprintf(ours + strlen(ours), sizeof ours - strlen(ours), "%s%zu", i ? " x " : "",
                 dims[i].size);
    }
    return same ? 0 : error_set("%s: %.80s is not of shape %s", file->path, t->name, ours);
}

static int load_tensor(Engine *engine, const Safetensors *file, TensorRole role, int number) {
    const char *name = name_of(engine->model, role, number);
    const SafeTensor *t = safetensors_find(file, name);
    H5Dim dims[4];
    if (!t) return error_set("%s: no tensor %s", file->path, name);
    if (check_shape(file, t, dims, checkpoint_shape(dims, engine->model, role, number))) return -1;
    float *numbers = malloc(t->count * sizeof *numbers);
    real *converted = malloc(t->count * sizeof *converted);
    int failed = numbers && converted ? safetensors_read(file, t, numbers)
                                      : error_set("init: out of memory for %s", name);
    for (size_t i = 0; i < t->count && !failed; i++) converted[i] = (real)numbers[i];
    failed = failed || engine->is->write(engine, role, number, converted);
    free(numbers);
    free(converted);
    return failed ? -1 : 0;
}

static int load_role(Engine *engine, const Safetensors *file, TensorRole role) {
    for (int i = 0; i < checkpoint_tensors(engine->model, role); i++)
        if (load_tensor(engine, file, role, i)) return -1;
    return 0;
}

int tensors_load(Engine *engine, const char *path) {
    Safetensors file;
    if (safetensors_open(&file, path)) return -1;
    const int buffers = count_buffers(&file, engine->model);
    const int failed = buffers < 0 || load_role(engine, &file, TENSOR_PARAMETER) ||
                       (buffers && load_role(engine, &file, TENSOR_BUFFER));
    safetensors_close(&file);
    return failed ? -1 : 0;
}
