/* From options to everything a training needs: model, data, partition, engine. */
#ifndef EXPERIMENTS_SETUP_H
#define EXPERIMENTS_SETUP_H

#include "../../data/data.h"
#include "../../dist/engine_rank.h"
#include "../cli/options.h"
#include "../store/provenance.h"
#include "device.h"
#include "fit.h"

typedef struct {
    Options options; /* resolved: no number is left to a default that depends on model or data */
    const DeviceModule *device; /* NULL: the CPU */
    Model *model;
    Dataset *train, *valid; /* training and validation split, or NULL */
    BcdSettings bcd;
    StageSettings stage_settings;
    double steps_per_epoch; /* samples / batch: an epoch is one pass over the data */
    /* over several ranks: see pipeline.h */
    int ranks; /* 0: one stage */
    Placement placement;
    PipelineSettings pipeline;
    bool took_world; /* options.world belongs to the engine */
    Stage *stage;    /* owned by the engine; NULL over several ranks */
    Engine *engine;
} Setup;

/* Device, model, data sets, partition and settings; computes nothing and allocates no parameters.
 * The vocabulary or number of classes of the data goes into the model where its specification names
 * none.  -1 and an error, also where the memory will not do; setup_free is safe either way. */
int setup_open(Setup *setup, const Options *options);

/* The largest plan over the submodels, as fit_plan. */
int setup_memory(size_t bytes[MEM_ROLES + 1], size_t host[MEM_ROLES + 1], const Setup *setup);

/* The same of one rank alone, of those of a pipeline (setup_memory is of all together). */
int setup_rank_memory(size_t bytes[MEM_ROLES + 1], size_t host[MEM_ROLES + 1], const Setup *setup,
                      int rank);

/* What this process is, and what it computes on.  -1 and an error. */
int setup_provenance(Provenance *provenance, const Options *options);

/* Stage and engine, parameters initialised from the seed.  cache_dir: where a prefix cache that
 * exceeds --cache may spill (NULL: refuse).  times [blocks] and update_ms: see engine.h, or NULL.
 */
int setup_engine(Setup *setup, const char *cache_dir, BlockTimes *times, double *update_ms);

void setup_free(Setup *setup);

/* The parts, for commands that need less.  Model from a specification; `outputs` (classes or
 * vocabulary) and `context` go in where the specification names none (0: leave as it is). */
Model *setup_model(const char *spec, int outputs, int context);
/* As the flags say, else as is usual for the model: a language model has defaults of its own. */
OptimizerSettings setup_optimizer(const Options *options);
/* Puts these defaults into the options; the rise of the rate is known when the steps are. */
void setup_resolve_optimizer(Options *options);
/* Says what an optimizer's defaults are where they do not depend on the model: as of experiments,
 * whose rows all train alike.  -1 and an error. */
int setup_pin_optimizer(Options *options);
int setup_partition(Partition *partition, const Model *model, const Options *options);

/* Checks that need no data: model, partition, name and kind of the data, flags that exclude each
 * other.  -1 and an error. */
int setup_check(const Options *options);

/* Of a new training: -1 and an error where flags ask for what could not happen. */
int setup_check_idle(const Options *options);

/* Whether the model can learn from this data; -1 and an error. */
int setup_match(const Model *model, const Dataset *data);
/* Weights that were trained know their tokens by number, so the data must be made with the same
 * vocabulary.  Nothing without options->init.  -1 and an error. */
int setup_check_vocabulary(const Options *options, const Model *model, const Dataset *data);

/* One split of options->data (options->valid, where it names a file to validate on) as the model
 * reads it.  NULL and an error. */
Dataset *setup_data(const Options *options, const Model *model, Split split);

/* Refuses precisions and methods that the device does not have. */
int setup_check_device(const Options *options);
/* The device asked for, opened; NULL for the CPU.  -1 and an error. */
int setup_device(const DeviceModule **device, const Options *options);
/* Refuses what the memory cannot hold.  Memory is handed out page by page as it is touched, so a
 * model that is too large would be killed in the middle rather than refused. */
int setup_check_memory(const Setup *setup);
/* The stage of a device (NULL: the CPU).  NULL and an error. */
Stage *setup_stage(const DeviceModule *device, const Model *model, StageSettings settings);

/* A trained model alone: setup->model and options must be set; fills device, stage and engine. */
int setup_engine_for_evaluation(Setup *setup);

#endif
