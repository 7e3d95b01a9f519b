#include <math.h>
#include <stdlib.h>

#include "../../../ref/base/error.h"
#include "../../../ref/base/random.h"
#include "bench.h"

/* Random numbers are drawn once and copied piece by piece. There are enough of them that no two
 * arrays begin alike. */
enum { POOL = 1 << 22 };
static void *pool[2]; /* as float, as bf16 */

static int pool_open(const Bench *bench) {
    if (pool[0]) return 0;
    float *host = malloc(POOL * sizeof *host);
    pool[0] = device_alloc(POOL * sizeof(float));
    pool[1] = device_alloc(POOL * 2);
    if (!host || !pool[0] || !pool[1]) {
        free(host);
        return error_set("bench: no memory for random numbers");
    }
#pragma omp parallel for
    for (size_t i = 0; i < POOL; i++) host[i] = (float)random_normal(1, STREAM_SYNTHETIC, i);
    copy_to_device(bench->stream, pool[0], host, POOL * sizeof(float));
    Run bf16 = {.stream = bench->stream, .precision = PRECISION_BF16};
    cuda_from_float(&bf16, pool[1], pool[0], POOL);
    int status = device_wait(bench->stream);
    free(host);
    return status;
}

static void draw_parameter(float *values, const Param *p, const float *normal, size_t start) {
    const float scale = p->init == INIT_NORMAL ? (float)p->deviation : 0;
    const float shift = p->init == INIT_ONES ? 1 : 0;
#pragma omp parallel for
    for (size_t i = 0; i < p->count; i++) values[i] = shift + scale * normal[(start + i) % POOL];
}

int fill_parameters(Stage *stage) {
    const Model *m = stage->model;
    int failed = 0;
    float *normal = malloc(POOL * sizeof *normal);
    if (!normal) return error_set("bench: no memory for random numbers");
#pragma omp parallel for
    for (size_t i = 0; i < POOL; i++) normal[i] = (float)random_normal(2, STREAM_SYNTHETIC, i);
    for (int number = 0; number < m->params && !failed; number++) {
        const Param *p = &m->param[number];
        float *values = malloc(p->count * sizeof *values);
        if (!values) {
            failed = error_set("bench: no memory for %s", p->name);
            break;
        }
        draw_parameter(values, p, normal, (size_t)number * 8191);
        failed = stage_write(stage, TENSOR_PARAMETER, number, values);
        free(values);
    }
    free(normal);
    return failed ? -1 : 0;
}

void fill_free(void) {
    device_free(pool[0]);
    device_free(pool[1]);
    pool[0] = pool[1] = NULL;
}

int fill_values(const Bench *bench, void *device, size_t count, Precision precision, int seed) {
    if (pool_open(bench)) return -1;
    const size_t size = precision_bytes(precision);
    const char *from = pool[precision == PRECISION_BF16];
    size_t start = (size_t)seed * 8191 * 8 % POOL;
    for (size_t done = 0, part; done < count; done += part, start = 0) {
        part = POOL - start < count - done ? POOL - start : count - done;
        copy_on_device(bench->stream, (char *)device + done * size, from + start * size,
                       part * size);
    }
    return 0;
}

int fill_tokens(const Bench *bench, int *device, size_t count, int vocabulary) {
    int *host = malloc(count * sizeof *host + 1);
    if (!host) return error_set("bench: no memory for %zu tokens", count);
    for (size_t i = 0; i < count; i++) {
        double rank = exp(random_uniform(1, STREAM_SYNTHETIC, i) * log(vocabulary));
        host[i] = (int)rank < vocabulary ? (int)rank : vocabulary - 1;
        if (vocabulary == 1) host[i] = 0;
    }
    copy_to_device(bench->stream, device, host, count * sizeof *host);
    int status = device_wait(bench->stream);
    free(host);
    return status;
}
