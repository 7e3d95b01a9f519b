/* Saves a trained model as Hugging Face's transformers library reads it. */
#include <stdlib.h>
#include <string.h>

#include "../../ref/base/error.h"
#include "../base/alloc.h"
#include "../store/rundir.h"
#include "families.h"

/* ---- numbers --------------------------------------------------------------------------------- */

/* Lists the tensors to write, in the order of our parameters.  Returns how many; the caller frees
 * *list and *names. */
static int list_tensors(SafeTensor **list, TheirName **names, const Model *m) {
    int count = 0;
    *names = xcalloc((size_t)m->params, sizeof **names);
    *list = xcalloc((size_t)m->params * PARAM_PARTS, sizeof **list);
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
    if (engine_read(engine, TENSOR_PARAMETER, param, numbers) != p->count)
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

bool convert_is_refused(const Model *model) {
    const HfFamily *family = hf_family_of(model);
    return family && family->divided &&
           model->transformer.width % model->transformer.attention.heads;
}

int convert_keeps_config(bool *same, const Model *m, const char *init) {
    *same = false;
    if (!*init) return 0;
    const int positions = convert_positions_of(init);
    if (positions < m->input.w) return positions < 0 ? -1 : 0;
    Model *theirs = convert_model(init, m->input.w);
    if (!theirs) return -1;
    *same = strcmp(theirs->spec, m->spec) == 0;
    model_free(theirs);
    return 0;
}

/* Opens the learned positions of the model in `init`, if the model has such a table, and puts their
 * shape into the list.  -1 and an error if they are not there. */
static int open_positions(Positions *positions, const char *init, SafeTensor *list, int count) {
    for (int i = 0; i < count; i++) {
        if (strcmp(list[i].name, convert_positions)) continue;
        const int rows = convert_positions_of(init);
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

int convert_save(const char *dir, Engine *engine, const char *init, NumberKind numbers,
                 bool *same) {
    const Model *m = engine->model;
    char weights[PATH_BYTES], config[PATH_BYTES];
    SafetensorsWriter writer;
    Positions positions = {.weight = NULL};
    SafeTensor *list = NULL;
    TheirName *names = NULL;
    if (!convert_knows(m)) return error_set("export: transformers has no model like %s", m->name);
    if (convert_keeps_config(same, m, init)) return -1;
    if (!*same && convert_is_refused(m))
        return error_set(
            "export: transformers needs a width that is a multiple of the heads, which %s does not "
            "have",
            m->name);
    if (path_join(weights, dir, "model.safetensors") || path_join(config, dir, "config.json") ||
        rundir_make(dir))
        return -1;
    int count = list_tensors(&list, &names, m);
    int failed = (*same && open_positions(&positions, init, list, count)) ||
                 safetensors_create(&writer, weights, numbers, list, count);
    for (int p = 0; p < m->params && !failed; p++) {
        failed = save_param(&writer, engine, p, &names[p], &positions);
        if (failed) safetensors_abandon(&writer);
    }
    /* The weights are on the disk before the config of an older export is replaced, so that what
     * may be lost between the two is the moment of a renaming. */
    if (!failed && (atomic_sync(&writer.out) ||
                    convert_write_config(config, m, numbers, *same ? init : NULL))) {
        safetensors_abandon(&writer);
        failed = -1;
    }
    weights_close(&positions.weights);
    failed = failed || safetensors_commit(&writer);
    free(list);
    free(names);
    return failed ? -1 : 0;
}
