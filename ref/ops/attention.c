/* Multi-head attention (Vaswani et al. 2017, eq. 1), with rotary positions (Su et al. 2021, eq. 34)
 * and keys that several query heads share (Ainslie et al. 2023).  For query i of a head:
 *
 *   s[j] = q[i] . k[j] / sqrt(d),   p = softmax(s),   y[i] = sum_j p[j] v[j]
 *
 * where j runs over all positions, or with `causal` over those up to i, with a window over the last
 * of these (Beltagy et al. 2020). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "plain.h"

/* Returns `count` zeros.  An op cannot fail, so the process ends when memory runs out. */
static double *zeros(size_t count) {
    double *x = calloc(count, sizeof *x);
    if (!x) {
        fprintf(stderr, "bcd: memory: none left for the %zu numbers of an attention\n", count);
        _exit(1);
    }
    return x;
}

/* A position has all query heads, then the keys of the groups, then their values.  These return
 * where the q, k and v of a query head start, and how many numbers a position has. */
static ptrdiff_t q_at(Attention a, int head) { return (ptrdiff_t)head * a.d; }
static ptrdiff_t k_at(Attention a, int head) {
    return (ptrdiff_t)(a.heads + head / (a.heads / a.groups)) * a.d;
}
static ptrdiff_t v_at(Attention a, int head) { return k_at(a, head) + (ptrdiff_t)a.groups * a.d; }
static ptrdiff_t width_of(Attention a) { return (ptrdiff_t)(a.heads + 2 * a.groups) * a.d; }

/* Rotates the queries and keys of one sample, z[t][width], by their positions, or back. */
static void rotate(double *z, int t, Attention a, bool back) {
    for (int i = 0; a.rope.base > 0 && i < t; i++)
        for (int head = 0; head < a.heads + a.groups; head++)
            rope_rotate(z + i * width_of(a) + (ptrdiff_t)head * a.d, &a.rope, back ? -i : i, a.d);
}

/* Returns a copy of one sample with rotated q and k, for the caller to free. */
static double *rotated_copy(const real *qkv, int t, Attention a) {
    double *z = zeros((size_t)(t * width_of(a)));
    for (ptrdiff_t j = 0; j < t * width_of(a); j++) z[j] = qkv[j];
    rotate(z, t, a, false);
    return z;
}

/* The keys that query i attends to: [first, end). */
static int keys_first(Attention a, int i) {
    return a.window && i >= a.window ? i - a.window + 1 : 0;
}
static int keys_end(Attention a, int i, int t) { return a.causal ? i + 1 : t; }

static double dot(const double *x, const double *y, int d) {
    double sum = 0;
    for (int e = 0; e < d; e++) sum += x[e] * y[e];
    return sum;
}

/* Overwrites p[first ... end - 1] with the probabilities of the keys that query i attends to.
 * Returns the log-sum-exp of their scores. */
static double softmax(double *p, int t, const double *z, int i, int head, Attention a) {
    const double *q = z + i * width_of(a) + q_at(a, head), *k = z + k_at(a, head);
    const int first = keys_first(a, i), end = keys_end(a, i, t);
    double max = -INFINITY, sum = 0;
    for (int j = first; j < end; j++) {
        p[j] = dot(q, k + j * width_of(a), a.d) / sqrt(a.d);
        if (p[j] > max) max = p[j];
    }
    for (int j = first; j < end; j++) {
        p[j] = exp(p[j] - max);
        sum += p[j];
    }
    for (int j = first; j < end; j++) p[j] /= sum;
    return max + log(sum);
}

void attention_forward(real *y, real *lse, const real *qkv, int n, int t, Attention a) {
    const ptrdiff_t c = (ptrdiff_t)a.heads * a.d, rows = t - a.cached;
    double *p = zeros((size_t)t);
    for (ptrdiff_t s = 0; s < n; s++) {
        double *z = rotated_copy(qkv + s * t * width_of(a), t, a);
        for (int head = 0; head < a.heads; head++)
            for (int i = a.cached; i < t; i++) {
                const double *v = z + v_at(a, head);
                lse[(s * a.heads + head) * rows + i - a.cached] =
                    (real)softmax(p, t, z, i, head, a);
                for (int e = 0; e < a.d; e++) {
                    double sum = 0;
                    for (int j = keys_first(a, i); j < keys_end(a, i, t); j++)
                        sum += p[j] * v[j * width_of(a) + e];
                    y[(s * rows + i - a.cached) * c + q_at(a, head) + e] = (real)sum;
                }
            }
        free(z);
    }
    free(p);
}

/* Adds to dz the gradients that come through query i of a head, from dy[d]:
 *   dv[j] += p[j] dy,   dp[j] = dy . v[j],   ds[j] = p[j] (dp[j] - sum_k p[k] dp[k]),
 *   dq += ds[j] k[j] / sqrt(d),   dk[j] += ds[j] q / sqrt(d)
 * With a single key p = 1 and ds = 0, exactly. */
static void query_gradient(double *dz, double *p, double *dp, const real *dy, const double *z,
                           int t, int i, int head, Attention a) {
    const ptrdiff_t width = width_of(a), q = i * width + q_at(a, head);
    const int first = keys_first(a, i), end = keys_end(a, i, t);
    double expected = 0; /* sum_k p[k] dp[k] */
    softmax(p, t, z, i, head, a);
    for (int j = first; j < end; j++) {
        const ptrdiff_t v = j * width + v_at(a, head);
        dp[j] = 0;
        for (int e = 0; e < a.d; e++) {
            dp[j] += dy[e] * z[v + e];
            dz[v + e] += p[j] * dy[e];
        }
        expected += p[j] * dp[j];
    }
    for (int j = first; j < end; j++) {
        const ptrdiff_t k = j * width + k_at(a, head);
        const double ds = p[j] * (dp[j] - expected) / sqrt(a.d);
        for (int e = 0; e < a.d; e++) {
            dz[q + e] += ds * z[k + e];
            dz[k + e] += ds * z[q + e];
        }
    }
}

/* Computes the probabilities again from qkv; only the faster versions of this op use y and lse. */
void attention_input_gradient(real *dqkv, const real *dy, const real *qkv, const real *y,
                              const real *lse, int n, int t, Attention a, bool add) {
    const ptrdiff_t c = (ptrdiff_t)a.heads * a.d, count = t * width_of(a);
    double *p = zeros(2 * (size_t)t);
    (void)y, (void)lse;
    for (ptrdiff_t s = 0; s < n; s++) {
        double *z = rotated_copy(qkv + s * count, t, a), *dz = zeros((size_t)count);
        for (int head = 0; head < a.heads; head++)
            for (int i = 0; i < t; i++)
                query_gradient(dz, p, p + t, dy + (s * t + i) * c + q_at(a, head), z, t, i, head,
                               a);
        rotate(dz, t, a, true);
        for (ptrdiff_t j = 0; j < count; j++) set_or_add(&dqkv[s * count + j], dz[j], add);
        free(z);
        free(dz);
    }
    free(p);
}
