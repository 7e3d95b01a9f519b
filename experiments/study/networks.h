/* Networks and settings that presets of several experiments share (trainings.h).  Experiments in
 * one directory share a training if its settings are the same. */
#ifndef EXPERIMENTS_NETWORKS_H
#define EXPERIMENTS_NETWORKS_H

#include "trainings.h"

/* Rates other than the paper's (0.1 and 1e-4) are for trainings much shorter than the paper's. */
#define SMOKE_GPT "gpt:layers=2,width=32,heads=2,context=32"
#define SMOKE_IMAGES "limit=96 batch=16 steps=24 switch-every=4 eval-every=8"
#define SMOKE_WORDS "limit=96 batch=8 steps=24 switch-every=4 eval-every=8"

/* Two epochs of CIFAR-10, a sixth of one of WikiText-2 with a vocabulary that suits a network of a
 * million parameters; generated images and the project's sources stand in for missing data sets.
 * The generated images have small batches, because BCD-1/3 needs many updates to learn anything.
 * Trainings are evaluated at the ends of whole cycles. */
#define LAPTOP_GPT "gpt:layers=4,width=128,heads=4,context=64"
#define LAPTOP_IMAGES "batch=128 steps=600 switch-every=40 eval-every=120"
#define LAPTOP_GENERATED "limit=4000 batch=32 steps=5760 switch-every=80 eval-every=480"
#define LAPTOP_WORDS "batch=16 steps=720 switch-every=40 eval-every=120 eval-samples=1000 warmup=50"

#endif
