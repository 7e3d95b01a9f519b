/* Models of the Hugging Face format: a directory with config.json and model.safetensors (or several
 * such files and model.safetensors.index.json).  GPT-2, LLaMA 1 to 3.2, and what is LLaMA by
 * another name (Mistral without its window); read as far as ours are the same, written as GPT-2 or
 * LLaMA. */
#ifndef EXPERIMENTS_CONVERT_H
#define EXPERIMENTS_CONVERT_H

#include "../../data/safetensors.h"
#include "../train/setup.h"

/* Our specification of the model in `dir`, from its config.json; `context` tokens, or 0: as many as
 * it knows positions of.  -1 and an error: no such file, another kind of model, a setting that ours
 * does not have. */
int convert_spec(char spec[OPTION_TEXT], const char *dir, int context);

/* Overwrites the parameters of an engine with those of `init`: a directory with a model of one of
 * their families, of whose learned positions the model's context is taken; or a file as below.  -1
 * and an error: a tensor is missing or has another shape, a file is damaged. */
int convert_load(Engine *engine, const char *init);

/* Whether this is no directory but a file NAME.safetensors: the tensors of a model of any family,
 * with the names and shapes of a checkpoint (see store/checkpoint.h), all of them and no other.
 * The running statistics may all be left away; they are then those of a new model. */
bool convert_is_tensors(const char *init);

/* Writes model.safetensors and config.json into `dir`, which is made; float32.  init: the directory
 * that the model started from, or ""; where it is that model still, its config.json and its learned
 * positions beyond the trained context are kept.  -1 and an error; no file is left half written. */
int convert_save(const char *dir, Engine *engine, const char *init);

/* The trained model that a command line names: its first file, a run's directory or a checkpoint,
 * or
 * --init.  As checkpoint_open. */
int convert_open(Setup *setup, const Options *asked);

/* The same of a training, by its directory or checkpoint file; `asked` as of checkpoint_open. */
int convert_export(const char *place, const char *dir, const Options *asked);

/* ---- tensors.c, config.c and names.c --------------------------------------------------------- */

int tensors_load(Engine *engine, const char *path);

/* Of the model; or, unless NULL, the config.json in `init`, but of float32. */
int convert_write_config(const char *path, const Model *model, const char *init);

enum { CONVERT_PARTS = 3, CONVERT_NAME = 96 };

/* Of models that convert_knows.  What they call one of our parameters: `parts` tensors of so many
 * rows and columns, which follow each other in ours; turned: theirs is [in][out]. */
typedef struct {
    char name[CONVERT_PARTS][CONVERT_NAME];
    size_t rows[CONVERT_PARTS], columns;
    int parts;
    bool turned;
} TheirName;
void convert_name(TheirName *theirs, const Model *model, int param);

/* The first tensor of layer `layer`, from 0. */
void convert_layer_name(char name[CONVERT_NAME], const Model *model, int layer);

/* Whether the model's family is one that they have: GPT-2 or LLaMA. */
bool convert_knows(const Model *model);

#endif
