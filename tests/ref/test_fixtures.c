/* Our models on the CPU against PyTorch's. */
#include "../fixtures/check.h"
#include "../test.h"

static void every_optimizer_has_numbers(void) {
    fixture_check_optimizers(
        (const char *const[]){"resnet", "bottleneck", "gpt", "llama", "grouped", NULL});
}

/* A comparison with PyTorch may not lose a NaN, wherever it is, nor the larger error before it. */
static void a_nan_is_an_error(void) {
    static const double errors[] = {5, NAN, 1e-9};
    double error = 0;
    for (int first = 0; first < 3; first++) {
        error = 0;
        for (int i = 0; i < 3; i++) error = worse(error, errors[(first + i) % 3]);
        CHECK(isnan(error), "beginning with %d: %g", first, error);
    }
    CHECK(worse(worse(0, 3), 2) == 3 && worse(worse(0, 2), 3) == 3, "not the largest");
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
    RUN(a_nan_is_an_error);
}
