/* Arrays that show writes outside of them, and elements that were not written. */
#pragma once

#include "../../ref/base/real.h"

/* count numbers between guard words.  The data is aligned to one number and no more, because ops
 * must work on any row of a larger array. */
typedef struct {
    real *data; /* NULL when count is 0 */
    size_t count;
} Guarded;

/* Creates an array filled with NaN.  Ends the program when memory runs out. */
Guarded guarded_create(size_t count);
void guarded_free(Guarded *array);
/* Fills the array with NaN. */
void guarded_spoil(Guarded array);
/* Returns true if no guard word has changed. */
bool guarded_intact(Guarded array);

/* Returns the index of the first NaN, or count. */
size_t guarded_first_nan(Guarded array);
/* Returns the index of the first number whose bits differ, or a.count.  Both have the same count.
 */
size_t guarded_first_difference(Guarded a, Guarded b);
/* CHECKs that two arrays have the same bits. */
void guarded_check_same(Guarded a, Guarded b, const char *what);
/* Returns the largest magnitude. */
double guarded_largest(Guarded array);
