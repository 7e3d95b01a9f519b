/* Reading checkpoint.h5. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/error.h"
#include "checkpoint.h"
#include "rundir.h"
#include "settings.h"

static int open_checkpoint(H5File *file, const char *path) {
    char precision[H5_NAME];
    if (h5_open(file, path)) return -1;
    int failed =
        h5_check_format(file, "bcd checkpoint", CHECKPOINT_VERSION, "a checkpoint of bcd train") ||
        h5_get(file, "/", "precision", H5_TEXT, precision);
    if (!failed && strcmp(precision, REAL_NAME) != 0)
        failed =
            error_set("%s: written in %s; this program computes in %s", path, precision, REAL_NAME);
    if (failed) h5_close(file);
    return failed ? -1 : 0;
}

int checkpoint_settings(const char *path, Options *options) {
    H5File file;
    if (open_checkpoint(&file, path)) return -1;
    int failed = settings_read(&file, "/settings", options);
    h5_close(&file);
    return failed;
}

int checkpoint_step(const char *path, uint64_t *step) {
    H5File file;
    if (open_checkpoint(&file, path)) return -1;
    int failed = h5_get(&file, "/bcd", "step", H5_UINT64, step);
    h5_close(&file);
    return failed;
}

/* ---- tensors --------------------------------------------------------------------------------- */

static int check_sum(const H5File *file, const char *name, uint64_t sum) {
    uint64_t stored;
    if (h5_get(file, name, "checksum", H5_UINT64, &stored)) return -1;
    if (stored == sum) return 0;
    return error_set("%s: %s: its checksum does not match; the file is damaged", file->path, name);
}

static int read_tensor(const H5File *file, Engine *engine, int group, int number, bool foreign,
                       real *room) {
    TensorRole role = checkpoint_groups[group].role;
    char name[2 * H5_NAME];
    H5Dim dims[4];
    size_t size[4], count = 1;
    checkpoint_name(name, engine->model, group, number);
    bool optional = role == TENSOR_BUFFER ? foreign : role != TENSOR_PARAMETER; /* state */
    if (optional && !h5_exists(file, name)) return 0;
    int rank = checkpoint_shape(dims, engine->model, role, number);
    for (int i = 0; i < rank; i++) count *= size[i] = dims[i].size;
    if (h5_read(file, name, H5_REAL, room, rank, size)) return -1;
    bool has_sum = !foreign || h5_has(file, name, "checksum");
    if (has_sum && check_sum(file, name, checkpoint_checksum(room, count))) return -1;
    return engine->is->write(engine, role, number, room);
}

int checkpoint_read_tensors(const H5File *file, Engine *engine, int groups, bool foreign) {
    real *room = malloc(checkpoint_largest(engine->model) * sizeof *room);
    if (!room) return error_set("%s: out of memory for the largest tensor", file->path);
    int failed = 0;
    for (int group = 0; group < groups; group++)
        for (int i = 0; i < checkpoint_tensors(engine->model, checkpoint_groups[group].role); i++)
            failed = failed || read_tensor(file, engine, group, i, foreign, room);
    free(room);
    return failed ? -1 : 0;
}

/* ---- resume ---------------------------------------------------------------------------------- */

static int read_state(const H5File *file, const Setup *setup, BcdState *state) {
    memset(state, 0, sizeof *state);
    if (h5_get_fields(file, "/bcd", checkpoint_fields, CHECKPOINT_FIELDS, state) ||
        check_sum(file, "/bcd", checkpoint_state_checksum(state)))
        return -1;
    if (state->submodel >= 0 && state->submodel < setup->bcd.partition.submodels) return 0;
    return error_set("%s: /bcd: no submodel %d; the file is damaged", file->path, state->submodel);
}

static int check_same(const H5File *file, const Setup *setup) {
    char spec[OPTION_TEXT], name[OPTION_TEXT];
    uint64_t checksum;
    if (h5_get_text(file, "/model", "spec", spec, sizeof spec) ||
        h5_get_text(file, "/data", "name", name, sizeof name) ||
        h5_get(file, "/data", "checksum", H5_UINT64, &checksum))
        return -1;
    if (strcmp(spec, setup->model->spec) != 0)
        return error_set("%s: holds the model %s, not %s", file->path, spec, setup->model->spec);
    if (checksum != setup->train->checksum)
        return error_set(
            "%s: the data set %s is not the one this run was trained on (its checksum "
            "differs); put that one back",
            file->path, name);
    return 0;
}

/* Makes the submodel active that was, so that its optimizer state has a place. */
static int activate(const Setup *setup, const BcdState *state) {
    bool *active = malloc((size_t)setup->model->blocks * sizeof *active);
    if (!active) return error_set("resume: out of memory");
    partition_active(&setup->bcd.partition, setup->model, state->submodel, active);
    int failed = setup->engine->is->activate(setup->engine, active);
    free(active);
    return failed;
}

static int read_steps(const H5File *file, const Setup *setup) {
    const char *name = h5_exists(file, "/optimizer_step") ? "/optimizer_step" : "/age";
    size_t blocks = (size_t)setup->model->blocks;
    uint64_t *steps = malloc(blocks * sizeof *steps);
    if (!steps) return error_set("resume: out of memory");
    int failed = h5_read(file, name, H5_UINT64, steps, 1, &blocks) ||
                 check_sum(file, name, checkpoint_steps_checksum(steps, blocks));
    for (size_t b = 0; b < blocks && !failed; b++)
        setup->engine->is->set_optimizer_step(setup->engine, (int)b, steps[b]);
    free(steps);
    return failed;
}

int checkpoint_resume(const char *path, const Setup *setup, BcdState *state) {
    H5File file;
    if (open_checkpoint(&file, path)) return -1;
    int failed = check_same(&file, setup) || read_state(&file, setup, state) ||
                 (state->step > 0 && activate(setup, state)) ||
                 checkpoint_read_tensors(&file, setup->engine, CHECKPOINT_GROUPS, false) ||
                 read_steps(&file, setup);
    h5_close(&file);
    return failed ? -1 : 0;
}

/* ---- evaluation ------------------------------------------------------------------------------ */

/* Flags that make sense over a stored run: where things are, how much of them, what computes.  A
 * network trained on a device is evaluated anywhere, so the device is not the stored one. */
void checkpoint_overlay(Options *stored, const Options *asked) {
    if (options_given(asked, "data-dir")) strcpy(stored->data_dir, asked->data_dir);
    if (options_given(asked, "batch") && asked->batch) stored->batch = asked->batch;
    if (options_given(asked, "limit")) stored->limit = asked->limit;
    if (options_given(asked, "data")) strcpy(stored->data, asked->data);
    if (options_given(asked, "data") || *asked->valid) strcpy(stored->valid, asked->valid);
    /* A text is written one sequence at a time, which needs no room for a batch. */
    if (asked->command == COMMAND_SAMPLE) stored->batch = 1;
    if (options_given(asked, "batch") || stored->batch == 1) stored->accumulate = 1;
    stored->device = asked->device;
    stored->precision = asked->precision;
    stored->method = METHOD_BCD;
}

int checkpoint_open(Setup *setup, const char *place, const Options *asked) {
    char path[RUNDIR_PATH], spec[OPTION_TEXT];
    memset(setup, 0, sizeof *setup);
    options_defaults(&setup->options, COMMAND_TRAIN);
    if (rundir_settings(place, &setup->options) || rundir_checkpoint(path, place)) return -1;
    H5File file;
    if (open_checkpoint(&file, path)) return -1;
    int failed = settings_read(&file, "/settings", &setup->options) ||
                 h5_get_text(&file, "/model", "spec", spec, sizeof spec);
    if (!failed) {
        checkpoint_overlay(&setup->options, asked);
        setup->model = model_create(spec);
        failed = !setup->model || setup_engine_for_evaluation(setup) ||
                 checkpoint_read_tensors(&file, setup->engine, CHECKPOINT_MODEL_GROUPS, false);
    }
    h5_close(&file);
    return failed ? -1 : 0;
}
