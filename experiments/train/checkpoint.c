#include "checkpoint.h"

#include <stdlib.h>
#include <string.h>

#include "../../ref/base/error.h"
#include "../base/alloc.h"
#include "../store/settings.h"
#include "../store/tensors.h"

enum { VERSION = 1 };

/* ---- what the file holds --------------------------------------------------------------------- */

/* Where each kind of tensor is in the file; the first two make up the model. */
static const struct {
    TensorRole role;
    const char *group;
} groups[] = {
    {TENSOR_PARAMETER, "/parameters"},
    {TENSOR_BUFFER, "/buffers"},
    {TENSOR_STATE0, "/optimizer/first"},
    {TENSOR_STATE1, "/optimizer/second"},
};
enum { MODEL_GROUPS = 2, GROUPS = sizeof groups / sizeof *groups };

/* The attributes of /bcd. */
static const H5Column state_fields[] = {
    {H5_FIELD(BcdState, step, H5_UINT64)},        {H5_FIELD(BcdState, position, H5_UINT64)},
    {H5_FIELD(BcdState, phase, H5_UINT64)},       {H5_FIELD(BcdState, phase_steps, H5_UINT64)},
    {H5_FIELD(BcdState, phase_start, H5_UINT64)}, {H5_FIELD(BcdState, windows, H5_UINT64)},
    {H5_FIELD(BcdState, window_sum, H5_DOUBLE)},  {H5_FIELD(BcdState, last_window_sum, H5_DOUBLE)},
    {H5_FIELD(BcdState, submodel, H5_INT)},
};
enum { STATE_FIELDS = sizeof state_fields / sizeof *state_fields };
_Static_assert(sizeof(BcdState) == STATE_FIELDS * sizeof(uint64_t),
               "a field of BcdState that is not saved would be lost by a resume");

/* ---- writing --------------------------------------------------------------------------------- */

static void write_steps(H5File *file, const Setup *setup) {
    const H5Dim dim = {"block", (size_t)setup->model->blocks, NULL};
    uint64_t *steps = xmalloc(dim.size * sizeof *steps);
    for (size_t b = 0; b < dim.size; b++) steps[b] = engine_optimizer_step(setup->engine, (int)b);
    h5_write(file, "/optimizer_step", H5_UINT64, steps, 1, &dim, NULL);
    free(steps);
}

int checkpoint_write(const char *path, const Setup *setup, const BcdState *state) {
    H5File file;
    if (h5_create_format(&file, path, "bcd checkpoint", VERSION)) return -1;
    h5_set_text(&file, "/", "precision", REAL_NAME);
    settings_write(&file, &setup->options, OPTION_MOVES);
    h5_set_text(&file, "/model", "spec", setup->model->spec);
    if (*setup->init) h5_set_text(&file, "/model", "init", setup->init);
    h5_set_text(&file, "/data", "name", setup->train->name);
    h5_set(&file, "/data", "samples", H5_INT, &setup->train->samples);
    h5_set(&file, "/data", "checksum", H5_UINT64, &setup->train->checksum);
    if (setup->model->tokens) h5_set_text(&file, "/data", "tokenizer", setup->train->tokenizer);
    h5_set_fields(&file, "/bcd", state_fields, STATE_FIELDS, state);
    write_steps(&file, setup);
    int failed = 0;
    for (int g = 0; g < GROUPS && !failed; g++)
        failed = tensors_write(&file, groups[g].group, setup->engine, groups[g].role, true);
    if (!failed) return h5_commit(&file);
    h5_abandon(&file);
    return failed;
}

/* ---- reading --------------------------------------------------------------------------------- */

int checkpoint_open(H5File *file, const char *path) {
    char precision[H5_NAME];
    if (h5_open_format(file, path, "bcd checkpoint", VERSION, "a checkpoint of bcd train"))
        return -1;
    int failed = h5_get(file, "/", "precision", H5_TEXT, precision);
    if (!failed && strcmp(precision, REAL_NAME) != 0)
        failed =
            error_set("%s: written in %s; this program computes in %s", path, precision, REAL_NAME);
    if (failed) h5_close(file);
    return failed ? -1 : 0;
}

static int read_tensor(const H5File *file, Engine *engine, int group, int number, bool foreign) {
    TensorRole role = groups[group].role;
    const TensorInfo info = tensor_info(engine->model, role, number);
    const Text name = text_of("%s/%s", groups[group].group, info.name);
    const bool is_state = role == TENSOR_STATE0 || role == TENSOR_STATE1;
    const bool missing = !h5_exists(file, name.text);
    size_t size[4];
    if (missing && foreign && role == TENSOR_BUFFER) return 0;
    for (int i = 0; i < info.rank; i++) size[i] = info.dims[i].size;
    real *place = engine->is->view ? engine_view(engine, role, number, &(size_t){0}) : NULL;
    if (place) return h5_read(file, name.text, H5_REAL, place, info.rank, size);
    /* Frozen parameters have no state. */
    const size_t held = missing && is_state ? engine_read(engine, role, number, NULL) : info.count;
    if (!held) return 0;
    if (held == READ_FAILED) return -1;
    real *numbers = xmalloc(info.count * sizeof *numbers);
    const int failed = h5_read(file, name.text, H5_REAL, numbers, info.rank, size) ||
                       engine_write(engine, role, number, numbers);
    free(numbers);
    return failed ? -1 : 0;
}

/* Reads the tensors of the first `count` groups. */
static int read_tensors(const H5File *file, Engine *engine, int count, bool foreign) {
    for (int group = 0; group < count; group++)
        for (int i = 0; i < tensor_count(engine->model, groups[group].role); i++)
            if (read_tensor(file, engine, group, i, foreign)) return -1;
    return 0;
}

int checkpoint_read_model(const H5File *file, Engine *engine, bool foreign) {
    return read_tensors(file, engine, MODEL_GROUPS, foreign);
}

static int read_state(const H5File *file, const Setup *setup, BcdState *state) {
    memset(state, 0, sizeof *state);
    if (h5_get_fields(file, "/bcd", state_fields, STATE_FIELDS, state)) return -1;
    if (bcd_state_possible(state, &setup->bcd, setup->train->samples)) return 0;
    return error_set(
        "%s: /bcd: step %llu, position %llu, phase %llu, submodel %d and the others do "
        "not fit together; the file is damaged",
        file->path, (unsigned long long)state->step, (unsigned long long)state->position,
        (unsigned long long)state->phase, state->submodel);
}

int checkpoint_check_data(const H5File *file, const Dataset *data) {
    uint64_t checksum;
    if (h5_get(file, "/data", "checksum", H5_UINT64, &checksum)) return -1;
    if (checksum == data->checksum) return 0;
    return error_set(
        "%s: the data set %s is not the one this run was trained on (its checksum differs); put "
        "that one back",
        file->path, data->name);
}

static int check_same(const H5File *file, const Setup *setup) {
    char spec[OPTION_TEXT];
    if (h5_get_text(file, "/model", "spec", spec, sizeof spec)) return -1;
    if (strcmp(spec, setup->model->spec) != 0)
        return error_set("%s: holds the model %s, not %s", file->path, spec, setup->model->spec);
    return checkpoint_check_data(file, setup->train);
}

static int read_steps(const H5File *file, const Setup *setup) {
    size_t blocks = (size_t)setup->model->blocks;
    uint64_t *steps = xmalloc(blocks * sizeof *steps);
    int failed = h5_read(file, "/optimizer_step", H5_UINT64, steps, 1, &blocks);
    for (size_t b = 0; b < blocks && !failed; b++)
        engine_set_optimizer_step(setup->engine, (int)b, steps[b]);
    free(steps);
    return failed;
}

int checkpoint_read_init(const H5File *file, Setup *setup) {
    if (!h5_has(file, "/model", "init")) return 0;
    return h5_get_text(file, "/model", "init", setup->init, sizeof setup->init);
}

int checkpoint_resume(const char *path, Setup *setup, BcdState *state) {
    H5File file;
    if (checkpoint_open(&file, path)) return -1;
    int failed = checkpoint_read_init(&file, setup) || check_same(&file, setup) ||
                 read_state(&file, setup, state) ||
                 (state->step > 0 && bcd_activate(&setup->bcd, setup->engine, state->submodel)) ||
                 /* Before the first update there may be state, all zero, of a submodel whose
                  * pre-inference was stopped. */
                 read_tensors(&file, setup->engine, state->step ? GROUPS : MODEL_GROUPS, false) ||
                 read_steps(&file, setup);
    h5_close(&file);
    return failed ? -1 : 0;
}
