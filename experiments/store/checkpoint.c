/* Writing checkpoint.h5, and what writing and reading share. */
#include "checkpoint.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../data/checksum.h"
#include "../../ref/error.h"
#include "settings.h"

const CheckpointGroup checkpoint_groups[CHECKPOINT_GROUPS] = {
    {TENSOR_PARAMETER, "/parameters"},
    {TENSOR_BUFFER, "/buffers"},
    {TENSOR_STATE0, "/optimizer/first"},
    {TENSOR_STATE1, "/optimizer/second"},
};

const CheckpointCount checkpoint_counts[CHECKPOINT_COUNTS] = {
    {"step", offsetof(BcdState, step)},
    {"position", offsetof(BcdState, position)},
    {"phase", offsetof(BcdState, phase)},
    {"phase_steps", offsetof(BcdState, phase_steps)},
    {"phase_start", offsetof(BcdState, phase_start)},
    {"windows", offsetof(BcdState, windows)},
};

void checkpoint_name(char name[2 * H5_NAME], const Model *model, int group, int number) {
    const CheckpointGroup *g = &checkpoint_groups[group];
    snprintf(name, 2 * H5_NAME, "%s/%s", g->group,
             g->role == TENSOR_BUFFER ? model->buffer[number].name : model->param[number].name);
}

/* Names of the dimensions of a parameter, by what its op makes of it. */
static void name_dims(H5Dim dims[4], const Model *model, int param) {
    static const char *const names[5][4] = {{NULL},
                                            {"channel"},
                                            {"out", "in"},
                                            {"", "", ""},
                                            {"out", "kernel_row", "kernel_column", "in"}};
    const Param *p = &model->param[param];
    for (int i = 0; i < p->rank; i++) dims[i].name = names[p->rank][i];
    for (int n = 0; n < model->nodes && p->rank == 2; n++) {
        const Node *node = &model->node[n];
        if (node->kind != OP_EMBEDDING) continue;
        if (node->weight == param) dims[0].name = "token";
        if (node->bias == param) dims[0].name = "position";
        if (node->weight == param || node->bias == param) dims[1].name = "channel";
    }
}

int checkpoint_shape(H5Dim dims[4], const Model *model, TensorRole role, int number) {
    memset(dims, 0, 4 * sizeof *dims);
    if (role == TENSOR_BUFFER) {
        dims[0] = (H5Dim){"channel", (size_t)model->buffer[number].count, NULL};
        return 1;
    }
    const Param *p = &model->param[number];
    for (int i = 0; i < p->rank; i++) dims[i].size = (size_t)p->dim[i];
    name_dims(dims, model, number);
    return p->rank;
}

uint64_t checkpoint_checksum(const real *data, size_t count) {
    uint64_t sum = CHECKSUM_START;
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = 0;
        memcpy(&bits, &data[i], sizeof data[i]);
        sum = checksum_add(sum, bits);
    }
    return sum;
}

int checkpoint_tensors(const Model *model, TensorRole role) {
    return role == TENSOR_BUFFER ? model->buffers : model->params;
}

size_t checkpoint_largest(const Model *model) {
    size_t largest = 1;
    for (int p = 0; p < model->params; p++)
        if (model->param[p].count > largest) largest = model->param[p].count;
    for (int b = 0; b < model->buffers; b++)
        if ((size_t)model->buffer[b].count > largest) largest = (size_t)model->buffer[b].count;
    return largest;
}

static int write_tensors(H5File *file, const Setup *setup, int group, real *room) {
    const Model *model = setup->model;
    Engine *engine = setup->engine;
    TensorRole role = checkpoint_groups[group].role;
    char name[2 * H5_NAME];
    H5Dim dims[4];
    for (int i = 0; i < checkpoint_tensors(model, role); i++) {
        size_t count = engine->is->read(engine, role, i, room);
        if (!count) continue; /* no optimizer state now */
        if (count == READ_FAILED) return -1;
        checkpoint_name(name, model, group, i);
        for (size_t n = 0; n < count; n++)
            if (!isfinite(room[n])) {
                error_set("%s has a number that is NaN or infinite", name + 1);
                return CHECKPOINT_NOT_FINITE;
            }
        int rank = checkpoint_shape(dims, model, role, i);
        h5_write(file, name, H5_REAL, room, rank, dims, NULL);
        h5_set_count(file, name, "checksum", checkpoint_checksum(room, count));
    }
    return 0;
}

uint64_t checkpoint_age_checksum(const uint64_t *age, size_t blocks) {
    uint64_t sum = CHECKSUM_START;
    for (size_t b = 0; b < blocks; b++) sum = checksum_add(sum, age[b]);
    return sum;
}

static void write_ages(H5File *file, const Setup *setup, uint64_t *age) {
    size_t blocks = (size_t)setup->model->blocks;
    for (size_t b = 0; b < blocks; b++)
        age[b] = setup->engine->is->optimizer_step(setup->engine, (int)b);
    H5Dim dim = {"block", blocks, NULL};
    h5_write(file, "/age", H5_UINT64, age, 1, &dim, NULL);
    h5_set_count(file, "/age", "checksum", checkpoint_age_checksum(age, blocks));
}

uint64_t checkpoint_state_checksum(const BcdState *state) {
    uint64_t sum = CHECKSUM_START, bits;
    for (int i = 0; i < CHECKPOINT_COUNTS; i++) {
        memcpy(&bits, (const char *)state + checkpoint_counts[i].offset, sizeof bits);
        sum = checksum_add(sum, bits);
    }
    memcpy(&bits, &state->window_sum, sizeof bits);
    sum = checksum_add(sum, bits);
    memcpy(&bits, &state->last_window_sum, sizeof bits);
    return checksum_add(checksum_add(sum, bits), (uint64_t)state->submodel);
}

static void write_state(H5File *file, const BcdState *state) {
    for (int i = 0; i < CHECKPOINT_COUNTS; i++) {
        uint64_t value;
        memcpy(&value, (const char *)state + checkpoint_counts[i].offset, sizeof value);
        h5_set_count(file, "/bcd", checkpoint_counts[i].name, value);
    }
    h5_set_int(file, "/bcd", "submodel", state->submodel);
    h5_set_real(file, "/bcd", "window_sum", state->window_sum);
    h5_set_real(file, "/bcd", "last_window_sum", state->last_window_sum);
    h5_set_count(file, "/bcd", "checksum", checkpoint_state_checksum(state));
}

static int write_all(H5File *file, const Setup *setup, const BcdState *state, real *room,
                     uint64_t *age) {
    h5_set_text(file, "/", "format", "bcd checkpoint");
    h5_set_int(file, "/", "version", CHECKPOINT_VERSION);
    h5_set_text(file, "/", "precision", REAL_NAME);
    settings_write(file, "/settings", &setup->options, OPTION_ROUNDS);
    h5_set_text(file, "/model", "spec", setup->model->spec);
    h5_set_text(file, "/data", "name", setup->train->name);
    h5_set_int(file, "/data", "samples", setup->train->samples);
    h5_set_count(file, "/data", "checksum", setup->train->checksum);
    write_state(file, state);
    write_ages(file, setup, age);
    int failed = 0;
    for (int group = 0; !failed && group < CHECKPOINT_GROUPS; group++)
        failed = write_tensors(file, setup, group, room);
    return failed;
}

int checkpoint_write(const char *path, const Setup *setup, const BcdState *state) {
    real *room = malloc(checkpoint_largest(setup->model) * sizeof *room);
    uint64_t *age = malloc((size_t)setup->model->blocks * sizeof *age);
    H5File file;
    int failed = room && age ? h5_create(&file, path)
                             : error_set("%s: out of memory for the largest tensor", path);
    if (!failed) {
        failed = write_all(&file, setup, state, room, age);
        if (failed)
            h5_abandon(&file);
        else
            failed = h5_commit(&file);
    }
    free(room);
    free(age);
    return failed;
}
