/* Rotary position embedding (RoFormer, Su et al. 2021), half-split as in ref/ops/rope.h: before
 * attention q and k are turned into the workspace, and attention's gradient kernels turn theirs
 * back as they write them (attention.cuh).  Angles are made in double: a float position times a
 * float frequency is off by 1e-4 at position 1000. */
#include "attention.cuh"

__global__ void rope_angles(float2 *angles, int t, int d) {
    const int half = d / 2, i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= t * half) return;
    const double angle = i / half * pow(10000.0, -2.0 * (i % half) / d);
    angles[i] = make_float2((float)cos(angle), (float)sin(angle));
}

/* turned[rows][vectors][d] = qkv[rows][stride], the first `vectors` vectors of d of each row; W
 * pairs at a time.  A block a row. */
template <typename T, int W>
__global__ void rope_turn_rows(T *turned, const T *qkv, const float2 *angles, int t, int stride,
                               int vectors, int d) {
    const int half = d / 2, packs = half / W;
    const float2 *turns = angles + (size_t)(blockIdx.x % (unsigned)t) * (size_t)half;
    const T *from = qkv + (size_t)blockIdx.x * (size_t)stride;
    T *to = turned + (size_t)blockIdx.x * (size_t)(vectors * d);
    for (int i = (int)threadIdx.x; i < vectors * packs; i += (int)blockDim.x) {
        const int pair = i % packs * W, at = i / packs * d + pair;
        float x[W], y[W], first[W], second[W];
        load_floats(x, from + at);
        load_floats(y, from + at + half);
#pragma unroll
        for (int j = 0; j < W; j++) {
            const float2 turn = turns[pair + j];
            first[j] = x[j] * turn.x - y[j] * turn.y;
            second[j] = x[j] * turn.y + y[j] * turn.x;
        }
        store_floats(to + at, first);
        store_floats(to + at + half, second);
    }
}

template <typename T>
static void turn(const Run *run, AttentionSpace space, const T *qkv, int n, int t, int c,
                 int heads) {
    const int d = c / heads, block = 128;
    T *const turned = (T *)space.turned;
    if (d / 2 % CHUNK<T> == 0)
        LAUNCH((rope_turn_rows<T, CHUNK<T>>), n * t, block, 0, run->stream, turned, qkv,
               space.angles, t, 3 * c, 2 * heads, d);
    else
        LAUNCH((rope_turn_rows<T, 1>), n * t, block, 0, run->stream, turned, qkv, space.angles, t,
               3 * c, 2 * heads, d);
}

void rope_turn(const Run *run, AttentionSpace space, const void *qkv, int n, int t, int c,
               int heads) {
    const int d = c / heads, block = 128, count = t * (d / 2);
    LAUNCH(rope_angles, (count + block - 1) / block, block, 0, run->stream, space.angles, t, d);
    WITH_VALUES(run, T, turn(run, space, (const T *)qkv, n, t, c, heads));
}
