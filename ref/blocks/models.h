/* Models by name. */
#pragma once

#include "../model.h"

/* Builds a model from a preset ("resnet20", "gpt2", "G-10B"), a preset with changed settings
 * ("gpt2:vocabulary=256,context=128"), or a family with settings
 * ("gpt:layers=6,width=384,heads=6,context=256,vocabulary=256").  Allocates only the tables, no
 * parameters: a model of 23 billion takes half a megabyte.  NULL and an error that names the known
 * families, presets or settings when the specification is wrong. */
Model *model_create(const char *spec);

/* The presets, for listings: name, specification, description.  The last one's name is NULL. */
typedef struct {
    const char *name, *spec, *what;
} Preset;
extern const Preset model_presets[];
