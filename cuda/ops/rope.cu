/* Rotary position embedding (RoFormer, Su et al. 2021), half-split as in ref/ops/settings.h.
 * Before attention, q and k are written to the workspace rotated; attention's gradient kernels
 * rotate dq and dk back as they write them (attention.cuh).  Angles are computed in double, because
 * a float position times a float frequency is off by 1e-4 at position 1000.  The frequencies are
 * computed by the reference's own function, and are passed as an argument of the launch. */
#include "attention.cuh"

enum { PAIRS = 128 }; /* of one launch */
struct Frequencies {
    double of[PAIRS];
};

/* Writes cosine and sine to angles[t][half], for `pairs` pairs from `first` on. */
__global__ void rope_angles(float2 *angles, int t, int half, int first, int pairs,
                            Frequencies frequency) {
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= t * pairs) return;
    const int position = i / pairs, pair = i % pairs;
    const double angle = position * frequency.of[pair];
    angles[(size_t)position * half + (first + pair)] =
        make_float2((float)cos(angle), (float)sin(angle));
}

/* rotated[rows][vectors][d] = the first `vectors` vectors of each row of qkv[rows][stride],
 * rotated. A block takes a row, a thread W pairs at a time. */
template <typename T, int W>
__global__ void rope_rotate_rows(T *rotated, const T *qkv, const float2 *angles, int t, int stride,
                                 int vectors, int d) {
    const int half = d / 2, packs = half / W;
    const float2 *turns = angles + (size_t)(blockIdx.x % (unsigned)t) * half;
    const T *from = qkv + (size_t)blockIdx.x * stride;
    T *to = rotated + (size_t)blockIdx.x * (vectors * d);
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
static void turn(const Call *k, AttentionSpace space) {
    const Attention &a = k->node->attention;
    const int block = 128, vectors = a.heads + a.groups, stride = (vectors + a.groups) * a.d;
    const int t = k->positions;
    const T *qkv = (const T *)k->io->x;
    T *const rotated = (T *)space.rotated;
    WITH_PACKS(W, CHUNK<T>, a.d / 2 % W == 0,
               LAUNCH((rope_rotate_rows<T, W>), k->rows, block, 0, k->run->stream, rotated, qkv,
                      space.angles, t, stride, vectors, a.d));
}

void rope_rotate(const Call *k, AttentionSpace space) {
    const Attention &a = k->node->attention;
    const int block = 128, half = a.d / 2, t = k->positions;
    for (int first = 0; first < half; first += PAIRS) {
        const int pairs = half - first < PAIRS ? half - first : PAIRS;
        Frequencies frequency = {};
        for (int i = 0; i < pairs; i++) frequency.of[i] = rope_frequency(&a.rope, first + i, a.d);
        LAUNCH(rope_angles, (t * pairs + block - 1) / block, block, 0, k->run->stream, space.angles,
               t, half, first, pairs, frequency);
    }
    WITH_VALUES(k->run, T, turn<T>(k, space));
}
