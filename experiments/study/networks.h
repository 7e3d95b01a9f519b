/* Networks that several experiments train, as entries of their presets (trainings.h). */
#ifndef EXPERIMENTS_NETWORKS_H
#define EXPERIMENTS_NETWORKS_H

#include "trainings.h"

/* Rates other than the paper's (0.1 and 1e-4) are for trainings much shorter than the paper's. */
#define SMOKE_RESNET(opts)                                                                      \
    {                                                                                           \
        .model = "resnet:depth=8,width=4", .data = "synthetic", .optimizers = opts,             \
        .settings = "limit=96 batch=16 steps=24 switch-every=4 eval-every=8", .sgd = "lr=0.05", \
        .adam = "lr=1e-2"                                                                       \
    }
#define SMOKE_GPT(layers)                                                                     \
    {                                                                                         \
        .model = "gpt:layers=" layers ",width=32,heads=2,context=32", .data = "text",         \
        .optimizers = "sgd,adam",                                                             \
        .settings = "limit=96 batch=8 steps=24 switch-every=4 eval-every=8", .sgd = "lr=0.1", \
        .adam = "lr=3e-3"                                                                     \
    }

/* Two epochs of CIFAR-10, a sixth of one of WikiText-2 with a vocabulary that suits a network of a
 * million parameters; generated images and the project's sources stand in for missing data sets.
 * The generated images have small batches, because BCD-1/3 needs many updates to learn anything.
 * Trainings are evaluated at the ends of whole cycles. */
#define LAPTOP_CIFAR(name, opts)                          \
    .model = name, .data = "cifar10", .optimizers = opts, \
    .settings = "batch=128 steps=600 switch-every=40 eval-every=120", .adam = "lr=3e-3"
#define LAPTOP_IMAGES(opts)                                                                   \
    {                                                                                         \
        .model = "resnet8", .data = "synthetic", .optimizers = opts, .instead_of = "cifar10", \
        .settings = "limit=4000 batch=32 steps=5760 switch-every=80 eval-every=480",          \
        .adam = "lr=3e-3"                                                                     \
    }
#define LAPTOP_TOKENS(name, opts)                                                                \
    .model = name, .optimizers = opts,                                                           \
    .settings = "batch=16 steps=720 switch-every=40 eval-every=120 eval-samples=1000 warmup=50", \
    .sgd = "clip=1", .adam = "lr=1e-3"
#define LAPTOP_WIKITEXT(name, opts) .data = "wikitext2:2048", LAPTOP_TOKENS(name, opts)
#define LAPTOP_GPT "gpt:layers=4,width=128,heads=4,context=64"
#define LAPTOP_TEXT(opts) \
    { .data = "text", .instead_of = "wikitext2:2048", LAPTOP_TOKENS(LAPTOP_GPT, opts) }
/* Their full updates take as much memory as BCD-1/3 of the larger networks. */
#define LAPTOP_LESS_RESNET "resnet:depth=8,width=13"
#define LAPTOP_LESS_GPT "gpt:layers=4,width=96,heads=4,context=64"

#define GPU_RESNET(name, set, opts, length) \
    { .model = name, .data = set, .optimizers = opts, .settings = "epochs=" length }
#define GPU_GPT                                                               \
    {                                                                         \
        .model = "gpt2-0.15B", .data = "wikitext2", .optimizers = "sgd,adam", \
        .settings = "epochs=6 batch=1"                                        \
    }

#endif
