/* Cross-entropy has targets instead of a second input, so it has its own table: each row for the
 * plain op and the fast one. */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/fast/fast.h"
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
    double offset;    /* that all logits share */
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
} Turn;

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

/* Rows [first, end). */
static void run_rows(Data *data, Turn turn, int first, int end) {
    const int classes = turn.row->classes, count = end - first;
    const real *logits = data->logits.data + (ptrdiff_t)first * classes;
    real *log_sum = data->log_sum.data + first;
    real *gradient = data->gradient.data + (ptrdiff_t)first * classes;
    (turn.plain ? cross_entropy_forward : fast_cross_entropy_forward)(
        data->loss.data + first, log_sum, data->correct + first, logits, data->targets + first,
        count, classes);
    (turn.plain ? cross_entropy_input_gradient : fast_cross_entropy_input_gradient)(
        gradient, logits, log_sum, data->targets + first, SCALE, count, classes);
}

static void run(Data *data, Turn turn) { run_rows(data, turn, 0, turn.row->rows); }

static int first_largest(const real *logits, int classes) {
    int best = 0;
    for (int j = 1; j < classes; j++)
        if (logits[j] > logits[best]) best = j;
    return best;
}

/* log sum exp(x - most), by the formula, in double. */
static double log_sum_of(const real *logits, double most, int classes) {
    double sum = 0;
    for (int j = 0; j < classes; j++) sum += exp((double)logits[j] - most);
    return log(sum);
}

/* Inputs near an offset are exact, and so, nearly, are their distances from the largest: what all
 * share costs no digits. */
static void check_row(const Data *data, const Row *row, int i) {
    int classes = row->classes, target = data->targets[i];
    const real *logits = data->logits.data + (size_t)i * (size_t)classes;
    const real *gradient = data->gradient.data + (size_t)i * (size_t)classes;
    const double most = (double)logits[first_largest(logits, classes)];
    const double log_sum = log_sum_of(logits, most, classes);
    const double allowed = tolerance(1, fmax(row->scale, 1) + log(classes));
    if (target < 0) {
        CHECK(data->loss.data[i] == 0 && data->correct[i] == 0, "row %d is ignored: loss %g, %d", i,
              (double)data->loss.data[i], data->correct[i]);
        for (int j = 0; j < classes; j++)
            CHECK(gradient[j] == 0, "row %d is ignored: dlogits[%d] %g", i, j, (double)gradient[j]);
        return;
    }
    double error = fabs((double)data->loss.data[i] - (most - (double)logits[target] + log_sum));
    CHECK(error <= allowed, "loss[%d]: error %g, allowed %g", i, error, allowed);
    CHECK(data->correct[i] == (first_largest(logits, classes) == target), "correct[%d] %d", i,
          data->correct[i]);
    for (int j = 0; j < classes; j++) {
        double p = exp((double)logits[j] - most - log_sum);
        double expected = (double)SCALE * (p - (j == target));
        /* The error of the log-sum-exp is a relative error of every probability. */
        double allowed_j = (double)SCALE * (p * allowed + tolerance(1, 1));
        error = fabs((double)gradient[j] - expected);
        CHECK(error <= allowed_j, "row %d: dlogits[%d] is %g, not %g (allowed %g)", i, j,
              (double)gradient[j], expected, allowed_j);
    }
}

static void meets_formula(const void *argument) {
    const Turn turn = *(const Turn *)argument;
    const Row *row = turn.row;
    Data data;
    create(&data, row);
    run(&data, turn);
    for (int i = 0; i < row->rows; i++) check_row(&data, row, i);
    CHECK(guarded_intact(data.logits) && guarded_intact(data.loss) &&
              guarded_intact(data.log_sum) && guarded_intact(data.gradient),
          "something wrote beside an array");
    destroy(&data);
}

static void same_bits(Guarded a, Guarded b, const char *what) {
    size_t first = guarded_first_difference(a, b);
    CHECK(first == a.count, "%s: number %zu is %.9g and %.9g", what, first, (double)a.data[first],
          (double)b.data[first]);
}

static void repeats_on_any_threads(const void *argument) {
    const Turn turn = *(const Turn *)argument;
    const Row *row = turn.row;
    Data one, more;
    int threads = omp_get_max_threads();
    create(&one, row);
    omp_set_num_threads(1);
    run(&one, turn);
    for (int t = 1; t <= 3; t++) {
        omp_set_num_threads(t);
        create(&more, row);
        run(&more, turn);
        same_bits(one.loss, more.loss, "loss");
        same_bits(one.gradient, more.gradient, "dlogits");
        destroy(&more);
    }
    omp_set_num_threads(threads);
    destroy(&one);
}

static void gradient_in_place(const void *argument) {
    const Turn turn = *(const Turn *)argument;
    const Row *row = turn.row;
    Data data;
    create(&data, row);
    run(&data, turn);
    (turn.plain ? cross_entropy_input_gradient : fast_cross_entropy_input_gradient)(
        data.logits.data, data.logits.data, data.log_sum.data, data.targets, SCALE, row->rows,
        row->classes);
    same_bits(data.gradient, data.logits, "in place and apart");
    destroy(&data);
}

static void rows_do_not_meet(const void *argument) {
    const Turn turn = *(const Turn *)argument;
    const Row *row = turn.row;
    Data together, apart;
    create(&together, row);
    create(&apart, row);
    run(&together, turn);
    for (int i = 0; i < row->rows; i++) run_rows(&apart, turn, i, i + 1);
    same_bits(together.loss, apart.loss, "loss alone");
    same_bits(together.gradient, apart.gradient, "dlogits alone");
    destroy(&together);
    destroy(&apart);
}

/* Wherever it stands in a row that counts, and infinity too. */
static void breakdown_shows_in_the_loss(const void *argument) {
    const Turn turn = *(const Turn *)argument;
    const Row *row = turn.row;
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
            run_rows(&data, turn, i, i + 1);
            CHECK(!isfinite(data.loss.data[i]), "logit %zu is %g, loss[%d] is %g", j - at,
                  bad[k / 2], i, (double)data.loss.data[i]);
            data.logits.data[j] = before;
        }
    }
    destroy(&data);
}

static void run_turn(Turn turn) {
    char name[64];
    snprintf(name, sizeof name, "%s, %s", turn.row->name, turn.plain ? "plain" : "fast");
    RUN_ROW(name, meets_formula, &turn);
    RUN_ROW(name, repeats_on_any_threads, &turn);
    RUN_ROW(name, gradient_in_place, &turn);
    RUN_ROW(name, breakdown_shows_in_the_loss, &turn);
    RUN_ROW(name, rows_do_not_meet, &turn);
}

void test_cross_entropy(void) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        run_turn((Turn){&rows[i], true});
        run_turn((Turn){&rows[i], false});
    }
}
