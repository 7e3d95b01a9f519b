/* Small trainings for tests: a model, a data set made of random numbers, an engine, and where the
 * training stands. */
#ifndef TESTS_REF_TINY_H
#define TESTS_REF_TINY_H

#include "../../ref/bcd.h"

/* Models of every family that train in milliseconds; NULL ends.  The last pieces of a list are
 * those whose samples do not mix (no batch norm). */
extern const char *const tiny_models[];
extern const char *const tiny_models_without_batchnorm[];

/* Samples of the model's kind: sample number i is a function of i (and of the visit if augmented).
 * Targets of every 7th token are ignored. */
Dataset *tiny_dataset(const Model *model, int samples, bool augmented);

/* What a training is made of; zeros stand for the usual (see tiny.c). */
typedef struct {
    const char *spec;
    Stage *(*create)(const Model *model, StageSettings settings); /* the CPU's */
    bool plain;                                                   /* the CPU's plain ops */
    Precision precision;
    bool offload;
    int submodels;                    /* 3 */
    const char *always, *submodel_lr; /* none; 1 each */
    int switch_warmup;
    double correct_lr;
    int samples; /* 12 */
    int batch;   /* 4 */
    int steps;   /* 9 */
    OptimizerKind optimizer;
    double momentum, clip, lr; /* 0.9 for SGD, none, 0.05 */
    double eps;                /* 1e-8 */
    Order order;
    SwitchRule rule; /* 2 steps */
    double fraction; /* 1 */
    bool recompute, keep_state, augmented;
    FrozenNorm frozen_norm;
    int micro_batches;
    size_t cache_bytes, cache_device_bytes;
    const char *cache_dir;
    BlockTimes *times;
} Recipe;

typedef struct {
    Model *model;
    Dataset *data;
    Stage *stage; /* owned by the engine */
    Engine *engine;
    BcdSettings settings;
    BcdState state;
} Tiny;

/* Ends the program when something fails that the test is not about; NULL engine when the engine
 * refused. */
void tiny_open(Tiny *tiny, const Recipe *recipe);
void tiny_close(Tiny *tiny);

/* Trains to the end, or until the watch stops it. */
int tiny_train(Tiny *tiny, BcdWatch watch, void *context);

/* Opens, trains without interruption, and must succeed. */
void tiny_trained(Tiny *tiny, const Recipe *recipe);

/* A watch that stops after step *(const uint64_t *)context. */
int tiny_stop_at(void *context, const BcdState *state, const Loss *loss, double lr);

/* What a checkpoint holds, from one training into another that has just been opened: tensors,
 * optimizer steps and the state of the loop. */
void tiny_carry_over(const Tiny *from, Tiny *to);

/* Sets the first number of a parameter, and returns what it was. */
real tiny_poison(Tiny *tiny, int param, real value);

/* Activates one submodel, without training. */
void tiny_activate(Tiny *tiny, int submodel);

/* Samples 0 .. n - 1, to be freed. */
Batch tiny_batch(const Tiny *tiny, int n);

/* A hash of a block's parameters, and of its buffers too. */
uint64_t tiny_parameters_hash(const Tiny *tiny, int block);
uint64_t tiny_block_hash(const Tiny *tiny, int block);

/* The numbers of one tensor, to be freed; NULL if it does not exist now. */
real *tiny_read(const Tiny *tiny, TensorRole role, int number, size_t *count);

/* CHECKs that parameters and buffers are the same to the last bit. */
void tiny_check_same(const Tiny *a, const Tiny *b, const char *what);

#endif
