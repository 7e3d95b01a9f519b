/* Small trainings for tests: a model, a data set of random numbers, an engine, and the state of the
 * training. */
#pragma once

#include "../../ref/bcd.h"

/* Models of every family that train in milliseconds, and those of them without batch norm; each
 * list ends with NULL. */
extern const char *const tiny_models[];
extern const char *const tiny_models_without_batchnorm[];

/* Makes a data set for the model.  Sample i depends only on i, and if `augmented` on the position
 * in the stream.  The target of every 7th token is ignored. */
Dataset *tiny_dataset(const Model *model, int samples, bool augmented);

/* The settings of a training.  A zero stands for the default in the comment. */
typedef struct {
    const char *spec;
    Stage *(*create)(const Model *model, StageSettings settings); /* stage_ref_create */
    bool plain;                                                   /* use the plain ops */
    Precision precision;
    bool offload;
    int submodels;                    /* 3 */
    const char *always, *submodel_lr; /* none; 1 each */
    int switch_warmup;
    double correct_factor;
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
    double update_ms; /* filled where the recipe has times */
} Tiny;

/* Opens a training.  tiny->engine is NULL, with an error, if engine_single_create failed.  Any
 * other failure ends the program. */
void tiny_open(Tiny *tiny, const Recipe *recipe);
void tiny_close(Tiny *tiny);

/* Trains. Returns what bcd_train returns. */
int tiny_train(Tiny *tiny, BcdWatch watch, void *context);

/* Opens a training and trains to the end. A failure ends the program. */
void tiny_trained(Tiny *tiny, const Recipe *recipe);

/* A BcdWatch that stops the training after step *(const uint64_t *)context. */
int tiny_stop_at(void *context, const BcdState *state, const Loss *loss, double lr);

/* A BcdWatch that notes the loss of each step, to the last bit, in a TinyCurve. */
typedef struct {
    double loss[32];
    int steps;
} TinyCurve;
int tiny_note_loss(void *curve, const BcdState *state, const Loss *loss, double lr);

/* Copies what a checkpoint holds (tensors, optimizer steps, the state of the loop) into a training
 * that has just been opened. */
void tiny_restore(const Tiny *from, Tiny *to);

/* Sets the first number of a parameter, for example to NaN.  Returns the old value. */
real tiny_set_first(Tiny *tiny, int param, real value);

/* Activates one submodel, without training. */
void tiny_activate(Tiny *tiny, int submodel);

/* Returns samples 0 .. n - 1, for batch_free to free. */
Batch tiny_batch(const Tiny *tiny, int n);

/* Return a hash of a block's parameters, or of its parameters and buffers. */
uint64_t tiny_parameters_hash(const Tiny *tiny, int block);
uint64_t tiny_block_hash(const Tiny *tiny, int block);

/* Returns a copy of a tensor, for the caller to free, or NULL if it does not exist now. */
real *tiny_read(const Tiny *tiny, TensorRole role, int number, size_t *count);

/* CHECKs that parameters and buffers are the same to the last bit. */
void tiny_check_same(const Tiny *a, const Tiny *b, const char *what);

/* CHECKs that parameters are the same up to the order in which terms of gradients are added: in
 * each step a gradient then differs by a few units in the last place of the largest partial sum,
 * and the update multiplies this by less than 1. */
void tiny_check_close(const Tiny *a, const Tiny *b, int steps, const char *what);

/* Overwrites logits[context][outputs] with those of a pass over these tokens. Fewer than the
 * context are followed by zeros, which no token before them sees. */
void tiny_read_whole(real *logits, Stage *stage, const int *tokens, size_t count);
