/* How far a number of the device may be from the oracle's.
 *
 * The oracle computes in float from the same inputs.  In bf16 these are rounded, and its gradients
 * start from the device's own y and aux.  The unit roundoffs are u(float) = 2^-24, u(tf32) = 2^-11
 * (2^-10 for products of the library: see accuracy.c) and u(bf16) = 2^-8.  A sum of `length`
 * products with terms up to `size` (tests/ref/tolerance.h) may be off by
 *
 *   2 tolerance(length, size)    for float sums on both sides
 *   + operand                    for operands of products that were rounded (below)
 *   + u(bf16) |value|            for a result that is stored in bf16
 *
 * Linear layers and convolutions in fp32 get an eighth of the first term: 2 sqrt(length) u size.
 * The oracle sums in double, so only the device's partial sums are rounded.  The terms have a
 * deviation of scale / 3, and the k-th partial sum sqrt(k) times that.  Each partial sum is off by
 * u / sqrt(3) of itself, and all of them together by 0.14 u length scale; five deviations are
 * 0.7 u length scale.  The largest result, again at five deviations, is 1.6 sqrt(length) scale, so
 * the tolerance is 3.3 u length scale: four times what the simplest order of summation needs.
 * Tensor cores may cut partial sums off instead of rounding them.  Such errors have one sign and do
 * not cancel, so the other precisions keep the whole term.
 *
 * operand, linear layers and convolutions: factors are at most `scale` and uniform, so a product
 * has a deviation of scale / 3.  Rounding both factors to tf32 changes it by sqrt(2) u / sqrt(3) of
 * that (the error is uniform within +-u, and smaller for most mantissas): 0.27 u scale.  The sum
 * multiplies this by sqrt(length), and the worst of some ten thousand numbers by five to six: 1.6,
 * which is rounded up to 2 u sqrt(length) scale.  A product of factors that are cut off loses
 * 0.72 u of itself on average (the mean of 1/m over mantissas m), and a sum as much of the result,
 * which is at most 1.5 sqrt(length) scale.  That is 1.1 u, and the random part adds 0.7 u: the same
 * bound.  In bf16 the operands are stored in bf16, and nothing more is rounded.
 *
 * operand, attention: each score is off by a few u times the product of two inputs, scale^2.  The
 * weights, which sum to 1, have that as a relative error, and one of u for their own rounding (in
 * bf16 also for that of the rotated q and k).  An output is a mean of inputs with these weights,
 * and a gradient has one more such mean: 8 u scale^2 for every length, where u in fp32 is u(float).
 * Sums in fp32 get an eighth of the first term here as well: five deviations of a sum of d products
 * are 0.7 sqrt(d) u scale^2 (as above, over sqrt(d)).  Of t weighted values the partial sums stay
 * below the deviation scale / sqrt(3), and each is off by u / sqrt(3) of itself: 1.7 sqrt(t) u
 * scale.  Together this is at most 1.9 sqrt(t + d) u.  Rows with larger inputs keep the whole term,
 * since the exponential of a score above 40 magnifies its error.  A key that several heads read
 * gets an error from each of them.  The rows have at most five such heads, whose errors do not all
 * add up, so the bound is the same. */
#pragma once

#include "device_case.h"

/* Returns the tolerance for one number of an array. `largest` is the largest magnitude in the
 * oracle's array. */
double device_tolerance(const Case *row, Array array, Precision precision, double largest,
                        double value);

/* A row, and how the device runs it. */
typedef struct {
    const Case *row;
    How how;
} Turn;

/* CHECKs the first `count` numbers of an array, each against its tolerance. */
void device_check_near(Turn turn, Array array, Guarded got, Guarded truth, size_t count);
/* CHECKs all that the device computed, in `once`, against the op on the CPU: the plain one, or the
 * fast one, which the suite `cases` compares with it. */
void device_meets_oracle(const CaseData *once, Turn turn, bool plain);
