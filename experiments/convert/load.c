/* Loads parameters from safetensors files. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../ref/error.h"
#include "../store/tensors.h"
#include "convert.h"

/* ---- the files of a model's directory -------------------------------------------------------- */

enum { FILES_MAX = 256 };

static int add_file(Weights *w, const char *name) {
    char path[PATH_BYTES];
    if (strchr(name, '/'))
        return error_set("%s: \"%.60s\" is not the name of a file in it", w->dir, name);
    if (path_join(path, w->dir, name)) return -1;
    for (int i = 0; i < w->files; i++)
        if (strcmp(w->file[i].path, path) == 0) return 0;
    if (w->files == FILES_MAX) return error_set("%s: more than %d files", w->dir, FILES_MAX);
    if (safetensors_open(&w->file[w->files], path)) return -1;
    w->files++;
    return 0;
}

/* Opens the files of a model that is in several, which a list names. */
static int open_listed(Weights *w) {
    char path[PATH_BYTES];
    size_t bytes;
    if (path_join(path, w->dir, "model.safetensors.index.json")) return -1;
    unsigned char *text = file_read(
        "init", path, "a model directory has model.safetensors, or several and this list", &bytes);
    if (!text) return -1;
    cJSON *root = cJSON_ParseWithLength((const char *)text, bytes);
    const cJSON *map = cJSON_GetObjectItemCaseSensitive(root, "weight_map"), *item;
    int failed = cJSON_IsObject(map) ? 0 : error_set("%s: no weight_map", path);
    if (!failed) cJSON_ArrayForEach(item, map) {
            failed = failed || (cJSON_IsString(item)
                                    ? add_file(w, item->valuestring)
                                    : error_set("%s: weight_map must hold names of files", path));
        }
    if (!failed && !w->files) failed = error_set("%s: weight_map names no file", path);
    cJSON_Delete(root);
    free(text);
    return failed ? -1 : 0;
}

void weights_close(Weights *w) {
    for (int i = 0; i < w->files; i++) safetensors_close(&w->file[i]);
    free(w->file);
}

int weights_open(Weights *w, const char *dir) {
    char path[PATH_BYTES];
    *w = (Weights){.dir = dir, .file = calloc(FILES_MAX, sizeof *w->file)};
    if (!w->file) return error_set("init: out of memory");
    if (path_join(path, dir, "model.safetensors")) return -1;
    return access(path, F_OK) == 0 ? add_file(w, "model.safetensors") : open_listed(w);
}

const SafeTensor *weights_find(const Weights *w, const char *name, const Safetensors **file) {
    const char *body = strchr(name, '.') + 1; /* without the language model's head */
    for (int i = 0; i < w->files; i++) {
        *file = &w->file[i];
        const SafeTensor *t = safetensors_find(*file, name);
        if (!t) t = safetensors_find(*file, body);
        if (t) return t;
    }
    return NULL;
}

/* ---- a tensor -------------------------------------------------------------------------------- */

/* Reads rows * columns numbers of a tensor; `turned`: it is stored as [columns][rows].  -1 and an
 * error. */
static int read_numbers(real *to, const Safetensors *file, const SafeTensor *t, size_t rows,
                        size_t columns, bool turned) {
    float *numbers = malloc((t->count + 1) * sizeof *numbers);
    if (!numbers) return error_set("init: out of memory for %s", t->name);
    int failed = safetensors_read(file, t, numbers);
    for (size_t i = 0; i < rows * columns && !failed; i++)
        to[i] = (real)numbers[turned ? i % columns * rows + i / columns : i];
    free(numbers);
    return failed;
}

/* Appends "2 x 3" to text[64]. */
static void append_size(char text[64], size_t size) {
    size_t used = strlen(text);
    snprintf(text + used, 64 - used, "%s%zu", used ? " x " : "", size);
}

/* ---- a model of Hugging Face's --------------------------------------------------------------- */

static int refuse_shape(const Safetensors *file, const SafeTensor *t, const Param *p) {
    char theirs[64] = "", ours[64] = "";
    for (int i = 0; i < t->rank; i++) append_size(theirs, t->dim[i]);
    for (int i = 0; i < p->rank; i++) append_size(ours, (size_t)p->dim[i]);
    return error_set("%s: %.80s has the shape %s, which does not fit %s of %s", file->path, t->name,
                     theirs, p->name, ours);
}

/* Returns true if `rows` rows of ours can come from this tensor, which may have more positions. */
static bool fits(const SafeTensor *t, const Param *p, const TheirName *theirs, size_t rows) {
    if (t->rank != p->rank) return false;
    if (theirs->turned) return t->dim[0] == theirs->columns && t->dim[1] == rows;
    bool positions = strcmp(p->name, "embedding.position.weight") == 0;
    return (positions ? t->dim[0] >= rows : t->dim[0] == rows) &&
           (p->rank == 1 || t->dim[1] == theirs->columns);
}

static int load_part(real *to, const Weights *w, const Param *p, const TheirName *theirs,
                     int part) {
    const Safetensors *file;
    const SafeTensor *t = weights_find(w, theirs->name[part], &file);
    const size_t rows = theirs->rows[part], columns = theirs->columns;
    if (!t) return error_set("%s: no tensor %s", w->dir, theirs->name[part]);
    if (!fits(t, p, theirs, rows)) return refuse_shape(file, t, p);
    return read_numbers(to, file, t, rows, columns, theirs->turned);
}

static int load_param(Engine *engine, const Weights *w, int param) {
    const Param *p = &engine->model->param[param];
    TheirName theirs;
    convert_name(&theirs, engine->model, param);
    real *numbers = malloc(p->count * sizeof *numbers);
    int failed = numbers ? 0 : error_set("init: out of memory for %s", p->name);
    size_t row = 0;
    for (int part = 0; part < theirs.parts && !failed; row += theirs.rows[part++])
        failed = load_part(numbers + row * theirs.columns, w, p, &theirs, part);
    failed = failed || engine->is->write(engine, TENSOR_PARAMETER, param, numbers);
    free(numbers);
    return failed ? -1 : 0;
}

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

static int load_directory(Engine *engine, const char *dir) {
    Weights weights = {0};
    int failed = weights_open(&weights, dir) || check_depth(&weights, engine->model);
    for (int p = 0; p < engine->model->params && !failed; p++)
        failed = load_param(engine, &weights, p);
    weights_close(&weights);
    return failed;
}

/* ---- a file under our own names -------------------------------------------------------------- */

bool convert_is_tensors(const char *init) {
    static const char ending[] = ".safetensors";
    const size_t length = strlen(init), tail = sizeof ending - 1;
    return length > tail && strcmp(init + length - tail, ending) == 0;
}

static bool is_known(const Model *model, TensorRole role, const char *name) {
    for (int i = 0; i < tensor_count(model, role); i++)
        if (strcmp(tensor_name(model, role, i), name) == 0) return true;
    return false;
}

/* Refuses tensors of another model.  Returns how many of the file's tensors are running statistics,
 * or -1 and an error. */
static int count_buffers(const Safetensors *file, const Model *model) {
    int buffers = 0;
    for (int i = 0; i < file->tensors; i++) {
        const char *name = file->tensor[i].name;
        if (is_known(model, TENSOR_BUFFER, name))
            buffers++;
        else if (!is_known(model, TENSOR_PARAMETER, name))
            return error_set("%s: holds %.80s, which %s does not have", file->path, name,
                             model->name);
    }
    return buffers;
}

static int check_shape(const Safetensors *file, const SafeTensor *t, const H5Dim *dims, int rank) {
    char ours[64] = "";
    bool same = t->rank == rank;
    for (int i = 0; i < rank; i++) {
        same = same && t->dim[i] == dims[i].size;
        append_size(ours, dims[i].size);
    }
    return same ? 0 : error_set("%s: %.80s is not of shape %s", file->path, t->name, ours);
}

static int load_tensor(Engine *engine, const Safetensors *file, TensorRole role, int number) {
    const char *name = tensor_name(engine->model, role, number);
    const SafeTensor *t = safetensors_find(file, name);
    H5Dim dims[4];
    if (!t) return error_set("%s: no tensor %s", file->path, name);
    if (check_shape(file, t, dims, tensor_shape(dims, engine->model, role, number))) return -1;
    real *numbers = malloc(t->count * sizeof *numbers);
    int failed = !numbers ? error_set("init: out of memory for %s", name)
                          : read_numbers(numbers, file, t, 1, t->count, false);
    failed = failed || engine->is->write(engine, role, number, numbers);
    free(numbers);
    return failed ? -1 : 0;
}

static int load_role(Engine *engine, const Safetensors *file, TensorRole role) {
    for (int i = 0; i < tensor_count(engine->model, role); i++)
        if (load_tensor(engine, file, role, i)) return -1;
    return 0;
}

static int load_file(Engine *engine, const char *path) {
    Safetensors file;
    if (safetensors_open(&file, path)) return -1;
    const int buffers = count_buffers(&file, engine->model);
    const int failed = buffers < 0 || load_role(engine, &file, TENSOR_PARAMETER) ||
                       (buffers && load_role(engine, &file, TENSOR_BUFFER));
    safetensors_close(&file);
    return failed ? -1 : 0;
}

int convert_load(Engine *engine, const char *init) {
    return convert_is_tensors(init) ? load_file(engine, init) : load_directory(engine, init);
}
