/* How far a device's number may be from the oracle's, which computed in float from the very same
 * inputs (in bf16: rounded ones, and the gradients from the device's own y and aux).
 *
 * With the unit roundoffs u(float) = 2^-24, u(tf32) = 2^-11 (of the library's products 2^-10: see
 * accuracy.c), u(bf16) = 2^-8, a sum of `length` products, terms up to `size`
 * (tests/ref/tolerance.h), may be off by
 *
 *   2 tolerance(length, size)    float sums, on either side
 *   + operand                    operands of products that were rounded (below)
 *   + u(bf16) |value|            the result rounded to bf16, where it is stored so
 *
 * Linear layers and convolutions in fp32 get an eighth of the first: 2 sqrt(length) u size.  The
 * oracle sums in double, and only the device's partial sums are rounded.  Their terms have a
 * deviation of scale / 3, the k-th partial sum sqrt(k) times that; each is off by u / sqrt(3) of
 * itself, and all of them by 0.14 u length scale: five deviations are 0.7 u length scale.  The
 * largest result, five deviations as well, is 1.6 sqrt(length) scale, so that this allows 3.3 u
 * length scale: four times what is expected of the plainest order of summation.  On tensor cores
 * partial sums may be cut off instead of rounded, which does not walk: those precisions keep all.
 *
 * operand: factors of linear layers and convolutions are at most `scale`, evenly spread, so their
 * product has a deviation of scale / 3.  Rounding both to tf32 moves it by sqrt(2) u / sqrt(3) of
 * that (the error is even within +-u, less for most mantissas): 0.27 u scale, times sqrt(length)
 * for the sum, times five to six deviations for the worst of some ten thousand numbers: 1.6,
 * rounded up to 2 u sqrt(length) scale.  Cut off instead, a product loses 0.72 u of itself on the
 * average (the mean of 1/m over mantissas), which over a sum is as much of the result, at most 1.5
 * sqrt(length) scale: 1.1 u, and 0.7 u for the part that is random: the same bound.  In bf16 the
 * operands come as bf16: nothing is rounded.
 *
 * attention: each score is off by a few u times the product of two inputs, scale^2, and the
 * weights, which sum to 1, by as much, relatively, and by u each for their own rounding (in bf16
 * also of the rotated q and k).  An output is an average of inputs with these weights, a gradient
 * has one such average more: 8 u scale^2, whatever the length, in fp32 with its own u.  There the
 * sums get an eighth as well: of d products, five deviations are 0.7 sqrt(d) u scale^2 (as above,
 * over sqrt(d)); of t weighted values, whose partial sums stay below the deviation scale / sqrt(3),
 * u / sqrt(3) each: 1.7 sqrt(t) u scale.  Together at most 1.9 sqrt(t + d) u.  Not so where
 * inputs are larger: exponents of scores in the forties magnify what they are off by, and these
 * rows keep what they had.  Keys that several heads look at get one for each; the rows have at most
 * five, whose errors do not all add up: the same bound. */
#pragma once

#include "device_case.h"

/* For one number of an array; largest: of the array, as the oracle computed it. */
double device_tolerance(const Case *row, Array array, Precision precision, double largest,
                        double value);
