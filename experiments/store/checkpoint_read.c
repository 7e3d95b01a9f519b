/* Reading checkpoint.h5. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/error.h"
#include "checkpoint.h"
#include "rundir.h"
#include "settings.h"

static int open_checkpoint(H5File *file, const char *path) {
    char text[H5_NAME];
    int64_t version;
    if (h5_open(file, path)) return -1;
    int failed = 0;
    if (!h5_has(file, "/", "format") || h5_get_text(file, "/", "format", text, sizeof text) ||
        strcmp(text, "bcd checkpoint") != 0)
        failed = error_set("%s: not a checkpoint of bcd train", path);
    else if (h5_get_int(file, "/", "version", &version))
        failed = -1;
    else if (version != CHECKPOINT_VERSION)
        failed = error_set("%s: version %lld; this program reads version %d", path,
                           (long long)version, CHECKPOINT_VERSION);
    else if (h5_get_text(file, "/", "precision", text, sizeof text))
        failed = -1;
    else if (strcmp(text, REAL_NAME) != 0)
        failed = error_set("%s: written in %s; this program computes in %s", path, text, REAL_NAME);
    if (failed) h5_close(file);
    return failed;
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
    int failed = h5_get_count(&file, "/bcd", "step", step);
    h5_close(&file);
    return failed;
}

/* ---- tensors --------------------------------------------------------------------------------- */

static int read_tensor(const H5File *file, const Setup *setup, int group, int number, real *room) {
    TensorRole role = checkpoint_groups[group].role;
    char name[2 * H5_NAME];
    H5Dim dims[4];
    size_t size[4], count = 1;
    uint64_t checksum;
    checkpoint_name(name, setup->model, group, number);
    bool state = role == TENSOR_STATE0 || role == TENSOR_STATE1;
    if (state && !h5_exists(file, name)) return 0;
    int rank = checkpoint_shape(dims, setup->model, role, number);
    for (int i = 0; i < rank; i++) count *= size[i] = dims[i].size;
    if (h5_read(file, name, H5_REAL, room, rank, size) ||
        h5_get_count(file, name, "checksum", &checksum))
        return -1;
    if (checksum != checkpoint_checksum(room, count))
        return error_set("%s: %s: its checksum does not match; the file is damaged", file->path,
                         name);
    return setup->engine->is->write(setup->engine, role, number, room);
}

static int read_groups(const H5File *file, const Setup *setup, int groups) {
    real *room = malloc(checkpoint_largest(setup->model) * sizeof *room);
    if (!room) return error_set("%s: out of memory for the largest tensor", file->path);
    int failed = 0;
    for (int group = 0; group < groups; group++)
        for (int i = 0; i < checkpoint_tensors(setup->model, checkpoint_groups[group].role); i++)
            failed = failed || read_tensor(file, setup, group, i, room);
    free(room);
    return failed ? -1 : 0;
}

/* Parameters and buffers come first in checkpoint_groups. */
enum { MODEL_GROUPS = 2 };

/* ---- resume ---------------------------------------------------------------------------------- */

static int read_state(const H5File *file, const Setup *setup, BcdState *state) {
    int64_t submodel;
    uint64_t checksum;
    memset(state, 0, sizeof *state);
    for (int i = 0; i < CHECKPOINT_COUNTS; i++) {
        uint64_t value;
        if (h5_get_count(file, "/bcd", checkpoint_counts[i].name, &value)) return -1;
        memcpy((char *)state + checkpoint_counts[i].offset, &value, sizeof value);
    }
    if (h5_get_int(file, "/bcd", "submodel", &submodel) ||
        h5_get_real(file, "/bcd", "window_sum", &state->window_sum) ||
        h5_get_real(file, "/bcd", "last_window_sum", &state->last_window_sum) ||
        h5_get_count(file, "/bcd", "checksum", &checksum))
        return -1;
    state->submodel = (int)submodel;
    if (checksum != checkpoint_state_checksum(state) || submodel < 0 ||
        submodel >= setup->bcd.partition.submodels)
        return error_set("%s: /bcd: its checksum does not match; the file is damaged", file->path);
    return 0;
}

static int check_same(const H5File *file, const Setup *setup) {
    char spec[OPTION_TEXT], name[OPTION_TEXT];
    uint64_t checksum;
    if (h5_get_text(file, "/model", "spec", spec, sizeof spec) ||
        h5_get_text(file, "/data", "name", name, sizeof name) ||
        h5_get_count(file, "/data", "checksum", &checksum))
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

static int read_ages(const H5File *file, const Setup *setup) {
    size_t blocks = (size_t)setup->model->blocks;
    uint64_t checksum, *age = malloc(blocks * sizeof *age);
    if (!age) return error_set("resume: out of memory");
    int failed = h5_read(file, "/age", H5_UINT64, age, 1, &blocks) ||
                 h5_get_count(file, "/age", "checksum", &checksum);
    if (!failed && checksum != checkpoint_age_checksum(age, blocks))
        failed =
            error_set("%s: /age: its checksum does not match; the file is damaged", file->path);
    for (size_t b = 0; b < blocks && !failed; b++)
        setup->engine->is->set_optimizer_step(setup->engine, (int)b, age[b]);
    free(age);
    return failed;
}

int checkpoint_resume(const char *path, const Setup *setup, BcdState *state) {
    H5File file;
    if (open_checkpoint(&file, path)) return -1;
    int failed = check_same(&file, setup) || read_state(&file, setup, state) ||
                 (state->step > 0 && activate(setup, state)) ||
                 read_groups(&file, setup, CHECKPOINT_GROUPS) || read_ages(&file, setup);
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
                 read_groups(&file, setup, MODEL_GROUPS);
    }
    h5_close(&file);
    return failed ? -1 : 0;
}
