/* Counter-based random numbers: number i of stream s under seed k is a pure function of (k, s, i).
 * There is no state, so the bits are the same on any number of threads, on any rank, and after a
 * resume.  The function is Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as
 * easy as 1, 2, 3", SC 2011). */
#pragma once

#include <stdint.h>

/* Each use of a seed has a stream of its own.  Some add an index to it. */
enum {
    STREAM_INIT = 1 << 24,    /* + parameter number: initial values */
    STREAM_SHUFFLE = 2 << 24, /* epoch permutations of the data */
    STREAM_SUBSET = 3 << 24,  /* dataset reduction: which samples a submodel sees */
    STREAM_ORDER = 4 << 24,   /* random order of submodels */
    STREAM_AUGMENT = 5 << 24, /* crops and flips */
    STREAM_SYNTHETIC = 6 << 24,
    STREAM_SAMPLE = 7 << 24 /* text generation */
};

/* Computes the Philox4x32-10 block function: four 32-bit outputs from a counter and a key. */
void philox4x32(uint32_t out[4], const uint32_t counter[4], const uint32_t key[2]);

/* Returns 64 random bits: number `index` of `stream` under `seed`. */
uint64_t random_bits(uint64_t seed, uint32_t stream, uint64_t index);

/* Returns a number uniform in [0, 1), a multiple of 2^-53. */
double random_uniform(uint64_t seed, uint32_t stream, uint64_t index);

/* Returns a standard normal number (Box-Muller, cosine branch). */
double random_normal(uint64_t seed, uint32_t stream, uint64_t index);

/* Returns an integer uniform in [0, bound), bound >= 1; its bias is below 2^-32. */
uint32_t random_below(uint64_t seed, uint32_t stream, uint64_t index, uint32_t bound);

/* Overwrites order[n] with a random permutation of 0 .. n - 1 (Fisher-Yates), n >= 0.  `number`
 * selects one of 2^32 permutations of the same seed and stream, for example by epoch. */
void random_permutation(int *order, int n, uint64_t seed, uint32_t stream, uint64_t number);

/* Returns element i of a random permutation of 0 .. n - 1, 0 <= i < n, without the others: a
 * Feistel network of Philox on the smallest square of at least n numbers, which is applied again to
 * a result of n or more (Black, Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002).  It
 * is not the permutation above. */
int random_permuted(int i, int n, uint64_t seed, uint32_t stream, uint64_t number);
