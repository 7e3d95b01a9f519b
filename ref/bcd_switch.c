/* Switch rules.  To add one, write its function here, give it a row in the table below, and a name
 * in bcd_settings.h. */
#include "bcd_settings.h"
#include "error.h"

static bool after_steps(BcdState *state, const SwitchRule *rule, int samples, double loss) {
    (void)samples;
    (void)loss;
    return (double)state->phase_steps >= rule->every;
}

static bool after_epochs(BcdState *state, const SwitchRule *rule, int samples, double loss) {
    (void)loss;
    return (double)(state->position - state->phase_start) >= rule->every * samples;
}

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

static bool when_converged(BcdState *state, const SwitchRule *rule, int samples, double loss) {
    (void)samples;
    bool converged = loss_converged(state, rule, loss);
    return state->phase_steps >= (uint64_t)rule->max_steps ||
           (converged && state->phase_steps >= (uint64_t)rule->min_steps);
}

static bool (*const over[SWITCH_KINDS])(BcdState *, const SwitchRule *, int, double) = {
    [SWITCH_STEPS] = after_steps,
    [SWITCH_EPOCHS] = after_epochs,
    [SWITCH_AUTO] = when_converged,
};

bool bcd_phase_over(BcdState *state, const SwitchRule *rule, int samples, double loss) {
    return over[rule->kind](state, rule, samples, loss);
}

int bcd_switch_check(const SwitchRule *rule) {
    if ((unsigned)rule->kind < SWITCH_KINDS) return 0;
    return error_set("bcd: there is no switch rule %d", (int)rule->kind);
}
