/* Compares the checkpoints of two trainings. */
#pragma once

/* Checks two checkpoints that were trained on from a third; all names are in the scratch
 * directory.  CHECKs that they hold the same tensors under the same names, and that each pair of
 * arrays differs by at most `tolerance` of the distance that the first has moved from the third
 * (from zero where the third does not have it).  An array that did not move, and with tolerance 0
 * every array, must be the same to the bit. */
void compare_checkpoints(const char *a, const char *b, const char *start, double tolerance);
