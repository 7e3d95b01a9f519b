/* The rows.  Shapes are ragged on purpose: 1, primes, the lengths of vectors and tiles and one
 * beside them.  Each op has a row large enough for it to share the work among threads: some tens of
 * thousands of numbers. */
#include "cases.h"

#define IN(...) .in_shape = {__VA_ARGS__} /* h, w, c */
#define OUT(...) .out_shape = {__VA_ARGS__}
#define SAME(...) IN(__VA_ARGS__), OUT(__VA_ARGS__)
#define HEADS(heads, groups, d) .attention = {heads, groups, d, {.base = 0}}
#define TURNED(heads, groups, d, ...) .attention = {heads, groups, d, {__VA_ARGS__}}

/* One row, one line. */
/* clang-format off */
const Case cases[] = {
    {"linear 1->1", {OP_LINEAR, IN(1, 1, 1), OUT(1, 1, 1)}, .n = 1, .bias = true},
    {"linear 64->10", {OP_LINEAR, IN(1, 1, 64), OUT(1, 1, 10)}, .n = 5, .bias = true},
    {"linear 33->17", {OP_LINEAR, IN(1, 31, 33), OUT(1, 31, 17)}, .n = 2, .bias = true},
    {"linear 16->48, no bias", {OP_LINEAR, IN(1, 7, 16), OUT(1, 7, 48)}, .n = 3},
    {"linear 5->3, image", {OP_LINEAR, IN(3, 4, 5), OUT(3, 4, 3)}, .n = 2, .bias = true},
    {"linear 40->50, many rows", {OP_LINEAR, IN(1, 137, 40), OUT(1, 137, 50)}, .n = 2, .bias = true},
    {"linear 801->13, deep", {OP_LINEAR, IN(1, 3, 801), OUT(1, 3, 13)}, .n = 1, .bias = true},
    {"linear 3->811, wide", {OP_LINEAR, IN(1, 2, 3), OUT(1, 2, 811)}, .n = 2, .bias = true},
    {"linear 96->97, large", {OP_LINEAR, IN(1, 64, 96), OUT(1, 64, 97)}, .n = 3, .bias = true},

    {"conv2d 3x3 stem", {OP_CONV2D, IN(8, 8, 3), OUT(8, 8, 16), .kernel = 3, .stride = 1, .pad = 1}, .n = 2},
    {"conv2d 3x3", {OP_CONV2D, IN(7, 5, 17), OUT(7, 5, 31), .kernel = 3, .stride = 1, .pad = 1}, .n = 3},
    {"conv2d 3x3 aligned", {OP_CONV2D, IN(8, 8, 16), OUT(8, 8, 16), .kernel = 3, .stride = 1, .pad = 1}, .n = 2},
    {"conv2d 3x3 large", {OP_CONV2D, IN(16, 16, 32), OUT(16, 16, 32), .kernel = 3, .stride = 1, .pad = 1}, .n = 3},
    {"conv2d 3x3 full size", {OP_CONV2D, IN(32, 32, 16), OUT(32, 32, 16), .kernel = 3, .stride = 1, .pad = 1}, .n = 1},
    {"conv2d 3x3 stride 2", {OP_CONV2D, IN(9, 9, 16), OUT(5, 5, 32), .kernel = 3, .stride = 2, .pad = 1}, .n = 3},
    {"conv2d 3x3 stride 2, even", {OP_CONV2D, IN(16, 16, 16), OUT(8, 8, 32), .kernel = 3, .stride = 2, .pad = 1}, .n = 2},
    {"conv2d 3x3 stride 3", {OP_CONV2D, IN(8, 10, 5), OUT(2, 3, 7), .kernel = 3, .stride = 3, .pad = 0}, .n = 2},
    {"conv2d 3x3 no padding", {OP_CONV2D, IN(5, 7, 3), OUT(3, 5, 5), .kernel = 3, .stride = 1, .pad = 0}, .n = 2},
    {"conv2d 3x3 on one pixel", {OP_CONV2D, IN(1, 1, 33), OUT(1, 1, 3), .kernel = 3, .stride = 1, .pad = 1}, .n = 2},
    {"conv2d 3x3 on a row", {OP_CONV2D, IN(1, 13, 5), OUT(1, 13, 1), .kernel = 3, .stride = 1, .pad = 1}, .n = 1},
    {"conv2d 3x3 many images", {OP_CONV2D, IN(32, 32, 40), OUT(32, 32, 3), .kernel = 3, .stride = 1, .pad = 1}, .n = 3},
    {"conv2d 5x5", {OP_CONV2D, IN(6, 7, 3), OUT(6, 7, 5), .kernel = 5, .stride = 1, .pad = 2}, .n = 2},
    {"conv2d 1x1", {OP_CONV2D, IN(5, 3, 64), OUT(5, 3, 31), .kernel = 1, .stride = 1, .pad = 0}, .n = 3},
    {"conv2d 1x1 stride 2", {OP_CONV2D, IN(7, 5, 16), OUT(4, 3, 17), .kernel = 1, .stride = 2, .pad = 0}, .n = 3},
    {"conv2d 1x1 stride 2, even", {OP_CONV2D, IN(8, 8, 16), OUT(4, 4, 32), .kernel = 1, .stride = 2, .pad = 0}, .n = 2},
    {"conv2d 1x1, one channel", {OP_CONV2D, IN(3, 3, 1), OUT(3, 3, 1), .kernel = 1, .stride = 1, .pad = 0}, .n = 1},
    {"conv2d 3x3 tiny images", {OP_CONV2D, IN(2, 2, 24), OUT(2, 2, 24), .kernel = 3, .stride = 1, .pad = 1}, .n = 35},
    {"conv2d 3x3 deep", {OP_CONV2D, IN(2, 3, 136), OUT(2, 3, 40), .kernel = 3, .stride = 1, .pad = 1}, .n = 2},
    {"conv2d 3x3 deep to few", {OP_CONV2D, IN(5, 9, 72), OUT(5, 9, 5), .kernel = 3, .stride = 1, .pad = 1}, .n = 2},
    {"conv2d 3x3 stride 2, deep", {OP_CONV2D, IN(9, 7, 72), OUT(5, 4, 40), .kernel = 3, .stride = 2, .pad = 1}, .n = 1},
    {"conv2d 3x3 stride 5", {OP_CONV2D, IN(11, 12, 8), OUT(3, 3, 9), .kernel = 3, .stride = 5, .pad = 1}, .n = 2},
    {"conv2d 3x3 on a long row", {OP_CONV2D, IN(1, 500, 17), OUT(1, 500, 3), .kernel = 3, .stride = 1, .pad = 1}, .n = 1},
    {"conv2d 2x2 stride 2", {OP_CONV2D, IN(8, 8, 8), OUT(4, 4, 24), .kernel = 2, .stride = 2, .pad = 0}, .n = 3},
    {"conv2d 7x7 stride 2", {OP_CONV2D, IN(11, 13, 3), OUT(6, 7, 20), .kernel = 7, .stride = 2, .pad = 3}, .n = 2},
    {"conv2d 1x1 many pixels", {OP_CONV2D, IN(150, 150, 3), OUT(150, 150, 5), .kernel = 1, .stride = 1, .pad = 0}, .n = 2},

    {"batchnorm", {OP_BATCHNORM, SAME(5, 3, 17)}, .n = 3},
    {"batchnorm relu", {OP_BATCHNORM, SAME(3, 3, 5), .relu = true}, .n = 4},
    {"batchnorm skip", {OP_BATCHNORM, SAME(4, 3, 16)}, .n = 3, .skip = true},
    {"batchnorm skip relu", {OP_BATCHNORM, SAME(5, 5, 33), .relu = true}, .n = 2, .skip = true},
    {"batchnorm vectors", {OP_BATCHNORM, SAME(1, 1, 3)}, .n = 31},
    {"batchnorm one row", {OP_BATCHNORM, SAME(1, 1, 7)}, .n = 1, .cancels = 317},
    {"batchnorm large", {OP_BATCHNORM, SAME(16, 16, 16), .relu = true}, .n = 9, .skip = true},
    {"batchnorm 136, two tiles", {OP_BATCHNORM, SAME(3, 5, 136), .relu = true}, .n = 2, .skip = true},
    {"batchnorm running", {OP_BATCHNORM, SAME(5, 3, 17)}, .n = 3, .use_running = true},
    {"batchnorm running relu", {OP_BATCHNORM, SAME(3, 3, 5), .relu = true}, .n = 4, .use_running = true},
    {"batchnorm running skip", {OP_BATCHNORM, SAME(4, 3, 16)}, .n = 3, .skip = true, .use_running = true},
    {"batchnorm running skip relu", {OP_BATCHNORM, SAME(5, 5, 33), .relu = true}, .n = 2, .skip = true, .use_running = true},
    {"batchnorm running one row", {OP_BATCHNORM, SAME(1, 1, 7)}, .n = 1, .use_running = true},

    {"layernorm 1", {OP_LAYERNORM, SAME(1, 3, 1), .eps = 1e-5}, .n = 2, .cancels = 317},
    {"layernorm 3", {OP_LAYERNORM, SAME(1, 1, 3), .eps = 1e-5}, .n = 1},
    {"layernorm 33", {OP_LAYERNORM, SAME(1, 7, 33), .eps = 1e-5}, .n = 3},
    {"layernorm 64", {OP_LAYERNORM, SAME(1, 17, 64), .eps = 1e-5}, .n = 2},
    {"layernorm 33, eps prevails", {OP_LAYERNORM, SAME(1, 7, 33), .eps = 3}, .n = 3},
    {"layernorm 7, many rows", {OP_LAYERNORM, SAME(1, 301, 7), .eps = 1e-5}, .n = 2},
    {"layernorm 384, large", {OP_LAYERNORM, SAME(1, 67, 384), .eps = 1e-5}, .n = 2},
    {"layernorm 520", {OP_LAYERNORM, SAME(1, 5, 520), .eps = 1e-5}, .n = 1},
    {"layernorm 1032", {OP_LAYERNORM, SAME(1, 3, 1032), .eps = 1e-5}, .n = 1},
    {"layernorm 2056", {OP_LAYERNORM, SAME(1, 1, 2056), .eps = 1e-5}, .n = 2},

    {"rmsnorm 1", {OP_RMSNORM, SAME(1, 3, 1), .eps = 1e-5}, .n = 2},
    {"rmsnorm 5", {OP_RMSNORM, SAME(1, 1, 5), .eps = 1e-5}, .n = 1},
    {"rmsnorm 31", {OP_RMSNORM, SAME(1, 7, 31), .eps = 1e-5}, .n = 3},
    {"rmsnorm 64", {OP_RMSNORM, SAME(1, 17, 64), .eps = 1e-5}, .n = 2},
    {"rmsnorm 31, eps prevails", {OP_RMSNORM, SAME(1, 7, 31), .eps = 3}, .n = 3},
    {"rmsnorm 7, many rows", {OP_RMSNORM, SAME(1, 301, 7), .eps = 1e-5}, .n = 2},
    {"rmsnorm 384, large", {OP_RMSNORM, SAME(1, 67, 384), .eps = 1e-5}, .n = 2},
    {"rmsnorm 520", {OP_RMSNORM, SAME(1, 5, 520), .eps = 1e-5}, .n = 1},

    {"attention, one position", {OP_ATTENTION, IN(1, 1, 12), OUT(1, 1, 4), HEADS(2, 2, 2)}, .n = 2},
    {"attention, head of 1", {OP_ATTENTION, IN(1, 7, 3), OUT(1, 7, 1), HEADS(1, 1, 1)}, .n = 1},
    {"attention, head of 5", {OP_ATTENTION, IN(1, 33, 45), OUT(1, 33, 15), HEADS(3, 3, 5)}, .n = 2},
    {"attention, head of 16", {OP_ATTENTION, IN(1, 17, 96), OUT(1, 17, 32), HEADS(2, 2, 16)}, .n = 3},
    {"attention, head of 64", {OP_ATTENTION, IN(1, 67, 384), OUT(1, 67, 128), HEADS(2, 2, 64)}, .n = 1},
    {"attention, three tiles", {OP_ATTENTION, IN(1, 129, 24), OUT(1, 129, 8), HEADS(1, 1, 8)}, .n = 1},
    {"attention, sharp", {OP_ATTENTION, IN(1, 13, 48), OUT(1, 13, 16), HEADS(2, 2, 8)}, .n = 2, .scale = 6},
    {"attention, head of 96", {OP_ATTENTION, IN(1, 35, 288), OUT(1, 35, 96), HEADS(1, 1, 96)}, .n = 1},
    {"attention, head of 128", {OP_ATTENTION, IN(1, 70, 384), OUT(1, 70, 128), HEADS(1, 1, 128)}, .n = 1},
    {"attention, head of 131", {OP_ATTENTION, IN(1, 9, 393), OUT(1, 9, 131), HEADS(1, 1, 131)}, .n = 1},
    {"attention rope, head of 2", {OP_ATTENTION, IN(1, 5, 18), OUT(1, 5, 6), TURNED(3, 3, 2, .base = 10000)}, .n = 2},
    {"attention rope, head of 6", {OP_ATTENTION, IN(1, 31, 36), OUT(1, 31, 12), TURNED(2, 2, 6, .base = 10000)}, .n = 2},
    {"attention rope, head of 16", {OP_ATTENTION, IN(1, 32, 48), OUT(1, 32, 16), TURNED(1, 1, 16, .base = 10000)}, .n = 3},
    {"attention rope, head of 64", {OP_ATTENTION, IN(1, 65, 192), OUT(1, 65, 64), TURNED(1, 1, 64, .base = 10000)}, .n = 2},
    {"attention rope, head of 124", {OP_ATTENTION, IN(1, 40, 372), OUT(1, 40, 124), TURNED(1, 1, 124, .base = 10000)}, .n = 1},

    {"relu 1", {OP_RELU, SAME(1, 1, 1)}, .n = 1},
    {"relu", {OP_RELU, SAME(3, 5, 7)}, .n = 3},
    {"relu, large", {OP_RELU, SAME(13, 11, 127)}, .n = 2},
    {"gelu 1", {OP_GELU, SAME(1, 1, 1)}, .n = 1},
    {"gelu", {OP_GELU, SAME(1, 11, 31)}, .n = 3},
    {"gelu, saturated", {OP_GELU, SAME(1, 3, 33)}, .n = 2, .scale = 30},
    {"gelu, large", {OP_GELU, SAME(1, 91, 384)}, .n = 1, .scale = 3},
    {"swiglu 1", {OP_SWIGLU, IN(1, 1, 2), OUT(1, 1, 1)}, .n = 1},
    {"swiglu", {OP_SWIGLU, IN(1, 7, 62), OUT(1, 7, 31)}, .n = 3},
    {"swiglu, vectors", {OP_SWIGLU, IN(1, 7, 80), OUT(1, 7, 40)}, .n = 3},
    {"swiglu, saturated", {OP_SWIGLU, IN(1, 3, 34), OUT(1, 3, 17)}, .n = 2, .scale = 30},
    {"swiglu, large", {OP_SWIGLU, IN(1, 133, 514), OUT(1, 133, 257)}, .n = 1, .scale = 3},
    {"add 1", {OP_ADD, SAME(1, 1, 1)}, .n = 1, .skip = true},
    {"add", {OP_ADD, SAME(1, 13, 31)}, .n = 3, .skip = true},
    {"add, large", {OP_ADD, SAME(1, 257, 129)}, .n = 1, .skip = true},

    {"avgpool 8x8", {OP_AVGPOOL, IN(8, 8, 64), OUT(1, 1, 64)}, .n = 3},
    {"avgpool 7x5", {OP_AVGPOOL, IN(7, 5, 3), OUT(1, 1, 3)}, .n = 5},
    {"avgpool 8x8, large", {OP_AVGPOOL, IN(8, 8, 64), OUT(1, 1, 64)}, .n = 9},
    {"avgpool 1x1", {OP_AVGPOOL, IN(1, 1, 17), OUT(1, 1, 17)}, .n = 2},

    {"embedding, one token", {OP_EMBEDDING, IN(1, 1, 1), OUT(1, 1, 1), .vocabulary = 1}, .n = 1, .bias = true},
    {"embedding", {OP_EMBEDDING, IN(1, 33, 1), OUT(1, 33, 5), .vocabulary = 7}, .n = 3, .bias = true},
    {"embedding, unused rows", {OP_EMBEDDING, IN(1, 5, 1), OUT(1, 5, 16), .vocabulary = 301}, .n = 2, .bias = true},
    {"embedding, large", {OP_EMBEDDING, IN(1, 131, 1), OUT(1, 131, 127), .vocabulary = 301}, .n = 2, .bias = true},
    {"embedding, no position", {OP_EMBEDDING, IN(1, 17, 1), OUT(1, 17, 16), .vocabulary = 64}, .n = 2},
};
/* clang-format on */

const int case_count = sizeof cases / sizeof *cases;
