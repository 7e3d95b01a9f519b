/* The rules for when a phase ends.  To add one, give it a name in bcd.h and a line in
 * bcd_phase_over. */
#include "bcd.h"

/* Adds a step's loss to the current window.  Returns true at the end of a window whose mean loss is
 * not below that of the window before by the tolerance. */
static bool loss_converged(BcdState *state, const SwitchRule *rule, double loss) {
    state->window_sum += loss;
    if (state->phase_steps % (uint64_t)rule->window) return false;
    bool stalled =
        state->windows > 0 && !(state->window_sum < state->last_window_sum * (1 - rule->tolerance));
    state->last_window_sum = state->window_sum;
    state->window_sum = 0;
    state->windows++;
    return stalled;
}

bool bcd_phase_over(BcdState *state, const SwitchRule *rule, int samples, double loss) {
    if (rule->kind == SWITCH_STEPS) return (double)state->phase_steps >= rule->every;
    if (rule->kind == SWITCH_EPOCHS)
        return (double)(state->position - state->phase_start) >= rule->every * samples;
    bool converged = loss_converged(state, rule, loss);
    return state->phase_steps >= (uint64_t)rule->max_steps ||
           (converged && state->phase_steps >= (uint64_t)rule->min_steps);
}
