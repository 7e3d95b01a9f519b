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

/* In the order of their checksum. */
const H5Column checkpoint_fields[CHECKPOINT_FIELDS] = {
    {H5_FIELD(BcdState, step, H5_UINT64)},        {H5_FIELD(BcdState, position, H5_UINT64)},
    {H5_FIELD(BcdState, phase, H5_UINT64)},       {H5_FIELD(BcdState, phase_steps, H5_UINT64)},
    {H5_FIELD(BcdState, phase_start, H5_UINT64)}, {H5_FIELD(BcdState, windows, H5_UINT64)},
    {H5_FIELD(BcdState, window_sum, H5_DOUBLE)},  {H5_FIELD(BcdState, last_window_sum, H5_DOUBLE)},
    {H5_FIELD(BcdState, submodel, H5_INT)},
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

uint64_t checkpoint_steps_checksum(const uint64_t *steps, size_t blocks) {
    uint64_t sum = CHECKSUM_START;
    for (size_t b = 0; b < blocks; b++) sum = checksum_add(sum, steps[b]);
    return sum;
}

static void write_steps(H5File *file, const Setup *setup, uint64_t *steps) {
    size_t blocks = (size_t)setup->model->blocks;
    for (size_t b = 0; b < blocks; b++)
        steps[b] = setup->engine->is->optimizer_step(setup->engine, (int)b);
    H5Dim dim = {"block", blocks, NULL};
    h5_write(file, "/optimizer_step", H5_UINT64, steps, 1, &dim, NULL);
    h5_set_count(file, "/optimizer_step", "checksum", checkpoint_steps_checksum(steps, blocks));
}

uint64_t checkpoint_state_checksum(const BcdState *state) {
    uint64_t sum = CHECKSUM_START;
    for (const H5Column *c = checkpoint_fields; c < checkpoint_fields + CHECKPOINT_FIELDS; c++) {
        uint64_t bits = 0;
        memcpy(&bits, (const char *)state + c->offset, h5_kind_size(c->kind));
        sum = checksum_add(sum, bits);
    }
    return sum;
}

static void write_state(H5File *file, const BcdState *state) {
    h5_set_fields(file, "/bcd", checkpoint_fields, CHECKPOINT_FIELDS, state);
    h5_set_count(file, "/bcd", "checksum", checkpoint_state_checksum(state));
}

static int write_all(H5File *file, const Setup *setup, const BcdState *state, real *room,
                     uint64_t *steps) {
    h5_set_text(file, "/", "format", "bcd checkpoint");
    h5_set_int(file, "/", "version", CHECKPOINT_VERSION);
    h5_set_text(file, "/", "precision", REAL_NAME);
    settings_write(file, "/settings", &setup->options, OPTION_ROUNDS);
    h5_set_text(file, "/model", "spec", setup->model->spec);
    h5_set_text(file, "/data", "name", setup->train->name);
    h5_set_int(file, "/data", "samples", setup->train->samples);
    h5_set_count(file, "/data", "checksum", setup->train->checksum);
    write_state(file, state);
    write_steps(file, setup, steps);
    int failed = 0;
    for (int group = 0; !failed && group < CHECKPOINT_GROUPS; group++)
        failed = write_tensors(file, setup, group, room);
    return failed;
}

int checkpoint_write(const char *path, const Setup *setup, const BcdState *state) {
    real *room = malloc(checkpoint_largest(setup->model) * sizeof *room);
    uint64_t *steps = malloc((size_t)setup->model->blocks * sizeof *steps);
    H5File file;
    int failed = room && steps ? h5_create(&file, path)
                               : error_set("%s: out of memory for the largest tensor", path);
    if (!failed) {
        failed = write_all(&file, setup, state, room, steps);
        if (failed)
            h5_abandon(&file);
        else
            failed = h5_commit(&file);
    }
    free(room);
    free(steps);
    return failed;
}
