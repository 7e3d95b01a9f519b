/* Muon against its equations in double, written as loops: parts, shapes, threads, workspace. */
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/base/random.h"
#include "../../ref/optimizers/optimizer.h"
#include "../test.h"
#include "tolerance.h"

typedef struct {
    const char *name;
    Param param;
    double scale; /* of gradients: clipping */
    double weight_decay, momentum;
} Row;

/* clang-format off */
static const Row rows[] = {
    {"wide", {.kind = PARAM_MATRIX, .rank = 2, .dim = {7, 20}, .parts = 1, .part_rows = {7}}, 1, 0, 0.95},
    {"high, decay", {.kind = PARAM_MATRIX, .rank = 2, .dim = {23, 6}, .parts = 1, .part_rows = {23}}, 1, 0.1, 0.95},
    {"square, clipped", {.kind = PARAM_MATRIX, .rank = 2, .dim = {17, 17}, .parts = 1, .part_rows = {17}}, 0.3, 0.1, 0.5},
    {"one row", {.kind = PARAM_MATRIX, .rank = 2, .dim = {1, 9}, .parts = 1, .part_rows = {1}}, 1, 0, 0.95},
    {"one column", {.kind = PARAM_MATRIX, .rank = 2, .dim = {9, 1}, .parts = 1, .part_rows = {9}}, 1, 0, 0.95},
    {"convolution", {.kind = PARAM_MATRIX, .rank = 4, .dim = {8, 3, 3, 5}, .parts = 1, .part_rows = {8}}, 1, 0.1, 0.95},
    {"q, k, v", {.kind = PARAM_MATRIX, .rank = 2, .dim = {32, 12}, .parts = 3, .part_rows = {20, 6, 6}}, 1, 0.1, 0.95},
    {"gate and up", {.kind = PARAM_MATRIX, .rank = 2, .dim = {22, 12}, .parts = 2, .part_rows = {11, 11}}, 1, 0, 0.95},
    {"large enough for threads", {.kind = PARAM_MATRIX, .rank = 2, .dim = {192, 260}, .parts = 1, .part_rows = {192}}, 1, 0.1, 0.95},
};
/* clang-format on */

enum { STEPS = 3, MOST = 192 * 260, GUARD = 64 };
static const double LR = 0.01;

static Param param_of(const Row *row) {
    Param param = row->param;
    param.count = 1;
    for (int i = 0; i < param.rank; i++) param.count *= (size_t)param.dim[i];
    return param;
}

static OptimizerSettings settings_of(const Row *row) {
    OptimizerSettings s = optimizer_defaults(OPTIMIZER_MUON);
    s.momentum = row->momentum;
    s.weight_decay = row->weight_decay;
    return s;
}

static real initial(size_t i) { return (real)random_normal(2, 0, i); }
static real gradient(int step, size_t i) { return (real)random_normal(1, (uint32_t)step, i); }

typedef struct {
    real p[MOST], m[MOST];
} Trained;

/* Makes STEPS updates.  Returns whether the numbers behind the workspace stayed. */
static bool train(const Row *row, Trained *trained) {
    static real g[MOST];
    const Param param = param_of(row);
    const OptimizerSettings settings = settings_of(row);
    const size_t room = optimizer_workspace(&settings, &param);
    real *workspace = malloc((room + GUARD) * sizeof *workspace);
    if (!workspace) abort();
    for (size_t i = 0; i < room + GUARD; i++) workspace[i] = i < room ? NAN : 17;
    for (size_t i = 0; i < param.count; i++) {
        trained->p[i] = initial(i);
        trained->m[i] = 0;
    }
    for (int t = 0; t < STEPS; t++) {
        for (size_t i = 0; i < param.count; i++) g[i] = gradient(t, i);
        optimizer_update(&settings, &param, trained->p, (real *[2]){trained->m, NULL}, g,
                         row->scale, LR, (uint64_t)t + 1, workspace);
    }
    bool stayed = true;
    for (size_t i = room; i < room + GUARD; i++) stayed = stayed && workspace[i] == 17;
    free(workspace);
    return stayed;
}

/* ---- the equations in double ---- */

/* Overwrites x[height][columns] with (a + b x x' + c (x x')^2) x. */
static void iterate(double *x, int height, int columns) {
    const double a = 3.4445, b = -4.7750, c = 2.0315;
    double *gram = calloc((size_t)(height * height), sizeof *gram);
    double *y = calloc((size_t)(height * columns), sizeof *y);
    if (!gram || !y) abort();
    for (int i = 0; i < height; i++)
        for (int j = 0; j < height; j++)
            for (int k = 0; k < columns; k++)
                gram[i * height + j] += x[i * columns + k] * x[j * columns + k];
    for (int i = 0; i < height; i++)
        for (int j = 0; j < height; j++) {
            double square = 0;
            for (int k = 0; k < height; k++) square += gram[i * height + k] * gram[k * height + j];
            const double factor = (i == j ? a : 0) + b * gram[i * height + j] + c * square;
            for (int k = 0; k < columns; k++) y[i * columns + k] += factor * x[j * columns + k];
        }
    memcpy(x, y, (size_t)(height * columns) * sizeof *x);
    free(gram);
    free(y);
}

static void naive_step(const Row *row, double *p, double *m, int height, int columns, int t,
                       size_t first) {
    const size_t count = (size_t)(height * columns);
    double *x = calloc(count, sizeof *x), square = 0;
    if (!x) abort();
    for (size_t i = 0; i < count; i++) {
        const double g = row->scale * (double)gradient(t, first + i);
        m[i] = row->momentum * m[i] + (1 - row->momentum) * g;
        x[i] = row->momentum * m[i] + (1 - row->momentum) * g;
        square += x[i] * x[i];
    }
    for (size_t i = 0; i < count; i++) x[i] /= sqrt(square);
    for (int step = 0; step < 5; step++) iterate(x, height, columns);
    for (size_t i = 0; i < count; i++)
        p[i] = (1 - LR * row->weight_decay) * p[i] - LR * 0.2 * sqrt(fmax(height, columns)) * x[i];
    free(x);
}

static void update_meets_formula(const void *argument) {
    const Row *row = argument;
    static Trained trained;
    static double p[MOST], m[MOST];
    const Param param = param_of(row);
    CHECK(train(row, &trained), "the update wrote behind its workspace");
    for (size_t i = 0; i < param.count; i++) {
        p[i] = (double)initial(i);
        m[i] = 0;
    }
    const int columns = (int)(param.count / (size_t)param.dim[0]);
    for (int t = 0; t < STEPS; t++) {
        size_t first = 0;
        for (int part = 0; part < param.parts; part++) {
            naive_step(row, p + first, m + first, param.part_rows[part], columns, t, first);
            first += (size_t)param.part_rows[part] * (size_t)columns;
        }
        CHECK(first == param.count, "the parts have %zu numbers of %zu", first, param.count);
    }
    /* A step of Newton-Schulz multiplies an error by 3.4445 at most, its slope at 0. */
    const double grown = pow(3.4445, 5), longest = fmax(param.dim[0], columns);
    const double moved = STEPS * LR * 0.2 * sqrt(longest);
    for (size_t i = 0; i < param.count; i++) {
        const double allowed = tolerance(longest, grown * moved / sqrt(longest)) +
                               tolerance(STEPS, fmax(1, fabs(p[i])));
        const double error = fabs((double)trained.p[i] - p[i]);
        CHECK(error <= allowed, "p[%zu] is %.9g, not %.9g (allowed %.3g)", i, (double)trained.p[i],
              p[i], allowed);
        CHECK(fabs((double)trained.m[i] - m[i]) <= tolerance(STEPS, fmax(1, fabs(m[i]))),
              "m[%zu] is %.9g, not %.9g", i, (double)trained.m[i], m[i]);
    }
}

static void threads_do_not_matter(const void *argument) {
    static Trained one, three;
    const int threads = omp_get_max_threads();
    omp_set_num_threads(1);
    train(argument, &one);
    omp_set_num_threads(3);
    train(argument, &three);
    omp_set_num_threads(threads);
    CHECK(!memcmp(&one, &three, sizeof one), "1 and 3 threads differ");
}

/* What is no matrix gets AdamW's bits, needs no workspace, and has AdamW's state. */
static void the_rest_is_adamw(void) {
    enum { COUNT = 30 };
    static const ParamKind kinds[] = {PARAM_VECTOR, PARAM_EMBEDDING};
    OptimizerSettings muon = optimizer_defaults(OPTIMIZER_MUON), adamw = muon;
    adamw.kind = OPTIMIZER_ADAMW;
    for (int k = 0; k < 2; k++) {
        const Param param = {.kind = kinds[k], .rank = 1 + k, .dim = {5, 6}, .count = COUNT};
        real p[COUNT], q[COUNT], m[2][COUNT] = {{0}}, v[2][COUNT] = {{0}}, g[COUNT];
        for (size_t i = 0; i < COUNT; i++) {
            p[i] = q[i] = initial(i);
            g[i] = gradient(0, i);
        }
        optimizer_update(&muon, &param, p, (real *[2]){m[0], v[0]}, g, 1, LR, 1, NULL);
        optimizer_update(&adamw, &param, q, (real *[2]){m[1], v[1]}, g, 1, LR, 1, NULL);
        CHECK(!memcmp(p, q, sizeof p) && !memcmp(m[0], m[1], sizeof m[0]) &&
                  !memcmp(v[0], v[1], sizeof v[0]),
              "other bits than AdamW's");
        CHECK(optimizer_state_vectors(&muon, &param) == 2 &&
                  optimizer_workspace(&muon, &param) == 0 && optimizer_flops(&muon, &param) == 0,
              "kind %d", (int)kinds[k]);
    }
    const Param matrix = param_of(&rows[0]);
    CHECK(optimizer_state_vectors(&muon, &matrix) == 1, "a matrix has one vector");
    OptimizerSettings unmoved = muon; /* only SGD leaves it out */
    unmoved.momentum = 0;
    CHECK(optimizer_state_vectors(&unmoved, &matrix) == 1, "also without momentum");
    CHECK(optimizer_workspace(&muon, &matrix) == 2 * (7 * 20 + 7 * 7), "its workspace");
    CHECK(optimizer_flops(&muon, &matrix) == 5 * 2 * (7 * 7 * 20 + 7 * 7 * 7 + 7 * 7 * 20),
          "its operations");
}

/* The part of a matrix whose gradient is all 0 only decays. */
static void a_zero_gradient_only_decays(void) {
    const Row *row = &rows[1];
    const Param param = param_of(row);
    const OptimizerSettings settings = settings_of(row);
    real p[23 * 6], m[23 * 6] = {0}, g[23 * 6] = {0}, workspace[2 * (23 * 6 + 6 * 6)];
    for (size_t i = 0; i < param.count; i++) p[i] = initial(i);
    optimizer_update(&settings, &param, p, (real *[2]){m, NULL}, g, 1, LR, 1, workspace);
    for (size_t i = 0; i < param.count; i++) {
        const double expected = (1 - LR * row->weight_decay) * (double)initial(i);
        CHECK(fabs((double)p[i] - expected) <= (double)REAL_EPS * fabs(expected), "p[%zu] is %g", i,
              (double)p[i]);
    }
}

/* Only the direction of the momentum counts, down to the least norm that it may have, 1e-7, which
 * keeps 0 / 0 away.  Scaling by powers of 2 changes no bit of what is then divided by its norm; at
 * the smaller one the momentum is shorter than 1e-7, and the update with it. */
static void a_small_gradient_moves_as_far(void) {
    enum { COUNT = 7 * 20 };
    static const int power[] = {0, 23, 27};
    const Param param = param_of(&rows[0]);
    const OptimizerSettings settings = settings_of(&rows[0]);
    real p[3][COUNT];
    for (int k = 0; k < 3; k++) {
        real m[COUNT] = {0}, g[COUNT], workspace[2 * (COUNT + 7 * 7)];
        double square = 0;
        for (size_t i = 0; i < COUNT; i++) {
            p[k][i] = initial(i);
            g[i] = (real)ldexp((double)gradient(0, i), -power[k]);
        }
        optimizer_update(&settings, &param, p[k], (real *[2]){m, NULL}, g, 1, LR, 1, workspace);
        for (size_t i = 0; i < COUNT; i++) /* u = momentum m + (1 - momentum) g = 1.95 m */
            square += 1.95 * 1.95 * (double)m[i] * (double)m[i];
        CHECK((sqrt(square) > 1e-7) == (k < 2) && (k == 0 || sqrt(square) < 2e-7),
              "2^-%d: the norm is %g", power[k], sqrt(square));
    }
    CHECK(!memcmp(p[0], p[1], sizeof p[0]), "a small gradient moves otherwise");
    CHECK(memcmp(p[0], p[2], sizeof p[0]), "a smaller one than the least moves as far");
}

void test_muon(void) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        RUN_ROW(rows[i].name, update_meets_formula, &rows[i]);
        RUN_ROW(rows[i].name, threads_do_not_matter, &rows[i]);
    }
    RUN(the_rest_is_adamw);
    RUN(a_zero_gradient_only_decays);
    RUN(a_small_gradient_moves_as_far);
}
