/* Layer and root mean square normalisation over the c values of each row (Ba, Kiros, Hinton 2016;
 * Zhang & Sennrich 2019): one code, `centred` or not.  In the formulas m is the row's mean (0
 * unless centred) and r one over its deviation.
 *
 *   forward    y = (x - m) r g + b                         b only if centred
 *   gradient   dx = r (dy g - A - (x - m) B), A = mean(dy g) (0 unless centred),
 *              B = r^2 mean(dy g (x - m))
 *   scale      dg = sum over rows of dy (x - m) r, db = sum of dy
 *
 * Version 1 is a block for each row (of dg and db for each column), and reads what it needs again.
 * Version 2 reads a row once, in packs of 128 bits, all of them on their way together, and keeps it
 * in the registers of its threads (as packs: bf16 takes half the registers of its floats).  A row's
 * bits depend on that row alone: kernels are chosen by c and never by n. */
#pragma once

#include "common.cuh"

/* n rows of c numbers, and what the forward pass saves of each row: m (NULL unless centred) and r.
 */
typedef struct {
    int n, c;
    float *mean, *r;
} Norm;

static inline Norm norm_of(const Call *k) {
    const bool centred = k->node->kind == OP_LAYERNORM;
    return {k->rows, k->c, centred ? k->io->aux : NULL, k->io->aux + (centred ? k->rows : 0)};
}

enum { NORM_THREADS = 128 }; /* of a block, or as many as a row has */

/* Calls launch(threads, C) with the smallest shape of version 2 that holds c columns, C a thread.
 * Narrow rows have a warp each, so that nobody waits at a barrier.  24 columns are as many as a
 * thread can sum in addition to the row that it holds. */
template <typename Launch>
static void with_norm_shape(int c, const Launch &launch) {
    if (c <= 32 * 16)
        launch(Constant<32>(), Constant<16>());
    else if (c <= 32 * 24)
        launch(Constant<32>(), Constant<24>());
    else if (c <= 128 * 8)
        launch(Constant<128>(), Constant<8>());
    else if (c <= 256 * 8)
        launch(Constant<256>(), Constant<8>());
    else if (c <= 256 * 16)
        launch(Constant<256>(), Constant<16>());
    else
        launch(Constant<512>(), Constant<16>());
}
enum { NORM_COLUMNS = 512 * 16 }; /* at most */

/* Returns the rows that a block works on at once. */
static constexpr __host__ __device__ int norm_rows(int threads) {
    return threads < NORM_THREADS ? NORM_THREADS / threads : 1;
}

/* Returns the sum of x over the threads of a row; `scratch` is that of block_sum. */
template <int threads>
static DEVICE float row_sum(float x, float *scratch) {
    if constexpr (threads == 32)
        return warp_sum(x);
    else
        return block_sum(x, scratch);
}
