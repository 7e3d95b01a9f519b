/* cuda/gpu/matmul*.c where cuBLASLt refuses an algorithm: it tries the next one, writes one line,
 * and computes the right product. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../cuda/matmul.h"
#include "../../ref/base/error.h"
#include "../cuda/device_array.h"
#include "../test.h"
#include "fake.h"

enum { M = 24, N = 16, K = 40 };

/* A product of matrices of ones, n wide: every number of C is K. */
typedef struct {
    float *a, *b, *c;
    void *workspace;
} Ones;

static Ones ones_create(void) {
    float one[M * K];
    for (int i = 0; i < M * K; i++) one[i] = 1;
    return (Ones){device_put(one, sizeof one), device_put(one, sizeof one),
                  device_alloc(sizeof(float) * M * N), device_alloc(cuda_matmul_workspace())};
}

static void ones_free(Ones *o) {
    device_free(o->a);
    device_free(o->b);
    device_free(o->c);
    device_free(o->workspace);
}

static Run run_of(const Ones *o) {
    return (Run){device_test_stream(), PRECISION_FP32, 0, o->workspace};
}
static Product product_of(const Ones *o, int n) {
    return (Product){
        .c = o->c, .a = o->a, .b = o->b, .ldc = n, .lda = K, .ldb = n, .m = M, .n = n, .k = K};
}

/* The choice of an algorithm is kept for a shape, so each test takes another n. */
static void ones_multiply(const Ones *o, int n) {
    Run run = run_of(o);
    Product product = product_of(o, n);
    cuda_matmul(&run, &product);
}

static void check_rows(const Ones *o, int m, int n) {
    float c[M * N];
    device_test_wait();
    device_get(c, o->c, sizeof(float) * (size_t)(m * n));
    for (int i = 0; i < m * n; i++)
        CHECK(c[i] == K, "c[%d] of %d columns is %g", i, n, (double)c[i]);
}
static void check_ones(const Ones *o, int n) { check_rows(o, M, n); }

static void check_told(const char *text) {
    Stream stream = device_test_stream();
    CHECK(device_wait(stream) && strstr(error_message(), text), "\"%s\" has no \"%s\"",
          error_message(), text);
    CHECK(!device_wait(stream), "reported twice: %s", error_message());
}

/* Overwrites text with what BCD_LT_LOG prints on stderr for a product. Returns true if it was
 * computed. */
static bool log_of_product(char text[2000], const Run *run, const Product *product) {
    FILE *file = tmpfile();
    int kept = dup(STDERR_FILENO);
    if (!file || kept < 0 || dup2(fileno(file), STDERR_FILENO) < 0) abort();
    setenv("BCD_LT_LOG", "1", 1);
    bool done = library_matmul(run, product);
    unsetenv("BCD_LT_LOG");
    if (dup2(kept, STDERR_FILENO) < 0) abort();
    close(kept);
    rewind(file);
    text[fread(text, 1, 1999, file)] = '\0';
    fclose(file);
    return done;
}

static int count_of(const char *text, const char *what) {
    int count = 0;
    for (const char *at = text; (at = strstr(at, what)); at++) count++;
    return count;
}

/* Whatever it refuses them by, while the device is sound. */
static void goes_on_with_the_next_algorithm(void) {
    static const char *const rows[][2] = {{"FAKE_LT_REFUSES", "NOT_SUPPORTED"},
                                          {"FAKE_LT_BREAKS", "INTERNAL_ERROR"},
                                          {"FAKE_LT_FAILS", "EXECUTION_FAILED"}};
    Ones o = ones_create();
    Run run = run_of(&o);
    char text[2000];
    for (int i = 0; i < 3; i++) {
        Product product = product_of(&o, 16);
        product.m = M - 3 * i; /* a shape that no test has had */
        setenv(rows[i][0], "3", 1);
        CHECK(log_of_product(text, &run, &product), "refused");
        check_rows(&o, product.m, 16);
        CHECK(count_of(text, rows[i][1]) == 3 && strstr(text, "algorithm 0, tile 1"), "%s", text);
        CHECK(log_of_product(text, &run, &product), "refused"); /* the algorithm is kept */
        check_rows(&o, product.m, 16);
        CHECK(count_of(text, rows[i][1]) == 0, "%s", text);
        unsetenv(rows[i][0]);
    }
    ones_free(&o);
}

/* Where the library refuses all of its algorithms, our own kernel computes the product, which is
 * said once. */
static void goes_on_without_the_library(void) {
    Ones o = ones_create();
    Run run = run_of(&o);
    Product product = product_of(&o, 12);
    char text[2000];
    setenv("FAKE_LT_FAILS", "8", 1);
    for (int i = 0; i < 2; i++) {
        product.m = M - i;
        CHECK(!log_of_product(text, &run, &product) &&
                  count_of(text, "refuses a matrix product of 24 x 12 x 40") == !i,
              "%s", text);
    }
    ones_multiply(&o, 12);
    unsetenv("FAKE_LT_FAILS");
    check_ones(&o, 12);
    ones_free(&o);
}

/* The second of the algorithms splits k in four, and would lose the last column of 257. */
static void no_column_is_lost(void) {
    enum { DEPTH = 257, STRIDE = 260 }; /* rows begin at multiples of 16 bytes */
    Ones o = ones_create();
    float one[M * STRIDE];
    for (int i = 0; i < M * STRIDE; i++) one[i] = 1;
    float *long_one = device_put(one, sizeof one);
    Run run = run_of(&o);
    Product product = product_of(&o, 16);
    product.a = product.b = long_one;
    product.k = DEPTH;
    product.lda = STRIDE;
    setenv("FAKE_LT_REFUSES", "1", 1);
    cuda_matmul(&run, &product);
    unsetenv("FAKE_LT_REFUSES");
    float c[M * N];
    device_test_wait();
    device_get(c, o.c, sizeof c);
    CHECK(c[0] == DEPTH && c[M * N - 1] == DEPTH, "%g of %d", (double)c[0], DEPTH);
    device_free(long_one);
    ones_free(&o);
}

static void says_why_there_is_no_algorithm(void) {
    Ones o = ones_create();
    Run run = run_of(&o);
    Product product = product_of(&o, 16);
    char text[2000];
    product.m = M - 4; /* a shape that no test has had */
    product.ldc = 15;  /* rows that overlap */
    CHECK(!log_of_product(text, &run, &product) &&
              strstr(text, ": CUBLAS_STATUS_INVALID_VALUE\n") &&
              strstr(text, ": the library has none\n"),
          "%s", text);
    ones_free(&o);
}

/* A refusal inside a capture is of the capture: it fails, and the algorithm is taken afterwards. */
static void a_capture_that_it_refuses_fails(void) {
    Ones o = ones_create();
    Run run = run_of(&o);
    Product product = product_of(&o, 8);
    char text[2000];
    ones_multiply(&o, 8);
    setenv("FAKE_LT_NO_CAPTURE", "1", 1);
    CHECK(!graph_begin(run.stream), "%s", error_message());
    ones_multiply(&o, 8);
    CHECK(!graph_end(run.stream) && strstr(error_message(), "24 x 8 x 40 while captured"), "%s",
          error_message());
    unsetenv("FAKE_LT_NO_CAPTURE");
    CHECK(log_of_product(text, &run, &product) && !*text, "%s", text);
    check_ones(&o, 8);
    ones_free(&o);
}

/* The library meets it as a failure of its own. */
static void an_earlier_fault_is_told(void) {
    static const char *const rows[] = {"FAKE_LT_FAILS", "FAKE_LT_BREAKS"};
    Ones o = ones_create();
    for (int i = 0; i < 2; i++) {
        fake_fault("by an earlier kernel");
        setenv(rows[i], "1", 1);
        ones_multiply(&o, 8);
        unsetenv(rows[i]);
        check_told("by an earlier kernel (by this or earlier work");
    }
    ones_multiply(&o, 8);
    check_ones(&o, 8);
    ones_free(&o);
}

static void memory_that_is_gone_is_told(void) {
    Ones o = ones_create();
    device_free(o.b);
    ones_multiply(&o, 4);
    check_told("a matrix product: A, 640 bytes"); /* their A is our B */
    o.b = NULL;
    ones_free(&o);
}

/* The second of the algorithms needs a workspace. */
static void uses_the_workspace_it_has(void) {
    Ones o = ones_create();
    char text[2000];
    setenv("FAKE_LT_REFUSES", "1", 1);
    for (int i = 0; i < 2; i++) { /* first with a workspace, then without */
        Run run = run_of(&o);
        Product product = product_of(&o, 16);
        product.m = M - 2; /* a shape that no test has had */
        CHECK(log_of_product(text, &run, &product), "refused");
        CHECK(count_of(text, "NOT_SUPPORTED") == 1, "%s", text);
        check_rows(&o, M - 2, 16);
        device_free(o.workspace);
        o.workspace = NULL;
    }
    unsetenv("FAKE_LT_REFUSES");
    ones_free(&o);
}

/* No algorithm is proposed that needs a larger alignment than the addresses have. */
static void says_how_its_arrays_are_aligned(void) {
    Ones o = ones_create();
    Run run = run_of(&o);
    float *a = device_alloc(sizeof *a * (M * K + 4)), *b = device_alloc(sizeof *b * (M * K + 4)),
          *c = device_alloc(sizeof *c * (M * N + 4));
    for (int i = 0; i < 7; i++) { /* 4 bytes, then 8, after a multiple of 16 */
        Product product = product_of(&o, 16);
        char text[2000];
        product.m = M - 1; /* a shape that no test has had */
        product.a = a + (i == 1) + 2 * (i == 4);
        product.b = b + (i == 2) + 2 * (i == 5);
        product.c = c + (i == 3) + 2 * (i == 6);
        CHECK(log_of_product(text, &run, &product) && count_of(text, "chosen") == 1 &&
                  count_of(text, "NOT_SUPPORTED") == 0,
              "array %d: %s", i, text);
    }
    device_test_wait();
    device_free(a);
    device_free(b);
    device_free(c);
    ones_free(&o);
}

static void tf32_is_asked_for(void) {
    Ones o = ones_create();
    float more[M * K];
    for (int i = 0; i < M * K; i++) more[i] = 1 + 0x1p-12f;
    device_free(o.a);
    o.a = device_put(more, sizeof more);
    Run run = run_of(&o);
    run.precision = PRECISION_TF32;
    Product product = product_of(&o, 16);
    cuda_matmul(&run, &product);
    check_ones(&o, 16);
    ones_free(&o);
}

/* ---- in one piece ---- */

/* The library computes an epilogue where it supports it, and is not asked to elsewhere. */
static void fuses_what_it_may(void) {
    static const struct {
        Precision precision;
        bool bias, saved, sums;
        Epilogue epilogue;
        int pad;        /* of the address of bias or saved, in bytes */
        int n;          /* 0: 16 */
        int capability; /* 0: 90 */
        bool one_piece;
    } rows[] = {
        {PRECISION_FP32, .bias = true, .one_piece = true},
        {PRECISION_TF32, .bias = true, .one_piece = true},
        {PRECISION_BF16, .bias = true, .one_piece = true},
        {PRECISION_BF16, .bias = true, .pad = 8},
        {PRECISION_BF16, .bias = true, .epilogue = EPILOGUE_GELU, .one_piece = true},
        {PRECISION_BF16, .bias = true, .saved = true, .epilogue = EPILOGUE_GELU, .one_piece = true},
        {PRECISION_BF16, .saved = true, .epilogue = EPILOGUE_GELU_GRADIENT, .one_piece = true},
        {PRECISION_BF16, .saved = true, .epilogue = EPILOGUE_GELU_GRADIENT, .pad = 8},
        {PRECISION_BF16, .saved = true, .epilogue = EPILOGUE_GELU_GRADIENT, .n = 12},
        {PRECISION_BF16, .bias = true, .epilogue = EPILOGUE_GELU, .capability = 89},
        {PRECISION_BF16, .bias = true, .epilogue = EPILOGUE_GELU, .capability = 120},
        {PRECISION_BF16, .bias = true, .capability = 89, .one_piece = true},
        {PRECISION_BF16, .sums = true, .one_piece = true},
        {PRECISION_FP32, .sums = true},
        {PRECISION_TF32, .sums = true},
        {PRECISION_FP32, .epilogue = EPILOGUE_GELU},
        {PRECISION_TF32, .saved = true, .epilogue = EPILOGUE_GELU_GRADIENT},
    };
    Ones o = ones_create();
    char *extras = device_alloc(4096);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Run run = {device_test_stream(), rows[i].precision, 0, o.workspace};
        void *extra = extras + rows[i].pad;
        int n = rows[i].n ? rows[i].n : 16;
        Product product = {.c = o.c,
                           .a = o.a,
                           .b = o.b,
                           .ldc = n,
                           .lda = 16,
                           .ldb = n,
                           .transpose_a = true,
                           .m = 16,
                           .n = n,
                           .k = 16,
                           .c_float = rows[i].sums,
                           .bias = rows[i].bias ? extra : NULL,
                           .epilogue = rows[i].epilogue,
                           .saved = rows[i].saved ? extras + 2048 + rows[i].pad : NULL,
                           .column_sums = rows[i].sums ? extra : NULL};
        char text[2000];
        if (rows[i].capability) fake_gpu.capability = rows[i].capability;
        bool done = log_of_product(text, &run, &product);
        fake_gpu.capability = 90;
        CHECK(done == rows[i].one_piece, "row %zu: %s", i, done ? "done" : "refused");
        CHECK(!strstr(text, "the library has none"), "row %zu was asked for: %s", i, text);
        device_test_wait();
    }
    device_free(extras);
    ones_free(&o);
}

/* ---- what was measured ---- */

static void tunes_and_writes_it_down(void) {
    Ones o = ones_create();
    char path[] = "/tmp/matmul-XXXXXX", line[400] = "", title[160] = "";
    int file = mkstemp(path);
    CHECK(library_matmul_save(path), "a table of nothing");
    library_matmul_tune(true);
    ones_multiply(&o, 14);
    library_matmul_tune(false);
    check_ones(&o, 14);
    CHECK(file >= 0 && !library_matmul_save(path), "%s", error_message());
    FILE *table = fdopen(file, "r");
    if (!table) abort();
    CHECK(fgets(title, sizeof title, table) && strstr(title, "on stand-in 1"), "%s", title);
    CHECK(fgets(line, sizeof line, table) && strncmp(line, "24 14 40 ", 9) == 0, "%s", line);
    CHECK(!fgets(line, sizeof line, table), "more shapes than one: %s", line);
    fclose(table);
    /* The first product that is not measured reads the table, if there is one, and adds its
     * rows. */
    Run run = run_of(&o);
    Product product = product_of(&o, 13);
    char text[2000];
    setenv("BCD_LT_TABLE", path, 1);
    CHECK(log_of_product(text, &run, &product) && strstr(text, ": 2 shapes\n"), "%s", text);
    unsetenv("BCD_LT_TABLE");
    check_ones(&o, 13);
    unlink(path);
    CHECK(library_matmul_save("/nowhere/matmul.txt"), "written to a folder that is not there");
    ones_free(&o);
}

void test_fake_products(void) {
    RUN(tunes_and_writes_it_down); /* this must run before a table has been read */
    RUN(goes_on_with_the_next_algorithm);
    RUN(goes_on_without_the_library);
    RUN(says_why_there_is_no_algorithm);
    RUN(a_capture_that_it_refuses_fails);
    RUN(no_column_is_lost);
    RUN(an_earlier_fault_is_told);
    RUN(memory_that_is_gone_is_told);
    RUN(uses_the_workspace_it_has);
    RUN(says_how_its_arrays_are_aligned);
    RUN(tf32_is_asked_for);
    RUN(fuses_what_it_may);
}
