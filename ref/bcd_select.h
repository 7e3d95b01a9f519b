/* Block selection, step 4 of Algorithm 1: which submodel trains next. */
#ifndef REF_BCD_SELECT_H
#define REF_BCD_SELECT_H

#include "bcd_settings.h"
#include "engine.h"

/* The submodel of phase state->phase, or -1 and an error.  `next` is the batch that its first
 * update will take.  An order may try submodels on the engine: another one may be active
 * afterwards, but no parameter and no running statistic has changed. */
int bcd_select(const BcdState *state, const BcdSettings *settings, Engine *engine,
               const Batch *next);

/* Active are a submodel's blocks, all others frozen: steps 5 to 7.  -1 and an error. */
int bcd_activate(const BcdSettings *settings, Engine *engine, int submodel);

#endif
