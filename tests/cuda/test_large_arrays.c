/* Arrays of more than 2^31 numbers in bf16, which an index of 32 bits does not reach: their first
 * and last samples, and the one at number 2^31, against the CPU.  Where no GPU is, the same in
 * small. */
#include <math.h>
#include <stdlib.h>

#include "../../ref/node.h"
#include "../ref/tolerance.h"
#include "../test.h"
#include "device_case.h"
#include "pool.h"

static const Precision BF16 = PRECISION_BF16;
enum { X = 1, SKIP_, DY, WEIGHT, BIAS }; /* arrays of the pool */
enum { LOOKED_AT = 3 };

/* `count` rows of `width` numbers, more than 2^31 in all, and the rows that are looked at. */
typedef struct {
    size_t count, width, row[LOOKED_AT];
} Rows;

static Rows rows_of(size_t width, size_t few) {
    const size_t middle = ((size_t)1 << 31) / width;
    const size_t count = device_is_slow() ? few : middle + middle / 32;
    return (Rows){count, width, {0, device_is_slow() ? few / 2 : middle, count - 1}};
}

/* Returns false, and the case is skipped, where the device has less than so many bytes. */
static bool has_memory(double bytes) {
    DeviceInfo info;
    if (!device_test_stream() || device_info(&info)) return false;
    if (device_is_slow() || bytes < 0.9 * (double)info.free_bytes) return true;
    test_skip("%.0f GB are free, and %.0f are needed", (double)info.free_bytes * 1e-9,
              bytes * 1e-9);
    return false;
}

static real *numbers(size_t count) {
    real *memory = malloc(count * sizeof *memory);
    if (!memory) abort();
    return memory;
}

static real *known(int which, size_t first, size_t count) {
    real *memory = numbers(count);
    for (size_t i = 0; i < count; i++) memory[i] = (real)pool_number(which, first + i, BF16);
    return memory;
}

/* CHECKs numbers first .. first + count - 1 of an array on the device, whose rounding is allowed
 * next to that of sums of `length` terms. */
static void check(const char *what, const void *device, size_t first, const real *truth,
                  size_t count, double length) {
    real *got = numbers(count);
    device_get_values(got, (const char *)device + first * precision_bytes(BF16), count, BF16);
    for (size_t i = 0; i < count; i++) {
        const double value = (double)truth[i], error = fabs((double)got[i] - value);
        CHECK(error <= 0x1p-8 * fabs(value) + tolerance(length, 4), "%s[%zu] is %.9g, not %.9g",
              what, first + i, (double)got[i], value);
    }
    free(got);
}

/* ---- ops ---- */

static void check_sample(const Node *node, const DeviceIO *io, size_t sample) {
    const size_t count = shape_count(node->in_shape), c = (size_t)node->in_shape.c;
    const size_t first = sample * count;
    const double length = node->kind == OP_LAYERNORM ? (double)c : 1;
    const bool two = node->skip >= 0; /* inputs */
    NodeIO truth = {.n = 1,
                    .x = known(X, first, count),
                    .skip = two ? known(SKIP_, first, count) : NULL,
                    .dy = known(DY, first, count),
                    .weight = known(WEIGHT, 0, c),
                    .bias = known(BIAS, 0, c),
                    .y = numbers(count),
                    .aux = numbers(node_aux_count(node, 1) + 1),
                    .dx = numbers(count),
                    .dskip = two ? numbers(count) : NULL};
    node_forward(node, &truth);
    node_input_gradient(node, &truth);
    check("y", io->y, first, truth.y, count, length);
    check("dx", io->dx, first, truth.dx, count, length);
    if (two) check("dskip", io->dskip, first, truth.dskip, count, length);
    const real *const arrays[] = {truth.x, truth.skip, truth.dy, truth.weight, truth.bias,
                                  truth.y, truth.aux,  truth.dx, truth.dskip};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) free((void *)(uintptr_t)arrays[i]);
}

/* A sample of the node is a row here. */
static void op_reaches_the_end(const void *argument) {
    Node node = *(const Node *)argument;
    if (device_is_slow()) node.in_shape = node.out_shape = (Shape){1, 5, 64};
    const Rows rows = rows_of(shape_count(node.in_shape), 3);
    const size_t count = rows.count * rows.width, c = (size_t)node.in_shape.c;
    const int n = (int)rows.count;
    const bool two = node.skip >= 0;
    if (!has_memory(6 * 2.0 * (double)count)) return;
    Run run = {device_test_stream(), BF16, 0, NULL};
    run.workspace = device_alloc(cuda_node_workspace(&node, n, BF16) + 1);
    DeviceIO io = {.n = n,
                   .x = pool_put(X, 1, count, count, BF16),
                   .skip = two ? pool_put(SKIP_, 1, count, count, BF16) : NULL,
                   .dy = pool_put(DY, 1, count, count, BF16),
                   .weight = pool_put(WEIGHT, 1, c, c, BF16),
                   .bias = pool_put(BIAS, 1, c, c, BF16),
                   .y = pool_put_nan(count, BF16),
                   .aux = pool_put_nan(node_aux_count(&node, n) + 1, PRECISION_FP32),
                   .dx = pool_put_nan(count, BF16),
                   .dskip = two ? pool_put_nan(count, BF16) : NULL};
    void *const memory[] = {run.workspace,
                            (void *)(uintptr_t)io.x,
                            (void *)(uintptr_t)io.skip,
                            (void *)(uintptr_t)io.dy,
                            (void *)(uintptr_t)io.weight,
                            (void *)(uintptr_t)io.bias,
                            io.y,
                            io.aux,
                            io.dx,
                            io.dskip};
    cuda_node_forward(&run, &node, &io);
    cuda_node_input_gradient(&run, &node, &io);
    device_test_wait();
    for (int i = 0; i < LOOKED_AT; i++) check_sample(&node, &io, rows.row[i]);
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) device_free(memory[i]);
}

/* ---- what is no node ---- */

static void conversion_reaches_the_end(void) {
    const Rows rows = rows_of(1 << 10, 3);
    const size_t count = rows.count * rows.width;
    if (!has_memory(6.0 * (double)count)) return;
    const Run run = {device_test_stream(), BF16, 0, NULL};
    float *x = pool_put(X, 1, count, count, PRECISION_FP32);
    void *y = pool_put_nan(count, BF16);
    cuda_from_float(&run, y, x, count);
    device_test_wait();
    for (int i = 0; i < LOOKED_AT; i++) {
        real *truth = known(X, rows.row[i] * rows.width, rows.width);
        check("y", y, rows.row[i] * rows.width, truth, rows.width, 1);
        free(truth);
    }
    device_free(x);
    device_free(y);
}

static void check_row(size_t row, int classes, int stride, int target, const void *gradient,
                      const float *losses) {
    const size_t first = row * (size_t)stride;
    real *truth = known(X, first, (size_t)stride), loss, log_sum;
    unsigned char correct;
    float got;
    cross_entropy_forward(&loss, &log_sum, &correct, truth, &target, 1, classes);
    cross_entropy_input_gradient(truth, truth, &log_sum, &target, 1, 1, classes);
    for (int i = classes; i < stride; i++) truth[i] = 0;
    device_get(&got, losses + row, sizeof got);
    CHECK(fabs((double)(got - loss)) <= 1e-4, "the loss of row %zu is %g, not %g", row, (double)got,
          (double)loss);
    /* Softmax is far below 1, the size that `check` has in mind. */
    for (int i = 0; i < stride; i++) {
        const double value = (double)truth[i];
        const double error = fabs((double)pool_read(gradient, first + (size_t)i, BF16) - value);
        CHECK(error <= 0x1p-7 * fabs(value), "dlogits[%zu][%d] is off by %.3g of %.9g", row, i,
              error, value);
    }
    free(truth);
}

static void cross_entropy_reaches_the_end(void) {
    const int classes = device_is_slow() ? 77 : 50257, stride = device_is_slow() ? 128 : 50304;
    const Rows rows = rows_of((size_t)stride, 3);
    if (!has_memory(2.1 * (double)(rows.count * rows.width))) return;
    const Run run = {device_test_stream(), BF16, 0, NULL};
    const float one = 1;
    int *targets = malloc(rows.count * sizeof *targets);
    if (!targets) abort();
    for (size_t i = 0; i < rows.count; i++) targets[i] = (int)(i * 7919 % (size_t)classes);
    void *logits = pool_put(X, rows.count, (size_t)classes, rows.width, BF16);
    void *loss = pool_put_nan(rows.count, PRECISION_FP32), *correct = device_alloc(rows.count);
    void *d_targets = device_put(targets, rows.count * sizeof *targets);
    void *scale = device_put(&one, sizeof one);
    cuda_cross_entropy(&run, loss, correct, logits, d_targets, scale, (int)rows.count, classes,
                       stride);
    device_test_wait();
    for (int i = 0; i < LOOKED_AT; i++)
        check_row(rows.row[i], classes, stride, targets[rows.row[i]], logits, loss);
    device_free(logits);
    device_free(loss);
    device_free(correct);
    device_free(d_targets);
    device_free(scale);
    free(targets);
}

void test_large_arrays(void) {
#define SAME .out = 2, .in_shape = {1, 1024, 1024}, .out_shape = { 1, 1024, 1024 }
    static const Node relu = {OP_RELU, SAME, .skip = -1}, add = {OP_ADD, SAME, .skip = 1};
    static const Node layernorm = {OP_LAYERNORM, SAME, .skip = -1, .eps = 1e-5};
    RUN(conversion_reaches_the_end);
    RUN_ROW("relu_reaches_the_end", op_reaches_the_end, &relu);
    RUN_ROW("add_reaches_the_end", op_reaches_the_end, &add);
    RUN_ROW("layernorm_reaches_the_end", op_reaches_the_end, &layernorm);
    RUN(cross_entropy_reaches_the_end);
}
