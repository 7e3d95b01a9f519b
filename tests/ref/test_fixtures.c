/* Our models on the CPU against PyTorch's. */
#include "../fixtures/check.h"
#include "../test.h"

static void every_optimizer_has_numbers(void) {
    fixture_check_optimizers(
        (const char *const[]){"resnet", "bottleneck", "gpt", "llama", "grouped", NULL});
}

static void check_row(const void *row) { fixture_check(row); }

void test_fixtures(void) {
    static const FixtureRow rows[] = {
        {.name = "resnet", .fixture = "resnet"},
        {.name = "resnet, relu apart", .fixture = "resnet", .switch_off = "fused=1"},
        {.name = "resnet, recompute", .fixture = "resnet", .recompute = true},
        {.name = "bottleneck", .fixture = "bottleneck"},
        {.name = "bottleneck, recompute", .fixture = "bottleneck", .recompute = true},
        {.name = "gpt", .fixture = "gpt"},
        {.name = "gpt, recompute", .fixture = "gpt", .recompute = true},
        {.name = "gpt, 2 micro-batches", .fixture = "gpt", .micro_batches = 2},
        {.name = "llama", .fixture = "llama"},
        {.name = "llama, recompute", .fixture = "llama", .recompute = true},
        {.name = "llama, 2 micro-batches", .fixture = "llama", .micro_batches = 2},
        {.name = "grouped", .fixture = "grouped"},
        {.name = "grouped, recompute", .fixture = "grouped", .recompute = true},
        {.name = "grouped, 2 micro-batches", .fixture = "grouped", .micro_batches = 2},
        {.name = "resnet, plain ops", .fixture = "resnet", .plain = true},
        {.name = "bottleneck, plain ops", .fixture = "bottleneck", .plain = true},
        {.name = "gpt, plain ops", .fixture = "gpt", .plain = true},
        {.name = "llama, plain ops", .fixture = "llama", .plain = true},
        {.name = "grouped, plain ops", .fixture = "grouped", .plain = true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        RUN_ROW(rows[i].name, check_row, &rows[i]);
    RUN(every_optimizer_has_numbers);
}
