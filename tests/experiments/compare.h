/* How far two trainings are apart. */
#ifndef TESTS_EXPERIMENTS_COMPARE_H
#define TESTS_EXPERIMENTS_COMPARE_H

/* Two checkpoints that went on from a third (names in the scratch directory): CHECKs that they hold
 * the same tensors under the same names, as arrays no farther apart than `tolerance` of what the
 * first moved from the third (from zero, where that has none).  What did not move is the same to
 * the bit; with tolerance 0 all is. */
void compare_checkpoints(const char *a, const char *b, const char *start, double tolerance);

#endif
