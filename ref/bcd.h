/* Training by block coordinate descent (Algorithm 1 of the paper).
 *
 * A step, or update, is one change of the active submodel's parameters from one batch.  A phase is
 * the steps that a submodel trains before the next one; M phases in a row are a cycle.  With M = 1
 * this is ordinary training, the full update that BCD is compared with. */
#ifndef REF_BCD_H
#define REF_BCD_H

#include "bcd_settings.h"
#include "engine.h"

/* Called after each step, which trained state->submodel; state->phase_steps is 0 if the step was
 * the last of its phase.  Return 0 to go on, 1 to stop the training here, -1 and an error to fail
 * it. */
typedef int (*BcdWatch)(void *context, const BcdState *state, const Loss *loss, double lr);

/* Trains until settings->steps updates are done.  `state` is all zero at the start; to resume, it
 * is what the checkpoint holds, and the caller has activated its submodel and written back
 * parameters and optimizer state.  Returns 0 when done, 1 when the watch stopped it, -1 and an
 * error on failure (the loss is not finite, memory runs out). */
int bcd_train(BcdState *state, const BcdSettings *settings, Engine *engine, const Dataset *data,
              BcdWatch watch, void *context);

/* ---- bcd_select.c ---- */

/* Returns the submodel to train in phase state->phase, or -1 and an error.  `next` is the batch of
 * its first update.  An order may activate submodels on the engine to measure their gradients, so
 * any of them may be active afterwards; parameters and running statistics do not change. */
int bcd_select(const BcdState *state, const BcdSettings *settings, Engine *engine,
               const Batch *next);

/* Steps 5 to 7: activates the blocks of one submodel on the engine and freezes all others.  Returns
 * 0, or -1 and an error when memory runs out. */
int bcd_activate(const BcdSettings *settings, Engine *engine, int submodel);

#endif
