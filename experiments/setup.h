/* From options to everything a training needs: model, data, partition, engine. */
#ifndef EXPERIMENTS_SETUP_H
#define EXPERIMENTS_SETUP_H

#include "../data/data.h"
#include "options.h"

typedef struct {
    Options options; /* resolved: no number is left to a default that depends on model or data */
    Model *model;
    Dataset *train, *valid; /* valid: the validation split; NULL where setup_model was used */
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

/* Stage and engine, parameters initialised from the seed.  cache_dir: where a prefix cache that
 * exceeds --cache may spill (NULL: refuse).  times [blocks] and update_ms: see engine.h, or NULL.
 */
int setup_engine(Setup *setup, const char *cache_dir, BlockTimes *times, double *update_ms);

void setup_free(Setup *setup);

/* The parts, for commands that need less.  Model from a specification; `outputs` (classes or
 * vocabulary) is put in where the specification names none; 0: leave.  context likewise, 0: the
 * model's own; a longer one than the model's is refused. */
Model *setup_model(const char *spec, int outputs, int context);
OptimizerSettings setup_optimizer(const Options *options);

#endif
