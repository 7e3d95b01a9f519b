/* From options to everything a training needs: model, data, partition, engine. */
#pragma once

#include "../../data/data.h"
#include "../../data/file.h"
#include "../../dist/engine_rank.h"
#include "../cli/options.h"
#include "../store/provenance.h"
#include "modules.h"

typedef struct {
    Options options; /* resolved: defaults that depend on the model or the data are filled in */
    /* Of a training: options.init from the root on, wherever it is resumed. */
    char init[PATH_BYTES];
    const DeviceModule *device; /* NULL: the CPU */
    Model *model;
    Dataset *train, *valid; /* training and validation split, or NULL */
    int model_context; /* tokens that the model of --init could read; 0: as many as it trains on */
    char tokenizer[TOKENIZER_NAME]; /* of the training data; "": none, or unknown */
    BcdSettings bcd;
    StageSettings stage_settings;
    bool generates;         /* the model is opened to sample from, which keeps its context */
    double steps_per_epoch; /* samples / batch: an epoch is one pass over the data */
    /* Over several ranks, see pipeline.h. */
    int ranks;          /* 0: a single stage */
    const int *machine; /* [ranks]: the lowest rank on the machine of each; NULL: threads */
    Placement placement;
    PipelineSettings pipeline;
    bool took_world; /* the engine owns options.world */
    Stage *stage;    /* owned by the engine; NULL over several ranks */
    Engine *engine;
} Setup;

/* ---- a training ------------------------------------------------------------------------------ */

/* Opens device, model and data sets, and fills in partition and settings; allocates no parameters.
 * `options` may be those of the setup.  The number of classes or the vocabulary is the data's where
 * the specification of the model names none.  -1 and an error, also if the training does not fit
 * into memory; setup_free is safe either way. */
int setup_open(Setup *setup, const Options *options);

/* Returns the updates of a training of so many epochs, or else of so many steps. */
uint64_t setup_steps(const Options *options, double steps_per_epoch);

/* Creates stage and engine, with parameters initialised from the seed.  cache_dir is where a prefix
 * cache that exceeds --cache may put the rest, NULL to refuse one.  times[blocks] and update_ms as
 * in engine.h, or NULL.  -1 and an error. */
int setup_engine(Setup *setup, const char *cache_dir, BlockTimes *times, double *update_ms);

/* The same of a trained model, without data: setup->model and options must be set; fills in device,
 * stage and engine.  The caller writes the parameters. */
int setup_engine_for_evaluation(Setup *setup);

/* Gives back the memory that trains; the rest of the setup stays. */
void setup_free_engine(Setup *setup);

void setup_free(Setup *setup);

/* Describes this process and what it computes on.  -1 and an error. */
int setup_provenance(Provenance *provenance, const Options *options);

/* ---- checks of the options alone ------------------------------------------------------------- */

/* Checks what needs no data: model, partition, kind of the data, flags that exclude each other.
 * -1 and an error. */
int setup_check(const Options *options);

/* Refuses flags of a new training that could have no effect.  -1 and an error. */
int setup_check_idle(const Options *options);

/* Refuses settings that the optimizer's equation does not have.  -1 and an error. */
int setup_check_optimizer(const Options *options);

/* Refuses precisions and methods that the device does not have.  -1 and an error. */
int setup_check_device(const Options *options);

/* ---- parts, for commands that need less ------------------------------------------------------ */

/* Creates a model from a specification.  `outputs` (classes or vocabulary) and `context` are used
 * where the specification names none; 0 leaves the model's own.  NULL and an error. */
Model *setup_model(const char *spec, int outputs, int context);

/* Sets options->always_active of a new training that does not say it: the ends of a model that
 * reads images, where blocks are left for all submodels, otherwise none.  -1 and an error. */
int setup_default_ends(Options *options);

/* Sets options->context where a model in options->init says how long it may be, and the user does
 * not: to at most 1024 tokens.  Overwrites *model_context, unless it is NULL, with the model's own
 * if that is longer.  -1 and an error. */
int setup_default_context(Options *options, int *model_context);

/* Sets the phases of a training that does not say them.  A fine-tuning is often shorter than an
 * epoch, so there a phase is a number of updates, and short enough for every submodel to have its
 * turn.  Needs the number of submodels and of updates. */
void setup_resolve_phase(Options *options);

/* True of a model whose batch norms see other samples in smaller parts of a batch. */
bool setup_has_batch_norm(const Model *model);

int setup_partition(Partition *partition, const Model *model, const Options *options);

/* Opens one split of options->data as the model reads it; options->valid, if set, replaces the
 * validation split.  NULL and an error. */
Dataset *setup_data(const Options *options, const Model *model, Split split);

/* Checks that the model can learn from this data.  Weights know tokens by their numbers, so the
 * vocabulary must be that of a model in options->init, and the tokens must not be by another
 * tokenizer than the model's or the setup's.  -1 and an error. */
int setup_check_data(const Setup *setup, const Dataset *data);

/* Opens the device asked for; *device is NULL for the CPU.  -1 and an error. */
int setup_device(const DeviceModule **device, const Options *options);

/* Returns true for --pipeline nccl, which needs memory of the GPUs for itself. */
bool setup_uses_nccl(const Options *options);

/* ---- optimizer ------------------------------------------------------------------------------- */

/* Puts the defaults into the options: those of the optimizer, or of a language model.  The default
 * warm-up needs options->steps. */
void setup_resolve_optimizer(Options *options);

/* The settings of the optimizer, with these defaults. */
OptimizerSettings setup_optimizer(const Options *options);
