/* A training of bcd.c over a mock engine, which records calls and returns prescribed losses. */
#pragma once

#include "../../ref/bcd.h"

enum { MAX_STEPS = 400, SUBMODELS = 4 };

typedef struct {
    Engine base;
    const Partition *partition;
    const double *losses; /* by step; NULL: all are 1 */
    int steps, activations;
    int trained[MAX_STEPS]; /* which submodel was active in each step */
    double lr[MAX_STEPS];
    int *ids[MAX_STEPS]; /* [batch] */
    int active;          /* submodel */
    const double *norms; /* [phases][SUBMODELS]: what gradient_norm returns */
    int norms_asked;     /* calls of gradient_norm */
    int norm_sample;     /* the first sample of the last such call */
} MockEngine;

/* The calls of a MockEngine. */
extern const EngineClass mock_class;

typedef struct {
    Model *model;
    Dataset *data;
    BcdSettings settings;
    BcdState state;
    MockEngine mock;
} Loop;

/* Opens a training of one small model in SUBMODELS submodels, which loop_close frees. */
void loop_open(Loop *loop, Order order, SwitchRule rule, int samples, int batch, int steps);
/* Trains to the end, and checks that this is so. */
void loop_run(Loop *loop);
void loop_close(Loop *loop);
