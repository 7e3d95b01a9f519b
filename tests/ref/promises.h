/* The promises about gradients; test_cases.c has the others and the list. */
#ifndef TESTS_REF_PROMISES_H
#define TESTS_REF_PROMISES_H

#include "cases.h"

/* Of the plain op, in double: its gradients are the slopes of its forward pass. */
void gradients_meet_differences(const Case *row, bool plain);
/* Whole numbers: equal to the last bit. */
void gradients_are_exact(const Case *row, bool plain);
/* add_* adds to what was there. */
void accumulates(const Case *row, bool plain);

/* Of the terms of a sum: inputs are at most scale + offset, and results at most what they are,
 * unless the row says that more cancels. */
double case_magnitude(const Case *row, double result);

#endif
