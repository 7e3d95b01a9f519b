/* Models in Hugging Face's format: a directory with config.json and model.safetensors, or several
 * such files and model.safetensors.index.json.  Reads and writes GPT-2, LLaMA 1 to 3.2, Mistral,
 * Qwen2, Qwen3, SmolLM3 and OLMo 2 (families.c), and refuses every setting that our models do not
 * have. */
#pragma once

#include "../../data/safetensors.h"
#include "../../ref/engine.h"
#include "../cli/options.h"

/* Overwrites `spec` with our specification of the model in `dir`, from its config.json, with
 * `context` tokens; 0: as many as it has positions for.  -1 and an error: no such file, another
 * kind of model, a setting that ours does not have. */
int convert_spec(char spec[OPTION_TEXT], const char *dir, int context);

/* Creates that model.  NULL and an error. */
Model *convert_model(const char *dir, int context);

/* Refuses what is no model's directory, but a known thing that one can be made of:
 * pytorch_model.bin, GGUF, a LoRA adapter.  -1 and an error that says how. */
int convert_check_foreign(const char *init);

/* Overwrites *is with whether the tokenizer of the model in `dir` is GPT-2's, by the merges in its
 * tokenizer.json or, without that, its merges.txt.  -1 and an error: it cannot be read. */
int convert_is_gpt2_tokenizer(bool *is, const char *dir);

/* Returns true if `init` names a file NAME.safetensors and no directory.  Such a file has the
 * tensors of a model of any family with our own names and shapes (store/tensors.h): all of the
 * parameters, and all of the running statistics or none. */
bool convert_is_tensors(const char *init);

/* Checks that `init`, a directory or a file as above, has the tensors of the model and no others,
 * and that a config.json that it has is of this model, whatever its context.  It takes no memory
 * for the model, which for a directory must be one that convert_knows.  -1 and an error. */
int convert_check(const Model *model, const char *init);

/* Overwrites the parameters of an engine with those of `init`, as above, and its running statistics
 * with those of a file that has them.  Of learned positions the first are taken, as many as the
 * model's context.  -1 and an error: a tensor is missing or has another shape, a file is damaged,
 * the engine has failed.  Some tensors may then be overwritten. */
int convert_load(Engine *engine, const char *init);

/* Overwrites *numbers with NUMBER_BF16 if all weights of the model in `init` are in bf16, or else
 * NUMBER_F32, also if init is "".  -1 and an error. */
int convert_numbers(NumberKind *numbers, const char *init);

/* Returns true if transformers refuses each config.json of the model that we could write: of a
 * LLaMA whose width is no multiple of the heads. */
bool convert_is_refused(const Model *model);

/* Overwrites *same with whether the model in the directory `init`, unless that is "", is this one,
 * except for its context; its config.json can then be kept.  -1 and an error. */
int convert_keeps_config(bool *same, const Model *model, const char *init);

/* Saves the model of an engine: model.safetensors, in `numbers`, and config.json go into `dir`,
 * which is created.  init: the directory that the training started from, or "".  If that holds the
 * same model, which overwrites *same, its config.json and its learned positions beyond the trained
 * context are kept.  -1 and an error, also of a model that convert_knows does not know; no file is
 * left half written. */
int convert_save(const char *dir, Engine *engine, const char *init, NumberKind numbers, bool *same);

/* ---- shared by the files of this folder ------------------------------------------------------ */

/* A tensor of the model in `init`, and the file it is in. */
typedef struct {
    const Safetensors *file;
    const SafeTensor *tensor;
    bool used; /* some parameter of ours takes it */
} Weight;

/* The open files of `init`, a directory or a file of tensors. */
typedef struct {
    const char *init;
    Safetensors *file;
    int files;
    Weight *list; /* what the index of several files maps, or all tensors of one */
    int count;
} Weights;

/* -1 and an error; weights_close is safe either way. */
int weights_open(Weights *weights, const char *init);
void weights_close(Weights *weights);

/* Finds a tensor.  In a directory the name's first part may be missing: a model that was saved
 * without its head has none.  NULL, without an error, if there is no such tensor. */
Weight *weights_find(const Weights *weights, const char *name);

/* Returns true for buffers that older versions of transformers stored; they follow from the
 * settings, and their numbers may be of another kind. */
bool weights_is_derived(const Weight *weight);

/* Refuses a model that is not that of the config.json in `dir`, if it has one, or that an adapter
 * there would change.  -1 and an error that says how they differ. */
int convert_check_config(const Model *model, const char *dir);

/* Writes a config.json for weights in `numbers`: a copy of that in `init` or, if that is NULL, one
 * of the model, which must be one that convert_knows.  -1 and an error. */
int convert_write_config(const char *path, const Model *model, NumberKind numbers,
                         const char *init);

enum { CONVERT_NAME = 96 };

/* What they call one of our parameters.  Its rows may be in several tensors, one after the other;
 * `transposed`: theirs is [in][out]. */
typedef struct {
    char name[PARAM_PARTS][CONVERT_NAME];
    size_t rows[PARAM_PARTS], columns;
    int parts;
    bool transposed;
} TheirName;

/* Returns true for the families that they have, too. */
bool convert_knows(const Model *model);

/* Their name of GPT-2's table of learned positions. */
extern const char convert_positions[];

/* Returns how many positions the model in `dir` has, by its config.json; -1 and an error. */
int convert_positions_of(const char *dir);

/* Overwrites *theirs with their name of a parameter of a model that convert_knows. */
void convert_name(TheirName *theirs, const Model *model, int param);
