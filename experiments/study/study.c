#include "study.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/memory.h"
#include "../alloc.h"
#include "../train/setup.h"

#define NESTED(its_name, its_kind, field, its_unit, says)                                          \
    {                                                                                              \
        .name = its_name, .kind = its_kind, .offset = offsetof(StudyRow, field), .unit = its_unit, \
        .what = says                                                                               \
    }
#define TEXT(field, says) NESTED(#field, H5_TEXT, field, NULL, says)
#define INTEGER(field, unit, says) NESTED(#field, H5_INT64, field, unit, says)
#define REAL(field, unit, says) NESTED(#field, H5_DOUBLE, field, unit, says)
#define PEAK(its_name, role, says) NESTED(its_name, H5_DOUBLE, peak[role], "bytes", says)
#define COMPUTED(field, its_unit, says) \
    { H5_FIELD(StudyRow, field, H5_DOUBLE), .unit = its_unit, .what = says, .optional = true }

const H5Column study_columns[] = {
    NESTED("row", H5_TEXT, name, NULL, "name of the training"),
    TEXT(model, "preset or specification"),
    TEXT(input, "images or tokens"),
    TEXT(data, "data set"),
    TEXT(optimizer, "sgd, adam or adamw"),
    TEXT(method,
         "full: every parameter at each step; BCD: one submodel; offload: full, with the "
         "optimizer in host memory"),
    INTEGER(submodels, NULL, "M"),
    REAL(imbalance, NULL, "the largest submodel over the mean, minus 1"),
    TEXT(order, "in which the submodels take turns"),
    TEXT(switching, "when: after K steps, Ee epochs, or auto"),
    INTEGER(parameters, NULL, "trained numbers of the model"),
    INTEGER(batch, "samples", "in a step"),
    NESTED("lr", H5_DOUBLE, settings.optimizer.lr, NULL, "learning rate"),
    NESTED("weight_decay", H5_DOUBLE, settings.optimizer.weight_decay, NULL, "weight decay"),
    NESTED("fraction", H5_DOUBLE, settings.fraction, NULL,
           "SR: part of the data each submodel sees"),
    INTEGER(steps, "steps", "updates done"),
    REAL(epochs, "epochs", "passes over the data, whichever submodel was active"),
    COMPUTED(steps_to_converge, "steps", "updates until the smoothed training loss was at `level`"),
    COMPUTED(epochs_to_converge, "epochs", "the same in epochs"),
    COMPUTED(level, "nats per target",
             "the smoothed training loss at which it is compared with its full update"),
    COMPUTED(multiplier, NULL, "B-F: steps_to_converge over that of the full update"),
    COMPUTED(valid_steps, "steps", "updates until the validation loss was at `valid_level`"),
    COMPUTED(valid_level, "nats per target", "the validation loss at which they are compared"),
    COMPUTED(valid_multiplier, NULL, "valid_steps over those of the full update"),
    REAL(accuracy, NULL, "0 to 1, on the validation split at the end"),
    REAL(perplexity, NULL, "exp(valid_loss)"),
    REAL(valid_loss, "nats per target", "on the validation split at the end"),
    COMPUTED(train_loss, "nats per target", "smoothed, at the end"),
    COMPUTED(plateau_steps, "steps", "updates to its own convergence"),
    COMPUTED(plateau_epochs, "epochs", "the same in epochs"),
    COMPUTED(plateau_score, NULL, "there: mean of five evaluations, per cent or perplexity"),
    COMPUTED(plateau_spread, NULL, "their standard deviation"),
    COMPUTED(end_score, NULL, "mean of the last five evaluations, per cent or perplexity"),
    COMPUTED(end_spread, NULL, "their standard deviation"),
    PEAK("peak_parameters", MEM_PARAMETERS, "measured: weights, active or frozen"),
    PEAK("peak_buffers", MEM_BUFFERS, "measured: running statistics"),
    PEAK("peak_gradients", MEM_GRADIENTS, "measured: of the active submodel"),
    PEAK("peak_state", MEM_STATE, "measured: optimizer state"),
    PEAK("peak_activations", MEM_ACTIVATIONS, "measured: kept for the backward pass"),
    PEAK("peak_cache", MEM_CACHE, "measured: outputs of the frozen prefix"),
    PEAK("peak_workspace", MEM_WORKSPACE, "measured: scratch"),
    PEAK("peak_total", MEM_ROLES, "measured: all roles together"),
    REAL(closed_form, "bytes",
         "W (1 + (1 + k)/M): parameters, gradients and k vectors of state, as the paper counts; in "
         "bf16 W (1/2 + (2 + k)/M)"),
    REAL(seconds, "s", "of training, evaluations left out"),
    NESTED("wall", H5_DOUBLE, provenance.wall, "s", "of everything: evaluations and saving too"),
    REAL(rate, "1/s", "images or tokens trained on per second"),
    INTEGER(seed, NULL, "of parameters and order of the data"),
    INTEGER(threads, NULL, "OpenMP threads"),
    NESTED("device", H5_TEXT, provenance.device, NULL, "where it ran"),
    NESTED("cpu", H5_TEXT, provenance.cpu, NULL, "which processor"),
    NESTED("precision", H5_TEXT, provenance.precision, NULL, "of the arithmetic"),
    TEXT(checksum, "of the training data as loaded"),
    NESTED("commit", H5_TEXT, provenance.commit, NULL, "of the program"),
    NESTED("started", H5_TEXT, provenance.started, NULL, "UTC"),
};
const int study_column_count = sizeof study_columns / sizeof *study_columns;

StudyRow *study_add(Study *study) {
    if (study->rows == study->capacity) {
        study->capacity = 2 * study->rows + 4;
        study->row = xrealloc(study->row, (size_t)study->capacity * sizeof *study->row);
    }
    StudyRow *row = &study->row[study->rows++];
    memset(row, 0, sizeof *row);
    for (int c = 0; c < study_column_count; c++)
        if (study_columns[c].kind == H5_DOUBLE)
            *(double *)(void *)((char *)row + study_columns[c].offset) = NAN;
    return row;
}

void study_move(Study *study, StudyRow *row) {
    *study_add(study) = *row;
    memset(row, 0, sizeof *row);
}

void study_free(Study *study) {
    for (int r = 0; r < study->rows; r++) {
        free(study->row[r].curve);
        free(study->row[r].evaluation);
        free(study->row[r].switches);
        free(study->row[r].operations);
    }
    free(study->row);
    *study = (Study){0};
}

static void copy(char to[H5_NAME], const char *from) { snprintf(to, H5_NAME, "%.127s", from); }

static void fill_settings(StudyRow *row, const RunFile *run) {
    const Options *o = &run->settings;
    row->settings = *o;
    copy(row->model, o->model);
    copy(row->data, run->data);
    copy(row->optimizer, optimizer_names[o->optimizer.kind]);
    copy(row->method, run->submodels > 1            ? "BCD"
                      : o->method == METHOD_OFFLOAD ? "offload"
                                                    : "full");
    copy(row->order, order_names[o->order]);
    copy(row->switching, options_format(o, options_find("switch-every", COMMAND_TRAIN)).text);
    snprintf(row->checksum, sizeof row->checksum, "%016" PRIx64, run->checksum);
    snprintf(row->spec, sizeof row->spec, "%s", run->spec);
    row->provenance = run->provenance;
    row->submodels = run->submodels;
    row->parameters = (int64_t)run->parameters;
    row->batch = o->batch;
    row->seed = (int64_t)o->seed;
    row->threads = run->provenance.threads;
    row->imbalance = run->imbalance;
}

static void fill_results(StudyRow *row, const RunFile *run, const Model *model) {
    size_t last = run->curve_rows;
    if (last) {
        const CurveRow *end = &run->curve[last - 1];
        row->steps = (int64_t)end->step;
        row->epochs = (double)end->step / run->steps_per_epoch;
        row->seconds = end->seconds;
        row->rate = (double)end->samples * model->targets / end->seconds;
    }
    if (run->evaluation_rows) {
        const EvaluationRow *end = &run->evaluations[run->evaluation_rows - 1];
        row->valid_loss = end->loss;
        row->accuracy = end->accuracy;
        row->perplexity = end->perplexity;
    }
    for (int role = 0; role <= MEM_ROLES; role++) row->peak[role] = (double)run->memory[role].peak;
    OptimizerSettings optimizer = setup_optimizer(&run->settings);
    row->closed_form =
        memory_closed_form(model, &optimizer, (Precision)run->settings.precision, run->submodels);
    copy(row->input, model->tokens ? "tokens" : "images");
}

int study_add_run(Study *study, RunFile *run, const char *name) {
    Model *model = model_create(run->spec);
    if (!model) return -1;
    StudyRow *row = study_add(study);
    copy(row->name, name);
    fill_settings(row, run);
    fill_results(row, run, model);
    row->curve = run->curve;
    row->curve_rows = run->curve_rows;
    row->evaluation = run->evaluations;
    row->evaluation_rows = run->evaluation_rows;
    row->switches = run->switches;
    row->switch_rows = run->switch_rows;
    run->curve = NULL;
    run->evaluations = NULL;
    run->switches = NULL;
    run->curve_rows = run->evaluation_rows = run->switch_rows = 0;
    model_free(model);
    return 0;
}

void study_thin(StudyRow *row, size_t updates) {
    size_t kept = 0;
    for (size_t begin = 0, end; begin < row->curve_rows; begin = end) {
        CurveRow mean = row->curve[begin];
        double sum = 0;
        for (end = begin; end < row->curve_rows && end < begin + updates &&
                          row->curve[end].submodel == mean.submodel;
             end++)
            sum += row->curve[end].loss;
        mean = row->curve[end - 1];
        mean.loss = sum / (double)(end - begin);
        row->curve[kept++] = mean;
    }
    row->curve_rows = kept;
}

bool study_is_images(const StudyRow *row) { return strcmp(row->input, "images") == 0; }

double study_score(const StudyRow *row, const EvaluationRow *evaluation) {
    return study_is_images(row) ? 100 * evaluation->accuracy : evaluation->perplexity;
}

bool study_is_bcd3(const StudyRow *row) {
    return row->submodels == 3 && row->settings.fraction >= 1 && !*row->settings.init;
}

Text study_method(const StudyRow *row) {
    if (row->submodels == 1) return text_of("%s", row->method);
    if (row->settings.fraction >= 1) return text_of("BCD-1/%" PRId64, row->submodels);
    return text_of("1/%" PRId64 " x%s", row->submodels,
                   text_of("%.3g", row->settings.fraction).text + 1); /* ".9" */
}

double study_axis_value(const StudyRow *row, size_t curve_row, StudyAxis axis) {
    if (axis == AXIS_UPDATES) return (double)row->curve[curve_row].step;
    if (axis == AXIS_SECONDS) return row->curve[curve_row].seconds;
    return row->operations ? row->operations[curve_row] : NAN;
}

size_t study_rows_before(const StudyRow *row, StudyAxis axis, double value) {
    size_t low = 0, high = row->curve_rows;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (study_axis_value(row, middle, axis) < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool study_times_comparable(const StudyRow *a, const StudyRow *b) {
    return a->threads == b->threads &&
           !strcmp(provenance_computer(&a->provenance), provenance_computer(&b->provenance));
}

bool study_may_be_cut(const StudyRow *row) { return row->settings.optimizer.schedule != LR_COSINE; }
