/* Updates against their formulas in double, and schedules where their formula changes. */
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/base/random.h"
#include "../../ref/optimizers/optimizer.h"
#include "../test.h"
#include "tolerance.h"

enum { COUNT = (1 << 15) + 19, STEPS = 3 }; /* enough for threads to share */

typedef struct {
    const char *name;
    OptimizerSettings settings;
    double scale; /* of gradients: clipping */
    bool decay;
} Row;

/* clang-format off */
static const Row rows[] = {
    {"sgd", {.kind = OPTIMIZER_SGD}, 1, true},
    {"sgd, decay", {.kind = OPTIMIZER_SGD, .weight_decay = 0.1}, 1, true},
    {"sgd, momentum, decay", {.kind = OPTIMIZER_SGD, .momentum = 0.9, .weight_decay = 0.1}, 1, true},
    {"sgd, momentum, clipped", {.kind = OPTIMIZER_SGD, .momentum = 0.5, .weight_decay = 0.1}, 0.3, true},
    {"sgd, not decayed", {.kind = OPTIMIZER_SGD, .momentum = 0.9, .weight_decay = 0.1}, 1, false},
    {"adam", {.kind = OPTIMIZER_ADAM, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8}, 1, true},
    {"adam, decay", {.kind = OPTIMIZER_ADAM, .beta1 = 0.8, .beta2 = 0.99, .eps = 1e-3, .weight_decay = 0.1}, 1, true},
    {"adam, clipped", {.kind = OPTIMIZER_ADAM, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1}, 0.3, true},
    {"adam, not decayed", {.kind = OPTIMIZER_ADAM, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 0.1}, 1, false},
    {"adamw", {.kind = OPTIMIZER_ADAMW, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 0.1}, 1, true},
    {"lion", {.kind = OPTIMIZER_LION, .beta1 = 0.9, .beta2 = 0.99}, 1, true},
    {"lion, decay, clipped", {.kind = OPTIMIZER_LION, .beta1 = 0.8, .beta2 = 0.95, .weight_decay = 0.1}, 0.3, true},
    {"lion, not decayed", {.kind = OPTIMIZER_LION, .beta1 = 0.9, .beta2 = 0.99, .weight_decay = 0.1}, 1, false},
    {"muon, no matrix", {.kind = OPTIMIZER_MUON, .momentum = 0.95, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1}, 1, true},
    {"adamw, not decayed", {.kind = OPTIMIZER_ADAMW, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 0.1}, 1, false},
};
/* clang-format on */

static const double LR = 0.05;

/* Updates one element in double, at the t-th update; decay is that of the weights, or 0.  Returns
 * false where rounding decides more than the last digits. */
typedef bool Formula(const OptimizerSettings *s, double decay, double *p, double *m, double *v,
                     double g, int t);

static bool naive_sgd(const OptimizerSettings *s, double decay, double *p, double *m, double *v,
                      double g, int t) {
    (void)v, (void)t;
    *m = s->momentum * *m + g + decay * *p;
    *p -= LR * *m;
    return true;
}

static bool naive_adam(const OptimizerSettings *s, double decay, double *p, double *m, double *v,
                       double g, int t) {
    g += decay * *p;
    *m = s->beta1 * *m + (1 - s->beta1) * g;
    *v = s->beta2 * *v + (1 - s->beta2) * g * g;
    double mhat = *m / (1 - pow(s->beta1, t)), vhat = *v / (1 - pow(s->beta2, t));
    *p -= LR * mhat / (sqrt(vhat) + s->eps);
    return true;
}

static bool naive_adamw(const OptimizerSettings *s, double decay, double *p, double *m, double *v,
                        double g, int t) {
    *p -= LR * decay * *p;
    return naive_adam(s, 0, p, m, v, g, t);
}

/* Where c is near 0, rounding decides its sign. */
static bool naive_lion(const OptimizerSettings *s, double decay, double *p, double *m, double *v,
                       double g, int t) {
    (void)v, (void)t;
    double from_m = s->beta1 * *m, from_g = (1 - s->beta1) * g, c = from_m + from_g;
    bool decided = fabs(c) > tolerance(STEPS, fabs(from_m) + fabs(from_g));
    *p -= LR * ((c > 0 ? 1 : c < 0 ? -1 : 0) + decay * *p);
    *m = s->beta2 * *m + (1 - s->beta2) * g;
    return decided;
}

/* The parameters here are no matrices, which Muon leaves to AdamW. */
static Formula *const formulas[OPTIMIZER_KINDS] = {[OPTIMIZER_SGD] = naive_sgd,
                                                   [OPTIMIZER_ADAM] = naive_adam,
                                                   [OPTIMIZER_ADAMW] = naive_adamw,
                                                   [OPTIMIZER_LION] = naive_lion,
                                                   [OPTIMIZER_MUON] = naive_adamw};

static real gradient(int step, size_t i) { return (real)random_normal(1, (uint32_t)step, i); }

/* Makes STEPS updates, from the same numbers each time. */
static void train(const Row *row, real *p, real *m, real *v) {
    static real g[COUNT];
    int states = optimizer_state_vectors(&row->settings, &(Param){0});
    OptimizerSettings settings = row->settings;
    settings.decay_matrices_only = !row->decay; /* and the parameter is no matrix */
    real *const state[2] = {states > 0 ? m : NULL, states > 1 ? v : NULL};
    for (size_t i = 0; i < COUNT; i++) {
        p[i] = (real)random_normal(2, 0, i);
        m[i] = v[i] = 0;
    }
    for (int t = 1; t <= STEPS; t++) {
        for (size_t i = 0; i < COUNT; i++) g[i] = gradient(t, i);
        optimizer_update(&settings, &(Param){.count = COUNT}, p, state, g, row->scale, LR,
                         (uint64_t)t, NULL);
    }
}

/* Adam divides by sqrt(v), which is small where the gradients are, but m is then small as well: the
 * relative error of the quotient is that of m and v. */
static void update_meets_formula(const void *argument) {
    const Row *row = argument;
    const OptimizerSettings *s = &row->settings;
    static real p[COUNT], m[COUNT], v[COUNT];
    Formula *formula = formulas[s->kind];
    if (!CHECK(formula, "no formula for %s; add it to formulas", optimizer_names[s->kind])) return;
    train(row, p, m, v);
    size_t undecided = 0;
    for (size_t i = 0; i < COUNT; i++) {
        double q = random_normal(2, 0, i), first = 0, second = 0;
        q = (double)(real)q;
        bool decided = true;
        for (int t = 1; t <= STEPS; t++)
            decided &= formula(s, row->decay ? s->weight_decay : 0, &q, &first, &second,
                               row->scale * (double)gradient(t, i), t);
        undecided += !decided;
        double allowed = tolerance(STEPS, fmax(1, fabs(q)));
        double error = fabs((double)p[i] - q);
        CHECK(!decided || error <= allowed, "p[%zu] is %.9g, not %.9g (allowed %.3g)", i,
              (double)p[i], q, allowed);
        error = fabs((double)m[i] - first);
        bool has_state = optimizer_state_vectors(s, &(Param){0}) > 0;
        CHECK(!has_state || error <= tolerance(STEPS, fmax(1, fabs(first))),
              "m[%zu] is %.9g, not %.9g", i, (double)m[i], first);
        error = fabs((double)v[i] - second);
        CHECK(error <= tolerance(STEPS, fmax(1, second)), "v[%zu] is %.9g, not %.9g", i,
              (double)v[i], second);
    }
    CHECK(undecided <= 10, "%zu elements were left out", undecided);
}

static void threads_do_not_matter(const void *argument) {
    static real p[COUNT], m[COUNT], v[COUNT], q[COUNT];
    int threads = omp_get_max_threads();
    omp_set_num_threads(1);
    train(argument, p, m, v);
    omp_set_num_threads(3);
    train(argument, q, m, v);
    omp_set_num_threads(threads);
    CHECK(memcmp(p, q, sizeof p) == 0, "1 and 3 threads differ");
}

/* test_memory.c counts the vectors with the default settings. */
static void state_vectors_fit(void) {
    for (int kind = 0; kind < OPTIMIZER_KINDS; kind++) {
        const OptimizerSettings s = optimizer_defaults((OptimizerKind)kind);
        const int matrix = optimizer_state_vectors(&s, &(Param){.kind = PARAM_MATRIX});
        const int other = optimizer_state_vectors(&s, &(Param){.kind = PARAM_VECTOR});
        CHECK(matrix <= STATE_VECTORS && other <= STATE_VECTORS,
              "%s has %d state vectors of a matrix and %d of others; there are at most %d",
              optimizer_names[kind], matrix, other, STATE_VECTORS);
    }
    CHECK(!optimizer_state_vectors(&(OptimizerSettings){.kind = OPTIMIZER_SGD}, &(Param){0}),
          "SGD without momentum has state");
}

/* An unknown number is an error; it never selects another optimizer. */
static void unknown_ones_are_errors(void) {
    for (int kind = 0; kind < OPTIMIZER_KINDS; kind++) {
        OptimizerSettings settings = optimizer_defaults((OptimizerKind)kind);
        CHECK((int)settings.kind == kind && optimizer_check(&settings) == 0, "kind %d", kind);
    }
    CHECK(optimizer_check(&(OptimizerSettings){.kind = OPTIMIZER_KINDS}) < 0, "a kind too many");
}

static void every_optimizer_has_a_row(void) {
    bool tested[OPTIMIZER_KINDS] = {false};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) tested[rows[i].settings.kind] = true;
    for (int kind = 0; kind < OPTIMIZER_KINDS; kind++)
        CHECK(tested[kind], "%s has no row in test_optimizer.c", optimizer_names[kind]);
}

static void defaults_are_the_papers(void) {
    OptimizerSettings lion = optimizer_defaults(OPTIMIZER_LION);
    CHECK(lion.lr == 1e-4 && lion.beta1 == 0.9 && lion.beta2 == 0.99, "Lion");
    OptimizerSettings sgd = optimizer_defaults(OPTIMIZER_SGD);
    OptimizerSettings adam = optimizer_defaults(OPTIMIZER_ADAM);
    CHECK(sgd.lr == 0.1 && sgd.momentum == 0.9 && sgd.weight_decay == 1e-5, "SGD");
    CHECK(adam.lr == 1e-4 && adam.beta1 == 0.9 && adam.beta2 == 0.999 && adam.eps == 1e-8 &&
              adam.weight_decay == 1e-5,
          "Adam");
    OptimizerSettings muon = optimizer_defaults(OPTIMIZER_MUON);
    CHECK(muon.momentum == 0.95 && muon.beta1 == 0.9 && muon.beta2 == 0.95 &&
              muon.weight_decay == 0.1,
          "Muon");
    CHECK(!sgd.decay_matrices_only && sgd.clip_norm == 0 && sgd.schedule == LR_CONSTANT, "SGD");
    CHECK(lion.weight_decay == 0 && muon.lr == 1e-4 && muon.eps == 1e-8, "Lion, Muon");
    OptimizerSettings adamw = optimizer_defaults(OPTIMIZER_ADAMW);
    CHECK(adamw.lr == 1e-4 && adamw.beta1 == 0.9 && adamw.beta2 == 0.999 && adamw.eps == 1e-8 &&
              adamw.weight_decay == 1e-5,
          "AdamW");
    for (int kind = 0; kind < OPTIMIZER_KINDS; kind++) {
        OptimizerSettings settings = optimizer_defaults((OptimizerKind)kind);
        CHECK(settings.step_factor == 0.1 && settings.clip_norm == 0 && !settings.warmup_steps,
              "schedule of kind %d", kind);
    }
}

/* Only a finite number goes on: an infinite norm would make the factor of clipping zero, and 0
 * times an infinite gradient NaN. */
static void what_is_not_finite_diverged(void) {
    static const struct {
        double value;
        int status;
    } numbers[] = {
        {0, 0}, {1e308, 0}, {(double)NAN, -1}, {(double)INFINITY, -1}, {-(double)INFINITY, -1}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        CHECK(optimizer_check_loss(numbers[i].value) == numbers[i].status, "loss %g",
              numbers[i].value);
        error_set("another");
        CHECK(!error_is_diverged(), "an error after one that says so");
        CHECK(optimizer_check_norm(numbers[i].value) == numbers[i].status, "norm %g",
              numbers[i].value);
        CHECK(error_is_diverged() == (numbers[i].status < 0), "norm %g: \"%s\"", numbers[i].value,
              error_message());
    }
}

typedef struct {
    const char *name;
    OptimizerSettings settings;
    uint64_t step, steps;
    double lr;
} Corner;

/* clang-format off */
static const Corner corners[] = {
    {"constant", {.lr = 2}, 1000, 10, 2},
    {"warmup, first step", {.lr = 2, .warmup_steps = 4}, 0, 10, 0.5},
    {"warmup, last step", {.lr = 2, .warmup_steps = 4}, 3, 10, 2},
    {"after warmup", {.lr = 2, .warmup_steps = 4}, 4, 10, 2},
    {"cosine, first", {.lr = 2, .schedule = LR_COSINE, .final_fraction = 0.1}, 0, 10, 2},
    {"cosine, middle", {.lr = 2, .schedule = LR_COSINE, .final_fraction = 0.1}, 5, 10, 1.1},
    {"cosine, end", {.lr = 2, .schedule = LR_COSINE, .final_fraction = 0.1}, 10, 10, 0.2},
    {"cosine, beyond", {.lr = 2, .schedule = LR_COSINE, .final_fraction = 0.1}, 99, 10, 0.2},
    {"cosine after warmup", {.lr = 2, .schedule = LR_COSINE, .warmup_steps = 4}, 4, 10, 2},
    {"cosine after warmup, middle", {.lr = 2, .schedule = LR_COSINE, .warmup_steps = 4}, 7, 10, 1},
    {"cosine, all of it warmup", {.lr = 2, .schedule = LR_COSINE, .warmup_steps = 10, .final_fraction = 0.1}, 10, 10, 0.2},
    {"step, before", {.lr = 2, .schedule = LR_STEP, .step_every = 3, .step_factor = 0.1}, 2, 10, 2},
    {"step, first", {.lr = 2, .schedule = LR_STEP, .step_every = 3, .step_factor = 0.1}, 3, 10, 0.2},
    {"step, second", {.lr = 2, .schedule = LR_STEP, .step_every = 3, .step_factor = 0.1}, 6, 10, 0.02},
    {"step, after a warm-up", {.lr = 2, .schedule = LR_STEP, .warmup_steps = 4, .step_every = 3, .step_factor = 0.1}, 4, 10, 0.2},
    {"step, never", {.lr = 2, .schedule = LR_STEP, .step_every = 0, .step_factor = 0.1}, 6, 10, 2},
};
/* clang-format on */

static void schedule_turns_the_corner(const void *argument) {
    const Corner *c = argument;
    double lr = optimizer_lr(&c->settings, c->step, c->steps);
    CHECK(fabs(lr - c->lr) <= 1e-15 * 4, "step %d: %.17g, not %.17g", (int)c->step, lr, c->lr);
}

static void square_sum_is_exact_on_integers(void) {
    enum { N = (1 << 16) * 3 + 77 };
    static real x[N];
    double expected = 0;
    for (size_t i = 0; i < N; i++) {
        x[i] = (real)(int)(i % 23) - 11;
        expected += (double)x[i] * (double)x[i];
    }
    int threads = omp_get_max_threads();
    for (int t = 1; t <= 3; t++) {
        omp_set_num_threads(t);
        double sum = optimizer_square_sum(x, N);
        CHECK(sum == expected, "%d threads: %.17g, not %.17g", t, sum, expected);
    }
    omp_set_num_threads(threads);
    CHECK(optimizer_square_sum(x, 1) == 121 && optimizer_square_sum(x, 0) == 0, "one and none");
}

/* The sum takes 256 chunks of 65,536 numbers at a time.  Those in the second such group must be
 * added once, and those of the first not again.  Of the array only the few pages that are written
 * take memory. */
static void square_sum_goes_beyond_a_group(void) {
    const size_t group = (size_t)256 << 16, count = group + (3 << 16) + 5;
    real *x = calloc(count, sizeof *x);
    if (!x) abort();
    x[0] = 1, x[(1 << 16) + 1] = 2, x[group - 1] = 4;
    x[group] = 8, x[group + (1 << 16) + 2] = 16, x[count - 1] = 32;
    const double sum = optimizer_square_sum(x, count);
    CHECK(sum == 1 + 4 + 16 + 64 + 256 + 1024, "the sum is %.17g", sum);
    free(x);
}

/* A gradient that is NaN must show in the parameter, where the loss will find it, and in no other.
 */
static void nan_reaches_the_parameter(const void *argument) {
    enum { FEW = 40, BAD = 21 };
    const Row *row = argument;
    real p[FEW], m[FEW] = {0}, v[FEW] = {0}, g[FEW];
    const int states = optimizer_state_vectors(&row->settings, &(Param){0});
    for (size_t i = 0; i < FEW; i++) {
        p[i] = (real)random_normal(2, 0, i);
        g[i] = gradient(1, i);
    }
    g[BAD] = (real)NAN;
    optimizer_update(&row->settings, &(Param){.count = FEW}, p,
                     (real *[2]){states > 0 ? m : NULL, states > 1 ? v : NULL}, g, row->scale, LR,
                     1, NULL);
    for (size_t i = 0; i < FEW; i++)
        CHECK(isnan(p[i]) == (i == BAD), "p[%zu] is %g", i, (double)p[i]);
}

/* A decay of its own that is far below the rounding of a weight acts in the mean, since the steps
 * that it joins are rounded now up and now down.  (Those of Lion all have one size, and are not.)
 */
static void a_small_decay_acts(void) {
    enum { MANY = 1 << 13, UPDATES = 100 };
    const double rate = 3e-4, decay = 1e-5;
    static real p[2][MANY], m[2][MANY], v[2][MANY], g[MANY];
    double moved = 0;
    memset(m, 0, sizeof m);
    memset(v, 0, sizeof v);
    for (size_t i = 0; i < MANY; i++) p[0][i] = p[1][i] = (real)(1 + random_uniform(3, 0, i));
    for (int t = 1; t <= UPDATES; t++) {
        for (size_t i = 0; i < MANY; i++) g[i] = gradient(t, i);
        for (int decays = 0; decays < 2; decays++) {
            OptimizerSettings settings = optimizer_defaults(OPTIMIZER_ADAMW);
            settings.weight_decay = decays ? decay : 0;
            optimizer_update(&settings, &(Param){.count = MANY}, p[decays],
                             (real *[2]){m[decays], v[decays]}, g, 1, rate, (uint64_t)t, NULL);
        }
    }
    for (size_t i = 0; i < MANY; i++) moved += (double)p[0][i] - (double)p[1][i];
    const double expected = UPDATES * rate * decay * 1.5;
    CHECK(fabs(moved / MANY / expected - 1) < 0.1, "moved %g, not %g", moved / MANY, expected);
}

void test_optimizer(void) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        RUN_ROW(rows[i].name, update_meets_formula, &rows[i]);
        RUN_ROW(rows[i].name, threads_do_not_matter, &rows[i]);
        RUN_ROW(rows[i].name, nan_reaches_the_parameter, &rows[i]);
    }
    for (size_t i = 0; i < sizeof corners / sizeof *corners; i++)
        RUN_ROW(corners[i].name, schedule_turns_the_corner, &corners[i]);
    RUN(a_small_decay_acts);
    RUN(every_optimizer_has_a_row);
    RUN(state_vectors_fit);
    RUN(unknown_ones_are_errors);
    RUN(defaults_are_the_papers);
    RUN(what_is_not_finite_diverged);
    RUN(square_sum_is_exact_on_integers);
    RUN(square_sum_goes_beyond_a_group);
}
