/* Tests norms beyond the case table: wider rows, the residual that is added first, the gradient
 * that is added to the result, and batches whose mean is far from zero. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/base/random.h"
#include "../../ref/ops/ops.h"
#include "../ref/tolerance.h"
#include "../test.h"
#include "device_case.h"

/* Returns random numbers of the value type, uniform in middle +- 1 or middle +- half of it. */
static float *numbers(uint32_t stream, size_t count, double middle, double width, Run run) {
    float *x = malloc(count * sizeof *x);
    if (!x) abort();
    for (size_t i = 0; i < count; i++) {
        x[i] = (float)(middle + width * (2 * random_uniform(1, stream, i) - 1));
        if (run.precision == PRECISION_BF16) x[i] = nearest_bf16(x[i]);
    }
    return x;
}

static float *fetch(const void *device, size_t count, Run run) {
    float *x = malloc(count * sizeof *x);
    if (!x) abort();
    device_get_values(x, device, count, run.precision);
    return x;
}

/* Allows the error of float sums of `length` terms on both sides, and the rounding of the
 * result. */
static void check_near(const float *got, const float *truth, size_t count, double length, Run run,
                       const char *what) {
    double largest = 0, rounding = run.precision == PRECISION_BF16 ? 0x1p-8 : 0;
    for (size_t i = 0; i < count; i++) largest = fmax(largest, fabs((double)truth[i]));
    for (size_t i = 0; i < count; i++) {
        double value = (double)truth[i], error = fabs((double)got[i] - value);
        double allowed = 2 * tolerance(length, largest) + rounding * fabs(value);
        CHECK(error <= allowed, "%s[%zu] is %.9g, not %.9g (allowed %.3g)", what, i, (double)got[i],
              value, allowed);
    }
}

/* ---- layernorm and rmsnorm ---- */

typedef struct {
    const char *name;
    int n, c;
    double eps;
} Rows;

/* Widths around those at which the kernel changes (512, 768, 1024, 2048, 4096 and 8192 columns),
 * and ragged ones. The last row has more rows than there are partial sums. */
static const Rows widths[] = {
    {"24", 9, 24, 1e-5},          {"33", 7, 33, 3},        {"512", 5, 512, 3},
    {"520", 5, 520, 1e-5},        {"768", 6, 768, 3},      {"776", 3, 776, 1e-5},
    {"1032", 3, 1032, 1e-5},      {"1035", 3, 1035, 1e-5}, {"2056", 3, 2056, 3},
    {"4104", 2, 4104, 1e-5},      {"8192", 2, 8192, 1e-5}, {"8200", 2, 8200, 1e-5},
    {"many rows", 2113, 8, 1e-5},
};

/* The arguments of both norms, on the device and on the host. */
typedef struct {
    Run run;
    Node node;
    int n, c;
    bool centred;
    size_t count;
    float *aux, *r; /* on the device; a norm that centres keeps the means before r */
    float *x, *skip, *g, *b, *dy, *addend;
    void *to_x, *to_skip, *to_g, *to_b, *to_dy, *to_addend;
} Trial;

static Trial trial_create(const Rows *rows, Run run, bool centred) {
    Trial t = {.run = run, .n = rows->n, .c = rows->c, .centred = centred};
    t.node = (Node){.kind = centred ? OP_LAYERNORM : OP_RMSNORM,
                    .in_shape = {1, 1, rows->c},
                    .out_shape = {1, 1, rows->c},
                    .eps = rows->eps};
    const size_t n = (size_t)rows->n, c = (size_t)rows->c;
    t.count = n * c;
    t.x = numbers(1, t.count, 0.25, 1, run);
    t.skip = numbers(2, t.count, 0, 1, run);
    t.g = numbers(3, c, 1, 0.5, run);
    t.b = numbers(4, c, 0, 1, run);
    t.dy = numbers(5, t.count, 0, 1, run);
    t.addend = numbers(6, t.count, 0, 1, run);
    t.to_x = device_put_values(t.x, t.count, run.precision);
    t.to_skip = device_put_values(t.skip, t.count, run.precision);
    t.to_g = device_put_values(t.g, c, run.precision);
    t.to_b = device_put_values(t.b, c, run.precision);
    t.to_dy = device_put_values(t.dy, t.count, run.precision);
    t.to_addend = device_put_values(t.addend, t.count, run.precision);
    t.aux = device_alloc(node_aux_count(&t.node, rows->n) * sizeof(float));
    t.r = t.aux + (centred ? n : 0);
    t.run.workspace = device_alloc(cuda_node_workspace(&t.node, rows->n, run.precision));
    return t;
}

static void trial_free(Trial *t) {
    float *host[] = {t->x, t->skip, t->g, t->b, t->dy, t->addend};
    void *device[] = {t->to_x,  t->to_skip,   t->to_g, t->to_b,
                      t->to_dy, t->to_addend, t->aux,  t->run.workspace};
    for (size_t i = 0; i < sizeof host / sizeof *host; i++) free(host[i]);
    for (size_t i = 0; i < sizeof device / sizeof *device; i++) device_free(device[i]);
}

static void forward(const Trial *t, void *y, void *sum, const void *x, const void *skip) {
    cuda_node_forward(&t->run, &t->node,
                      &(DeviceIO){.n = t->n,
                                  .x = x,
                                  .skip = skip,
                                  .y = y,
                                  .sum = sum,
                                  .aux = t->aux,
                                  .weight = t->to_g,
                                  .bias = t->to_b});
}

/* The stored sum is rounded as by a separate addition, and the norm of it has the same bits, since
 * recomputation does one or the other. The sum overwrites x, as in a pass. */
static void check_forward(const Trial *t, void *sum) {
    const size_t bytes = t->count * precision_bytes(t->run.precision);
    void *y = device_alloc(bytes), *apart = device_alloc(bytes);
    const Node add = {.kind = OP_ADD, .in_shape = t->node.in_shape};
    cuda_node_forward(&t->run, &add,
                      &(DeviceIO){.n = t->n, .x = t->to_x, .skip = t->to_skip, .y = sum});
    forward(t, apart, NULL, sum, NULL);
    forward(t, y, t->to_x, t->to_x, t->to_skip);
    float *both = fetch(y, t->count, t->run), *alone = fetch(apart, t->count, t->run);
    float *kept = fetch(t->to_x, t->count, t->run), *added = fetch(sum, t->count, t->run);
    CHECK(!memcmp(both, alone, t->count * sizeof *both), "fused: other bits");
    CHECK(!memcmp(kept, added, t->count * sizeof *kept), "the sum has other bits");

    const int n = t->n, c = t->c;
    float *truth = malloc(t->count * sizeof *truth), *m = malloc((size_t)n * sizeof *m),
          *r = malloc((size_t)n * sizeof *r);
    if (!truth || !m || !r) abort();
    if (t->centred)
        layernorm_forward(truth, m, r, kept, t->g, t->b, n, c, t->node.eps);
    else
        rmsnorm_forward(truth, r, kept, t->g, n, c, t->node.eps);
    check_near(both, truth, t->count, c, t->run, "y");
    float *host[] = {both, alone, kept, added, truth, m, r};
    for (size_t i = 0; i < sizeof host / sizeof *host; i++) free(host[i]);
    device_free(y);
    device_free(apart);
}

/* Compares the gradients of scale and shift with the plain op's. */
static void check_sums(const Trial *t, const float *dg, const float *x, const float *m,
                       const float *r) {
    const int n = t->n, c = t->c;
    float *got = malloc(2 * (size_t)c * sizeof *got), *truth = calloc((size_t)c, sizeof *truth);
    if (!got || !truth) abort();
    device_get(got, dg, (t->centred ? 2 : 1) * (size_t)c * sizeof *got);
    if (t->centred)
        layernorm_weight_gradient(truth, t->dy, x, m, r, n, c, false);
    else
        rmsnorm_weight_gradient(truth, t->dy, x, r, n, c, false);
    check_near(got, truth, (size_t)c, n, (Run){0}, "dg");
    if (t->centred) bias_gradient(truth, t->dy, n, c, false);
    if (t->centred) check_near(got + c, truth, (size_t)c, n, (Run){0}, "db");
    free(got);
    free(truth);
}

/* Adds a residual's gradient to dx, first alone, then in place with all gradients in one pass. */
static void check_gradient(const Trial *t, const void *sum) {
    const int n = t->n, c = t->c;
    void *dx = device_alloc(t->count * precision_bytes(t->run.precision));
    float *dg = device_alloc(2 * (size_t)c * sizeof *dg);
    DeviceIO io = {.n = n,
                   .x = sum,
                   .aux = t->aux,
                   .weight = t->to_g,
                   .dy = t->to_dy,
                   .dx = dx,
                   .residual = t->to_addend};
    cuda_node_input_gradient(&t->run, &t->node, &io);
    float *got = fetch(dx, t->count, t->run), *x = fetch(sum, t->count, t->run);
    io.dx = t->to_addend;
    io.residual = NULL;
    io.add_dx = true;
    io.dweight = dg;
    if (t->centred) io.dbias = dg + c;
    cuda_node_input_gradient(&t->run, &t->node, &io);
    float *own = fetch(t->to_addend, t->count, t->run);
    CHECK(!memcmp(got, own, t->count * sizeof *got), "accumulating in place: other bits");

    float *m = calloc((size_t)n, sizeof *m), *r = calloc((size_t)n, sizeof *r);
    if (!m || !r) abort();
    if (t->centred) device_get(m, t->aux, (size_t)n * sizeof *m);
    device_get(r, t->r, (size_t)n * sizeof *r);
    check_sums(t, dg, x, m, r);
    if (t->centred)
        layernorm_input_gradient(t->addend, t->dy, x, t->g, m, r, n, c, true);
    else
        rmsnorm_input_gradient(t->addend, t->dy, x, t->g, r, n, c, true);
    check_near(got, t->addend, t->count, c, t->run, "dx");
    float *host[] = {got, x, own, m, r};
    for (size_t i = 0; i < sizeof host / sizeof *host; i++) free(host[i]);
    device_free(dx);
    device_free(dg);
}

/* Tests each version. Version 0 is one of the others, chosen by width. */
static void rows_hold(const void *argument) {
    if (!device_test_stream()) return;
    for (int precision = 0; precision < 2; precision++)
        for (int version = device_is_slow() ? 1 : 0; version <= 2; version++)
            for (int centred = 0; centred < 2; centred++) {
                Run run = {.stream = device_test_stream(),
                           .precision = precision ? PRECISION_BF16 : PRECISION_FP32,
                           .version = version};
                Trial t = trial_create(argument, run, centred);
                void *sum = device_alloc(t.count * precision_bytes(run.precision));
                check_forward(&t, sum);
                check_gradient(&t, sum);
                device_test_wait();
                device_free(sum);
                trial_free(&t);
            }
}

/* ---- batch norm: means a thousand times the deviation, of the other sign in the next column ----
 */

/* Batches with many rows, and with so many numbers that a thread block's rows do not fit its
 * registers, from which it takes the pivot of its sums. */
typedef struct {
    int n, c;
} Far;
static const Far far_batches[] = {{3001, 24}, {1100, 2048}};

/* Computes mean and variance in double. In float the mean of squares less the square of the mean
 * would be off by 1000^2 units roundoff, about 18 % of the variance. */
static void far_truth(double *mean, double *variance, const float *x, Far far, int column) {
    *mean = *variance = 0;
    for (int i = 0; i < far.n; i++) *mean += (double)x[i * far.c + column] / far.n;
    for (int i = 0; i < far.n; i++) {
        double d = (double)x[i * far.c + column] - *mean;
        *variance += d * d / far.n;
    }
}

static void check_far(Run run, Far far) {
    const size_t c = (size_t)far.c, count = (size_t)far.n * c, bytes = c * sizeof(float);
    float *x = numbers(7, count, 1000, 1, run), *ones = numbers(8, c, 1, 0, run);
    float *mean = malloc(bytes), *rstd = malloc(bytes);
    if (!mean || !rstd) abort();
    /* Neighbouring columns have opposite signs, so a pivot from another column is far from this
     * column's mean. */
    for (size_t i = 0; i < count; i++) x[i] *= i % c % 2 ? -1 : 1;
    void *to_x = device_put_values(x, count, run.precision);
    void *g = device_put_values(ones, c, run.precision);
    const Node node = {.kind = OP_BATCHNORM, .in_shape = {1, 1, far.c}, .out_shape = {1, 1, far.c}};
    float *aux = device_alloc(4 * bytes);
    void *y = device_alloc(count * precision_bytes(run.precision));
    run.workspace = device_alloc(cuda_node_workspace(&node, far.n, run.precision));
    cuda_node_forward(&run, &node,
                      &(DeviceIO){.n = far.n,
                                  .x = to_x,
                                  .y = y,
                                  .aux = aux,
                                  .weight = g,
                                  .bias = g,
                                  .hold_running = true});
    device_get(mean, aux, bytes);
    device_get(rstd, aux + c, bytes);
    for (int j = 0; j < far.c; j++) {
        double wanted, variance;
        far_truth(&wanted, &variance, x, far, j);
        double one = 1 / sqrt(variance + 1e-5);
        CHECK(fabs((double)mean[j] - wanted) <= tolerance(1, fabs(wanted)),
              "mean[%d] is %.9g, not %.9g", j, (double)mean[j], wanted);
        CHECK(fabs((double)rstd[j] - one) <= tolerance(far.n, one), "rstd[%d] is %.9g, not %.9g", j,
              (double)rstd[j], one);
    }
    void *device[] = {to_x, g, aux, y, run.workspace};
    for (size_t i = 0; i < sizeof device / sizeof *device; i++) device_free(device[i]);
    free(x);
    free(ones);
    free(mean);
    free(rstd);
}

static void batches_far_from_zero(void) {
    if (!device_test_stream()) return;
    for (size_t i = 0; i < sizeof far_batches / sizeof *far_batches; i++)
        for (int version = 1; version <= 2; version++)
            check_far((Run){.stream = device_test_stream(), .version = version}, far_batches[i]);
}

void test_norms(void) {
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        RUN_ROW(widths[i].name, rows_hold, &widths[i]);
    RUN(batches_far_from_zero);
}
