/* Launchers of kernels that take one instruction of the tensor cores, or of what feeds them, by
 * itself (fragments.cu).  Arrays are on the device. */
#pragma once

#include <stdbool.h>

#include "../../cuda/device.h"

#ifdef __cplusplus
extern "C" {
#endif

void run_to_bf16(Stream stream, unsigned short *y, const float *x, int n);
void run_to_tf32(Stream stream, unsigned *y, const float *x, int n);
/* c[16][8] = 0.5 + a[16][k] b[k][8] by one instruction; k is 16, and 8 for tf32. */
void run_mma_bf16(Stream stream, float *c, const float *a, const float *b);
void run_mma_tf32(Stream stream, float *c, const float *a, const float *b);
/* c[16][8] = a[16][16] b[16][8], with fragments by ldmatrix. */
void run_ldmatrix(Stream stream, float *c, const float *a, const float *b);
/* c[64][columns] = 0.5 + a[64][16] b[16][columns] by one instruction of four warps, of 64 or 128
 * columns; `sums`: a in registers, b read by columns.  Only where device_has_wgmma(). */
void run_warpgroup(Stream stream, float *c, const float *a, const float *b, int columns, bool sums);
/* y is x, `count` matrices of 8 x 8 numbers, four or two, or each of them transposed; two always
 * are. */
void run_matrices(Stream stream, unsigned short *y, const unsigned short *x, int count,
                  bool transposed);
/* c[64][64] = a[64][k] b[k][64] for floats that are rounded to bf16; k is a multiple of 32. */
void run_product(Stream stream, float *c, const float *a, const float *b, int k);

#ifdef __cplusplus
}
#endif
