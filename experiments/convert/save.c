/* Saves a trained model as Hugging Face's transformers library reads it. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../ref/base/error.h"
#include "../alloc.h"
#include "../commands.h"
#include "../store/rundir.h"
#include "convert.h"

/* ---- numbers --------------------------------------------------------------------------------- */

/* Lists the tensors to write, in the order of our parameters.  Returns how many; the caller frees
 * *list and *names. */
static int list_tensors(SafeTensor **list, TheirName **names, const Model *m) {
    int count = 0;
    *names = xcalloc((size_t)m->params, sizeof **names);
    *list = xcalloc((size_t)m->params * CONVERT_PARTS, sizeof **list);
    for (int p = 0; p < m->params; p++) {
        TheirName *theirs = &(*names)[p];
        convert_name(theirs, m, p);
        for (int part = 0; part < theirs->parts; part++) {
            size_t rows = theirs->rows[part], columns = theirs->columns;
            (*list)[count++] = (SafeTensor){
                .name = theirs->name[part],
                .rank = m->param[p].rank,
                .dim = {theirs->transposed ? columns : rows, theirs->transposed ? rows : columns},
                .count = rows * columns};
        }
    }
    return count;
}

/* The learned positions of the model that a training started from, of which a training on shorter
 * texts has only the first.  tensor NULL: there are none. */
typedef struct {
    Weights weights;
    const Weight *weight;
} Positions;

static int save_param(SafetensorsWriter *writer, Engine *engine, int param, const TheirName *theirs,
                      const Positions *positions) {
    const Param *p = &engine->model->param[param];
    const bool more = positions->weight && strcmp(theirs->name[0], convert_positions) == 0;
    const size_t count = more ? positions->weight->tensor->count : p->count;
    real *numbers = xmalloc(p->count * sizeof *numbers);
    float *out = xmalloc(count * sizeof *out);
    int failed = 0;
    if (engine->is->read(engine, TENSOR_PARAMETER, param, numbers) != p->count)
        failed = error_set("export: cannot read %s", p->name);
    if (!failed && more)
        failed = safetensors_read(positions->weight->file, positions->weight->tensor, out);
    const size_t columns = theirs->columns, rows = p->count / columns;
    for (size_t i = 0; i < p->count && !failed; i++)
        out[i] = (float)numbers[theirs->transposed ? i % rows * columns + i / rows : i];
    failed = failed || safetensors_append(writer, out, count);
    free(numbers);
    free(out);
    return failed;
}

/* Returns how many positions the model in `init` has; -1 and an error. */
static int positions_of(const char *init) {
    char spec[OPTION_TEXT];
    Model *whole = convert_spec(spec, init, 0) ? NULL : model_create(spec);
    const int positions = whole ? whole->input.w : -1;
    model_free(whole);
    return positions;
}

/* Overwrites *same with whether the model in `init` is model m, except for its context; its
 * config.json can then be kept.  -1 and an error. */
static int compare_models(bool *same, const Model *m, const char *init) {
    char spec[OPTION_TEXT];
    *same = false;
    if (!*init) return 0;
    const int positions = positions_of(init);
    if (positions < m->input.w) return positions < 0 ? -1 : 0;
    if (convert_spec(spec, init, m->input.w)) return -1;
    Model *theirs = model_create(spec);
    *same = theirs && strcmp(theirs->spec, m->spec) == 0;
    model_free(theirs);
    return 0;
}

/* Opens the learned positions of the model in `init`, if the model has such a table, and puts their
 * shape into the list.  -1 and an error if they are not there. */
static int open_positions(Positions *positions, const char *init, SafeTensor *list, int count) {
    for (int i = 0; i < count; i++) {
        if (strcmp(list[i].name, convert_positions)) continue;
        const int rows = positions_of(init);
        if (rows < 0 || weights_open(&positions->weights, init)) return -1;
        positions->weight = weights_find(&positions->weights, convert_positions);
        const SafeTensor *theirs = positions->weight ? positions->weight->tensor : NULL;
        if (!theirs || theirs->rank != 2 || theirs->dim[0] != (size_t)rows ||
            theirs->dim[1] != list[i].dim[1])
            return error_set("export: %s has no %s of %d x %zu", init, convert_positions, rows,
                             list[i].dim[1]);
        list[i].count = theirs->count;
        list[i].dim[0] = theirs->dim[0];
    }
    return 0;
}

/* `init`: the directory that the model started from, or "".  Overwrites *same with whether its
 * config.json was kept. */
static int save(const char *dir, Engine *engine, const char *init, NumberKind numbers, bool *same) {
    const Model *m = engine->model;
    char weights[PATH_BYTES], config[PATH_BYTES];
    SafetensorsWriter writer;
    Positions positions = {.weight = NULL};
    SafeTensor *list = NULL;
    TheirName *names = NULL;
    if (!convert_knows(m)) return error_set("export: transformers has no model like %s", m->name);
    if (m->transformer.width % m->transformer.attention.heads)
        return error_set(
            "export: transformers needs a width that is a multiple of the heads, which %s does not "
            "have",
            m->name);
    if (compare_models(same, m, init) || path_join(weights, dir, "model.safetensors") ||
        path_join(config, dir, "config.json") || rundir_make(dir))
        return -1;
    int count = list_tensors(&list, &names, m);
    int failed = (*same && open_positions(&positions, init, list, count)) ||
                 safetensors_create(&writer, weights, numbers, list, count);
    for (int p = 0; p < m->params && !failed; p++) {
        failed = save_param(&writer, engine, p, &names[p], &positions);
        if (failed) safetensors_abandon(&writer);
    }
    weights_close(&positions.weights);
    failed = failed || safetensors_commit(&writer) ||
             convert_write_config(config, m, numbers, *same ? init : NULL);
    free(list);
    free(names);
    return failed ? -1 : 0;
}

/* ---- the command ----------------------------------------------------------------------------- */

static int copy_file(const char *to, const char *from) {
    size_t bytes;
    unsigned char *data = file_read("export", from, "it belongs to the model", &bytes);
    int failed = data ? file_write(to, data, bytes) : -1;
    free(data);
    return failed;
}

/* The files of a tokenizer, and how it writes. */
static const char *const kept_files[] = {
    "tokenizer.json", "tokenizer.model",         "tokenizer_config.json",
    "vocab.json",     "special_tokens_map.json", "added_tokens.json",
    "merges.txt",     "chat_template.jinja",     "generation_config.json"};
enum { KEPT_FILES = sizeof kept_files / sizeof *kept_files };

/* Returns true if the directory, or "", has this file. */
static bool has_file(const char *dir, const char *name) {
    char path[PATH_BYTES];
    return *dir && !path_join(path, dir, name) && access(path, F_OK) == 0;
}

/* Copies the tokenizer's files of a model's directory, and appends their names to `list`. */
static int copy_tokenizer(const char *dir, const char *init, Text *list) {
    char from[PATH_BYTES], to[PATH_BYTES];
    for (int i = 0; i < KEPT_FILES; i++) {
        const char *name = kept_files[i];
        if (!has_file(init, name)) continue;
        if (path_join(from, init, name) || path_join(to, dir, name) || copy_file(to, from))
            return -1;
        text_add(list, ", %s", name);
    }
    return 0;
}

/* Returns true if the directory's tokenizer made the tokens that the run was trained on. */
static bool has_own_tokenizer(const char *dir, const Setup *setup) {
    char name[TOKENIZER_NAME];
    return tokenizer_of_model(name, dir) == 0 && strcmp(name, setup->tokenizer) == 0;
}

/* Returns true for a file of another model that a reader of the directory would take for a part of
 * this one. */
static bool is_stale(const char *name, const char *init, bool own_tokenizer) {
    for (int i = 0; i < KEPT_FILES; i++)
        if (strcmp(name, kept_files[i]) == 0) return !has_file(init, name) && !own_tokenizer;
    return strcmp(name, "model.safetensors") &&
           (strstr(name, ".safetensors") || strncmp(name, "pytorch_model", 13) == 0);
}

/* Refuses a directory with such a file. */
static int check_stale(const char *dir, const char *init, const Setup *setup) {
    const bool own_tokenizer = has_own_tokenizer(dir, setup);
    const struct dirent *entry;
    DIR *open = opendir(dir);
    int failed = 0;
    while (open && !failed && (entry = readdir(open)))
        if (is_stale(entry->d_name, init, own_tokenizer))
            failed = error_set(
                "--out %s: holds %s of another model; remove it, or give another "
                "name",
                dir, entry->d_name);
    if (open) closedir(open);
    return failed;
}

/* Finds the directory that the training started from: the stored one, or the one that was asked
 * for, if it has been moved.  A file of tensors has neither settings nor a tokenizer. */
static int find_init(char init[PATH_BYTES], const Setup *setup, const Options *asked) {
    const char *stored = *setup->init ? setup->init : setup->options.init;
    strcpy(init, *asked->init ? asked->init : stored);
    if (convert_is_tensors(init)) *init = 0;
    if (!*init || has_file(init, "config.json")) return 0;
    return error_set(
        "%s: the run began with the model there, which is gone; its settings and its "
        "tokenizer belong to the export: --init DIR says where it is now",
        init);
}

int convert_export(const char *place, const char *dir, const Options *asked, NumberKind numbers) {
    Setup setup;
    Text copied = {""};
    char init[PATH_BYTES] = "";
    bool same = false;
    const bool old = access(rundir_path(dir, "config.json").text, F_OK) == 0;
    int failed = convert_open_run(&setup, place, asked) || find_init(init, &setup, asked);
    if (!failed && file_same(dir, init))
        failed = error_set("--out %s: the run began with the model there; give another name", dir);
    failed = failed || check_stale(dir, init, &setup) ||
             save(dir, setup.engine, init, numbers, &same) || copy_tokenizer(dir, init, &copied);
    setup_free(&setup);
    if (!failed && asked->command == COMMAND_EXPORT && !asked->quiet)
        printf("%s: config.json%s, model.safetensors%s%s%s\n", dir,
               *init && !same ? " (written anew: the model is not that of --init)" : "",
               numbers == NUMBER_BF16 ? " (rounded to bf16)" : "", copied.text,
               old ? "; files that were there are replaced" : "");
    return failed ? -1 : 0;
}

int command_export(const CommandLine *line) {
    static const NumberKind kinds[] = {NUMBER_F32, NUMBER_BF16}; /* as export_names */
    return convert_export(line->positional[0], line->options.out, &line->options,
                          kinds[line->export_numbers]);
}
