#include "converge.h"

#include <stdlib.h>

#include "../../ref/error.h"
#include "../../ref/layout.h"
#include "../alloc.h"
#include "../train/setup.h"

int model_operations(double *operations, const Model *model, const bool *active,
                     double correct_factor) {
    StageSettings settings = {.batch = 1, .correct_factor = correct_factor};
    Layout layout;
    if (layout_make(&layout, model, &settings, active)) return -1;
    *operations = 0;
    for (int i = 0; i < model->nodes; i++) {
        const Node *node = &model->node[i];
        *operations += node_flops(node, PASS_FORWARD);
        if (layout.value[node->in].needs_grad) *operations += node_flops(node, PASS_INPUT_GRADIENT);
        if (node_trains(model, node, layout.trains))
            *operations += node_flops(node, PASS_WEIGHT_GRADIENT);
    }
    layout_free(&layout);
    return 0;
}

static int make_partition(Partition *partition, const Model *model, const StudyRow *row) {
    Options settings = row->settings;
    settings.submodels = (int)row->submodels;
    if (setup_partition(partition, model, &settings)) return -1;
    if (partition->submodels == row->submodels) return 0;
    partition_free(partition);
    return error_set("%s: its settings do not make %d submodels", row->name, (int)row->submodels);
}

/* Counts the operations of a step of each submodel, per sample. */
static int count_submodels(double *operations, const Model *model, const Partition *partition,
                           double correct_factor) {
    bool *active = xcalloc((size_t)model->blocks, sizeof *active);
    int failed = 0;
    for (int m = 0; m < partition->submodels && !failed; m++) {
        partition_active(partition, model, m, active);
        failed = model_operations(&operations[m], model, active, correct_factor);
    }
    free(active);
    return failed;
}

/* Fills row->operations: the sum over the updates so far. */
static int add_up(StudyRow *row, const double *of_submodel) {
    double sum = 0;
    row->operations = xmalloc((row->curve_rows + 1) * sizeof *row->operations);
    for (size_t i = 0; i < row->curve_rows; i++) {
        int submodel = row->curve[i].submodel;
        if (submodel < 0 || submodel >= row->submodels) {
            free(row->operations);
            row->operations = NULL;
            return error_set("%s: update %zu is of submodel %d of %d", row->name, i + 1,
                             submodel + 1, (int)row->submodels);
        }
        uint64_t before = i ? row->curve[i - 1].step : 0; /* a row may span several updates */
        sum += of_submodel[submodel] * (double)row->batch * (double)(row->curve[i].step - before);
        row->operations[i] = sum;
    }
    return 0;
}

int study_operations(StudyRow *row) {
    free(row->operations);
    row->operations = NULL;
    Model *model = model_create(row->spec);
    Partition partition = {0};
    int failed = model ? make_partition(&partition, model, row) : -1;
    if (!failed) {
        double *of_submodel = xcalloc((size_t)partition.submodels, sizeof *of_submodel);
        failed = count_submodels(of_submodel, model, &partition, row->settings.correct_above) ||
                 add_up(row, of_submodel);
        free(of_submodel);
    }
    partition_free(&partition);
    model_free(model);
    return failed ? -1 : 0;
}

void study_prepare(Study *study) {
    for (int r = 0; r < study->rows; r++) study_operations(&study->row[r]);
    study_converge(study);
}
