/* Which networks each experiment trains, in which variants. */
#include "trainings.h"

/* Rates other than the paper's (0.1 and 1e-4) are for trainings much shorter than the paper's. */
#define SMOKE_RESNET                                   \
    "resnet:depth=8,width=4", "synthetic", "sgd,adam", \
        "limit=96 batch=16 steps=24 switch-every=4 eval-every=8", "lr=0.05", "lr=1e-2"
#define SMOKE_GPT                                                   \
    "gpt:layers=2,width=32,heads=2,context=32", "text", "sgd,adam", \
        "limit=96 batch=8 steps=24 switch-every=4 eval-every=8", "lr=0.1", "lr=3e-3"
#define LAPTOP_RESNET              \
    "resnet8", "synthetic", "sgd", \
        "limit=4000 batch=64 steps=2800 switch-every=40 eval-every=280", "", "lr=3e-3"
#define LAPTOP_GPT                                                                        \
    "gpt:layers=4,width=128,heads=4,context=64", "text", "adam",                          \
        "batch=16 steps=1200 switch-every=60 eval-every=120 warmup=50", "lr=0.05 clip=1", \
        "lr=3e-3"

const TrainingKind training_validity = {
    .name = "validity",
    .tables = {2},
    .variant = {{1, 1}, {0, 1}},
    .preset = {[PRESET_SMOKE] = {{SMOKE_RESNET}, {SMOKE_GPT}},
               [PRESET_LAPTOP] = {{LAPTOP_RESNET}, {LAPTOP_GPT}},
               [PRESET_GPU] = {{"resnet8", "cifar10", "sgd,adam", "epochs=60", "", ""},
                               {"resnet14", "cifar10", "sgd,adam", "epochs=60", "", ""},
                               {"resnet20", "cifar10", "sgd,adam", "epochs=60", "", ""},
                               {"gpt2-0.15B", "wikitext2", "sgd,adam", "epochs=6 batch=1", "",
                                ""}}},
};

/* Dataset reduction: each submodel sees nine tenths of the data. */
const TrainingKind training_compression = {
    .name = "compression",
    .tables = {9, 10},
    .variant = {{1, 1}, {0, 1}, {0, 0.9}},
    .preset = {[PRESET_SMOKE] = {{SMOKE_RESNET}, {SMOKE_GPT}},
               [PRESET_LAPTOP] = {{LAPTOP_RESNET}, {LAPTOP_GPT}},
               [PRESET_GPU] = {{"resnet14", "cifar10", "sgd", "epochs=60", "", ""},
                               {"gpt2-0.15B", "wikitext2", "sgd,adam", "epochs=6 batch=1", "",
                                ""}}},
};

/* The unfrozen part: 1 to 1/4 of the network at a time. */
const TrainingKind training_ufp = {
    .name = "ufp",
    .tables = {11},
    .variant = {{1, 1}, {2, 1}, {3, 1}, {4, 1}},
    .preset = {[PRESET_SMOKE] = {{SMOKE_GPT}},
               [PRESET_LAPTOP] = {{LAPTOP_GPT}},
               [PRESET_GPU] = {{"gpt2-0.15B", "wikitext2", "sgd,adam", "epochs=6 batch=1", "",
                                ""}}},
};
