/* Products of four warps on Hopper's tensor cores, of kernel.cuh.  PTX ISA, "Asynchronous Warpgroup
 * Level Matrix Multiply-Accumulate Instructions"; only the target sm_90a has them.
 *
 * An instruction runs while the warps that issued it go on.  Its registers, accumulators and left
 * sides, are passed through empty asm statements before and after, so that the compiler writes none
 * of them after the fence, and moves no use of them to where they are in flight. */
#pragma once

#include <stdint.h>

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define WGMMA_ASM(...) asm volatile(__VA_ARGS__)
#else
#define WGMMA_ASM(...) __trap()
#endif

static DEVICE unsigned shared_address(const void *p) {
    return (unsigned)__cvta_generic_to_shared(p);
}

static DEVICE void async_proxy_fence(void) {
    WGMMA_ASM("fence.proxy.async.shared::cta;" ::: "memory");
}

template <int N>
static DEVICE void wgmma_pin(float (&d)[N][4]) {
#pragma unroll
    for (int j = 0; j < N; j++)
#pragma unroll
        for (int i = 0; i < 4; i++) asm volatile("" : "+f"(d[j][i])::"memory");
}

template <int N>
static DEVICE void wgmma_pin(unsigned (&r)[N][4]) {
#pragma unroll
    for (int j = 0; j < N; j++)
#pragma unroll
        for (int i = 0; i < 4; i++) asm volatile("" : "+r"(r[j][i])::"memory");
}

template <int N>
static DEVICE void wgmma_begin(float (&d)[N][4]) {
    wgmma_pin(d);
    WGMMA_ASM("wgmma.fence.sync.aligned;" ::: "memory");
}

template <int N>
static DEVICE void wgmma_end(float (&d)[N][4]) {
    WGMMA_ASM("wgmma.commit_group.sync.aligned;" ::: "memory");
    WGMMA_ASM("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    wgmma_pin(d);
}

/* The operands d[from] to d[from + 7], and the text for 32 and 64 of them. */
#define WGMMA_D1(j) "+f"(d[j][0]), "+f"(d[j][1]), "+f"(d[j][2]), "+f"(d[j][3])
#define WGMMA_D8(from)                                                          \
    WGMMA_D1(from), WGMMA_D1(from + 1), WGMMA_D1(from + 2), WGMMA_D1(from + 3), \
        WGMMA_D1(from + 4), WGMMA_D1(from + 5), WGMMA_D1(from + 6), WGMMA_D1(from + 7)
#define WGMMA_32                                                             \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define WGMMA_64                                                                            \
    WGMMA_32                                                                                \
    ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, "                   \
    "%45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, " \
    "%62, %63"

/* The numbers at the end of an instruction: add to d; the signs of a and b; are they transposed? */
template <int N>
static DEVICE void wgmma_rows(float (&d)[N][4], uint64_t a, uint64_t b) {
    static_assert(N == 8 || N == 16, "64 or 128 columns");
    if constexpr (N == 8)
        WGMMA_ASM("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" WGMMA_32
                  "}, %32, %33, 1, 1, 1, 0, 0;"
                  : WGMMA_D8(0)
                  : "l"(a), "l"(b));
    else
        WGMMA_ASM("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" WGMMA_64
                  "}, %64, %65, 1, 1, 1, 0, 0;"
                  : WGMMA_D8(0), WGMMA_D8(8)
                  : "l"(a), "l"(b));
}

template <int N>
static DEVICE void wgmma_sums(float (&d)[N][4], const unsigned (&a)[4], uint64_t b) {
    static_assert(N == 8 || N == 16, "64 or 128 columns");
    if constexpr (N == 8)
        WGMMA_ASM("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" WGMMA_32
                  "}, {%32, %33, %34, %35}, %36, 1, 1, 1, 1;"
                  : WGMMA_D8(0)
                  : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
    else
        WGMMA_ASM("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" WGMMA_64
                  "}, {%64, %65, %66, %67}, %68, 1, 1, 1, 1;"
                  : WGMMA_D8(0), WGMMA_D8(8)
                  : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

#undef WGMMA_ASM
#undef WGMMA_D1
#undef WGMMA_D8
#undef WGMMA_32
#undef WGMMA_64
