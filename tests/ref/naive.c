#include "naive.h"

#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void naive_create(Naive *naive, const CaseData *data) {
    *naive = (Naive){.node = data->node,
                     .n = data->row->n,
                     .use_running = data->row->use_running,
                     .tokens = data->tokens};
    for (Array a = 0; a <= ARRAY_Y; a++) {
        size_t count = data->array[a].count;
        if (count == 0) continue;
        naive->count[a] = count;
        naive->array[a] = malloc(count * sizeof(double));
        if (!naive->array[a]) abort();
        for (size_t i = 0; a < ARRAY_Y && i < count; i++)
            naive->array[a][i] = (double)data->array[a].data[i];
    }
}

void naive_free(Naive *naive) {
    for (Array a = 0; a < ARRAYS; a++) free(naive->array[a]);
}

static void linear(double *y, const double *x, const double *w, const double *b, int rows, int c,
                   int o) {
    for (int n = 0; n < rows; n++)
        for (int j = 0; j < o; j++) {
            double sum = b ? b[j] : 0;
            for (int i = 0; i < c; i++) sum += x[n * c + i] * w[j * c + i];
            y[n * o + j] = sum;
        }
}

/* One number of the padded image. */
static double pixel(const double *image, Shape shape, int y, int x, int channel) {
    if (y < 0 || y >= shape.h || x < 0 || x >= shape.w) return 0;
    return image[(y * shape.w + x) * shape.c + channel];
}

static double window_sum(const Node *node, const double *image, const double *w, int oy, int ox) {
    int size = node->kernel;
    double sum = 0;
    for (int ky = 0; ky < size; ky++)
        for (int kx = 0; kx < size; kx++)
            for (int c = 0; c < node->in_shape.c; c++)
                sum += w[(ky * size + kx) * node->in_shape.c + c] *
                       pixel(image, node->in_shape, oy * node->stride + ky - node->pad,
                             ox * node->stride + kx - node->pad, c);
    return sum;
}

static void conv2d(const Node *node, double *y, const double *x, const double *w, int n) {
    Shape in = node->in_shape, out = node->out_shape;
    int filter = node->kernel * node->kernel * in.c;
    for (int s = 0; s < n; s++)
        for (int oy = 0; oy < out.h; oy++)
            for (int ox = 0; ox < out.w; ox++)
                for (int o = 0; o < out.c; o++)
                    *y++ =
                        window_sum(node, x + (size_t)s * shape_count(in), w + o * filter, oy, ox);
}

static double mean_of(const double *x, int count, int stride) {
    double sum = 0;
    for (int i = 0; i < count; i++) sum += x[i * stride];
    return sum / count;
}

static double variance_of(const double *x, int count, int stride, double mean) {
    double sum = 0;
    for (int i = 0; i < count; i++) sum += (x[i * stride] - mean) * (x[i * stride] - mean);
    return sum / count;
}

static void batchnorm(Naive *naive, int rows, int c) {
    double *const *a = naive->array;
    for (int i = 0; i < c; i++) {
        double mean = a[ARRAY_MEAN][i], variance = a[ARRAY_VARIANCE][i];
        if (!naive->use_running) {
            mean = mean_of(a[ARRAY_X] + i, rows, c);
            variance = variance_of(a[ARRAY_X] + i, rows, c, mean);
            double unbiased = rows > 1 ? variance * rows / (rows - 1) : variance;
            a[ARRAY_MEAN][i] += 0.1 * (mean - a[ARRAY_MEAN][i]);
            a[ARRAY_VARIANCE][i] += 0.1 * (unbiased - a[ARRAY_VARIANCE][i]);
        }
        for (int n = 0; n < rows; n++) {
            double y = (a[ARRAY_X][n * c + i] - mean) / sqrt(variance + 1e-5);
            y = y * a[ARRAY_WEIGHT][i] + a[ARRAY_BIAS][i];
            if (a[ARRAY_SKIP]) y += a[ARRAY_SKIP][n * c + i];
            a[ARRAY_Y][n * c + i] = naive->node.relu && y < 0 ? 0 : y;
        }
    }
}

static void layernorm(double *y, const double *x, const double *g, const double *b, int rows, int c,
                      double eps) {
    for (int n = 0; n < rows; n++) {
        double mean = mean_of(x + n * c, c, 1);
        double deviation = sqrt(variance_of(x + n * c, c, 1, mean) + eps);
        for (int i = 0; i < c; i++) y[n * c + i] = (x[n * c + i] - mean) / deviation * g[i] + b[i];
    }
}

static void rmsnorm(double *y, const double *x, const double *g, int rows, int c, double eps) {
    for (int n = 0; n < rows; n++) {
        double rms = sqrt(variance_of(x + n * c, c, 1, 0) + eps);
        for (int i = 0; i < c; i++) y[n * c + i] = x[n * c + i] / rms * g[i];
    }
}

/* RoPE: elements i and i + d/2 of a query or key are one complex number, turned by
 * position * base^(-2i/d), by less where positions are scaled: by wavelengths, as Llama 3.1's own
 * code says it. */
static double angle_of(const Rope *rope, int position, int i, int d) {
    const double angle = position * pow(rope->base, -2.0 * i / d);
    if (rope->original <= 0) return rope->factor > 0 ? angle / rope->factor : angle;
    const double wavelength = 2 * acos(-1) * pow(rope->base, 2.0 * i / d);
    if (wavelength < rope->original / rope->high) return angle;
    if (wavelength > rope->original / rope->low) return angle / rope->factor;
    const double smooth = (rope->original / wavelength - rope->low) / (rope->high - rope->low);
    return (1 - smooth) * angle / rope->factor + smooth * angle;
}

static void turn(double *out, const double *in, const Rope *rope, int position, int d) {
    for (int i = 0; i < d / 2; i++) {
        double angle = angle_of(rope, position, i, d);
        double complex z = (in[i] + I * in[i + d / 2]) * cexp(I * angle);
        out[i] = creal(z);
        out[i + d / 2] = cimag(z);
    }
}

/* p[0 .. i]: the weights of query q over the keys at its position i and before. */
static void attention_weights(double *p, const double *q, const double *keys, int i, int d) {
    double largest = -INFINITY, sum = 0;
    for (int j = 0; j <= i; j++) {
        p[j] = 0;
        for (int e = 0; e < d; e++) p[j] += q[e] * keys[j * d + e];
        p[j] /= sqrt(d);
        largest = fmax(largest, p[j]);
    }
    for (int j = 0; j <= i; j++) sum += p[j] = exp(p[j] - largest);
    for (int j = 0; j <= i; j++) p[j] /= sum;
}

/* One head of one sample; rows of q, k and v are `stride` apart, those of y c apart. */
static void attention_head(double *y, const double *q, const double *k, const double *v, int t,
                           int stride, const Attention *a) {
    const int d = a->d, c = a->heads * d;
    const Rope *rope = &a->rope;
    double *keys = malloc((size_t)(t * d + d + t) * sizeof *keys);
    if (!keys) abort();
    double *query = keys + t * d, *p = query + d;
    for (int i = 0; i < t; i++) {
        memcpy(keys + i * d, k + i * stride, (size_t)d * sizeof *keys);
        memcpy(query, q + i * stride, (size_t)d * sizeof *query);
        if (rope->base > 0) turn(keys + i * d, k + i * stride, rope, i, d);
        if (rope->base > 0) turn(query, q + i * stride, rope, i, d);
        attention_weights(p, query, keys, i, d);
        for (int e = 0; e < d; e++) {
            double mean = 0;
            for (int j = 0; j <= i; j++) mean += p[j] * v[j * stride + e];
            y[i * c + e] = mean;
        }
    }
    free(keys);
}

static void attention(const Node *node, double *y, const double *qkv, int n) {
    const Attention *a = &node->attention;
    const int t = node->in_shape.w, stride = node->in_shape.c, c = node->out_shape.c, d = a->d;
    for (int s = 0; s < n; s++)
        for (int head = 0; head < a->heads; head++) {
            const double *row = qkv + s * t * stride;
            const int key = a->heads + head * a->groups / a->heads, value = key + a->groups;
            attention_head(y + s * t * c + head * d, row + head * d, row + key * d, row + value * d,
                           t, stride, a);
        }
}

static double gelu(double x) {
    return x / 2 * (1 + tanh(sqrt(2 / acos(-1.0)) * (x + 0.044715 * x * x * x)));
}

static double silu(double x) { return x / (1 + exp(-x)); }

static void avgpool(double *y, const double *x, int n, int positions, int c) {
    for (int s = 0; s < n; s++)
        for (int i = 0; i < c; i++) y[s * c + i] = mean_of(x + s * positions * c + i, positions, c);
}

static void embedding(double *y, const int *tokens, const double *token, const double *position,
                      int n, int t, int c) {
    for (int s = 0; s < n * t; s++)
        for (int i = 0; i < c; i++)
            y[s * c + i] = token[tokens[s] * c + i] + (position ? position[s % t * c + i] : 0);
}

void naive_forward(Naive *naive) {
    const Node *node = &naive->node;
    double *const *a = naive->array, *y = a[ARRAY_Y];
    const double *x = a[ARRAY_X], *w = a[ARRAY_WEIGHT], *b = a[ARRAY_BIAS];
    int c = node->in_shape.c, o = node->out_shape.c,
        positions = node->in_shape.h * node->in_shape.w;
    int rows = naive->n * positions, count = (int)naive->count[ARRAY_Y];
    switch (node->kind) {
        case OP_LINEAR:
            linear(y, x, w, b, rows, c, o);
            break;
        case OP_CONV2D:
            conv2d(node, y, x, w, naive->n);
            break;
        case OP_BATCHNORM:
            batchnorm(naive, rows, c);
            break;
        case OP_LAYERNORM:
            layernorm(y, x, w, b, rows, c, node->eps);
            break;
        case OP_RMSNORM:
            rmsnorm(y, x, w, rows, c, node->eps);
            break;
        case OP_ATTENTION:
            attention(node, y, x, naive->n);
            break;
        case OP_RELU:
            for (int i = 0; i < count; i++) y[i] = x[i] > 0 ? x[i] : 0;
            break;
        case OP_GELU:
            for (int i = 0; i < count; i++) y[i] = gelu(x[i]);
            break;
        case OP_SWIGLU:
            for (int i = 0; i < count; i++)
                y[i] = silu(x[i / o * 2 * o + i % o]) * x[i / o * 2 * o + o + i % o];
            break;
        case OP_ADD:
            for (int i = 0; i < count; i++) y[i] = x[i] + a[ARRAY_SKIP][i];
            break;
        case OP_AVGPOOL:
            avgpool(y, x, naive->n, positions, c);
            break;
        case OP_EMBEDDING:
            embedding(y, naive->tokens, w, b, naive->n, positions, o);
            break;
        case OP_KINDS:
            abort();
    }
}
