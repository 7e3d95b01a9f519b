/* bf16 and tf32: roundings, fragments, matrices from shared memory, a small product. */
#include "../../cuda/ops/kernel.cuh"
#include "fragments.h"

static __global__ void to_bf16(unsigned short *y, const float *x, int n) {
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n) y[i] = __bfloat16_as_ushort(__float2bfloat16_rn(x[i]));
}

extern "C" void run_to_bf16(Stream stream, unsigned short *y, const float *x, int n) {
    LAUNCH(to_bf16, (n + 255) / 256, 256, 0, stream, y, x, n);
}

static __global__ void to_tf32(unsigned *y, const float *x, int n) {
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n) y[i] = tf32_round(x[i]);
}

extern "C" void run_to_tf32(Stream stream, unsigned *y, const float *x, int n) {
    LAUNCH(to_tf32, (n + 255) / 256, 256, 0, stream, y, x, n);
}

/* Packs two floats as bf16, the first in the low half. */
static __device__ __forceinline__ unsigned pair(float low, float high) {
    return (unsigned)__bfloat16_as_ushort(__float2bfloat16_rn(low)) |
           (unsigned)__bfloat16_as_ushort(__float2bfloat16_rn(high)) << 16;
}

static __device__ __forceinline__ void store_accumulators(float *c, int stride,
                                                          const float (&d)[4]) {
    int g = (int)threadIdx.x % 32 / 4, t = (int)threadIdx.x % 4;
    c[g * stride + 2 * t] = d[0];
    c[g * stride + 2 * t + 1] = d[1];
    c[(g + 8) * stride + 2 * t] = d[2];
    c[(g + 8) * stride + 2 * t + 1] = d[3];
}

static __global__ void one_mma_bf16(float *c, const float *a, const float *b) {
    int g = (int)threadIdx.x / 4, t = (int)threadIdx.x % 4;
    unsigned fa[4], fb[2];
    for (int i = 0; i < 4; i++) {
        const float *from = a + (g + i % 2 * 8) * 16 + 2 * t + i / 2 * 8;
        fa[i] = pair(from[0], from[1]);
    }
    for (int i = 0; i < 2; i++) {
        const float *from = b + (2 * t + i * 8) * 8 + g;
        fb[i] = pair(from[0], from[8]);
    }
    float d[4] = {0.5f, 0.5f, 0.5f, 0.5f};
    mma_bf16(d, fa, fb);
    store_accumulators(c, 8, d);
}

extern "C" void run_mma_bf16(Stream stream, float *c, const float *a, const float *b) {
    LAUNCH(one_mma_bf16, 1, 32, 0, stream, c, a, b);
}

static __global__ void one_mma_tf32(float *c, const float *a, const float *b) {
    int g = (int)threadIdx.x / 4, t = (int)threadIdx.x % 4;
    unsigned fa[4], fb[2];
    for (int i = 0; i < 4; i++) fa[i] = tf32_round(a[(g + i % 2 * 8) * 8 + t + i / 2 * 4]);
    for (int i = 0; i < 2; i++) fb[i] = tf32_round(b[(t + i * 4) * 8 + g]);
    float d[4] = {0.5f, 0.5f, 0.5f, 0.5f};
    mma_tf32(d, fa, fb);
    store_accumulators(c, 8, d);
}

extern "C" void run_mma_tf32(Stream stream, float *c, const float *a, const float *b) {
    LAUNCH(one_mma_tf32, 1, 32, 0, stream, c, a, b);
}

/* Computes the same product with its fragments from shared memory. */
static __global__ void product_by_ldmatrix(float *c, const float *a, const float *b) {
    SHARED(__nv_bfloat16, sa, [16][16]);
    SHARED(__nv_bfloat16, sb, [16][8]); /* [k][n] */
    int lane = (int)threadIdx.x;
    for (int i = lane; i < 256; i += 32) sa[i / 16][i % 16] = __float2bfloat16_rn(a[i]);
    for (int i = lane; i < 128; i += 32) sb[i / 8][i % 8] = __float2bfloat16_rn(b[i]);
    __syncwarp();
    unsigned fa[4], fb[2];
    /* Loads matrices in the order of the fragments: rows 0-7 and 8-15 of columns 0-7, then of
     * columns 8-15. */
    ldmatrix_x4(fa, &sa[lane % 16][lane / 16 * 8]);
    ldmatrix_x2_trans(fb, &sb[lane % 16][0]);
    float d[4] = {0, 0, 0, 0};
    mma_bf16(d, fa, fb);
    store_accumulators(c, 8, d);
}

extern "C" void run_ldmatrix(Stream stream, float *c, const float *a, const float *b) {
    LAUNCH(product_by_ldmatrix, 1, 32, 0, stream, c, a, b);
}

/* Multiplies with the instruction of a warpgroup: 64 rows by 16 by 8 N columns. a and the
 * transposed b are stored by rows, b by columns; the 128-byte swizzle puts 16 bytes of row r at
 * chunk ^ (r % 8). */
template <int N, bool SUMS>
static __global__ void warpgroup(float *c, const float *a, const float *b) {
    SHARED(__nv_bfloat16, arena, [512 + 64 * 64 + 8 * N * 64 + N / 8 * 16 * 64]);
    __nv_bfloat16 *const sa = arena + (1024 - shared_address(arena) % 1024) % 1024 / 2;
    __nv_bfloat16 *const st = sa + 64 * 64, *const sb = st + 8 * N * 64;
    const int thread = (int)threadIdx.x, warp = thread / 32, g = thread % 32 / 4, t = thread % 4;
    const auto at = [](int row, int column) {
        return row * 64 + ((column / 8) ^ (row % 8)) * 8 + column % 8;
    };
    for (int i = thread; i < 64 * 16; i += 128) sa[at(i / 16, i % 16)] = __float2bfloat16_rn(a[i]);
    for (int i = thread; i < 16 * 8 * N; i += 128) {
        const int k = i / (8 * N), j = i % (8 * N);
        st[at(j, k)] = __float2bfloat16_rn(b[i]);
        sb[j / 64 * 16 * 64 + at(k, j % 64)] = __float2bfloat16_rn(b[i]);
    }
    unsigned fa[1][4];
    for (int i = 0; i < 4; i++) {
        const float *from = a + (16 * warp + g + i % 2 * 8) * 16 + 2 * t + i / 2 * 8;
        fa[0][i] = pair(from[0], from[1]);
    }
    async_proxy_fence();
    __syncthreads();
    /* The descriptor says: 128-byte swizzle; 1,024 bytes from eight rows to the next; 2,048 bytes
     * from one panel to the next. */
    const uint64_t kind = (uint64_t)1 << 62 | (uint64_t)64 << 32 | (uint64_t)128 << 16;
    const auto matrix = [&](const __nv_bfloat16 *p) { return kind | shared_address(p) >> 4; };
    float d[N][4];
    for (int j = 0; j < N; j++)
        for (int i = 0; i < 4; i++) d[j][i] = 0.5f;
    wgmma_pin(fa);
    wgmma_begin(d);
    if constexpr (SUMS)
        wgmma_sums(d, fa[0], matrix(sb));
    else
        wgmma_rows(d, matrix(sa), matrix(st));
    wgmma_end(d);
    wgmma_pin(fa);
    for (int j = 0; j < N; j++) store_accumulators(c + 16 * warp * 8 * N + 8 * j, 8 * N, d[j]);
}

extern "C" void run_warpgroup(Stream stream, float *c, const float *a, const float *b, int columns,
                              bool sums) {
    if (columns == 64 && sums)
        LAUNCH((warpgroup<8, true>), 1, 128, 0, stream, c, a, b);
    else if (columns == 64)
        LAUNCH((warpgroup<8, false>), 1, 128, 0, stream, c, a, b);
    else if (sums)
        LAUNCH((warpgroup<16, true>), 1, 128, 0, stream, c, a, b);
    else
        LAUNCH((warpgroup<16, false>), 1, 128, 0, stream, c, a, b);
}

/* Loads matrices by ldmatrix and stores their fragments: y is x, or each 8x8 matrix of x
 * transposed. Two matrices are always transposed. */
static __global__ void matrices(unsigned short *y, const unsigned short *x, int count,
                                bool transposed) {
    SHARED(unsigned short, s, [4][8][8]);
    int lane = (int)threadIdx.x, g = lane / 4, t = lane % 4;
    for (int i = lane; i < 64 * count; i += 32) s[i / 64][i / 8 % 8][i % 8] = x[i];
    __syncwarp();
    unsigned four[4] = {0, 0, 0, 0}, two[2] = {0, 0};
    const unsigned short *row = s[lane / 8 % count][lane % 8];
    if (count == 4 && transposed) ldmatrix_x4_trans(four, row);
    if (count == 4 && !transposed) ldmatrix_x4(four, row);
    if (count == 2) ldmatrix_x2_trans(two, row);
    for (int m = 0; m < count; m++) {
        unsigned r = count == 4 ? four[m] : two[m % 2];
        y[m * 64 + g * 8 + 2 * t] = (unsigned short)(r & 0xffffu);
        y[m * 64 + g * 8 + 2 * t + 1] = (unsigned short)(r >> 16);
    }
}

extern "C" void run_matrices(Stream stream, unsigned short *y, const unsigned short *x, int count,
                             bool transposed) {
    LAUNCH(matrices, 1, 32, 0, stream, y, x, count, transposed);
}

/* Four warps compute 32 rows and 32 columns of c each, in 2 x 4 tiles of 16 x 8. */
static __global__ void __launch_bounds__(128)
    product(float *c, const float *a, const float *b, int k) {
    SHARED(__nv_bfloat16, sa, [64][40]);
    SHARED(__nv_bfloat16, sb, [32][72]);
    int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    int row = warp / 2 * 32, column = warp % 2 * 32;
    float d[2][4][4] = {};
    for (int k0 = 0; k0 < k; k0 += 32) {
        for (int i = (int)threadIdx.x; i < 64 * 32; i += 128) {
            sa[i / 32][i % 32] = __float2bfloat16_rn(a[i / 32 * k + k0 + i % 32]);
            sb[i / 64][i % 64] = __float2bfloat16_rn(b[(k0 + i / 64) * 64 + i % 64]);
        }
        __syncthreads();
        for (int kk = 0; kk < 32; kk += 16)
            for (int m = 0; m < 2; m++)
                for (int n = 0; n < 4; n++) {
                    unsigned fa[4], fb[2];
                    ldmatrix_x4(fa, &sa[row + 16 * m + lane % 16][kk + lane / 16 * 8]);
                    ldmatrix_x2_trans(fb, &sb[kk + lane % 16][column + 8 * n]);
                    mma_bf16(d[m][n], fa, fb);
                }
        __syncthreads();
    }
    for (int m = 0; m < 2; m++)
        for (int n = 0; n < 4; n++)
            store_accumulators(c + (row + 16 * m) * 64 + column + 8 * n, 64, d[m][n]);
}

extern "C" void run_product(Stream stream, float *c, const float *a, const float *b, int k) {
    LAUNCH(product, 1, 128, 0, stream, c, a, b, k);
}
