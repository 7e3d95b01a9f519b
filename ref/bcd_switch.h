/* Switch rules, the "until converged" of step 8 of Algorithm 1: when a phase is over. */
#ifndef REF_BCD_SWITCH_H
#define REF_BCD_SWITCH_H

#include "bcd_settings.h"

/* Whether the phase is over after the update that state counts last, whose mean loss is given; of a
 * data set of so many samples.  AUTO adds the loss to the window in state.  Asked once an update.
 */
bool bcd_phase_over(BcdState *state, const SwitchRule *rule, int samples, double loss);

/* -1 and an error: no such rule. */
int bcd_switch_check(const SwitchRule *rule);

#endif
