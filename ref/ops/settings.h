/* The settings of convolution, of batch norm, of attention and of rotary positions. */
#pragma once

#include <stdbool.h>

/* A convolution from x[n][h][w][c] to y[n][oh][ow][o], with weights w[o][kernel][kernel][c], zero
 * padding and no bias. */
typedef struct {
    int n, h, w, c, o, kernel, stride, pad;
} Conv;

/* Returns the size of the output, oh or ow, for an input of size h or w. */
static inline int conv2d_out(int size, const Conv *conv) {
    return (size + 2 * conv->pad - conv->kernel) / conv->stride + 1;
}

/* Returns true for a 1x1 convolution, which is a matrix product over pixels. */
static inline bool conv2d_is_product(const Conv *conv) {
    return conv->kernel == 1 && conv->stride == 1 && conv->pad == 0;
}

/* How far the running statistics move towards those of a micro-batch in each of its forward passes,
 * so several times in a step of several, and what is added to a variance; PyTorch's defaults. */
#define BATCHNORM_MOMENTUM 0.1
#define BATCHNORM_EPS 1e-5

/* Rotary positions (RoFormer, Su et al. 2021).  Elements i and i + d/2 of a head of d are a pair
 * (in the paper 2i and 2i + 1); at position p it is rotated by the angle p * frequency(i),
 * frequency(i) = base^(-2i/d).
 *
 * For contexts longer than a model was first trained for, frequencies are scaled.  If `original` is
 * 0, all are divided by `factor` (linear scaling, Chen et al. 2023).  Otherwise those that turn
 * fewer than `low` times over `original` positions are divided by it, those that turn more than
 * `high` times stay, and those in between are interpolated (Llama 3.1, Grattafiori et al. 2024). */
typedef struct {
    double base;      /* 0: no rotary positions */
    double factor;    /* 0 or 1: no scaling */
    double low, high; /* low < high */
    double original;  /* the context the model was first trained for; 0: linear scaling */
} Rope;

/* Attention with `heads` query heads of d numbers each.  Keys and values have `groups` heads, which
 * must divide `heads`; query head h uses number h / (heads / groups) of them (grouped-query
 * attention, Ainslie et al. 2023).  With groups == heads every query head has its own (Vaswani et
 * al. 2017). */
typedef struct {
    int heads, groups, d;
    Rope rope;
    bool causal; /* a position attends to itself and those before it; otherwise to all */
    int cached;  /* forward: the first positions are those of earlier calls, and only the queries
                  * from here on are computed */
    int window;  /* causal: to the last `window` of these only (Beltagy et al. 2020); 0: to all */
} Attention;

/* The vectors of a position that a norm of queries and keys takes each on its own: q of q_size
 * numbers, then k of k_size. */
typedef struct {
    int q, k, q_size, k_size;
} QkVectors;

#ifdef __cplusplus
extern "C" {
#endif

/* Returns them: one for each head, or with `whole` one of all queries and one of all keys. */
QkVectors qk_vectors(Attention attention, bool whole);

/* Returns the frequency of a pair, 0 <= pair < d/2, in radians per position.  rope->base > 0. */
double rope_frequency(const Rope *rope, int pair, int d);

#ifdef __cplusplus
}
#endif
