/* Loads parameters from safetensors files. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../ref/base/error.h"
#include "../base/alloc.h"
#include "../store/tensors.h"
#include "convert.h"
#include "json.h"

static const char INDEX[] = "model.safetensors.index.json";

/* ---- files ----------------------------------------------------------------------------------- */

enum { FILES_MAX = 256 };

/* Returns the open file of this name in the directory; NULL and an error. */
static const Safetensors *open_file(Weights *w, const char *name) {
    char path[PATH_BYTES];
    if (strchr(name, '/'))
        return error_null("%s: \"%.60s\" is not the name of a file in it", w->init, name);
    if (path_join(path, w->init, name)) return NULL;
    for (int i = 0; i < w->files; i++)
        if (strcmp(w->file[i].path, path) == 0) return &w->file[i];
    if (w->files == FILES_MAX) return error_null("%s: more than %d files", w->init, FILES_MAX);
    if (safetensors_open(&w->file[w->files], path)) return NULL;
    return &w->file[w->files++];
}

/* Lists a tensor that the index puts into a file. */
static int list_mapped(Weights *w, const cJSON *item) {
    if (!cJSON_IsString(item)) return error_set("%s: weight_map must hold names of files", w->init);
    const Safetensors *file = open_file(w, item->valuestring);
    if (!file) return -1;
    const SafeTensor *tensor = safetensors_find(file, item->string);
    if (!tensor)
        return error_set("%s: no tensor %.80s, which the weight_map of %s puts there", file->path,
                         item->string, INDEX);
    w->list[w->count++] = (Weight){file, tensor, false};
    return 0;
}

/* Opens the files of a model that is in several.  Its index says for each tensor which file has it;
 * another file may hold an older one of the same name. */
static int open_mapped(Weights *w) {
    char path[PATH_BYTES];
    if (path_join(path, w->init, INDEX)) return -1;
    cJSON *root =
        json_read(path, "a model directory has model.safetensors, or several and this list");
    if (!root) return -1;
    const cJSON *map = cJSON_GetObjectItemCaseSensitive(root, "weight_map"), *item;
    int failed = !cJSON_IsObject(map) ? error_set("%s: no weight_map", path)
                 : !map->child        ? error_set("%s: weight_map names no file", path)
                                      : 0;
    w->list = xcalloc((size_t)cJSON_GetArraySize(map) + 1, sizeof *w->list);
    for (item = failed ? NULL : map->child; item && !failed; item = item->next)
        failed = list_mapped(w, item);
    cJSON_Delete(root);
    return failed ? -1 : 0;
}

/* Lists all tensors of the only file, unless it is NULL. */
static int list_all(Weights *w, const Safetensors *file) {
    if (!file) return -1;
    w->list = xcalloc((size_t)file->tensors + 1, sizeof *w->list);
    for (; w->count < file->tensors; w->count++)
        w->list[w->count] = (Weight){file, &file->tensor[w->count], false};
    return 0;
}

void weights_close(Weights *w) {
    for (int i = 0; i < w->files; i++) safetensors_close(&w->file[i]);
    free(w->file);
    free(w->list);
}

int weights_open(Weights *w, const char *init) {
    char path[PATH_BYTES];
    *w = (Weights){.init = init, .file = xcalloc(FILES_MAX, sizeof *w->file)};
    if (convert_is_tensors(init)) {
        if (safetensors_open(w->file, init)) return -1;
        w->files = 1;
        return list_all(w, w->file);
    }
    if (path_join(path, init, "model.safetensors")) return -1;
    return access(path, F_OK) == 0 ? list_all(w, open_file(w, "model.safetensors"))
                                   : open_mapped(w);
}

static Weight *find_exactly(const Weights *w, const char *name) {
    for (int i = 0; i < w->count; i++)
        if (strcmp(w->list[i].tensor->name, name) == 0) return &w->list[i];
    return NULL;
}

Weight *weights_find(const Weights *w, const char *name) {
    Weight *weight = find_exactly(w, name);
    /* Without the language model's head. */
    if (!weight && !convert_is_tensors(w->init)) weight = find_exactly(w, strchr(name, '.') + 1);
    return weight;
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
    const Weight *weight = weights_find(w, theirs->name[part]);
    const size_t rows = theirs->rows[part], columns = theirs->columns;
    if (!weight) return error_set("%s: no tensor %s", w->init, theirs->name[part]);
    const Safetensors *file = weight->file;
    const SafeTensor *t = weight->tensor;
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
    failed = failed || engine_write(engine, role, number, numbers);
    free(numbers);
    return failed ? -1 : 0;
}

static int load_role(Engine *engine, const Weights *w, TensorRole role) {
    for (int i = 0; i < tensor_count(engine->model, role); i++)
        if (load_tensor(engine, w, role, i)) return -1;
    return 0;
}

/* ---- a model --------------------------------------------------------------------------------- */

/* Buffers that older versions of transformers stored; they follow from the settings. */
static bool is_derived(const char *name) {
    static const char *const endings[] = {".rotary_emb.inv_freq", ".attn.bias",
                                          ".attn.masked_bias"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const char *tail = strstr(name, endings[i]);
        if (tail && strcmp(tail, endings[i]) == 0) return true;
    }
    return false;
}

/* Returns 1 if two tensors hold the same numbers, 0 if not, -1 and an error. */
static int same_numbers(const Weight *a, const Weight *b) {
    const size_t count = a->tensor->count;
    if (b->tensor->count != count) return 0;
    float *x = xmalloc((count + 1) * sizeof *x), *y = xmalloc((count + 1) * sizeof *y);
    int same = safetensors_read(a->file, a->tensor, x) || safetensors_read(b->file, b->tensor, y)
                   ? -1
                   : memcmp(x, y, count * sizeof *x) == 0;
    free(x);
    free(y);
    return same;
}

/* Refuses a tensor that no parameter of ours takes.  A tied head may be stored, too, as the
 * embedding that it is. */
static int check_unused(const Weights *w, const Weight *weight, const Model *model) {
    const char *name = weight->tensor->name;
    TheirName embedding;
    if (is_derived(name)) return 0;
    if (model->transformer.tied && strcmp(name, "lm_head.weight") == 0) {
        convert_name(&embedding, model, model->node[0].weight);
        const Weight *token = weights_find(w, embedding.name[0]);
        const int same = token ? same_numbers(weight, token) : 1; /* a missing one shows later */
        if (same < 0) return -1;
        return same ? 0
                    : error_set("%s: its %s differs from %s, but config.json ties them",
                                weight->file->path, name, token->tensor->name);
    }
    return error_set(
        "%s: holds %.80s, which the model of its config.json does not have, with %d "
        "layer%s",
        weight->file->path, name, model->transformer.layers,
        model->transformer.layers == 1 ? "" : "s");
}

/* Refuses tensors that the model would ignore. */
static int check_all_used(const Weights *w, const Model *model) {
    TheirName theirs;
    for (int p = 0; p < model->params; p++) {
        convert_name(&theirs, model, p);
        for (int part = 0; part < theirs.parts; part++) {
            Weight *weight = weights_find(w, theirs.name[part]);
            if (weight) weight->used = true;
        }
    }
    for (int i = 0; i < w->count; i++)
        if (!w->list[i].used && check_unused(w, &w->list[i], model)) return -1;
    return 0;
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
                                           : check_all_used(&weights, model)) ||
                 load_role(engine, &weights, TENSOR_PARAMETER) ||
                 (buffers && load_role(engine, &weights, TENSOR_BUFFER));
    weights_close(&weights);
    return failed ? -1 : 0;
}
