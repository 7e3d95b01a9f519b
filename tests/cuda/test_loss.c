/* Compares cross-entropy and its sums with the CPU, in every value type and version. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/base/random.h"
#include "../../ref/ops/ops.h"
#include "../ref/tolerance.h"
#include "../test.h"
#include "device_case.h"

typedef struct {
    const char *name;
    int rows, classes, gap; /* gap: numbers between rows */
    double scale;           /* of the logits */
    int ignore_every;       /* every n-th target is ignored; 0: none */
    bool whole;             /* whole numbers, so that many logits are equal */
} Row;

/* Numbers of classes around the length of a vector, a warp, and the limit at which a block replaces
 * a warp. Rows that are not aligned (no gaps and an odd number of classes) use version 1. */
static const Row rows[] = {
    {"one class", 3, 1, 0, 1, 0, false},
    {"two classes", 1, 2, 0, 1, 0, false},
    {"7 classes", 9, 7, 0, 1, 2, false},
    {"ten classes, rows of 64", 33, 10, 54, 3, 4, false},
    {"17 classes, rows of 64", 5, 17, 47, 1, 2, false},
    {"31 classes, equal logits", 40, 31, 33, 2, 0, true},
    {"33 classes, rows of 64", 6, 33, 31, 3, 3, false},
    {"97 classes, rows of 128", 6, 97, 31, 3, 4, false},
    {"64 classes", 6, 64, 0, 4, 5, false},
    {"257 classes, rows of 320", 7, 257, 63, 5, 3, false},
    {"1023 classes, rows of 1024", 3, 1023, 1, 1, 0, false},
    {"1024 classes", 3, 1024, 0, 1, 2, false},
    {"1031 classes, equal logits", 9, 1031, 57, 2, 0, true},
    {"a vocabulary", 3, 50257, 47, 3, 3, false},
    {"a large vocabulary", 1, 131071, 1, 3, 0, false},
    {"all ignored", 4, 11, 0, 1, 1, false},
    {"huge logits", 5, 33, 0, 3e4, 0, false},
};

static const float SCALE = 0.25f;

typedef struct {
    const Row *row;
    How how;
    size_t n, count;
    float *logits, *loss, *gradient;
    unsigned char *correct;
    int *targets;
} Data;

static void *allocate(size_t bytes) {
    void *memory = calloc(bytes, 1);
    if (!memory) abort();
    return memory;
}

static size_t stride_of(const Row *row) { return (size_t)(row->classes + row->gap); }

static Data create(const Row *row, How how) {
    size_t n = (size_t)row->rows, stride = stride_of(row), count = n * stride;
    Data d = {.row = row, .how = how, .n = n, .count = count};
    d.logits = allocate(count * sizeof *d.logits);
    d.gradient = allocate(count * sizeof *d.gradient);
    d.loss = allocate(n * sizeof *d.loss);
    d.correct = allocate(n);
    d.targets = allocate(n * sizeof *d.targets);
    for (size_t i = 0; i < count; i++) {
        double u = row->scale * (2 * random_uniform(1, 2, i) - 1);
        float x = (float)(row->whole ? floor(u) : u);
        if (i % stride >= (size_t)row->classes) x = NAN; /* the gap must not be read */
        d.logits[i] = how.precision == PRECISION_BF16 ? nearest_bf16(x) : x;
    }
    for (size_t i = 0; i < n; i++) {
        bool ignored = row->ignore_every && i % (size_t)row->ignore_every == 0;
        d.targets[i] = ignored ? -1 : (int)random_below(1, 3, i, (uint32_t)row->classes);
    }
    return d;
}

static void destroy(Data *d) {
    free(d->logits);
    free(d->gradient);
    free(d->loss);
    free(d->correct);
    free(d->targets);
}

static void on_device(Data *d, bool gradient) {
    Run run = {device_test_stream(), d->how.precision, d->how.version, NULL};
    if (!run.stream) return;
    void *logits = device_put_values(d->logits, d->count, run.precision);
    float *loss = device_put(d->loss, d->n * sizeof *loss);
    unsigned char *correct = device_put(d->correct, d->n);
    int *targets = device_put(d->targets, d->n * sizeof *targets);
    float *scale = device_put(&SCALE, sizeof SCALE);
    device_choose_order(d->how.order);
    cuda_cross_entropy(&run, loss, correct, logits, targets, gradient ? scale : NULL, d->row->rows,
                       d->row->classes, d->row->classes + d->row->gap);
    device_get(d->loss, loss, d->n * sizeof *loss);
    device_get(d->correct, correct, d->n);
    device_get_values(d->gradient, logits, d->count, run.precision);
    device_choose_order(0);
    device_free(logits);
    device_free(loss);
    device_free(correct);
    device_free(targets);
    device_free(scale);
}

static void on_cpu(Data *d) {
    float *lse = allocate(d->n * sizeof *lse);
    for (size_t i = 0; i < d->n; i++) {
        size_t at = i * stride_of(d->row);
        cross_entropy_forward(d->loss + i, lse + i, d->correct + i, d->logits + at, d->targets + i,
                              1, d->row->classes);
        cross_entropy_input_gradient(d->gradient + at, d->logits + at, lse + i, d->targets + i,
                                     SCALE, 1, d->row->classes);
    }
    free(lse);
}

/* The device and the oracle may each be off by what tests/ref/test_cross_entropy.c allows, and a
 * gradient also by its rounding. */
static void check_row(const Data *got, const Data *truth, size_t i) {
    const Row *row = got->row;
    size_t classes = (size_t)row->classes;
    const float *gradient = got->gradient + i * stride_of(row);
    const float *expected = truth->gradient + i * stride_of(row);
    double allowed = 2 * tolerance(1, fmax(row->scale, 1) + log(row->classes));
    double u = got->how.precision == PRECISION_BF16 ? 0x1p-8 : 0;
    double error = fabs((double)got->loss[i] - (double)truth->loss[i]);
    if (got->targets[i] < 0) allowed = 0;
    CHECK(error <= allowed, "loss[%zu] is %g, not %g (allowed %g)", i, (double)got->loss[i],
          (double)truth->loss[i], allowed);
    CHECK(got->correct[i] == truth->correct[i], "correct[%zu] is %d", i, got->correct[i]);
    for (size_t j = 0; j < classes; j++) {
        double value = (double)expected[j];
        bool ignored = got->targets[i] < 0;
        double p = fabs(value) / (double)SCALE + ((int)j == got->targets[i]);
        double near =
            ignored ? 0 : (double)SCALE * (p * allowed + 2 * tolerance(1, 1)) + u * fabs(value);
        error = fabs((double)gradient[j] - value);
        CHECK(error <= near, "row %zu: dlogits[%zu] is %g, not %g (allowed %g)", i, j,
              (double)gradient[j], value, near);
    }
    for (size_t j = classes; j < stride_of(row); j++)
        CHECK(gradient[j] == 0, "row %zu: between rows the gradient is %g", i, (double)gradient[j]);
}

static void meets_the_oracle(const Row *row, How how) {
    Data got = create(row, how), truth = create(row, how);
    on_device(&got, true);
    on_cpu(&truth);
    for (size_t i = 0; i < got.n; i++) check_row(&got, &truth, i);
    destroy(&got);
    destroy(&truth);
}

static void same_bits(const Data *a, const Data *b, const char *what) {
    CHECK(!memcmp(a->loss, b->loss, a->n * sizeof *a->loss), "%s: another loss", what);
    CHECK(!memcmp(a->correct, b->correct, a->n), "%s: another correct", what);
}

static void repeats(const Row *row, How how) {
    Data first = create(row, how);
    on_device(&first, true);
    for (how.order = 1; how.order < device_orders(); how.order++) {
        Data again = create(row, how);
        on_device(&again, true);
        same_bits(&first, &again, "another order of threads");
        CHECK(!memcmp(first.gradient, again.gradient, first.count * sizeof *first.gradient),
              "another order of threads: another gradient");
        destroy(&again);
    }
    destroy(&first);
}

static void leaves_logits_alone_without_scale(const Row *row, How how) {
    Data with = create(row, how), without = create(row, how);
    on_device(&with, true);
    on_device(&without, false);
    same_bits(&with, &without, "without a gradient");
    for (size_t i = 0; i < with.count; i++)
        CHECK(without.logits[i] == without.gradient[i] ||
                  (isnan(without.logits[i]) && isnan(without.gradient[i])),
              "the logits have changed");
    destroy(&with);
    destroy(&without);
}

/* A NaN at the first, the last, the target's or another position affects its own row and no
 * other. */
static void shows_nan(const Row *row, How how) {
    const size_t classes = (size_t)row->classes;
    Data clean = create(row, how);
    on_device(&clean, true);
    for (int place = 0; place < 4; place++) {
        Data d = create(row, how);
        size_t i = (size_t)place % d.n, target = d.targets[i] < 0 ? 0 : (size_t)d.targets[i];
        const size_t at[] = {0, classes - 1, target, classes / 2};
        d.logits[i * stride_of(row) + at[place]] = NAN;
        on_device(&d, true);
        for (size_t k = 0; k < d.n; k++)
            if (k == i && d.targets[i] >= 0) {
                CHECK(isnan(d.loss[k]), "NaN is lost: loss[%zu] is %g", k, (double)d.loss[k]);
                CHECK(!d.correct[k], "NaN is correct");
            } else {
                CHECK(d.loss[k] == clean.loss[k] && d.correct[k] == clean.correct[k],
                      "NaN in row %zu shows in row %zu", i, k);
            }
        destroy(&d);
    }
    destroy(&clean);
}

/* Logits of minus infinity rule classes out: their probability is 0. A lane that has no other
 * logits must not produce a NaN. */
static void allows_minus_infinity(const Row *row, How how) {
    const size_t stride = stride_of(row);
    Data d = create(row, how);
    for (size_t i = 0; i < d.count; i++)
        if ((int)(i % stride) != d.targets[i / stride]) d.logits[i] = -INFINITY;
    on_device(&d, true);
    for (size_t i = 0; i < d.n; i++)
        CHECK(d.loss[i] == 0 && d.correct[i] == (d.targets[i] >= 0), "row %zu: loss %g, %d", i,
              (double)d.loss[i], d.correct[i]);
    for (size_t i = 0; i < d.count; i++)
        CHECK(d.gradient[i] == 0, "dlogits[%zu] is %g", i, (double)d.gradient[i]);
    destroy(&d);
}

static void cross_entropy_holds(const void *argument) {
    const Row *row = argument;
    for (int type = 0; type < VALUE_TYPES; type++)
        for (int version = 1; version <= 2; version++) {
            How how = {.precision = value_types[type], .version = version};
            leaves_logits_alone_without_scale(row, how);
            if (device_is_watched()) continue;
            meets_the_oracle(row, how);
            repeats(row, how);
            shows_nan(row, how);
            allows_minus_infinity(row, how);
        }
}

static void sums_hold(void) {
    enum { ROWS = 3001 };
    static float loss[ROWS];
    static unsigned char correct[ROWS];
    static int targets[ROWS];
    const int sizes[] = {1, 31, 1024, ROWS};
    Run run = {.stream = device_test_stream()};
    if (!run.stream) return;
    for (int i = 0; i < ROWS; i++) {
        targets[i] = i % 7 == 3 ? -1 : i;
        loss[i] = targets[i] < 0 ? 0 : (float)(i % 64) * 0.25f; /* exact in any order */
        correct[i] = targets[i] >= 0 && i % 3 == 0;
    }
    float *dloss = device_put(loss, sizeof loss);
    unsigned char *dcorrect = device_put(correct, sizeof correct);
    int *dtargets = device_put(targets, sizeof targets);
    LossSums got, truth = {0, 0, 0}, *sums = device_put(&truth, sizeof truth);
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
        for (int add = 0; add < 2; add++) {
            if (!add) truth = (LossSums){0, 0, 0};
            for (int i = 0; i < sizes[k]; i++) {
                truth.loss_sum += (double)loss[i];
                truth.count += targets[i] >= 0;
                truth.correct += correct[i];
            }
            cuda_loss_sums(&run, sums, dloss, dcorrect, dtargets, sizes[k], add);
            device_get(&got, sums, sizeof got);
            CHECK(got.loss_sum == truth.loss_sum && got.count == truth.count &&
                      got.correct == truth.correct,
                  "%d rows: %g of %llu, %llu correct", sizes[k], got.loss_sum, got.count,
                  got.correct);
        }
    device_free(dloss);
    device_free(dcorrect);
    device_free(dtargets);
    device_free(sums);
}

void test_loss(void) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        RUN_ROW(rows[i].name, cross_entropy_holds, &rows[i]);
    RUN(sums_hold);
}
