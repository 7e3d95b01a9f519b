/* The table of cases: one row is one op with shapes, and every row is put through every test of
 * test_cases.c by itself: the plain op, and the fast one against it.  To prove a new op, add rows
 * to cases.c.  Another device runs the same rows against the plain op. */
#ifndef TESTS_REF_CASES_H
#define TESTS_REF_CASES_H

#include "../../ref/node.h"
#include "guarded.h"

typedef struct {
    const char *name;
    Node node; /* kind, shapes and settings; case_create numbers the values and tensors */
    int n;     /* samples */
    bool skip, bias, use_running;
    double scale;  /* of the inputs x; 0 stands for 1 */
    double offset; /* added to them */
    /* How much larger than 1 the terms are that cancel in a gradient: 1 / deviation where a norm
     * divides by next to nothing.  0 stands for 1. */
    double cancels;
} Case;

extern const Case cases[];
extern const int case_count;

/* The arrays of a node. */
typedef enum {
    ARRAY_X,
    ARRAY_SKIP,
    ARRAY_WEIGHT,
    ARRAY_BIAS,
    ARRAY_DY,
    ARRAY_MEAN, /* running statistics: read and, in batch mode, updated */
    ARRAY_VARIANCE,
    ARRAY_Y,
    ARRAY_AUX,
    ARRAY_DX,
    ARRAY_DSKIP,
    ARRAY_DWEIGHT,
    ARRAY_DBIAS,
    ARRAYS
} Array;
extern const char *const array_names[ARRAYS];

/* Whose gradient a gradient array is: ARRAY_X for ARRAY_DX. */
Array array_of_gradient(Array gradient);

typedef struct {
    const Case *row;
    Node node;
    Guarded array[ARRAYS]; /* what the op does not have is {NULL, 0} */
    int *tokens;           /* embedding: [n][t] */
} CaseData;

/* Inputs are uniform in (-1, 1) (scales of norms in (0.5, 1.5), x times row->scale, plus
 * row->offset), or with `integers` small whole numbers, none of them 0 or 1 in magnitude in x, to
 * stay clear of the kink of relu.  Outputs are NaN. */
void case_create(CaseData *data, const Case *row, bool integers);
void case_free(CaseData *data);

/* Everything wanted, nothing accumulated. */
NodeIO case_io(const CaseData *data);

/* Forward and both gradients, as `io` says. */
void case_run(const CaseData *data, const NodeIO *io);

size_t case_array_count(const Case *row, Array array);

/* How many products stand behind one number of an array, at most: for tolerance(). */
double case_length(const Case *row, Array array);

/* Whether the op only adds and multiplies (and halves), so that whole numbers stay exact. */
bool case_exact(const Case *row);

/* Batch norm over the batch: the only op that mixes samples. */
bool case_mixes_samples(const Case *row);

#endif
