/* The fast convolution against the plain one over a grid of geometries: kernels, strides, paddings,
 * sizes and channels around those of the register tile.  Whole numbers, so that every order of
 * summation gives the same bits; test_cases.c tests rounding. */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../ref/base/random.h"
#include "../../ref/ops/ops.h"
#include "../test.h"
#include "guarded.h"

typedef struct {
    Conv conv;
    int oh, ow;
    Guarded x, w, dy, y, dx, dw;
    bool add;
} Data;

/* Fills an array with whole numbers, or with these divided by 7, so that every sum is rounded. */
static void fill(Guarded array, uint32_t stream, bool whole) {
    for (size_t i = 0; i < array.count; i++) {
        int number = (int)random_below(5, stream, i, 7) - 3;
        array.data[i] = whole ? (real)number : (real)number / 7;
    }
}

static void reset(Data *data) {
    guarded_spoil(data->y);
    guarded_spoil(data->dx);
    guarded_spoil(data->dw);
    if (!data->add) return;
    for (size_t i = 0; i < data->dx.count; i++) data->dx.data[i] = 2;
    for (size_t i = 0; i < data->dw.count; i++) data->dw.data[i] = 3;
}

static void create(Data *data, Conv conv, bool add, bool whole) {
    int oh = conv2d_out(conv.h, &conv);
    int ow = conv2d_out(conv.w, &conv);
    *data = (Data){.conv = conv, .oh = oh, .ow = ow, .add = add};
    size_t x = (size_t)(conv.n * conv.h * conv.w * conv.c), y = (size_t)(conv.n * oh * ow * conv.o);
    size_t w = (size_t)(conv.o * conv.kernel * conv.kernel * conv.c);
    data->x = guarded_create(x);
    data->w = guarded_create(w);
    data->dy = guarded_create(y);
    data->y = guarded_create(y);
    data->dx = guarded_create(x);
    data->dw = guarded_create(w);
    fill(data->x, 1, whole);
    fill(data->w, 2, whole);
    fill(data->dy, 3, whole);
    reset(data);
}

static void destroy(Data *data) {
    guarded_free(&data->x);
    guarded_free(&data->w);
    guarded_free(&data->dy);
    guarded_free(&data->y);
    guarded_free(&data->dx);
    guarded_free(&data->dw);
}

static void run(Data *data) {
    fast_conv2d_forward(data->y.data, data->x.data, data->w.data, data->conv);
    fast_conv2d_input_gradient(data->dx.data, data->dy.data, data->w.data, data->conv, data->add);
    fast_conv2d_weight_gradient(data->dw.data, data->dy.data, data->x.data, data->conv, data->add);
}

/* Whole numbers are summed exactly in any order. */
static void check_equal(Guarded got, Guarded truth, const char *what) {
    for (size_t i = 0; i < got.count; i++)
        CHECK(got.data[i] == truth.data[i], "%s[%zu] is %.9g, not %.9g", what, i,
              (double)got.data[i], (double)truth.data[i]);
    CHECK(guarded_intact(got), "something wrote outside of %s", what);
}

static void check_as_plain(const Data *data, Conv conv, bool add) {
    Data truth;
    create(&truth, conv, add, true);
    conv2d_forward(truth.y.data, truth.x.data, truth.w.data, truth.conv);
    conv2d_input_gradient(truth.dx.data, truth.dy.data, truth.w.data, truth.conv, add);
    conv2d_weight_gradient(truth.dw.data, truth.dy.data, truth.x.data, truth.conv, add);
    check_equal(data->y, truth.y, "y");
    check_equal(data->dx, truth.dx, "dx");
    check_equal(data->dw, truth.dw, "dw");
    destroy(&truth);
}

static void is_exact(const void *argument) {
    for (int add = 0; add <= 1; add++) {
        Data data;
        create(&data, *(const Conv *)argument, add, true);
        run(&data);
        if (!TEST_THREADS) check_as_plain(&data, *(const Conv *)argument, add);
        destroy(&data);
    }
}

static void repeats_on_any_threads(const void *argument) {
    int threads = omp_get_max_threads();
    Data one, more;
    create(&one, *(const Conv *)argument, true, false);
    create(&more, *(const Conv *)argument, true, false);
    omp_set_num_threads(1);
    run(&one);
    for (int t = 2; t <= 3; t++) {
        omp_set_num_threads(t);
        reset(&more);
        run(&more);
        guarded_check_same(one.y, more.y, "y");
        guarded_check_same(one.dx, more.dx, "dx");
        guarded_check_same(one.dw, more.dw, "dw");
    }
    omp_set_num_threads(threads);
    destroy(&one);
    destroy(&more);
}

/* An image has the same bits alone and in a batch. */
static void images_are_independent(const void *argument) {
    Data together, apart;
    create(&together, *(const Conv *)argument, true, false);
    create(&apart, *(const Conv *)argument, true, false);
    run(&together);
    Conv one = together.conv;
    one.n = 1;
    int in = one.h * one.w * one.c, out = together.oh * together.ow * one.o;
    for (int n = 0; n < together.conv.n; n++) {
        fast_conv2d_forward(apart.y.data + n * out, apart.x.data + n * in, apart.w.data, one);
        fast_conv2d_input_gradient(apart.dx.data + n * in, apart.dy.data + n * out, apart.w.data,
                                   one, true);
    }
    guarded_check_same(together.y, apart.y, "y");
    guarded_check_same(together.dx, apart.dx, "dx");
    destroy(&together);
    destroy(&apart);
}

static void run_all(Conv conv) {
    char name[80];
    snprintf(name, sizeof name, "%d of %dx%dx%d to %d, kernel %d, stride %d, pad %d", conv.n,
             conv.h, conv.w, conv.c, conv.o, conv.kernel, conv.stride, conv.pad);
    RUN_ROW(name, is_exact, &conv);
    RUN_ROW(name, repeats_on_any_threads, &conv);
    RUN_ROW(name, images_are_independent, &conv);
}

/* Every kernel x stride x pad, each with another size and other channels. */
static void run_grid(void) {
    static const int heights[] = {7, 1, 4, 9, 16, 5, 2}, widths[] = {8, 17, 5, 3, 33},
                     channels[] = {3, 16, 1, 5, 32, 17, 33}, outputs[] = {16, 1, 35, 5, 32};
    for (int number = 0; number < 2 * 36; number++) {
        static const int kernels[] = {1, 3, 5, 2};
        Conv conv = {.n = 1 + number % 4,
                     .h = heights[number % 7],
                     .w = widths[number % 5],
                     .c = channels[(number + number / 7) % 7],
                     .o = outputs[(number + number / 5) % 5],
                     .kernel = kernels[number % 4],
                     .stride = 1 + number / 4 % 3,
                     .pad = number / 12 % 3};
        if (conv.h + 2 * conv.pad < conv.kernel || conv.w + 2 * conv.pad < conv.kernel) continue;
        run_all(conv);
    }
}

void test_conv2d(void) {
    run_grid();
    static const Conv shapes[] = {
        {40, 4, 4, 16, 16, 3, 1, 1},  /* more images than chunks, several to a chunk */
        {20, 33, 31, 16, 3, 3, 1, 1}, /* more than one group of images to a chunk */
        {3, 32, 32, 16, 16, 3, 1, 1}, /* an image larger than a group in double */
        {2, 8, 8, 64, 64, 3, 1, 1},   /* tiles of two rows */
        {5, 4, 4, 33, 96, 3, 1, 1},   /* tiles of four rows, three tiles of outputs */
        {2, 2, 2, 260, 520, 5, 1, 2}, /* one partial sum only: pieces instead of chunks */
        {2, 6, 6, 8, 8, 3, 4, 0},     /* stride larger than the kernel */
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) run_all(shapes[i]);
}
