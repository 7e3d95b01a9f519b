/* Bytes a configuration needs, from the shapes alone: nothing is allocated. */
#ifndef REF_MEMORY_H
#define REF_MEMORY_H

#include "alloc.h"
#include "stage.h"

/* Bytes per role while `active` blocks train with these settings.  PARAMETERS, BUFFERS, GRADIENTS,
 * STATE, ACTIVATIONS and WORKSPACE are what the CPU stage allocates, to the byte (without
 * keep_state, whose state depends on the history). */
void memory_plan(size_t bytes[MEM_ROLES], const Model *model, const StageSettings *settings,
                 const bool *active);

/* The paper's closed form, in bytes: W (1 + (1 + state vectors) / M), W = 4 bytes per parameter. */
double memory_closed_form(const Model *model, const OptimizerSettings *optimizer, double submodels);

#endif
