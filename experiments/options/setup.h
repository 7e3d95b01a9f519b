/* From options to everything a training needs: model, data, partition, engine. */
#ifndef EXPERIMENTS_SETUP_H
#define EXPERIMENTS_SETUP_H

#include "../../data/data.h"
#include "options.h"

typedef struct {
    Options options; /* resolved: no number is left to a default that depends on model or data */
    Model *model;
    Dataset *train, *valid; /* training and validation split, or NULL */
    BcdSettings bcd;
    StageSettings stage_settings;
    double steps_per_epoch; /* samples / batch: an epoch is one pass over the data */
    Stage *stage;           /* owned by the engine */
    Engine *engine;
} Setup;

/* Model, data sets, partition and settings; computes nothing and allocates no parameters.  The
 * vocabulary or number of classes of the data goes into the model where its specification names
 * none.  -1 and an error; setup_free is safe either way. */
int setup_open(Setup *setup, const Options *options);

/* The largest memory plan over the submodels: of each role, and last of all together, which is less
 * than their sum where no submodel needs most of each. */
int setup_memory(size_t bytes[MEM_ROLES + 1], const Setup *setup);

/* Stage and engine, parameters initialised from the seed.  cache_dir: where a prefix cache that
 * exceeds --cache may spill (NULL: refuse).  times [blocks] and update_ms: see engine.h, or NULL.
 */
int setup_engine(Setup *setup, const char *cache_dir, BlockTimes *times, double *update_ms);

void setup_free(Setup *setup);

/* The parts, for commands that need less.  Model from a specification; `outputs` (classes or
 * vocabulary) and `context` go in where the specification names none (0: leave as it is). */
Model *setup_model(const char *spec, int outputs, int context);
OptimizerSettings setup_optimizer(const Options *options);

/* Checks that need no data: model, partition, name and kind of the data, flags that exclude each
 * other.  -1 and an error. */
int setup_check(const Options *options);

/* One split of options->data as the model reads it.  NULL and an error. */
Dataset *setup_data(const Options *options, const Model *model, Split split);

/* A trained model alone: setup->model and options must be set; fills stage and engine. */
int setup_engine_for_evaluation(Setup *setup);

#endif
