/* Rows of the sizes that a training has, for which kernels have other grids than for those of
 * tests/ref/cases.c: against the fast op on the CPU, and the same bits a second time.  Where no GPU
 * is, the same in small. */
#include <stdio.h>

#include "../test.h"
#include "accuracy.h"

typedef struct {
    Case row;
    int n, w; /* small: samples and, unless 0, positions */
} LargeCase;

#define IN(...) .in_shape = {__VA_ARGS__}
#define OUT(...) .out_shape = {__VA_ARGS__}
#define HEADS(heads, groups, d, ...) .attention = {heads, groups, d, {__VA_ARGS__}, .causal = true}
/* clang-format off */
static const LargeCase large_cases[] = {
    {{"attention, head of 64", {OP_ATTENTION, IN(1, 1024, 384), OUT(1, 1024, 128), HEADS(2, 2, 64, .base = 0)}, .n = 2}, 1, 130},
    {{"attention, head of 128", {OP_ATTENTION, IN(1, 1024, 768), OUT(1, 1024, 512), HEADS(4, 1, 128, .base = 500000)}, .n = 1}, 1, 70},
    {{"conv2d 16 -> 16", {OP_CONV2D, IN(32, 32, 16), OUT(32, 32, 16), .kernel = 3, .pad = 1, .stride = 1}, .n = 1024}, 1, 0},
    {{"conv2d 16 -> 32, stride 2", {OP_CONV2D, IN(32, 32, 16), OUT(16, 16, 32), .kernel = 3, .pad = 1, .stride = 2}, .n = 1024}, 1, 0},
    {{"conv2d 64 -> 64", {OP_CONV2D, IN(8, 8, 64), OUT(8, 8, 64), .kernel = 3, .pad = 1, .stride = 1}, .n = 1024}, 2, 0},
    {{"batchnorm skip relu", {OP_BATCHNORM, IN(16, 16, 32), OUT(16, 16, 32), .relu = true}, .n = 1024, .skip = true}, 3, 0},
    {{"layernorm 768", {OP_LAYERNORM, IN(1, 1024, 768), OUT(1, 1024, 768), .eps = 1e-5}, .n = 8}, 2, 5},
};
/* clang-format on */

static void meets_the_fast_op(const void *argument) {
    Turn turn = *(const Turn *)argument;
    CaseData data[2];
    if (device_is_watched()) SKIP("the rows of tests/ref/cases.c have the same accesses");
    for (int i = 0; i < 2; i++) {
        case_create(&data[i], turn.row, false);
        NodeIO io = case_io(&data[i]);
        device_case_run(&data[i], &io, turn.how, RUN_FORWARD | RUN_GRADIENTS);
    }
    for (Array a = ARRAY_MEAN; a < ARRAYS; a++) {
        const size_t first = guarded_first_difference(data[0].array[a], data[1].array[a]);
        CHECK(first == data[0].array[a].count, "a second time %s[%zu] is another", array_names[a],
              first);
    }
    case_free(&data[1]);
    device_meets_oracle(&data[0], turn, false);
    case_free(&data[0]);
}

static void run_case(const LargeCase *large, Precision p, int version) {
    Case row = large->row;
    char name[96];
    if (device_is_slow()) row.n = large->n;
    if (device_is_slow() && large->w) row.node.in_shape.w = row.node.out_shape.w = large->w;
    snprintf(name, sizeof name, "%s: %s, version %d", row.name, precision_names[p], version);
    const Turn turn = {&row, {.precision = p, .version = version}};
    RUN_ROW(name, meets_the_fast_op, &turn);
}

/* Version 0 is what a step runs; of attention all versions with tiles are candidates for that. */
void test_large_cases(void) {
    static const Precision order[] = {PRECISION_BF16, PRECISION_TF32, PRECISION_FP32};
    for (int k = 0; k < PRECISIONS; k++)
        for (size_t i = 0; i < sizeof large_cases / sizeof *large_cases; i++) {
            const Node *node = &large_cases[i].row.node;
            const bool tiles = node->kind == OP_ATTENTION;
            const int last = tiles ? cuda_node_versions(node, order[k]) : 0;
            if (!device_has_kernels(node->kind, order[k])) continue;
            for (int version = tiles ? 2 : 0; version <= last; version++)
                run_case(&large_cases[i], order[k], version);
        }
}
