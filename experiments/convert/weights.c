/* The files of a model: the only one, or those that an index maps tensors to. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../ref/base/error.h"
#include "../base/alloc.h"
#include "convert.h"
#include "json.h"

static const char INDEX[] = "model.safetensors.index.json";

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
    static const char *const inner[] = {"model.", "transformer."}; /* the model without its head */
    for (int i = 0; i < 2 && !weight && !convert_is_tensors(w->init); i++) {
        const size_t length = strlen(inner[i]);
        if (strncmp(name, inner[i], length) == 0) weight = find_exactly(w, name + length);
    }
    return weight;
}

bool weights_is_derived(const Weight *weight) {
    static const char *const endings[] = {".rotary_emb.inv_freq", ".attn.bias",
                                          ".attn.masked_bias"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const char *tail = strstr(weight->tensor->name, endings[i]);
        if (tail && strcmp(tail, endings[i]) == 0) return true;
    }
    return false;
}

int convert_numbers(NumberKind *numbers, const char *init) {
    Weights weights;
    *numbers = NUMBER_F32;
    if (!*init) return 0;
    const int failed = weights_open(&weights, init);
    int same = 0, others = 0;
    for (int i = 0; i < weights.count; i++) {
        if (weights_is_derived(&weights.list[i])) continue;
        if (weights.list[i].tensor->kind == NUMBER_BF16)
            same++;
        else
            others++;
    }
    if (same && !others) *numbers = NUMBER_BF16;
    weights_close(&weights);
    return failed;
}

/* A model's directory may have such a name, too. */
bool convert_is_tensors(const char *init) {
    static const char ending[] = ".safetensors";
    const size_t length = strlen(init), tail = sizeof ending - 1;
    return length > tail && strcmp(init + length - tail, ending) == 0 && !dir_has(init, ".");
}
