/* Loads parameters from safetensors files. */
#include <stdlib.h>
#include <string.h>

#include "../../ref/base/error.h"
#include "../base/alloc.h"
#include "../store/tensors.h"
#include "convert.h"

/* ---- a tensor -------------------------------------------------------------------------------- */

static int refuse_shape(const Weight *weight, const TensorInfo *ours, const TheirName *theirs,
                        int part) {
    const SafeTensor *t = weight->tensor;
    const size_t rows = theirs->rows[part];
    Text have = {""}, want = text_of("%zu", theirs->transposed ? theirs->columns : rows);
    for (int i = 0; i < t->rank; i++) text_add(&have, "%s%zu", i ? " x " : "", t->dim[i]);
    for (int i = 1; i < ours->rank; i++)
        text_add(&want, " x %zu", theirs->transposed ? rows : ours->dims[i].size);
    return error_set("%s: %.80s has the shape %s; it should be %s, for %s", weight->file->path,
                     t->name, have.text, want.text, ours->name);
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

/* Finds what one part of a tensor of ours is read from, and marks it as used.  NULL and an error.
 */
static const Weight *find_part(const Weights *w, const TensorInfo *ours, const TheirName *theirs,
                               int part) {
    Weight *weight = weights_find(w, theirs->name[part]);
    if (!weight) return error_null("%s: no tensor %s", w->init, theirs->name[part]);
    weight->used = true;
    if (fits(weight->tensor, ours, theirs, part)) return weight;
    refuse_shape(weight, ours, theirs, part);
    return NULL;
}

/* Reads one part of a tensor of ours: rows * columns numbers.  -1 and an error. */
static int read_part(real *to, const Weights *w, const TensorInfo *ours, const TheirName *theirs,
                     int part) {
    const Weight *weight = find_part(w, ours, theirs, part);
    const size_t rows = theirs->rows[part], columns = theirs->columns;
    if (!weight) return -1;
    float *numbers = malloc((weight->tensor->count + 1) * sizeof *numbers);
    if (!numbers) return error_set("init: out of memory for %s", weight->tensor->name);
    int failed = safetensors_read(weight->file, weight->tensor, numbers);
    for (size_t i = 0; i < rows * columns && !failed; i++)
        to[i] = (real)numbers[theirs->transposed ? i % columns * rows + i / columns : i];
    free(numbers);
    return failed;
}

/* Overwrites *theirs with what the files call a tensor of ours. */
static void name_tensor(TheirName *theirs, const Weights *w, const Model *model, TensorRole role,
                        int number) {
    const TensorInfo ours = tensor_info(model, role, number);
    if (!convert_is_tensors(w->init)) {
        convert_name(theirs, model, number);
        return;
    }
    *theirs = (TheirName){.parts = 1, .rows = {ours.dims[0].size}};
    strcpy(theirs->name[0], ours.name);
    theirs->columns = ours.count / theirs->rows[0];
}

static int load_tensor(Engine *engine, const Weights *w, TensorRole role, int number) {
    const TensorInfo ours = tensor_info(engine->model, role, number);
    TheirName theirs;
    name_tensor(&theirs, w, engine->model, role, number);
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
    if (weights_is_derived(weight)) return 0;
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

/* Refuses a file without a tensor of ours, or with one of another shape. */
static int check_tensors(const Weights *w, const Model *model, TensorRole role) {
    for (int i = 0; i < tensor_count(model, role); i++) {
        const TensorInfo ours = tensor_info(model, role, i);
        TheirName theirs;
        name_tensor(&theirs, w, model, role, i);
        for (int part = 0; part < theirs.parts; part++)
            if (!find_part(w, &ours, &theirs, part)) return -1;
    }
    return 0;
}

/* Refuses tensors that the model would ignore. */
static int check_all_used(const Weights *w, const Model *model) {
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

/* Refuses a table of positions that is not as long as config.json says, which an export would have
 * to write. */
static int check_positions(const Weights *w) {
    const Weight *table = convert_is_tensors(w->init) ? NULL : weights_find(w, convert_positions);
    const int positions = table ? convert_positions_of(w->init) : 0;
    if (!table || positions < 0) return positions;
    const size_t rows = table->tensor->dim[0];
    if (rows == (size_t)positions) return 0;
    return error_set("%s: %s has %zu rows, config.json says %d positions", table->file->path,
                     table->tensor->name, rows, positions);
}

/* Opens the files for convert_load and checks them; overwrites *buffers as above. */
static int open_checked(Weights *w, int *buffers, const char *init, const Model *model) {
    *buffers = 0;
    if (weights_open(w, init)) return -1;
    if (convert_is_tensors(init) && count_buffers(buffers, w->file, model)) return -1;
    return check_tensors(w, model, TENSOR_PARAMETER) ||
                   (*buffers && check_tensors(w, model, TENSOR_BUFFER)) ||
                   check_all_used(w, model) || check_positions(w)
               ? -1
               : 0;
}

int convert_check(const Model *model, const char *init) {
    Weights weights;
    int buffers;
    if (!convert_is_tensors(init) && convert_check_config(model, init)) return -1;
    const int failed = open_checked(&weights, &buffers, init, model);
    weights_close(&weights);
    return failed;
}

int convert_load(Engine *engine, const char *init) {
    Weights weights;
    int buffers;
    const int failed = open_checked(&weights, &buffers, init, engine->model) ||
                       load_role(engine, &weights, TENSOR_PARAMETER) ||
                       (buffers && load_role(engine, &weights, TENSOR_BUFFER));
    weights_close(&weights);
    return failed ? -1 : 0;
}
