/* The numbers: from and to files of tensors. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../ref/error.h"
#include "../commands.h"
#include "../store/checkpoint.h"
#include "../store/rundir.h"
#include "convert.h"

/* ---- loading -------------------------------------------------------------------------------- */

enum { FILES_MAX = 256 };

typedef struct {
    const char *dir;
    Safetensors *file;
    int files;
} Weights;

static int add_file(Weights *w, const char *name) {
    char path[PATH_BYTES];
    if (strchr(name, '/')) return error_set("%s: \"%.60s\" is no file in it", w->dir, name);
    if (path_join(path, w->dir, name)) return -1;
    for (int i = 0; i < w->files; i++)
        if (strcmp(w->file[i].path, path) == 0) return 0;
    if (w->files == FILES_MAX) return error_set("%s: more than %d files", w->dir, FILES_MAX);
    if (safetensors_open(&w->file[w->files], path)) return -1;
    w->files++;
    return 0;
}

/* A model in several files has a list of which tensor is where. */
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
                                    : error_set("%s: weight_map: names of files wanted", path));
        }
    if (!failed && !w->files) failed = error_set("%s: weight_map names no file", path);
    cJSON_Delete(root);
    free(text);
    return failed ? -1 : 0;
}

static void weights_close(Weights *w) {
    for (int i = 0; i < w->files; i++) safetensors_close(&w->file[i]);
    free(w->file);
}

static int weights_open(Weights *w, const char *dir) {
    char path[PATH_BYTES];
    *w = (Weights){.dir = dir, .file = calloc(FILES_MAX, sizeof *w->file)};
    if (!w->file) return error_set("init: out of memory");
    if (path_join(path, dir, "model.safetensors")) return -1;
    return access(path, F_OK) == 0 ? add_file(w, "model.safetensors") : open_listed(w);
}

/* The body of a model alone is saved without the first part of its names. */
static const SafeTensor *find(const Weights *w, const char *name, const Safetensors **file) {
    const char *body = strchr(name, '.') + 1;
    for (int i = 0; i < w->files; i++) {
        *file = &w->file[i];
        const SafeTensor *t = safetensors_find(*file, name);
        if (!t) t = safetensors_find(*file, body);
        if (t) return t;
    }
    return NULL;
}

static int refuse_shape(const Safetensors *file, const SafeTensor *t, const Param *p) {
    char theirs[64] = "", ours[64] = "";
    for (int i = 0; i < t->rank; i++)
        snprintf(theirs + strlen(theirs), 64 - strlen(theirs), "%s%zu", i ? " x " : "", t->dim[i]);
    for (int i = 0; i < p->rank; i++)
        snprintf(ours + strlen(ours), 64 - strlen(ours), "%s%d", i ? " x " : "", p->dim[i]);
    return error_set("%s: %.80s is %s, which does not make %s of %s", file->path, t->name, theirs,
                     p->name, ours);
}

/* Whether `rows` rows of ours (all of them, or those of one part) can come from this tensor. */
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
    const SafeTensor *t = find(w, theirs->name[part], &file);
    const size_t rows = theirs->rows[part], columns = theirs->columns;
    if (!t) return error_set("%s: no tensor %s", w->dir, theirs->name[part]);
    if (!fits(t, p, theirs, rows)) return refuse_shape(file, t, p);
    float *numbers = malloc((t->count + 1) * sizeof *numbers);
    if (!numbers) return error_set("init: out of memory for %s", p->name);
    int failed = safetensors_read(file, t, numbers);
    for (size_t i = 0; i < rows * columns && !failed; i++)
        to[i] = (real)numbers[theirs->turned ? i % columns * rows + i / columns : i];
    free(numbers);
    return failed;
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

/* Weights of another, deeper model would fit as far as ours goes. */
static int check_depth(const Weights *w, const Model *model) {
    char name[CONVERT_NAME];
    const Safetensors *file;
    const int layers = model->transformer.layers;
    convert_layer_name(name, model, layers);
    if (!find(w, name, &file)) return 0;
    return error_set("%s: holds %s; the model has %d layer%s", file->path, name, layers,
                     layers == 1 ? "" : "s");
}

int convert_load(Engine *engine, const char *init) {
    Weights weights = {0};
    if (convert_is_tensors(init)) return tensors_load(engine, init);
    int failed = weights_open(&weights, init) || check_depth(&weights, engine->model);
    for (int p = 0; p < engine->model->params && !failed; p++)
        failed = load_param(engine, &weights, p);
    weights_close(&weights);
    return failed;
}

/* ---- saving --------------------------------------------------------------------------------- */

/* Every tensor of theirs, in the order of our parameters.  Returns how many, in an array to be
 * freed with names[]; -1 and an error. */
static int list_tensors(SafeTensor **list, TheirName **names, const Model *m) {
    int count = 0;
    *names = calloc((size_t)m->params, sizeof **names);
    *list = calloc((size_t)m->params * CONVERT_PARTS, sizeof **list);
    if (!*names || !*list) return error_set("export: out of memory");
    for (int p = 0; p < m->params; p++) {
        TheirName *theirs = &(*names)[p];
        convert_name(theirs, m, p);
        for (int part = 0; part < theirs->parts; part++) {
            size_t rows = theirs->rows[part], columns = theirs->columns;
            (*list)[count++] = (SafeTensor){
                .name = theirs->name[part],
                .rank = m->param[p].rank,
                .dim = {theirs->turned ? columns : rows, theirs->turned ? rows : columns},
                .count = rows * columns};
        }
    }
    return count;
}

/* The model's learned positions in the directory it started from; tensor NULL: none, or no such
 * directory.  A training on shorter texts has the first of them alone. */
typedef struct {
    Weights weights;
    const Safetensors *file;
    const SafeTensor *tensor;
} Positions;

static const char position_name[] = "transformer.wpe.weight";

static int save_param(SafetensorsWriter *writer, Engine *engine, int param, const TheirName *theirs,
                      const Positions *positions) {
    const Param *p = &engine->model->param[param];
    const bool more = positions->tensor && strcmp(theirs->name[0], position_name) == 0;
    const size_t count = more ? positions->tensor->count : p->count;
    real *numbers = malloc(p->count * sizeof *numbers);
    float *out = malloc(count * sizeof *out);
    int failed = numbers && out ? 0 : error_set("export: out of memory for %s", p->name);
    if (!failed && engine->is->read(engine, TENSOR_PARAMETER, param, numbers) != p->count)
        failed = error_set("export: cannot read %s", p->name);
    if (!failed && more) failed = safetensors_read(positions->file, positions->tensor, out);
    const size_t columns = theirs->columns, rows = p->count / columns;
    for (size_t i = 0; i < p->count && !failed; i++)
        out[i] = (float)numbers[theirs->turned ? i % rows * columns + i / rows : i];
    failed = failed || safetensors_append(writer, out, count);
    free(numbers);
    free(out);
    return failed;
}

/* Whether `init` has this model still, but for the length of texts; its config.json then says what
 * it is, its name and its positions among them. */
static bool is_from(const Model *m, const char *init) {
    char spec[OPTION_TEXT];
    if (!*init || convert_spec(spec, init, m->input.w)) return false;
    Model *theirs = model_create(spec);
    const bool same = theirs && strcmp(theirs->spec, m->spec) == 0;
    model_free(theirs);
    return same;
}

static void open_positions(Positions *positions, const char *init, SafeTensor *list, int count) {
    *positions = (Positions){.tensor = NULL};
    for (int i = 0; i < count; i++) {
        if (strcmp(list[i].name, position_name)) continue;
        if (weights_open(&positions->weights, init)) return;
        positions->tensor = find(&positions->weights, position_name, &positions->file);
        if (!positions->tensor) return;
        list[i].count = positions->tensor->count;
        list[i].dim[0] = positions->tensor->dim[0];
    }
}

int convert_save(const char *dir, Engine *engine, const char *init) {
    const Model *m = engine->model;
    const bool same = is_from(m, init);
    char weights[PATH_BYTES], config[PATH_BYTES];
    SafetensorsWriter writer;
    Positions positions = {.tensor = NULL};
    SafeTensor *list = NULL;
    TheirName *names = NULL;
    if (!convert_knows(m)) return error_set("export: for GPT-2 and LLaMA models, not %s", m->name);
    if (m->transformer.width % m->transformer.attention.heads)
        return error_set("export: theirs have a width that is a multiple of their heads, not %s",
                         m->name);
    if (path_join(weights, dir, "model.safetensors") || path_join(config, dir, "config.json") ||
        rundir_make(dir))
        return -1;
    int count = list_tensors(&list, &names, m);
    if (same && count > 0) open_positions(&positions, init, list, count);
    int failed = count < 0 || safetensors_create(&writer, weights, list, count);
    for (int p = 0; p < m->params && !failed; p++) {
        failed = save_param(&writer, engine, p, &names[p], &positions);
        if (failed) safetensors_abandon(&writer);
    }
    weights_close(&positions.weights);
    failed = failed || safetensors_commit(&writer) ||
             convert_write_config(config, m, same ? init : NULL);
    free(list);
    free(names);
    return failed ? -1 : 0;
}

/* ---- of a training --------------------------------------------------------------------------- */

static int copy_file(const char *to, const char *from) {
    AtomicFile file;
    size_t bytes;
    unsigned char *data = file_read("export", from, "it belongs to the model", &bytes);
    int failed = !data || atomic_open(&file, to);
    if (!failed) {
        fwrite(data, 1, bytes, file.file); /* a full disk shows at the commit */
        failed = atomic_commit(&file);
    }
    free(data);
    return failed ? -1 : 0;
}

/* Copies what a model's directory has for its text, and adds the names to `list`. */
static int copy_tokenizer(const char *dir, const char *init, char *list, size_t size) {
    static const char *const names[] = {
        "tokenizer.json", "tokenizer.model",         "tokenizer_config.json",
        "vocab.json",     "special_tokens_map.json", "added_tokens.json",
        "merges.txt",     "chat_template.jinja",     "generation_config.json"};
    char from[PATH_BYTES], to[PATH_BYTES];
    for (size_t i = 0; *init && i < sizeof names / sizeof *names; i++) {
        if (path_join(from, init, names[i]) || path_join(to, dir, names[i])) return -1;
        if (access(from, F_OK)) continue;
        if (copy_file(to, from)) return -1;
        size_t used = strlen(list);
        snprintf(list + used, size - used, ", %s", names[i]);
    }
    return 0;
}

int convert_export(const char *place, const char *dir, const Options *asked) {
    Setup setup;
    char copied[256] = "";
    int failed = checkpoint_open(&setup, place, asked) ||
                 convert_save(dir, setup.engine, setup.options.init) ||
                 copy_tokenizer(dir, setup.options.init, copied, sizeof copied);
    setup_free(&setup);
    if (!failed && asked->command == COMMAND_EXPORT && !asked->quiet)
        printf("%s: config.json, model.safetensors%s\n", dir, copied);
    return failed ? -1 : 0;
}

int command_export(const Options *options) {
    if (!*options->out) return error_set("bcd export: --out DIR says where to");
    return convert_export(options->positional[0], options->out, options);
}
