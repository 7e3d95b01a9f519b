/* Table 2, validity: models trained by full update and by BCD-1/3. */
#include <math.h>

#include "../study/networks.h"
#include "trainings.h"

/* ---- published ------------------------------------------------------------------------------- */

/* Table 2 prints a model's four trainings side by side; a slash marks those that were not run. */
#define T2(row, model, data, opt, m, duration, kind, score, loss) \
    { 2, row, model, data, opt, m, 1.0, duration, kind, score, loss, NAN }
#define IMAGES(row, model, data, opt, m, epochs, accuracy, loss) \
    T2(row, model, data, opt, m, epochs, SCORE_ACCURACY, accuracy, loss)
#define TEXT(row, data, opt, m, iterations, perplexity, loss) \
    T2(row, "gpt2-0.15B", data, opt, m, iterations, SCORE_PERPLEXITY, perplexity, loss)

const PaperRow paper_table2[] = {
    IMAGES("ResNet8", "resnet8", "cifar10", "sgd", 1, 639, 86.9, 0.1671),
    IMAGES("ResNet8", "resnet8", "cifar10", "sgd", 3, 395, 87.2, 0.1783),
    IMAGES("ResNet8", "resnet8", "cifar10", "adam", 1, 389, 83.1, 0.3955),
    IMAGES("ResNet8", "resnet8", "cifar10", "adam", 3, 309, 86.0, 0.2279),
    IMAGES("ResNet14", "resnet14", "cifar10", "sgd", 1, 323, 88.9, 0.0708),
    IMAGES("ResNet14", "resnet14", "cifar10", "sgd", 3, 391, 89.0, 0.0613),
    IMAGES("ResNet14", "resnet14", "cifar10", "adam", 1, 491, 85.7, 0.0969),
    IMAGES("ResNet14", "resnet14", "cifar10", "adam", 3, 372, 87.6, 0.0527),
    IMAGES("ResNet20", "resnet20", "cifar10", "sgd", 1, 191, 88.7, 0.0574),
    IMAGES("ResNet20", "resnet20", "cifar10", "sgd", 3, 322, 88.7, 0.0263),
    IMAGES("ResNet20", "resnet20", "cifar10", "adam", 1, 768, 86.3, 0.0269),
    IMAGES("ResNet20", "resnet20", "cifar10", "adam", 3, 423, 88.3, 0.0222),
    IMAGES("ResNet50", "resnet50", "cifar10", "sgd", 1, 273, 90.4, 0.0260),
    IMAGES("ResNet50", "resnet50", "cifar10", "sgd", 3, 251, 88.9, 0.0120),
    IMAGES("ResNet101", "resnet101", "cifar100", "sgd", 1, 286, 70.9, 0.0691),
    IMAGES("ResNet101", "resnet101", "cifar100", "sgd", 3, 376, 70.1, 0.0411),
    TEXT("GPT2-wiki", "wikitext2", "sgd", 1, 111587, 6.9639, 1.9407),
    TEXT("GPT2-wiki", "wikitext2", "sgd", 3, 204575, 6.9189, 1.9343),
    TEXT("GPT2-wiki", "wikitext2", "adam", 1, 83690, 6.5988, 1.8869),
    TEXT("GPT2-wiki", "wikitext2", "adam", 3, 232471, 6.6263, 1.8910),
    TEXT("GPT2-web", "webtext2", "sgd", 1, 1045000, 28.733, 3.3580),
    TEXT("GPT2-web", "webtext2", "sgd", 3, 2770000, 31.285, 3.4430),
    TEXT("GPT2-web", "webtext2", "adam", 1, 499000, 28.735, 3.3580),
    TEXT("GPT2-web", "webtext2", "adam", 3, 1045000, 30.712, 3.4240),
    {0},
};

/* ---- trained here ---------------------------------------------------------------------------- */

/* clang-format off */
const TrainingKind training_validity = {
    .name = "validity",
    .tables = {2},
    .ways = "full; bcd",
    .preset = {
    [PRESET_SMOKE] = {SMOKE_IMAGES("sgd,adam"), SMOKE_WORDS},
    [PRESET_LAPTOP] = {
        LAPTOP_IMAGES("sgd,adam"),
        LAPTOP_WORDS("sgd,adam"),
        /* Smaller networks, whose full updates take as much memory as BCD-1/3 of those above. */
        {LAPTOP_CIFAR("resnet:depth=8,width=13", "sgd,adam"), .ways = "full"},
        {LAPTOP_TOKENS("gpt:layers=4,width=96,heads=4,context=64", "wikitext2:2048", "sgd,adam"),
         .ways = "full"},
    },
    [PRESET_GPU] = {
        GPU_IMAGES("resnet8", "cifar10", "sgd,adam", "epochs=60"),
        GPU_IMAGES("resnet14", "cifar10", "sgd,adam", "epochs=60"),
        GPU_IMAGES("resnet20", "cifar10", "sgd,adam", "epochs=60"),
        GPU_IMAGES("resnet50", "cifar10", "sgd", "epochs=30"),
        GPU_IMAGES("resnet101", "cifar100", "sgd", "epochs=30"),
        GPU_WORDS,
        {.model = "gpt2-0.15B", .data = "webtext2", .optimizers = "sgd,adam",
         .settings = "steps=20000 batch=1"},
    },
    },
};
/* clang-format on */
