/* Entries that presets of several experiments share (trainings.h).  Experiments in one directory
 * share a training if its settings are the same. */
#pragma once

#include "trainings.h"

/* clang-format off */

/* Rates other than the paper's (0.1 and 1e-4) are for trainings much shorter than the paper's. */
#define SMOKE_IMAGES(names) \
        {.model = "resnet:depth=8,width=4", .data = "synthetic", .optimizers = names, \
         .settings = "limit=96 batch=16 steps=24 switch-every=4 eval-every=8", \
         .sgd = "lr=0.05", .adam = "lr=1e-2"}
#define SMOKE_WORDS \
        {.model = "gpt:layers=2,width=32,heads=2,context=32", .data = "text", \
         .optimizers = "sgd,adam", .sgd = "lr=0.1", .adam = "lr=3e-3", \
         .settings = "limit=96 batch=8 steps=24 switch-every=4 eval-every=8"}

/* Two epochs of CIFAR-10, a sixth of one of WikiText-2 with a vocabulary that suits a network of a
 * million parameters; generated images and the project's sources stand in for missing data sets.
 * The generated images have small batches, because BCD-1/3 needs many updates to learn anything.
 * Trainings are evaluated at the ends of whole cycles. */
#define LAPTOP_GPT "gpt:layers=4,width=128,heads=4,context=64"
#define LAPTOP_CIFAR(network, names) \
        .model = network, .data = "cifar10", .optimizers = names, .adam = "lr=3e-3", \
        .settings = "batch=128 steps=600 switch-every=40 eval-every=120"
#define LAPTOP_TOKENS(network, its_data, names) \
        .model = network, .data = its_data, .optimizers = names, \
        .sgd = "clip=1", .adam = "lr=1e-3", \
        .settings = "batch=16 steps=720 switch-every=40 eval-every=120 eval-samples=1000 warmup=50"
#define LAPTOP_IMAGES(names) \
        {LAPTOP_CIFAR("resnet8", names)}, \
        {.model = "resnet8", .data = "synthetic", .instead_of = "cifar10", .optimizers = "sgd", \
         .settings = "limit=4000 batch=32 steps=5760 switch-every=80 eval-every=480", \
         .adam = "lr=3e-3"}
#define LAPTOP_WORDS(names) \
        {LAPTOP_TOKENS(LAPTOP_GPT, "wikitext2:2048", names)}, \
        {LAPTOP_TOKENS(LAPTOP_GPT, "text", names), .instead_of = "wikitext2:2048"}

#define GPU_IMAGES(network, its_data, names, length) \
        {.model = network, .data = its_data, .optimizers = names, .settings = length}
#define GPU_WORDS \
        {.model = "gpt2-0.15B", .data = "wikitext2", .optimizers = "sgd,adam", \
         .settings = "epochs=6 batch=1"}

/* clang-format on */
