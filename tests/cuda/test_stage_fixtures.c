/* Compares the device's models in fp32 with PyTorch's, as test_fixtures.c does those of the CPU. */
#include "../../cuda/stage/stage_cuda.h"
#include "../fixtures/check.h"
#include "../test.h"

static void check_row(const void *row) { fixture_check(row); }

void test_stage_fixtures(void) {
    static const FixtureRow rows[] = {
        {.name = "resnet", .fixture = "resnet"},
        {.name = "resnet, relu apart, recompute",
         .fixture = "resnet",
         .switch_off = "fused=1",
         .recompute = true},
        {.name = "bottleneck", .fixture = "bottleneck"},
        {.name = "gpt, 2 micro-batches", .fixture = "gpt", .micro_batches = 2},
        {.name = "gpt, recompute", .fixture = "gpt", .recompute = true},
        {.name = "llama", .fixture = "llama"},
        {.name = "llama, offload", .fixture = "llama", .offload = true},
        {.name = "grouped", .fixture = "grouped"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        FixtureRow row = rows[i];
        row.create = stage_cuda_create;
        RUN_ROW(row.name, check_row, &row);
    }
}
