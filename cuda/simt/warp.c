/* What the last lane to arrive does for the whole warp: in __syncwarp, shuffles and votes, products
 * of fragments (mma), and loads of their matrices from shared memory (ldmatrix).  Layouts: PTX ISA,
 * "Warp-level matrix instructions"; in words in ../gpu/gpu.cuh. */
#include <string.h>

#include "../../ref/base/bf16.h"
#include "internal.h"

void simt_resolve_sync(SimtWarp *warp, unsigned mask) {
    if (simt_race) simt_race->sync_warp(warp, mask);
}

void simt_resolve_shuffle(SimtWarp *warp, unsigned mask) {
    for (unsigned i = 0; i < SIMT_LANES; i++) {
        if (!(mask >> i & 1u)) continue;
        unsigned source = warp->source[i];
        warp->result[i] = mask >> source & 1u ? warp->value[source] : ~(uint64_t)0;
    }
}

void simt_resolve_any(SimtWarp *warp, unsigned mask) {
    uint64_t any = 0;
    for (unsigned i = 0; i < SIMT_LANES; i++)
        if (mask >> i & 1u) any |= warp->value[i];
    for (unsigned i = 0; i < SIMT_LANES; i++)
        if (mask >> i & 1u) warp->result[i] = any;
}

/* ---- fragments ---- */

enum { M = 16, N = 8, K = 16 };
/* A row of d or b as two vectors of a size that every processor has. */
enum { WIDE = 4 };
typedef float Wide __attribute__((vector_size(WIDE * sizeof(float))));
typedef union {
    float at[N];
    Wide wide[N / WIDE];
} Row;

/* d += a b, where lane 4g+t holds d0 d1 = d[g][2t], d[g][2t+1] and d2 d3 = d[g+8][...]. */
static void multiply(SimtWarp *warp, float a[M][K], const Row b[K], int k_count) {
    Row d[M];
    for (unsigned lane = 0; lane < SIMT_LANES; lane++) {
        const float *from = ((const SimtProduct *)(uintptr_t)warp->value[lane])->d;
        unsigned g = lane / 4, t = lane % 4;
        for (unsigned i = 0; i < 4; i++) d[g + i / 2 * 8].at[2 * t + i % 2] = from[i];
    }
    for (int i = 0; i < M; i++)
        for (int k = 0; k < k_count; k++)
            for (int j = 0; j < N / WIDE; j++) d[i].wide[j] += a[i][k] * b[k].wide[j];
    for (unsigned lane = 0; lane < SIMT_LANES; lane++) {
        float *to = ((const SimtProduct *)(uintptr_t)warp->value[lane])->d;
        unsigned g = lane / 4, t = lane % 4;
        for (unsigned i = 0; i < 4; i++) to[i] = d[g + i / 2 * 8].at[2 * t + i % 2];
    }
}

void simt_resolve_mma_bf16(SimtWarp *warp, unsigned mask) {
    (void)mask;
    float a[M][K];
    Row b[K];
    for (unsigned lane = 0; lane < SIMT_LANES; lane++) {
        const SimtProduct *from = (const SimtProduct *)(uintptr_t)warp->value[lane];
        unsigned g = lane / 4, t = lane % 4;
        for (unsigned i = 0; i < 4; i++)
            for (unsigned half = 0; half < 2; half++)
                a[g + i % 2 * 8][2 * t + half + i / 2 * 8] =
                    bits_float(from->a[i] >> 16 * half << 16);
        for (unsigned i = 0; i < 2; i++)
            for (unsigned half = 0; half < 2; half++)
                b[2 * t + half + i * 8].at[g] = bits_float(from->b[i] >> 16 * half << 16);
    }
    multiply(warp, a, b, 16);
}

void simt_resolve_mma_tf32(SimtWarp *warp, unsigned mask) {
    (void)mask;
    const unsigned kept = ~0x1fffu; /* the device does not read the other bits */
    float a[M][K];
    Row b[K];
    for (unsigned lane = 0; lane < SIMT_LANES; lane++) {
        const SimtProduct *from = (const SimtProduct *)(uintptr_t)warp->value[lane];
        unsigned g = lane / 4, t = lane % 4;
        for (unsigned i = 0; i < 4; i++)
            a[g + i % 2 * 8][t + i / 2 * 4] = bits_float(from->a[i] & kept);
        for (unsigned i = 0; i < 2; i++) b[t + i * 4].at[g] = bits_float(from->b[i] & kept);
    }
    multiply(warp, a, b, 8);
}

/* Lane 8m+i gives the address of row i of matrix m.  Lane 4g+t gets elements 2t and 2t+1 of row g
 * of each matrix (of column g, if transposed). */
void simt_resolve_ldmatrix(SimtWarp *warp, unsigned mask) {
    (void)mask;
    const SimtMatrices *first = (const SimtMatrices *)(uintptr_t)warp->value[0];
    for (unsigned m = 0; m < first->matrices; m++) {
        uint16_t matrix[8][8];
        for (unsigned i = 0; i < 8; i++) {
            unsigned lane = 8 * m + i;
            const SimtMatrices *row = (const SimtMatrices *)(uintptr_t)warp->value[lane];
            if ((uintptr_t)row->row % 16) {
                simt_note_thread_error(warp->index[lane], warp->site[lane],
                                       "ldmatrix from an address that is no multiple of 16");
                simt_give_up();
            }
            if (simt_race)
                simt_race->access(row->row, sizeof matrix[i], false,
                                  warp->number * SIMT_LANES + lane, warp->site[lane]);
            memcpy(matrix[i], row->row, sizeof matrix[i]);
        }
        for (unsigned lane = 0; lane < SIMT_LANES; lane++) {
            const SimtMatrices *to = (const SimtMatrices *)(uintptr_t)warp->value[lane];
            unsigned g = lane / 4, t = lane % 4;
            unsigned low = first->transposed ? matrix[2 * t][g] : matrix[g][2 * t];
            unsigned high = first->transposed ? matrix[2 * t + 1][g] : matrix[g][2 * t + 1];
            to->r[m] = low | high << 16;
        }
    }
}
