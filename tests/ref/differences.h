/* Gradients from differences: the slope of sum(dy * y) of the plain op when its inputs move.  For
 * the double build: float's rounding would drown the differences. */
#ifndef TESTS_REF_DIFFERENCES_H
#define TESTS_REF_DIFFERENCES_H

#include "cases.h"

typedef struct {
    CaseData *data; /* its inputs are moved, and put back; y is overwritten */
    bool whole;     /* whole numbers: steps of 1, and every slope is exact */
} Differences;

/* With inputs of case_create.  Sets dy to 0 wherever the output stands near the kink of relu, where
 * there is no slope to compare with. */
void differences_start(Differences *differences, CaseData *data, bool whole);

/* The slope in the direction of element i of an input array, or with i = -1 along a random vector
 * of ones and minus ones, number `direction`: it meets every element at once. */
double differences_slope(const Differences *differences, Array input, long i, int direction);

/* Element i of that vector. */
double differences_sign(int direction, size_t i);

#endif
