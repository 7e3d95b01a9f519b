/* Block selection, step 4 of Algorithm 1: which submodel trains next. */
#ifndef REF_BCD_SELECT_H
#define REF_BCD_SELECT_H

#include "bcd_settings.h"
#include "engine.h"

/* Returns the submodel to train in phase state->phase, or -1 and an error.  `next` is the batch of
 * its first update.  An order may activate submodels on the engine to measure their gradients, so
 * any of them may be active afterwards; parameters and running statistics do not change. */
int bcd_select(const BcdState *state, const BcdSettings *settings, Engine *engine,
               const Batch *next);

/* Steps 5 to 7: activates the blocks of one submodel on the engine and freezes all others.  Returns
 * 0, or -1 and an error when memory runs out. */
int bcd_activate(const BcdSettings *settings, Engine *engine, int submodel);

#endif
