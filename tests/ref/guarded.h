/* Arrays that tell when somebody writes beside them or leaves a part unwritten. */
#ifndef TESTS_REF_GUARDED_H
#define TESTS_REF_GUARDED_H

#include "../../ref/real.h"

/* count numbers between guard words.  The data is aligned to one number and no more, because ops
 * promise to work on any row of a larger array. */
typedef struct {
    real *data; /* NULL when count is 0 */
    size_t count;
} Guarded;

/* Filled with NaN.  Ends the program when memory runs out: a test cannot go on. */
Guarded guarded_create(size_t count);
void guarded_free(Guarded *array);
void guarded_spoil(Guarded array); /* NaN again */
bool guarded_intact(Guarded array);

/* The first number that is NaN, or count. */
size_t guarded_first_nan(Guarded array);
/* The first number whose bits differ, or a.count.  Both must have the same count. */
size_t guarded_first_difference(Guarded a, Guarded b);

#endif
