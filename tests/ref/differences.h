/* Gradients by central differences: the slope of sum(dy * y) of the plain op as a function of its
 * inputs.  For the double build, since float's rounding is larger than the differences. */
#pragma once

#include "cases.h"

typedef struct {
    CaseData *data; /* its inputs are changed and restored; y is overwritten */
    bool whole;     /* the inputs are whole numbers: steps are 1, and slopes are exact */
} Differences;

/* Starts from the inputs of case_create.  Sets dy to 0 where the input of a relu is near 0, where
 * it has no slope. */
void differences_start(Differences *differences, CaseData *data, bool whole);

/* Returns the slope in the direction of element i of an input array.  With i = -1 the direction is
 * vector number `direction` of random signs, which tests every element at once. */
double differences_slope(const Differences *differences, Array input, long i, int direction);

/* Returns element i of that vector. */
double differences_sign(int direction, size_t i);
