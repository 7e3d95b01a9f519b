/* Saves a trained model as Hugging Face's transformers library reads it. */
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
    const Safetensors *file;
    const SafeTensor *tensor;
} Positions;

static int save_param(SafetensorsWriter *writer, Engine *engine, int param, const TheirName *theirs,
                      const Positions *positions) {
    const Param *p = &engine->model->param[param];
    const bool more = positions->tensor && strcmp(theirs->name[0], convert_positions) == 0;
    const size_t count = more ? positions->tensor->count : p->count;
    real *numbers = xmalloc(p->count * sizeof *numbers);
    float *out = xmalloc(count * sizeof *out);
    int failed = 0;
    if (engine->is->read(engine, TENSOR_PARAMETER, param, numbers) != p->count)
        failed = error_set("export: cannot read %s", p->name);
    if (!failed && more) failed = safetensors_read(positions->file, positions->tensor, out);
    const size_t columns = theirs->columns, rows = p->count / columns;
    for (size_t i = 0; i < p->count && !failed; i++)
        out[i] = (float)numbers[theirs->transposed ? i % rows * columns + i / rows : i];
    failed = failed || safetensors_append(writer, out, count);
    free(numbers);
    free(out);
    return failed;
}

/* Returns true if the model is that of the directory `init`, except for its context.  Its
 * config.json can then be kept. */
static bool is_same_model(const Model *m, const char *init) {
    char spec[OPTION_TEXT];
    if (!*init || convert_spec(spec, init, m->input.w)) return false;
    Model *theirs = model_create(spec);
    const bool same = theirs && strcmp(theirs->spec, m->spec) == 0;
    model_free(theirs);
    return same;
}

/* Returns true if the weights in `init` still have as many positions as its config.json says. */
static bool has_positions(const Positions *positions, const char *init, const SafeTensor *ours) {
    char spec[OPTION_TEXT];
    const SafeTensor *theirs = positions->tensor;
    Model *whole = convert_spec(spec, init, 0) ? NULL : model_create(spec);
    const size_t rows = whole ? (size_t)whole->input.w : 0;
    model_free(whole);
    return theirs && theirs->rank == 2 && theirs->dim[0] == rows && rows >= ours->dim[0] &&
           theirs->dim[1] == ours->dim[1];
}

/* Opens the positions in `init`, if the model has such a table, and puts their shape into the list.
 * Returns false if they are not there. */
static bool open_positions(Positions *positions, const char *init, SafeTensor *list, int count) {
    for (int i = 0; i < count; i++) {
        if (strcmp(list[i].name, convert_positions)) continue;
        if (weights_open(&positions->weights, init)) return false;
        positions->tensor = weights_find(&positions->weights, convert_positions, &positions->file);
        if (!has_positions(positions, init, &list[i])) {
            positions->tensor = NULL;
            return false;
        }
        list[i].count = positions->tensor->count;
        list[i].dim[0] = positions->tensor->dim[0];
    }
    return true;
}

/* `init`: the directory that the model started from, or "". */
static int save(const char *dir, Engine *engine, const char *init) {
    const Model *m = engine->model;
    bool same = is_same_model(m, init);
    char weights[PATH_BYTES], config[PATH_BYTES];
    SafetensorsWriter writer;
    Positions positions = {.tensor = NULL};
    SafeTensor *list = NULL;
    TheirName *names = NULL;
    if (!convert_knows(m))
        return error_set("export: only GPT-2 and LLaMA models can be exported, not %s", m->name);
    if (m->transformer.width % m->transformer.attention.heads)
        return error_set(
            "export: transformers needs a width that is a multiple of the heads, which %s does not "
            "have",
            m->name);
    if (path_join(weights, dir, "model.safetensors") || path_join(config, dir, "config.json") ||
        rundir_make(dir))
        return -1;
    int count = list_tensors(&list, &names, m);
    same = same && open_positions(&positions, init, list, count);
    int failed = safetensors_create(&writer, weights, list, count);
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

/* ---- the command ----------------------------------------------------------------------------- */

static int copy_file(const char *to, const char *from) {
    size_t bytes;
    unsigned char *data = file_read("export", from, "it belongs to the model", &bytes);
    int failed = data ? file_write(to, data, bytes) : -1;
    free(data);
    return failed;
}

/* Copies the tokenizer's files of a model's directory, and appends their names to `list`. */
static int copy_tokenizer(const char *dir, const char *init, Text *list) {
    static const char *const names[] = {
        "tokenizer.json", "tokenizer.model",         "tokenizer_config.json",
        "vocab.json",     "special_tokens_map.json", "added_tokens.json",
        "merges.txt",     "chat_template.jinja",     "generation_config.json"};
    char from[PATH_BYTES], to[PATH_BYTES];
    for (size_t i = 0; *init && i < sizeof names / sizeof *names; i++) {
        if (path_join(from, init, names[i]) || path_join(to, dir, names[i])) return -1;
        if (access(from, F_OK)) continue;
        if (copy_file(to, from)) return -1;
        text_add(list, ", %s", names[i]);
    }
    return 0;
}

int convert_export(const char *place, const char *dir, const Options *asked) {
    Setup setup;
    Text copied = {""};
    const char *init = setup.options.init;
    const bool old = access(rundir_path(dir, "config.json").text, F_OK) == 0;
    int failed = convert_open_run(&setup, place, asked);
    if (!failed && file_same(dir, init))
        failed = error_set("--out %s: the run began with the model there; give another name", dir);
    failed = failed || save(dir, setup.engine, init) || copy_tokenizer(dir, init, &copied);
    setup_free(&setup);
    if (!failed && asked->command == COMMAND_EXPORT && !asked->quiet)
        printf("%s: config.json, model.safetensors%s%s\n", dir, copied.text,
               old ? "; files that were there are replaced" : "");
    return failed ? -1 : 0;
}

int command_export(const CommandLine *line) {
    return convert_export(line->positional[0], line->options.out, &line->options);
}
