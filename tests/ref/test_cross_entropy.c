/* Cross-entropy, plain and fast.  It has targets instead of a second input, so it is not in the
 * table of cases.c. */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/base/random.h"
#include "../../ref/ops/ops.h"
#include "../test.h"
#include "guarded.h"
#include "tiny.h"
#include "tolerance.h"

typedef struct {
    const char *name;
    int rows, classes;
    double scale;     /* of the logits */
    int ignore_every; /* every n-th target is ignored; 0: none */
    bool whole;       /* whole numbers, so that many logits are equal */
    double offset;    /* a number that is added to all logits */
} Row;

static const Row rows[] = {
    {"one class", 3, 1, 1, 0, false, 0},
    {"two classes", 1, 2, 1, 0, false, 0},
    {"ten classes", 33, 10, 3, 4, false, 0},
    {"17 classes", 5, 17, 1, 2, false, 0},
    {"31 classes, equal logits", 40, 31, 2, 0, true, 0},
    {"257 classes", 7, 257, 5, 3, false, 0},
    {"a vocabulary", 3, 50257, 3, 0, false, 0},
    {"all ignored", 4, 11, 1, 1, false, 0},
    {"huge logits", 5, 33, 3e4, 0, false, 0},
    {"many rows", 1100, 64, 4, 5, false, 0},
    {"all logits near 100", 9, 50, 1, 0, false, 100},
    {"all logits near 1000", 9, 50, 1, 0, false, 1e3},
    {"all logits near -1000", 9, 50, 1, 0, false, -1e3},
    {"all logits near 10000", 9, 50, 1, 0, false, 1e4},
};

typedef struct {
    const Row *row;
    bool plain;
} OpRun;

typedef struct {
    Guarded logits, loss, log_sum, gradient;
    unsigned char *correct;
    int *targets;
} Data;

static void create(Data *data, const Row *row) {
    size_t n = (size_t)row->rows, count = n * (size_t)row->classes;
    data->logits = guarded_create(count);
    data->loss = guarded_create(n);
    data->log_sum = guarded_create(n);
    data->gradient = guarded_create(count);
    data->correct = malloc(n);
    data->targets = malloc(n * sizeof(int));
    if (!data->correct || !data->targets) abort();
    memset(data->correct, 7, n);
    for (size_t i = 0; i < count; i++) {
        double u = row->offset + row->scale * (2 * random_uniform(1, 2, i) - 1);
        data->logits.data[i] = (real)(row->whole ? floor(u) : u);
    }
    for (size_t i = 0; i < n; i++) {
        bool ignored = row->ignore_every && i % (size_t)row->ignore_every == 0;
        data->targets[i] = ignored ? -1 : (int)random_below(1, 3, i, (uint32_t)row->classes);
    }
}

static void destroy(Data *data) {
    guarded_free(&data->logits);
    guarded_free(&data->loss);
    guarded_free(&data->log_sum);
    guarded_free(&data->gradient);
    free(data->correct);
    free(data->targets);
}

static const real SCALE = (real)0.25;

/* Runs rows [first, end). */
static void run_rows(Data *data, OpRun op, int first, int end) {
    const int classes = op.row->classes, count = end - first;
    const real *logits = data->logits.data + (ptrdiff_t)first * classes;
    real *log_sum = data->log_sum.data + first;
    real *gradient = data->gradient.data + (ptrdiff_t)first * classes;
    (op.plain ? cross_entropy_forward : fast_cross_entropy_forward)(
        data->loss.data + first, log_sum, data->correct + first, logits, data->targets + first,
        count, classes);
    (op.plain ? cross_entropy_input_gradient : fast_cross_entropy_input_gradient)(
        gradient, logits, log_sum, data->targets + first, SCALE, count, classes);
}

static void run(Data *data, OpRun op) { run_rows(data, op, 0, op.row->rows); }

static int first_largest(const real *logits, int classes) {
    int best = 0;
    for (int j = 1; j < classes; j++)
        if (logits[j] > logits[best]) best = j;
    return best;
}

/* Returns log sum exp(logits - max), in double. */
static double log_sum_of(const real *logits, double max, int classes) {
    double sum = 0;
    for (int j = 0; j < classes; j++) sum += exp((double)logits[j] - max);
    return log(sum);
}

/* An offset that all logits share must cost no digits, so the tolerance does not depend on it. */
static void check_row(const Data *data, const Row *row, int i) {
    int classes = row->classes, target = data->targets[i];
    const real *logits = data->logits.data + (size_t)i * (size_t)classes;
    const real *gradient = data->gradient.data + (size_t)i * (size_t)classes;
    const double max = (double)logits[first_largest(logits, classes)];
    const double log_sum = log_sum_of(logits, max, classes);
    const double allowed = tolerance(1, fmax(row->scale, 1) + log(classes));
    if (target < 0) {
        CHECK(data->loss.data[i] == 0 && data->correct[i] == 0, "row %d is ignored: loss %g, %d", i,
              (double)data->loss.data[i], data->correct[i]);
        for (int j = 0; j < classes; j++)
            CHECK(gradient[j] == 0, "row %d is ignored: dlogits[%d] %g", i, j, (double)gradient[j]);
        return;
    }
    double error = fabs((double)data->loss.data[i] - (max - (double)logits[target] + log_sum));
    CHECK(error <= allowed, "loss[%d]: error %g, allowed %g", i, error, allowed);
    CHECK(data->correct[i] == (first_largest(logits, classes) == target), "correct[%d] %d", i,
          data->correct[i]);
    for (int j = 0; j < classes; j++) {
        double p = exp((double)logits[j] - max - log_sum);
        double expected = (double)SCALE * (p - (j == target));
        /* The error of the log-sum-exp is a relative error of every probability. */
        double allowed_j = (double)SCALE * (p * allowed + tolerance(1, 1));
        error = fabs((double)gradient[j] - expected);
        CHECK(error <= allowed_j, "row %d: dlogits[%d] is %g, not %g (allowed %g)", i, j,
              (double)gradient[j], expected, allowed_j);
    }
}

static void meets_formula(const void *argument) {
    const OpRun op = *(const OpRun *)argument;
    const Row *row = op.row;
    Data data;
    create(&data, row);
    run(&data, op);
    for (int i = 0; i < row->rows; i++) check_row(&data, row, i);
    CHECK(guarded_intact(data.logits) && guarded_intact(data.loss) &&
              guarded_intact(data.log_sum) && guarded_intact(data.gradient),
          "something wrote outside of an array");
    destroy(&data);
}

static void repeats_on_any_threads(const void *argument) {
    const OpRun op = *(const OpRun *)argument;
    const Row *row = op.row;
    Data one, more;
    int threads = omp_get_max_threads();
    create(&one, row);
    omp_set_num_threads(1);
    run(&one, op);
    for (int t = 1; t <= 3; t++) {
        omp_set_num_threads(t);
        create(&more, row);
        run(&more, op);
        guarded_check_same(one.loss, more.loss, "loss");
        guarded_check_same(one.gradient, more.gradient, "dlogits");
        destroy(&more);
    }
    omp_set_num_threads(threads);
    destroy(&one);
}

static void gradient_in_place(const void *argument) {
    const OpRun op = *(const OpRun *)argument;
    const Row *row = op.row;
    Data data;
    create(&data, row);
    run(&data, op);
    (op.plain ? cross_entropy_input_gradient : fast_cross_entropy_input_gradient)(
        data.logits.data, data.logits.data, data.log_sum.data, data.targets, SCALE, row->rows,
        row->classes);
    guarded_check_same(data.gradient, data.logits, "in place and apart");
    destroy(&data);
}

static void rows_are_independent(const void *argument) {
    const OpRun op = *(const OpRun *)argument;
    const Row *row = op.row;
    Data together, apart;
    create(&together, row);
    create(&apart, row);
    run(&together, op);
    for (int i = 0; i < row->rows; i++) run_rows(&apart, op, i, i + 1);
    guarded_check_same(together.loss, apart.loss, "loss alone");
    guarded_check_same(together.gradient, apart.gradient, "dlogits alone");
    destroy(&together);
    destroy(&apart);
}

/* NaN or infinity anywhere in a row whose target counts makes its loss not finite, and where that
 * is NaN the target is not correct. */
static void breakdown_shows_in_the_loss(const void *argument) {
    const OpRun op = *(const OpRun *)argument;
    const Row *row = op.row;
    static const double bad[] = {NAN, INFINITY};
    Data data;
    create(&data, row);
    for (int i = 0; i < row->rows; i++) {
        if (data.targets[i] < 0) continue;
        size_t at = (size_t)i * (size_t)row->classes;
        for (int k = 0; k < 4; k++) {
            size_t j = at + random_below(4, 5, (uint64_t)(4 * i + k), (uint32_t)row->classes);
            real before = data.logits.data[j];
            data.logits.data[j] = (real)bad[k / 2];
            run_rows(&data, op, i, i + 1);
            CHECK(!isfinite(data.loss.data[i]), "logit %zu is %g, loss[%d] is %g", j - at,
                  bad[k / 2], i, (double)data.loss.data[i]);
            CHECK(!isnan(data.loss.data[i]) || !data.correct[i], "logit %zu is %g: correct", j - at,
                  bad[k / 2]);
            data.logits.data[j] = before;
        }
    }
    destroy(&data);
}

static void run_op(OpRun op) {
    char name[64];
    snprintf(name, sizeof name, "%s, %s", op.row->name, op.plain ? "plain" : "fast");
    RUN_ROW(name, meets_formula, &op);
    RUN_ROW(name, repeats_on_any_threads, &op);
    RUN_ROW(name, gradient_in_place, &op);
    RUN_ROW(name, breakdown_shows_in_the_loss, &op);
    RUN_ROW(name, rows_are_independent, &op);
}

/* Returns how many targets have the largest logit of their row; ignored ones count as wrong. */
static size_t count_correct(const real *logits, const int *targets, int count, int classes) {
    size_t correct = 0;
    for (int row = 0; row < count; row++, logits += classes) {
        int best = 0;
        for (int c = 1; c < classes; c++)
            if (logits[c] > logits[best]) best = c;
        correct += targets[row] == best;
    }
    return correct;
}

/* The accuracy of a whole model, in a step and in an evaluation.  Its logits are read before the
 * loss, since their gradient overwrites them. */
static void accuracy_is_a_count_by_hand(const void *spec) {
    enum { SAMPLES = 12 };
    for (Mode mode = MODE_EVALUATE; mode <= MODE_TRAIN; mode++) {
        Tiny tiny;
        tiny_open(&tiny, &(Recipe){.spec = spec, .batch = SAMPLES});
        tiny_activate(&tiny, 0);
        const Model *m = tiny.model;
        Batch batch = tiny_batch(&tiny, SAMPLES);
        stage_begin(tiny.stage, &batch, mode);
        for (int b = 0; b < m->blocks; b++) stage_forward(tiny.stage, b);
        size_t count, counted = 0;
        real *logits = tiny_read(&tiny, TENSOR_VALUE, m->blocks - 1, &count);
        const int targets = SAMPLES * m->targets;
        for (int i = 0; i < targets; i++) counted += batch.targets[i] >= 0;
        const size_t correct = count_correct(logits, batch.targets, targets, m->outputs);
        Loss loss;
        CHECK(stage_loss(tiny.stage, 1, &loss) == 0, "%s", error_message());
        CHECK(loss.correct == correct && loss.count == counted,
              "%zu of %zu are right, not %zu of %zu", loss.correct, loss.count, correct, counted);
        free(logits);
        batch_free(&batch);
        tiny_close(&tiny);
    }
}

void test_cross_entropy(void) {
    for (int i = 0; tiny_models[i]; i++)
        RUN_ROW("accuracy", accuracy_is_a_count_by_hand, tiny_models[i]);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        run_op((OpRun){&rows[i], true});
        run_op((OpRun){&rows[i], false});
    }
}
