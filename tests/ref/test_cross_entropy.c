/* Cross-entropy has targets instead of a second input, so it has its own table. */
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/ops/ops.h"
#include "../../ref/random.h"
#include "../test.h"
#include "guarded.h"
#include "tolerance.h"

typedef struct {
    const char *name;
    int rows, classes;
    double scale;     /* of the logits */
    int ignore_every; /* this many-th target is ignored; 0: none */
    bool whole;       /* whole numbers: many equal logits */
} Row;

static const Row rows[] = {
    {"one class", 3, 1, 1, 0, false},
    {"two classes", 1, 2, 1, 0, false},
    {"ten classes", 33, 10, 3, 4, false},
    {"17 classes", 5, 17, 1, 2, false},
    {"31 classes, equal logits", 40, 31, 2, 0, true},
    {"257 classes", 7, 257, 5, 3, false},
    {"a vocabulary", 3, 50257, 3, 0, false},
    {"all ignored", 4, 11, 1, 1, false},
    {"huge logits", 5, 33, 3e4, 0, false},
    {"many rows", 1100, 64, 4, 5, false},
};

typedef struct {
    Guarded logits, loss, lse, gradient;
    unsigned char *correct;
    int *targets;
} Data;

static void create(Data *data, const Row *row) {
    size_t n = (size_t)row->rows, count = n * (size_t)row->classes;
    data->logits = guarded_create(count);
    data->loss = guarded_create(n);
    data->lse = guarded_create(n);
    data->gradient = guarded_create(count);
    data->correct = malloc(n);
    data->targets = malloc(n * sizeof(int));
    if (!data->correct || !data->targets) abort();
    memset(data->correct, 7, n);
    for (size_t i = 0; i < count; i++) {
        double u = row->scale * (2 * random_uniform(1, 2, i) - 1);
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
    guarded_free(&data->lse);
    guarded_free(&data->gradient);
    free(data->correct);
    free(data->targets);
}

static const real SCALE = (real)0.25;

static void run(Data *data, const Row *row) {
    cross_entropy_forward(data->loss.data, data->lse.data, data->correct, data->logits.data,
                          data->targets, row->rows, row->classes);
    cross_entropy_input_gradient(data->gradient.data, data->logits.data, data->lse.data,
                                 data->targets, SCALE, row->rows, row->classes);
}

/* -log of the target's share, by the formula, in double. */
static double naive_lse(const real *logits, int classes) {
    double most = (double)logits[0], sum = 0;
    for (int j = 1; j < classes; j++) most = fmax(most, (double)logits[j]);
    for (int j = 0; j < classes; j++) sum += exp((double)logits[j] - most);
    return most + log(sum);
}

static int first_largest(const real *logits, int classes) {
    int best = 0;
    for (int j = 1; j < classes; j++)
        if (logits[j] > logits[best]) best = j;
    return best;
}

static void check_row(const Data *data, const Row *row, int i) {
    int classes = row->classes, target = data->targets[i];
    const real *logits = data->logits.data + (size_t)i * (size_t)classes;
    const real *gradient = data->gradient.data + (size_t)i * (size_t)classes;
    double lse = naive_lse(logits, classes),
           allowed = tolerance(1, fmax(row->scale, 1) + log(classes));
    if (target < 0) {
        CHECK(data->loss.data[i] == 0 && data->correct[i] == 0, "row %d is ignored: loss %g, %d", i,
              (double)data->loss.data[i], data->correct[i]);
        for (int j = 0; j < classes; j++)
            CHECK(gradient[j] == 0, "row %d is ignored: dlogits[%d] %g", i, j, (double)gradient[j]);
        return;
    }
    double error = fabs((double)data->loss.data[i] - (lse - (double)logits[target]));
    CHECK(error <= allowed, "loss[%d]: error %g, allowed %g", i, error, allowed);
    CHECK(data->correct[i] == (first_largest(logits, classes) == target), "correct[%d] %d", i,
          data->correct[i]);
    for (int j = 0; j < classes; j++) {
        double p = exp((double)logits[j] - lse);
        double expected = (double)SCALE * (p - (j == target));
        /* The error of the log-sum-exp is a relative error of every probability. */
        double allowed_j = (double)SCALE * (p * allowed + tolerance(1, 1));
        error = fabs((double)gradient[j] - expected);
        CHECK(error <= allowed_j, "row %d: dlogits[%d] is %g, not %g (allowed %g)", i, j,
              (double)gradient[j], expected, allowed_j);
    }
}

static void meets_formula(const void *argument) {
    const Row *row = argument;
    Data data;
    create(&data, row);
    run(&data, row);
    for (int i = 0; i < row->rows; i++) check_row(&data, row, i);
    CHECK(guarded_intact(data.logits) && guarded_intact(data.loss) && guarded_intact(data.lse) &&
              guarded_intact(data.gradient),
          "something wrote beside an array");
    destroy(&data);
}

static void same_bits(Guarded a, Guarded b, const char *what) {
    size_t first = guarded_first_difference(a, b);
    CHECK(first == a.count, "%s: number %zu is %.9g and %.9g", what, first, (double)a.data[first],
          (double)b.data[first]);
}

static void repeats_on_any_threads(const void *argument) {
    const Row *row = argument;
    Data one, more;
    int threads = omp_get_max_threads();
    create(&one, row);
    omp_set_num_threads(1);
    run(&one, row);
    for (int t = 1; t <= 3; t++) {
        omp_set_num_threads(t);
        create(&more, row);
        run(&more, row);
        same_bits(one.loss, more.loss, "loss");
        same_bits(one.gradient, more.gradient, "dlogits");
        destroy(&more);
    }
    omp_set_num_threads(threads);
    destroy(&one);
}

static void gradient_in_place(const void *argument) {
    const Row *row = argument;
    Data data;
    create(&data, row);
    run(&data, row);
    cross_entropy_input_gradient(data.logits.data, data.logits.data, data.lse.data, data.targets,
                                 SCALE, row->rows, row->classes);
    same_bits(data.gradient, data.logits, "in place and apart");
    destroy(&data);
}

static void rows_do_not_meet(const void *argument) {
    const Row *row = argument;
    Data together, apart;
    create(&together, row);
    create(&apart, row);
    run(&together, row);
    for (int i = 0; i < row->rows; i++) {
        size_t at = (size_t)i * (size_t)row->classes;
        cross_entropy_forward(apart.loss.data + i, apart.lse.data + i, apart.correct + i,
                              apart.logits.data + at, apart.targets + i, 1, row->classes);
        cross_entropy_input_gradient(apart.gradient.data + at, apart.logits.data + at,
                                     apart.lse.data + i, apart.targets + i, SCALE, 1, row->classes);
    }
    same_bits(together.loss, apart.loss, "loss alone");
    same_bits(together.gradient, apart.gradient, "dlogits alone");
    destroy(&together);
    destroy(&apart);
}

/* Wherever it stands in a row that counts, and infinity too. */
static void breakdown_shows_in_the_loss(const void *argument) {
    const Row *row = argument;
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
            cross_entropy_forward(data.loss.data + i, data.lse.data + i, data.correct + i,
                                  data.logits.data + at, data.targets + i, 1, row->classes);
            CHECK(!isfinite(data.loss.data[i]), "logit %zu is %g, loss[%d] is %g", j - at,
                  bad[k / 2], i, (double)data.loss.data[i]);
            data.logits.data[j] = before;
        }
    }
    destroy(&data);
}

void test_cross_entropy(void) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        RUN_ROW(rows[i].name, meets_formula, &rows[i]);
        RUN_ROW(rows[i].name, repeats_on_any_threads, &rows[i]);
        RUN_ROW(rows[i].name, gradient_in_place, &rows[i]);
        RUN_ROW(rows[i].name, breakdown_shows_in_the_loss, &rows[i]);
        RUN_ROW(rows[i].name, rows_do_not_meet, &rows[i]);
    }
}
