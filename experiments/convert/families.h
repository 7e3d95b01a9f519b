/* The families of models that Hugging Face's format and this program both have: a table, and what
 * the files of this folder share of it. */
#pragma once

#include <cjson/cJSON.h>

#include "convert.h"

/* ---- settings: config_value.c ---------------------------------------------------------------- */

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

/* Returns a setting; NULL if it is left out or null. */
const cJSON *config_find(Config *config, const char *key);

/* These read a whole number from 1 up; one that may be left out, and *size stays then; true or
 * false, or *value stays; and a number, NAN as `left_out` if it must be there.  -1 and an error. */
int config_size(Config *config, const char *key, int *size);
int config_optional_size(Config *config, const char *key, int *size);
int config_bool(Config *config, const char *key, bool *value);
int config_number(Config *config, const char *key, double left_out, double *number);

/* Sets the error that only `supported` is supported; returns -1. */
int config_refuse(Config *config, const char *key, const char *supported);
/* Refuses a setting other than `supported` or, unless NULL, `also`.  One that is left out has its
 * default in transformers, which is supported. */
int config_must_be(Config *config, const char *key, const char *supported, const char *also);
/* Refuses settings that were not looked for, unless they are null or, in the whole file, known to
 * be harmless. */
int config_check_rest(const Config *config, bool whole_file);

/* ---- families -------------------------------------------------------------------------------- */

/* One of our modules and theirs.  Its tensors are called weight and bias in both. */
typedef struct {
    const char *ours, *theirs[PARAM_PARTS];
} Module;

typedef struct HfFamily HfFamily;
struct HfFamily {
    const char *model_type, *architecture; /* their names */
    const char *family;                    /* ours */
    /* Overwrites `spec` with our specification; see convert_spec. */
    int (*read)(char spec[OPTION_TEXT], Config *config, int context, const HfFamily *family);
    /* Of LLaMA's relatives: appends the settings of their own. */
    int (*read_more)(Text *spec, Config *config);
    /* Adds the settings to a config.json. */
    void (*write)(cJSON *root, const Model *model);
    void (*write_more)(cJSON *root, TransformerSizes sizes); /* NULL: there are no more */
    const char *layers;    /* the list of layers that their names begin with */
    const Module *module;  /* ends with a NULL */
    const Module *renamed; /* those of them with other names than in `module`; NULL: none */
    bool transposed;       /* linear layers are stored as [in][out] */
    bool divided;          /* transformers refuses a width that is no multiple of the heads */
    /* What transformers takes for settings that are left out. */
    double eps, rope_theta;
    bool tied;
    int groups, head_dim; /* 0: as many as there are heads; the width divided by these */
};

extern const HfFamily hf_families[]; /* ends with model_type NULL */

/* Returns the row of a model; NULL if there is none. */
const HfFamily *hf_family_of(const Model *model);

/* config_read.c */
int gpt_read(char spec[OPTION_TEXT], Config *config, int context, const HfFamily *family);
int llama_read(char spec[OPTION_TEXT], Config *config, int context, const HfFamily *family);
int llama_more(Text *spec, Config *config);
int mistral_more(Text *spec, Config *config);
int qwen2_more(Text *spec, Config *config);
int qwen3_more(Text *spec, Config *config);
int smollm3_more(Text *spec, Config *config);

/* config_write.c */
void gpt_write(cJSON *root, const Model *model);
void llama_write(cJSON *root, const Model *model);
void bias_write(cJSON *root, TransformerSizes sizes);
void mistral_write(cJSON *root, TransformerSizes sizes);
void smollm3_write(cJSON *root, TransformerSizes sizes);
