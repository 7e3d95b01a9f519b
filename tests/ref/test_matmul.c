/* The matrix product against three loops, with every transposition, ragged sizes, and gaps between
 * rows. */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>

#include "../../ref/base/random.h"
#include "../../ref/fast/matmul.h"
#include "../test.h"
#include "guarded.h"
#include "tolerance.h"

typedef struct {
    const char *name;
    int m, n, k;
} Row;

/* Sizes near those of the register tile (12 x 32 and 24 x 16, half of it with shorter vectors), of
 * the blocks (132, 768, 768), and of the transposes (16). */
static const Row rows[] = {
    {"1 x 1 x 1", 1, 1, 1},
    {"1 x 33 x 13", 1, 33, 13},
    {"2 x 3 x 5", 2, 3, 5},
    {"3 x 1 x 97", 3, 1, 97},
    {"5 x 16 x 31", 5, 16, 31},
    {"11 x 31 x 2", 11, 31, 2},
    {"12 x 32 x 16", 12, 32, 16},
    {"13 x 33 x 17", 13, 33, 17},
    {"24 x 15 x 32", 24, 15, 32},
    {"25 x 17 x 12", 25, 17, 12},
    {"97 x 5 x 33", 97, 5, 33},
    {"131 x 97 x 11", 131, 97, 11},
    {"132 x 48 x 64", 132, 48, 64},
    {"133 x 64 x 3", 133, 64, 3},
    {"7 x 13 x 768", 7, 13, 768},
    {"33 x 31 x 769", 33, 31, 769},
    {"5 x 769 x 20", 5, 769, 20},
    {"270 x 12 x 40", 270, 12, 40},
    {"140 x 37 x 1540", 140, 37, 1540},
};

enum { TRANSPOSE_A = 1, TRANSPOSE_B = 2, ADD = 4, VARIANTS = 8 };
static const int GAP_A = 3, GAP_B = 2, GAP_C = 5;

typedef struct {
    int m, n, k, variant, lda, ldb, ldc;
    Guarded a, b, c;
} Data;

static void fill(Guarded array, uint32_t stream, bool whole) {
    for (size_t i = 0; i < array.count; i++) {
        double u = 2 * random_uniform(1, stream, i) - 1;
        array.data[i] = (real)(whole ? floor(4 * u) : u);
    }
}

/* Fills C with NaN, or with known numbers if the product is added to it. */
static void reset(Data *data) {
    guarded_spoil(data->c);
    if (!(data->variant & ADD)) return;
    for (int i = 0; i < data->m; i++)
        for (int j = 0; j < data->n; j++) data->c.data[i * data->ldc + j] = (real)(i - j);
}

static void create(Data *data, const Row *row, int variant, bool whole) {
    int m = row->m, n = row->n, k = row->k;
    bool ta = variant & TRANSPOSE_A, tb = variant & TRANSPOSE_B;
    *data = (Data){.m = m, .n = n, .k = k, .variant = variant};
    data->lda = (ta ? m : k) + GAP_A;
    data->ldb = (tb ? k : n) + GAP_B;
    data->ldc = n + GAP_C;
    /* the last row has no gap after it, since nothing may be read there */
    data->a = guarded_create((size_t)(data->lda * (ta ? k : m) - GAP_A));
    data->b = guarded_create((size_t)(data->ldb * (tb ? n : k) - GAP_B));
    data->c = guarded_create((size_t)(data->ldc * m));
    fill(data->a, 2, whole);
    fill(data->b, 3, whole);
    reset(data);
}

static void destroy(Data *data) {
    guarded_free(&data->a);
    guarded_free(&data->b);
    guarded_free(&data->c);
}

/* Computes rows [begin, end) of C. */
static void run_rows(Data *data, int begin, int end) {
    bool ta = data->variant & TRANSPOSE_A, tb = data->variant & TRANSPOSE_B;
    matmul(data->c.data + begin * data->ldc, data->ldc, data->a.data + begin * (ta ? 1 : data->lda),
           data->lda, ta, data->b.data, data->ldb, tb, NULL, end - begin, data->n, data->k,
           data->variant & ADD);
}

/* Returns c[i][j], and sets *largest to the largest partial sum, which is what gets rounded. */
static double naive(double *largest, const Data *data, int i, int j) {
    bool ta = data->variant & TRANSPOSE_A, tb = data->variant & TRANSPOSE_B;
    double sum = data->variant & ADD ? i - j : 0;
    *largest = fabs(sum);
    for (int p = 0; p < data->k; p++) {
        sum += (double)data->a.data[ta ? p * data->lda + i : i * data->lda + p] *
               (double)data->b.data[tb ? j * data->ldb + p : p * data->ldb + j];
        *largest = fmax(*largest, fabs(sum));
    }
    return sum;
}

static const char *name_of(int variant) {
    static char name[40];
    snprintf(name, sizeof name, "%s%s%s", variant & TRANSPOSE_A ? "A^T " : "A ",
             variant & TRANSPOSE_B ? "B^T" : "B", variant & ADD ? ", added" : "");
    return name;
}

/* CHECKs every element, and that the gaps between the rows have not changed. */
static void check_product(const Data *data, bool whole) {
    for (int i = 0; i < data->m; i++) {
        const real *c = data->c.data + i * data->ldc;
        for (int j = 0; j < data->n; j++) {
            double largest, truth = naive(&largest, data, i, j);
            double error = fabs((double)c[j] - truth);
            double allowed = whole ? 0 : tolerance(data->k + 1, largest);
            CHECK(error <= allowed, "%s: c[%d][%d] is %.9g, not %.9g (allowed %g)",
                  name_of(data->variant), i, j, (double)c[j], truth, allowed);
        }
        for (int j = data->n; j < data->ldc; j++)
            CHECK(isnan((double)c[j]), "%s: wrote behind row %d", name_of(data->variant), i);
    }
    CHECK(guarded_intact(data->c), "%s: wrote outside of C", name_of(data->variant));
}

static void meets_formula(const void *argument) {
    for (int variant = 0; variant < VARIANTS; variant++) {
        Data data;
        create(&data, argument, variant, false);
        run_rows(&data, 0, data.m);
        check_product(&data, false);
        destroy(&data);
    }
}

static void is_exact(const void *argument) {
    for (int variant = 0; variant < VARIANTS; variant++) {
        Data data;
        create(&data, argument, variant, true);
        run_rows(&data, 0, data.m);
        check_product(&data, true);
        destroy(&data);
    }
}

static void check_same_bits(const Data *a, const Data *b, const char *what) {
    size_t first = guarded_first_difference(a->c, b->c);
    CHECK(first == a->c.count, "%s, %s: number %zu is %.9g and %.9g", name_of(a->variant), what,
          first, (double)a->c.data[first], (double)b->c.data[first]);
}

static void repeats_on_any_threads(const void *argument) {
    int threads = omp_get_max_threads();
    for (int variant = 0; variant < VARIANTS; variant++) {
        Data one, more;
        create(&one, argument, variant, false);
        create(&more, argument, variant, false);
        omp_set_num_threads(1);
        run_rows(&one, 0, one.m);
        for (int t = 2; t <= 3; t++) {
            omp_set_num_threads(t);
            reset(&more);
            run_rows(&more, 0, more.m);
            check_same_bits(&one, &more, "1 and more threads");
        }
        omp_set_num_threads(2);
        reset(&more);
#pragma omp parallel
        {
#pragma omp single
            run_rows(&more, 0, more.m);
        }
        check_same_bits(&one, &more, "outside and inside a parallel region");
        destroy(&one);
        destroy(&more);
    }
    omp_set_num_threads(threads);
}

/* Rows have the same bits when computed one by one, and in two parts, in which most rows have
 * another position in their tile. */
static void rows_are_independent(const void *argument) {
    for (int variant = 0; variant < VARIANTS; variant++) {
        Data together, apart;
        create(&together, argument, variant, false);
        create(&apart, argument, variant, false);
        run_rows(&together, 0, together.m);
        for (int i = 0; i < apart.m; i++) run_rows(&apart, i, i + 1);
        check_same_bits(&together, &apart, "each row alone");
        reset(&apart);
        run_rows(&apart, 0, (apart.m + 2) / 3);
        if (apart.m > 1) run_rows(&apart, (apart.m + 2) / 3, apart.m);
        check_same_bits(&together, &apart, "in two parts");
        destroy(&together);
        destroy(&apart);
    }
}

/* NaN and infinity in one row of A do not reach other rows of C. */
static void rows_keep_their_infinities(void) {
    enum { M = 13, N = 33, K = 17 };
    real a[M * K], b[K * N], c[M * N];
    for (int i = 0; i < M * K; i++) a[i] = 1;
    for (int i = 0; i < K * N; i++) b[i] = 1;
    a[4 * K + 2] = (real)INFINITY;
    a[12 * K + 16] = (real)NAN;
    matmul(c, N, a, K, false, b, N, false, NULL, M, N, K, false);
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            double x = (double)c[i * N + j];
            bool right = i == 4 ? isinf(x) : i == 12 ? isnan(x) : x == K;
            CHECK(right, "c[%d][%d] is %g", i, j, x);
        }
}

void test_matmul(void) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        RUN_ROW(rows[i].name, meets_formula, &rows[i]);
        RUN_ROW(rows[i].name, is_exact, &rows[i]);
        RUN_ROW(rows[i].name, repeats_on_any_threads, &rows[i]);
        RUN_ROW(rows[i].name, rows_are_independent, &rows[i]);
    }
    RUN(rows_keep_their_infinities);
}
