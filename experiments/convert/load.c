/* Loads parameters from safetensors files. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../ref/base/error.h"
#include "../alloc.h"
#include "../store/tensors.h"
#include "convert.h"

/* ---- files ----------------------------------------------------------------------------------- */

enum { FILES_MAX = 256 };

static int add_file(Weights *w, const char *name) {
    char path[PATH_BYTES];
    if (strchr(name, '/'))
        return error_set("%s: \"%.60s\" is not the name of a file in it", w->init, name);
    if (path_join(path, w->init, name)) return -1;
    for (int i = 0; i < w->files; i++)
        if (strcmp(w->file[i].path, path) == 0) return 0;
    if (w->files == FILES_MAX) return error_set("%s: more than %d files", w->init, FILES_MAX);
    if (safetensors_open(&w->file[w->files], path)) return -1;
    w->files++;
    return 0;
}

/* Opens the files of a model that is in several, which a list names. */
static int open_listed(Weights *w) {
    char path[PATH_BYTES];
    size_t bytes;
    if (path_join(path, w->init, "model.safetensors.index.json")) return -1;
    unsigned char *text = file_read(
        "init", path, "a model directory has model.safetensors, or several and this list", &bytes);
    if (!text) return -1;
    cJSON *root = cJSON_ParseWithLength((const char *)text, bytes);
    const cJSON *map = cJSON_GetObjectItemCaseSensitive(root, "weight_map"), *item;
    int failed = cJSON_IsObject(map) ? 0 : error_set("%s: no weight_map", path);
    for (item = map ? map->child : NULL; item && !failed; item = item->next)
        failed = cJSON_IsString(item) ? add_file(w, item->valuestring)
                                      : error_set("%s: weight_map must hold names of files", path);
    if (!failed && !w->files) failed = error_set("%s: weight_map names no file", path);
    cJSON_Delete(root);
    free(text);
    return failed ? -1 : 0;
}

void weights_close(Weights *w) {
    for (int i = 0; i < w->files; i++) safetensors_close(&w->file[i]);
    free(w->file);
}

int weights_open(Weights *w, const char *init) {
    char path[PATH_BYTES];
    *w = (Weights){.init = init, .file = xcalloc(FILES_MAX, sizeof *w->file)};
    if (convert_is_tensors(init)) {
        if (safetensors_open(w->file, init)) return -1;
        w->files = 1;
        return 0;
    }
    if (path_join(path, init, "model.safetensors")) return -1;
    return access(path, F_OK) == 0 ? add_file(w, "model.safetensors") : open_listed(w);
}

const SafeTensor *weights_find(const Weights *w, const char *name, const Safetensors **file) {
    /* Without the language model's head. */
    const char *body = convert_is_tensors(w->init) ? name : strchr(name, '.') + 1;
    for (int i = 0; i < w->files; i++) {
        *file = &w->file[i];
        const SafeTensor *t = safetensors_find(*file, name);
        if (!t) t = safetensors_find(*file, body);
        if (t) return t;
    }
    return NULL;
}

bool convert_is_tensors(const char *init) {
    static const char ending[] = ".safetensors";
    const size_t length = strlen(init), tail = sizeof ending - 1;
    return length > tail && strcmp(init + length - tail, ending) == 0;
}

/* ---- a tensor -------------------------------------------------------------------------------- */

static int refuse_shape(const Safetensors *file, const SafeTensor *t, const TensorInfo *ours) {
    Text have = {""}, want = {""}; /* "2 x 3" */
    for (int i = 0; i < t->rank; i++) text_add(&have, "%s%zu", i ? " x " : "", t->dim[i]);
    for (int i = 0; i < ours->rank; i++)
        text_add(&want, "%s%zu", i ? " x " : "", ours->dims[i].size);
    return error_set("%s: %.80s has the shape %s, which does not fit %s of %s", file->path, t->name,
                     have.text, ours->name, want.text);
}

/* Returns true if `rows` rows of ours can come from this tensor.  Hugging Face's table of positions
 * may have more rows. */
static bool fits(const SafeTensor *t, const TensorInfo *ours, const TheirName *theirs, int part) {
    const size_t rows = theirs->rows[part];
    if (t->rank != ours->rank) return false;
    if (theirs->transposed) return t->dim[0] == theirs->columns && t->dim[1] == rows;
    for (int i = 1; i < t->rank; i++)
        if (t->dim[i] != ours->dims[i].size) return false;
    return t->dim[0] == rows ||
           (t->dim[0] > rows && strcmp(theirs->name[part], convert_positions) == 0);
}

/* Reads one part of a tensor of ours: rows * columns numbers.  -1 and an error. */
static int read_part(real *to, const Weights *w, const TensorInfo *ours, const TheirName *theirs,
                     int part) {
    const Safetensors *file;
    const SafeTensor *t = weights_find(w, theirs->name[part], &file);
    const size_t rows = theirs->rows[part], columns = theirs->columns;
    if (!t) return error_set("%s: no tensor %s", w->init, theirs->name[part]);
    if (!fits(t, ours, theirs, part)) return refuse_shape(file, t, ours);
    float *numbers = malloc((t->count + 1) * sizeof *numbers);
    if (!numbers) return error_set("init: out of memory for %s", t->name);
    int failed = safetensors_read(file, t, numbers);
    for (size_t i = 0; i < rows * columns && !failed; i++)
        to[i] = (real)numbers[theirs->transposed ? i % columns * rows + i / columns : i];
    free(numbers);
    return failed;
}

static int load_tensor(Engine *engine, const Weights *w, TensorRole role, int number) {
    const TensorInfo ours = tensor_info(engine->model, role, number);
    TheirName theirs = {.parts = 1, .rows = {ours.dims[0].size}};
    if (convert_is_tensors(w->init)) {
        strcpy(theirs.name[0], ours.name);
        theirs.columns = ours.count / theirs.rows[0];
    } else {
        convert_name(&theirs, engine->model, number);
    }
    real *numbers = xmalloc(ours.count * sizeof *numbers);
    size_t row = 0;
    int failed = 0;
    for (int part = 0; part < theirs.parts && !failed; row += theirs.rows[part++])
        failed = read_part(numbers + row * theirs.columns, w, &ours, &theirs, part);
    failed = failed || engine->is->write(engine, role, number, numbers);
    free(numbers);
    return failed ? -1 : 0;
}

static int load_role(Engine *engine, const Weights *w, TensorRole role) {
    for (int i = 0; i < tensor_count(engine->model, role); i++)
        if (load_tensor(engine, w, role, i)) return -1;
    return 0;
}

/* ---- a model --------------------------------------------------------------------------------- */

/* Refuses the weights of a deeper model, whose first layers would fit. */
static int check_depth(const Weights *w, const Model *model) {
    char name[CONVERT_NAME];
    const Safetensors *file;
    const int layers = model->transformer.layers;
    convert_layer_name(name, model, layers);
    if (!weights_find(w, name, &file)) return 0;
    return error_set("%s: holds %s; the model has %d layer%s", file->path, name, layers,
                     layers == 1 ? "" : "s");
}

static bool is_known(const Model *model, TensorRole role, const char *name) {
    for (int i = 0; i < tensor_count(model, role); i++)
        if (strcmp(tensor_info(model, role, i).name, name) == 0) return true;
    return false;
}

/* Refuses tensors of another model in a file under our own names, and overwrites *buffers with how
 * many of the tensors are running statistics.  -1 and an error. */
static int count_buffers(int *buffers, const Safetensors *file, const Model *model) {
    for (int i = 0; i < file->tensors; i++) {
        const char *name = file->tensor[i].name;
        const bool buffer = is_known(model, TENSOR_BUFFER, name);
        *buffers += buffer;
        if (!buffer && !is_known(model, TENSOR_PARAMETER, name))
            return error_set("%s: holds %.80s, which %s does not have", file->path, name,
                             model->name);
    }
    return 0;
}

int convert_load(Engine *engine, const char *init) {
    const Model *model = engine->model;
    Weights weights;
    int buffers = 0;
    int failed = weights_open(&weights, init) ||
                 (convert_is_tensors(init) ? count_buffers(&buffers, weights.file, model)
                                           : check_depth(&weights, model)) ||
                 load_role(engine, &weights, TENSOR_PARAMETER) ||
                 (buffers && load_role(engine, &weights, TENSOR_BUFFER));
    weights_close(&weights);
    return failed ? -1 : 0;
}
