/* `bcd gradients`: loss, activations and gradients of one batch, to be compared with those of
 * another framework.  `bcd gradients --help` and experiments/results/README.md describe the
 * files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/base/error.h"
#include "../../ref/blocks/models.h"
#include "../base/alloc.h"
#include "../cli/commands.h"
#include "../convert/convert.h"
#include "../store/tensors.h"
#include "../train/checkpoint.h"

const char gradients_format[] = "bcd gradients";

/* ---- the model ------------------------------------------------------------------------------- */

/* Overwrites `spec` with the model of the checkpoint, or of --init DIR with the context of the
 * batch. */
static int find_spec(char spec[OPTION_TEXT], const Options *o, const H5File *batch,
                     const H5File *file) {
    size_t size[H5_RANK] = {0};
    if (*o->init && !convert_is_tensors(o->init) && h5_size(batch, "/targets", size) != 2)
        return error_set("%s: /targets: [sample][token] is expected", batch->path);
    if (o->context && (size_t)o->context > size[1])
        return error_set("--context %d: %s has %zu tokens in a sample", o->context, batch->path,
                         size[1]);
    if (*o->init) return convert_spec(spec, o->init, o->context ? o->context : (int)size[1]);
    if (h5_exists(file, "/model")) return h5_get_text(file, "/model", "spec", spec, OPTION_TEXT);
    if (h5_has(file, "/", "model")) return h5_get_text(file, "/", "model", spec, OPTION_TEXT);
    return error_set("%s: neither a checkpoint nor a file with the attribute model", file->path);
}

/* Refuses a batch norm over a single value: its variance is 0, and its output would be its bias. */
static int check_batchnorm(const Model *model, int batch, Mode mode) {
    for (int i = 0; i < model->nodes && batch == 1 && mode == MODE_TRAIN; i++) {
        const Value *out = &model->value[model->node[i].out];
        if (model->node[i].kind == OP_BATCHNORM && out->shape.h * out->shape.w == 1)
            return error_set(
                "gradients: batch norm in %s would see a single value; the batch needs "
                "two samples at least",
                model->block[out->block].name);
    }
    return 0;
}

/* Creates the engine of setup->model for a batch of `batch` samples; with --mode train all blocks
 * are active.  The default optimizer, sgd without its momentum, has no state. */
static int open_engine(Setup *setup, const Options *o, Mode mode, int batch) {
    Options *own = &setup->options;
    options_defaults(own, COMMAND_TRAIN);
    own->batch = batch;
    own->device = o->device;
    own->precision = o->precision;
    if (setup_engine_for_evaluation(setup)) return -1;
    if (mode == MODE_EVALUATE) return 0;
    bool *active = xmalloc((size_t)setup->model->blocks * sizeof *active);
    memset(active, true, (size_t)setup->model->blocks * sizeof *active);
    int failed = engine_activate(setup->engine, active);
    free(active);
    return failed;
}

/* ---- the batch ------------------------------------------------------------------------------- */

/* Reads the first `keep` numbers of each of size[0] rows, from `min` up to below `end`; those below
 * 0 become -1.  HDF5 would clamp what does not fit into an int. */
static int read_numbers(int *numbers, const H5File *file, const char *name, int rank,
                        const size_t *size, size_t keep, int64_t min, int end) {
    enum { MAX_WIDTH = 1 << 24 };
    const size_t width = rank > 1 ? size[1] : 1, count = size[0] * width;
    /* Of a sequence that may be longer than the model's, the file alone says how long it is. */
    int64_t *wide = width > MAX_WIDTH ? NULL : malloc(count * sizeof *wide);
    if (!wide)
        return error_set("%s: %s: no memory for %zu x %zu numbers", file->path, name, size[0],
                         width);
    int failed = h5_read(file, name, H5_INT64, wide, rank, size);
    for (size_t i = 0; i < count && !failed; i++) {
        if (i % width >= keep) continue;
        numbers[i / width * keep + i % width] = wide[i] < 0 ? -1 : (int)wide[i];
        if (wide[i] < min || wide[i] >= end)
            failed = error_set("%s: %s holds %lld; the model has 0 to %d", file->path, name,
                               (long long)wide[i], end - 1);
    }
    free(wide);
    return failed;
}

/* Reads the samples.  -1 and an error if an array is missing or its shape is not the model's, or a
 * number is no token or class.  With `shorter` the file's sequences may be longer than the model's:
 * the beginning of each is taken. */
static int read_batch(Batch *batch, const H5File *file, const Model *model, bool shorter) {
    Shape in = model->input;
    size_t n = (size_t)batch->n, t = (size_t)model->targets, size[H5_RANK] = {n, t};
    int rank = model->tokens ? 2 : 1, failed;
    if (batch_reserve(batch, model, batch->n) ||
        (shorter && h5_size(file, "/targets", size) != rank))
        return -1;
    for (int i = 0; i < batch->n; i++) batch->ids[i] = i;
    if (model->tokens)
        failed = read_numbers(batch->tokens, file, "/tokens", 2, size, t, 0, model->outputs);
    else
        failed = h5_read(file, "/images", H5_REAL, batch->images, 4,
                         (size_t[]){n, (size_t)in.h, (size_t)in.w, (size_t)in.c});
    return failed || read_numbers(batch->targets, file, "/targets", rank, size, t, INT64_MIN,
                                  model->outputs)
               ? -1
               : 0;
}

/* Returns how many samples the file holds; -1 and an error. */
static int count_samples(const H5File *file) {
    size_t size[H5_RANK];
    int rank = h5_size(file, "/targets", size);
    if (rank < 0) return -1;
    if (rank < 1 || size[0] < 1 || size[0] > 1 << 20)
        return error_set("%s: /targets: 1 to %d samples are expected", file->path, 1 << 20);
    return (int)size[0];
}

/* ---- the results ----------------------------------------------------------------------------- */

static void write_activation(H5File *file, const char *name, const Model *model, int block, int n,
                             const real *data) {
    Shape shape = model->value[model->block[block].out].shape;
    bool logits = block == model->blocks - 1;
    H5Dim channel = {logits ? "class" : "channel", (size_t)shape.c, NULL};
    H5Dim dims[4] = {{"sample", (size_t)n, NULL}};
    int rank = 1;
    if (model->tokens) {
        dims[rank++] = (H5Dim){"token", (size_t)shape.w, NULL};
    } else if (!logits) {
        dims[rank++] = (H5Dim){"height", (size_t)shape.h, NULL};
        dims[rank++] = (H5Dim){"width", (size_t)shape.w, NULL};
    }
    dims[rank++] = channel;
    h5_write(file, name, H5_REAL, data, rank, dims, NULL);
}

/* Writes each block's output right after it was computed: a later block may overwrite it. */
static void forward(H5File *file, Stage *stage, int n) {
    const Model *model = stage->model;
    for (int b = 0; b < model->blocks; b++) {
        size_t count = (size_t)n * shape_count(model->value[model->block[b].out].shape);
        real *buffer = xmalloc(count * sizeof *buffer);
        stage_forward(stage, b);
        stage_read(stage, TENSOR_VALUE, b, buffer);
        const Text name = text_of("/activations/%s", model->block[b].name);
        write_activation(file, name.text, model, b, n, buffer);
        if (b == model->blocks - 1) write_activation(file, "/logits", model, b, n, buffer);
        free(buffer);
    }
}

/* Writes the outputs and the loss of a batch of which `counted` targets count. */
static int write_forward(H5File *file, Stage *stage, const Batch *batch, Mode mode,
                         size_t counted) {
    Loss loss;
    stage_begin(stage, batch, mode);
    forward(file, stage, batch->n);
    if (stage_loss(stage, 1 / (double)counted, &loss)) return -1;
    const double mean = loss_mean(&loss);
    h5_write(file, "/loss", H5_DOUBLE, &mean, 1, &(H5Dim){"mean", 1, NULL}, "nats per target");
    return 0;
}

static int write_backward(H5File *file, Setup *setup) {
    Stage *stage = setup->stage;
    for (int b = stage->model->blocks - 1; b >= 0; b--) {
        stage_input_gradient(stage, b);
        stage_weight_gradient(stage, b);
    }
    return tensors_write(file, "/gradients", setup->engine, TENSOR_GRADIENT, false);
}

/* Runs the forward pass and, with --mode train, the backward pass, and writes the file. */
static int write_gradients(const Options *options, Setup *setup, Mode mode, const Batch *batch) {
    const Model *model = setup->model;
    size_t counted = 0;
    for (size_t i = 0; i < (size_t)batch->n * (size_t)model->targets; i++)
        counted += batch->targets[i] >= 0;
    if (!counted) return error_set("gradients: the batch has no target that counts");
    Provenance provenance;
    H5File file;
    if (setup_provenance(&provenance, options) ||
        h5_create_format(&file, options->out, gradients_format, 1))
        return -1;
    h5_set_text(&file, "/", "model", model->spec);
    h5_set_text(&file, "/", "mode", mode_names[mode]);
    h5_set_fields(&file, "/provenance", provenance_fields, PROVENANCE_FIELDS, &provenance);
    if (write_forward(&file, setup->stage, batch, mode, counted) ||
        (mode == MODE_TRAIN && write_backward(&file, setup)) ||
        tensors_write(&file, "/buffers", setup->engine, TENSOR_BUFFER, false)) {
        h5_abandon(&file);
        return -1;
    }
    return h5_commit(&file);
}

/* Checks flags that go together, and those that are needed. */
static int check_flags(const Options *o) {
    if (o->context && !*o->init)
        return error_set("--context goes with --init; a checkpoint has its own");
    if (!*o->gradients.checkpoint == !*o->init || !*o->gradients.batch_file || !*o->out)
        return error_set(
            "bcd gradients needs --checkpoint FILE or --init DIR, --batch FILE and --out FILE");
    return 0;
}

int command_gradients(const CommandLine *line) {
    const Options *o = &line->options;
    if (check_flags(o)) return -WRONG_USE;
    const Mode mode = (Mode)line->options.gradients.mode;
    char spec[OPTION_TEXT];
    H5File file = {.id = -1}, checkpoint = {.id = -1};
    Setup setup = {.model = NULL};
    Batch batch = {.n = 0};
    int failed = h5_open(&file, line->options.gradients.batch_file) ||
                 (!*o->init && h5_open(&checkpoint, line->options.gradients.checkpoint)) ||
                 (batch.n = count_samples(&file)) < 0 || find_spec(spec, o, &file, &checkpoint) ||
                 !(setup.model = model_create(spec)) ||
                 check_batchnorm(setup.model, batch.n, mode) ||
                 (*o->init && convert_check(setup.model, o->init)) ||
                 open_engine(&setup, o, mode, batch.n) ||
                 (*o->init ? convert_load(setup.engine, o->init)
                           : checkpoint_read_model(&checkpoint, setup.engine, true)) ||
                 read_batch(&batch, &file, setup.model, o->context) ||
                 write_gradients(o, &setup, mode, &batch);
    batch_free(&batch);
    setup_free(&setup);
    h5_close(&checkpoint);
    h5_close(&file);
    return failed ? -1 : 0;
}
