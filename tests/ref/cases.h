/* The table of cases.  A row is an op with shapes.  test_cases.c runs every test on every row, for
 * the plain op and for the fast one, so a new op is tested by adding rows to cases.c.  Other
 * devices run the same rows and compare with the plain op. */
#pragma once

#include "../../ref/node.h"
#include "guarded.h"

typedef struct {
    const char *name;
    Node node; /* kind, shapes and settings; case_create numbers the values and tensors */
    int n;     /* samples */
    bool skip, bias, use_running;
    double scale;  /* of the inputs x; 0 stands for 1 */
    double offset; /* added to them */
    bool far;      /* x, of SwiGLU its gates, has every magnitude from 1 to 1e38 instead */
    /* The size of the terms that cancel in a gradient, where that is above 1: 1 / deviation of a
     * norm that divides by almost nothing.  0 stands for 1. */
    double cancels;
} Case;

extern const Case cases[];
extern const int case_count;

/* Returns false for a row that ROW="words|other words" in the environment leaves out: its name
 * contains none of them. */
bool case_wanted(const Case *row);
/* CHECKs that some row is wanted, or a misspelt ROW would test nothing and pass. */
void some_case_is_wanted(void);

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

/* Returns the array that a gradient belongs to: ARRAY_X for ARRAY_DX. */
Array array_of_gradient(Array gradient);

typedef struct {
    const Case *row;
    Node node;
    Guarded array[ARRAYS]; /* what the op does not have is {NULL, 0} */
    int *tokens;           /* embedding: [n][t] */
} CaseData;

/* Allocates the arrays of a row.  Inputs are uniform in (-1, 1), x times row->scale plus
 * row->offset, and the scales of norms in (0.5, 1.5).  With `integers` they are small whole
 * numbers; those of x have a magnitude of at least 2, so that steps of 1 do not cross the kink of
 * relu. Outputs are NaN. */
void case_create(CaseData *data, const Case *row, bool integers);
void case_free(CaseData *data);

/* Returns the io of calls that compute every gradient and accumulate none. */
NodeIO case_io(const CaseData *data);

/* Runs forward and the gradients that `io` asks for. */
void case_run(const CaseData *data, const NodeIO *io);

/* Returns the numbers in an array, 0 if the op does not have it. */
size_t case_array_count(const Case *row, Array array);

/* Returns the largest number of products that are summed in one number of an array, and the largest
 * magnitude of a term of such sums, given that of the results: the arguments of tolerance(). */
double case_length(const Case *row, Array array);
double case_magnitude(const Case *row, double result);

/* Returns true if the op only adds, multiplies and halves, so that whole numbers stay exact. */
bool case_exact(const Case *row);

/* Returns true if the output is that of a relu. */
bool case_ends_in_relu(const Case *row);

/* Returns true for a batch norm with the statistics of the batch, the only op in which a sample
 * depends on others. */
bool case_mixes_samples(const Case *row);
