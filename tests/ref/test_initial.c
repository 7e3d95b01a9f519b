/* Initial values, by the deviations that the papers give and PyTorch has, written out here. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../../ref/blocks/models.h"
#include "../../ref/model.h"
#include "../test.h"

typedef struct {
    const char *spec, *param;
    double mean, deviation;
} Row;

#define GPT "gpt:layers=8,width=64,heads=2,context=8,vocabulary=100"
#define LLAMA "llama:layers=8,width=64,heads=2,context=8,vocabulary=100"
#define RESNET "resnet:depth=8,width=32"
#define MLP "mlp:inputs=48,layers=2,width=75,classes=10"

/* Transformers: 0.02, and 0.02 / sqrt(2 layers) where a residual stream is written to (Radford et
 * al. 2019).  Convolutions: He et al. 2015 by the fan-out, sqrt(2 / (9 outputs)).  Heads of images:
 * a uniform distribution in +-1 / sqrt(inputs) has the deviation 1 / sqrt(3 inputs).  Layers of a
 * perceptron: sqrt(2 / inputs). */
static const Row rows[] = {
    {GPT, "embedding.token.weight", 0, 0.02},
    {GPT, "embedding.position.weight", 0, 0.02},
    {GPT, "block1.attention.qkv.weight", 0, 0.02},
    {GPT, "block8.attention.out.weight", 0, 0.02 / 4},
    {GPT, "block1.mlp.up.weight", 0, 0.02},
    {GPT, "block8.mlp.down.weight", 0, 0.02 / 4},
    {GPT, "block1.mlp.down.bias", 0, 0},
    {GPT, "block1.norm1.weight", 1, 0},
    {GPT, "block1.norm1.bias", 0, 0},
    {LLAMA, "embedding.token.weight", 0, 0.02},
    {LLAMA, "block1.attention.qkv.weight", 0, 0.02},
    {LLAMA, "block8.attention.out.weight", 0, 0.02 / 4},
    {LLAMA, "block1.mlp.gate_up.weight", 0, 0.02},
    {LLAMA, "block8.mlp.down.weight", 0, 0.02 / 4},
    {LLAMA, "head.weight", 0, 0.02},
    {RESNET, "stem.conv.weight", 0, 0.08333333},
    {RESNET, "block2.conv1.weight", 0, 0.05892557},
    {RESNET, "head.weight", 0, 0.05103104},
    {MLP, "layer1.weight", 0, 0.20412415},
    {MLP, "layer2.weight", 0, 0.16329932},
    {MLP, "head.weight", 0, 0.06666667},
};

static int find(const Model *model, const char *name) {
    int p = 0;
    while (p < model->params && strcmp(model->param[p].name, name) != 0) p++;
    return p;
}

static void have_their_mean_and_deviation(const void *argument) {
    const Row *row = argument;
    Model *model = model_create(row->spec);
    if (!CHECK(model, "%s", error_message())) return;
    const int p = find(model, row->param);
    if (CHECK(p < model->params, "no %s", row->param)) {
        const double n = (double)model->param[p].count;
        double sum = 0, squares = 0;
        for (size_t i = 0; i < model->param[p].count; i++) {
            const double x = (double)model_initial(model, p, 3, i) - row->mean;
            sum += x;
            squares += x * x;
        }
        /* Four standard errors. */
        CHECK(fabs(sum / n) <= 4 * row->deviation / sqrt(n), "mean %g", row->mean + sum / n);
        CHECK(fabs(sqrt(squares / n) - row->deviation) <= 4 * row->deviation / sqrt(2 * n),
              "deviation %g", sqrt(squares / n));
    }
    model_free(model);
}

/* Counts the values that two parameters, or two seeds, have in common at the same places. */
static int equal_values(const Model *model, int p, uint64_t p_seed, int q, uint64_t q_seed) {
    int equal = 0;
    for (size_t i = 0; i < 100; i++)
        equal += model_initial(model, p, p_seed, i) == model_initial(model, q, q_seed, i);
    return equal;
}

static void differ_between_parameters_and_seeds(void) {
    Model *model = model_create(GPT);
    if (!CHECK(model, "%s", error_message())) return;
    const int a = find(model, "block1.attention.qkv.weight");
    const int b = find(model, "block2.attention.qkv.weight");
    CHECK(equal_values(model, a, 1, a, 1) == 100, "the second time differs");
    CHECK(equal_values(model, a, 1, b, 1) == 0, "two parameters begin alike");
    CHECK(equal_values(model, a, 1, a, 2) == 0, "two seeds begin alike");
    model_free(model);
}

/* A seed means the same training in every version. */
static void never_change(void) {
    static const double first[] = {-0.005850012, -0.002461518, 0.024741737, 0.006915613};
    Model *model = model_create(GPT);
    if (!CHECK(model, "%s", error_message())) return;
    const int p = find(model, "block1.attention.qkv.weight");
    for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
        const double value = (double)model_initial(model, p, 1, i);
        CHECK(fabs(value - first[i]) < 1e-8, "number %zu is %.9f", i, value);
    }
    model_free(model);
}

void test_initial(void) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char name[80];
        const int family = (int)strcspn(rows[i].spec, ":");
        snprintf(name, sizeof name, "%.*s, %s", family, rows[i].spec, rows[i].param);
        RUN_ROW(name, have_their_mean_and_deviation, &rows[i]);
    }
    RUN(differ_between_parameters_and_seeds);
    RUN(never_change);
}
