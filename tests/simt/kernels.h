/* Launchers of the kernels that prove the SIMT layer: correct ones (correct.cu,
 * warps.cu), and ones with a planted mistake (planted.cu).  All memory is the host's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- correct.cu ---- */

void run_sum(float *sum, const float *x, int rows, int n, int threads); /* sums of rows */
void run_transpose(float *y, const float *x, int rows, int columns);    /* y[columns][rows] */
void run_scan(int *y, const int *x, int n, int threads);                /* running sums */
void run_reverse(float *x, int n, size_t limit);                        /* n <= 1024 */
void run_pipeline(float *sum, const float *x, int tiles);               /* of tiles of 128 */
void run_numbers(unsigned *y, const unsigned grid[3], const unsigned block[3]);
void run_block_vote(int *y, int threads, int voter); /* does any thread have this number? */
/* Every thread i adds i to the sum, and 1 to histogram[i % 8]. */
void run_atomics(int *sum, int histogram[8], int blocks, int threads);
void run_stacks(unsigned long long *addresses, int threads); /* of a local variable */
void run_scale(float *x, float factor, int n, void *stream);
void run_add_row(float *x, const float *row, int n, void *stream);

/* ---- warps.cu: one warp ---- */

enum { SHUFFLE_INDEX, SHUFFLE_UP, SHUFFLE_XOR, SHUFFLES };
void run_shuffle(int kind, int *y, const int *x, int amount);
void run_shuffle_long(long long *y, const long long *x);
void run_halves(int *y, const int *x); /* the halves of the warp take different branches */
/* y[i][0] says whether any lane has a number above the limit, y[i][1] whether any of the first
 * eight lanes has. */
void run_votes(int y[32][2], const int *x, int limit);

/* ---- planted.cu ---- */

typedef enum {
    PLANTED_NOTHING,
    MISSING_BARRIER,
    MISSING_SECOND_BARRIER,
    MISSING_SYNCWARP,
    BLOCKS_WITHOUT_ATOMIC,
    MISSING_WAIT,
    UNINITIALISED,
    LEAVES_BEFORE_BARRIER,
    DIVERGENT_BARRIER,
    LEAVES_BEFORE_SHUFFLE,
    LANE_THAT_IS_NOT,
    LANE_AT_BARRIER,
    ANOTHER_OPERATION,
    MASK_WITHOUT_CALLER,
    MISALIGNED_MATRIX,
    MISALIGNED_COPY,
    PRODUCT_WITHOUT_FENCE,
    PRODUCT_OF_ONE_WARP,
    STATIC_OVERRUN,
    DYNAMIC_OVERRUN,
    GLOBAL_OVERRUN,
    MISALIGNED_LOAD,
    TOO_MANY_THREADS,
    NO_BLOCKS,
    TOO_MUCH_SHARED,
    LIMIT_TOO_LARGE,
    LIMIT_LOWERED,
    PLANTED
} Planted;
/* Runs the kernel that has this mistake. x has 256 floats, aligned to 16 bytes, and y 64 floats. */
void run_planted(Planted planted, float *y, const float *x);
bool planted_by_clang(void); /* the compiler of planted.cu */
/* Sets the lines of planted.cu with the kernel's two accesses, or with its error. */
void planted_lines(Planted planted, int lines[2]);

#ifdef __cplusplus
}
#endif
