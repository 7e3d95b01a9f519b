/* The promises about gradients; test_cases.c has the others and the list. */
#ifndef TESTS_REF_PROMISES_H
#define TESTS_REF_PROMISES_H

#include "cases.h"

/* In double against differences of the op itself, in float against those of the naive formula. */
void gradients_meet_differences(const Case *row);
/* Whole numbers: equal to the last bit. */
void gradients_are_exact(const Case *row);
/* add_* adds to what was there. */
void accumulates(const Case *row);

/* Of the terms of a sum: inputs are at most row->scale, and results at most what they are, unless
 * the row says that more cancels. */
double case_magnitude(const Case *row, double result);

#endif
