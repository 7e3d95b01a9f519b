/* The ops once more, in double, as the formula says and in no hurry: what the forward passes are
 * held against, and what their gradients are differences of.  Shares no code with ref/ops. */
#ifndef TESTS_REF_NAIVE_H
#define TESTS_REF_NAIVE_H

#include "cases.h"

/* Inputs as double; NULL where the op has none. */
typedef struct {
    Node node;
    int n;
    bool use_running;
    const int *tokens;
    double *array[ARRAYS]; /* inputs and ARRAY_Y only */
    size_t count[ARRAYS];
} Naive;

/* Copies the inputs of `data` and reserves y. */
void naive_create(Naive *naive, const CaseData *data);
void naive_free(Naive *naive);

/* Overwrites array[ARRAY_Y].  Batch norm in batch mode moves the running statistics. */
void naive_forward(Naive *naive);

#endif
