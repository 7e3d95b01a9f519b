/* The families of models that Hugging Face's format and this program both have: a table, and what
 * the files of this folder share of it. */
#pragma once

#include <cjson/cJSON.h>

#include "convert.h"

enum { KEYS_READ = 64 };

/* A JSON object with settings.  Errors name it by `path` and, if it is inside of the file,
 * `inside`:
 * "" or "rope_scaling.". */
typedef struct {
    const char *path, *inside;
    const cJSON *root;
    const char *read[KEYS_READ]; /* the settings that were looked for */
    int count;
} Config;

/* One of our modules and theirs.  Its tensors are called weight and bias in both. */
typedef struct {
    const char *ours, *theirs[CONVERT_PARTS];
} Module;

typedef struct HfFamily HfFamily;
struct HfFamily {
    const char *model_type, *architecture; /* their names */
    const char *family;                    /* ours */
    /* Overwrites `spec` with our specification; see convert_spec. */
    int (*read)(char spec[OPTION_TEXT], Config *config, int context, const HfFamily *family);
    /* Adds the settings to a config.json. */
    void (*write)(cJSON *root, const Model *model);
    const char *layers;   /* the list of layers that their names begin with */
    const Module *module; /* those of a layer come first; ends with a NULL */
    bool transposed;      /* linear layers are stored as [in][out] */
    /* The defaults of transformers that differ among families like LLaMA. */
    int groups; /* 0: as many as there are heads */
};

extern const HfFamily hf_families[]; /* ends with model_type NULL */

/* Returns the first row with our family of the model, or NULL. */
const HfFamily *hf_family_of(const Model *model);

/* config.c */
int gpt_read(char spec[OPTION_TEXT], Config *config, int context, const HfFamily *family);
int llama_read(char spec[OPTION_TEXT], Config *config, int context, const HfFamily *family);

/* config_write.c */
void gpt_write(cJSON *root, const Model *model);
void llama_write(cJSON *root, const Model *model);
