/* Training by block coordinate descent (Algorithm 1 of the paper).
 *
 * A step, or update, is one change of the active submodel's parameters from one batch.  A phase is
 * the steps that a submodel trains before the next one; M phases in a row are a cycle.  With M = 1
 * this is ordinary training, the full update that BCD is compared with. */
#ifndef REF_BCD_H
#define REF_BCD_H

#include "bcd_settings.h"
#include "engine.h"

/* Called after each step; a non-zero return stops the training there (1) or fails it (-1).  The
 * step trained state->submodel; phase_steps 0 says that it was the last of its phase. */
typedef int (*BcdWatch)(void *context, const BcdState *state, const Loss *loss, double lr);

/* Trains until settings->steps updates are done, from wherever `state` stands: at the start, or
 * where a checkpoint left it, its submodel activated and its optimizer state written back.  Returns
 * 0 when done, 1 when the watch stopped it, -1 and an error on failure (loss not finite, no
 * memory). */
int bcd_train(BcdState *state, const BcdSettings *settings, Engine *engine, const Dataset *data,
              BcdWatch watch, void *context);

/* The learning rate of the next update: the schedule's, times the submodel's factor, and rising in
 * the first updates of a phase where switch_warmup says so. */
double bcd_lr(const BcdState *state, const BcdSettings *settings);

#endif
