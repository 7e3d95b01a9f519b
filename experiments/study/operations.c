#include "converge.h"

#include <stdlib.h>

#include "../alloc.h"
#include "../inspect/operations.h"
#include "../train/setup.h"

/* Returns the operations of a step of each submodel, per sample, to be freed; NULL when the
 * settings do not make these submodels. */
static double *count_submodels(const Model *model, const StudyRow *row) {
    Options settings = row->settings;
    Partition partition = {0};
    settings.submodels = (int)row->submodels;
    int failed = setup_partition(&partition, model, &settings);
    double *operations = NULL;
    if (!failed && partition.submodels == row->submodels) {
        bool *active = xcalloc((size_t)model->blocks, sizeof *active);
        operations = xcalloc((size_t)partition.submodels, sizeof *operations);
        for (int m = 0; m < partition.submodels && !failed; m++) {
            partition_active(&partition, model, m, active);
            failed = model_operations(&operations[m], model, active, settings.correct_above);
        }
        free(active);
    }
    partition_free(&partition);
    if (!failed) return operations;
    free(operations);
    return NULL;
}

/* Returns true when the submodels of a curve are those that the row has. */
static bool has_submodels(const StudyRow *row) {
    for (size_t i = 0; i < row->curve_rows; i++)
        if (row->curve[i].submodel < 0 || row->curve[i].submodel >= row->submodels) return false;
    return true;
}

void study_operations(StudyRow *row) {
    Model *model = model_create(row->spec);
    double *each = model && has_submodels(row) ? count_submodels(model, row) : NULL, sum = 0;
    free(row->operations);
    row->operations = each ? xmalloc((row->curve_rows + 1) * sizeof *row->operations) : NULL;
    for (size_t i = 0; i < row->curve_rows && each; i++) {
        uint64_t before = i ? row->curve[i - 1].step : 0; /* a row may span several updates */
        sum += each[row->curve[i].submodel] * (double)row->batch *
               (double)(row->curve[i].step - before);
        row->operations[i] = sum;
    }
    free(each);
    model_free(model);
}
