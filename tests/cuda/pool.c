#include "pool.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/base/random.h"
#include "device_array.h"

/* A prime, so that no two rows of a matrix begin alike. */
enum { POOL = 1000003, APART = 123457, PIECE = 1 << 22 };

/* The pool as float and as bf16, on the host and on the device. */
static struct {
    float *host;
    char *device;
} pools[2];

static int open_pool(Precision type) {
    const int p = type == PRECISION_BF16;
    if (pools[p].host) return p;
    pools[p].host = malloc(POOL * sizeof(float));
    if (!pools[p].host) abort();
    for (size_t i = 0; i < POOL; i++) {
        const float x = (float)(2 * random_uniform(7, STREAM_SYNTHETIC, i) - 1);
        pools[p].host[i] = p ? nearest_bf16(x) : x;
    }
    pools[p].device = device_put_values(pools[p].host, POOL, type);
    return p;
}

static size_t place(int which, size_t i) { return ((size_t)which * APART + i) % POOL; }

float pool_number(int which, size_t i, Precision type) {
    return pools[open_pool(type)].host[place(which, i)];
}

static char *allocate(size_t count, Precision type) {
    char *memory = device_alloc(count * precision_bytes(type));
    if (!memory) abort();
    return memory;
}

void *pool_put_nan(size_t count, Precision type) {
    static char *ones;
    const size_t bytes = count * precision_bytes(type);
    if (!ones) {
        void *host = malloc(PIECE);
        if (!host) abort();
        memset(host, 0xff, PIECE);
        ones = device_put(host, PIECE);
        free(host);
    }
    char *memory = allocate(count, type);
    for (size_t done = 0; done < bytes; done += PIECE)
        copy_on_device(device_test_stream(), memory + done, ones,
                       bytes - done < PIECE ? bytes - done : PIECE);
    device_test_wait();
    return memory;
}

void *pool_put(int which, size_t rows, size_t width, size_t stride, Precision type) {
    const size_t size = precision_bytes(type);
    const char *from = pools[open_pool(type)].device;
    const bool gaps = stride != width;
    char *memory = gaps ? pool_put_nan(rows * stride, type) : allocate(rows * width, type);
    if (!gaps) width = stride = rows * width;
    for (size_t row = 0; row < (gaps ? rows : 1); row++)
        for (size_t done = 0, part; done < width; done += part) {
            const size_t at = row * stride + done, start = place(which, at);
            part = POOL - start < width - done ? POOL - start : width - done;
            copy_on_device(device_test_stream(), memory + at * size, from + start * size,
                           part * size);
        }
    device_test_wait();
    return memory;
}

float pool_read(const void *device, size_t i, Precision type) {
    float x;
    device_get_values(&x, (const char *)device + i * precision_bytes(type), 1, type);
    return x;
}

double pool_apart(const void *a, const void *b, size_t rows, size_t width, size_t stride,
                  Precision type) {
    const size_t most = stride < PIECE ? PIECE / stride : 1, size = precision_bytes(type);
    float *x = malloc(most * stride * sizeof *x), *y = malloc(most * stride * sizeof *y);
    double difference = 0, whole = 0;
    if (!x || !y) abort();
    for (size_t first = 0; first < rows; first += most) {
        const size_t n = rows - first < most ? rows - first : most, at = first * stride * size;
        device_get_values(x, (const char *)a + at, n * stride, type);
        device_get_values(y, (const char *)b + at, n * stride, type);
#pragma omp parallel for reduction(+ : difference, whole)
        for (size_t row = 0; row < n; row++)
            for (size_t i = row * stride; i < row * stride + width; i++) {
                const double d = (double)x[i] - (double)y[i];
                difference += d * d;
                whole += (double)y[i] * (double)y[i];
            }
    }
    free(x);
    free(y);
    return sqrt(difference / whole);
}
