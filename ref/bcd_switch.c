/* The rules for when a phase ends.  To add one: its kind in bcd.h, a case in bcd_phase_over and in
 * phase_lengths, its row of switch_rules in experiments/cli/options_value.c, and where flags are
 * for it alone, these in check_read of experiments/train/setup.c. */
#include <float.h>
#include <math.h>

#include "bcd.h"

/* Returns the samples of a phase of SWITCH_EPOCHS.  The product of a decimal fraction and a number
 * of samples may be rounded up, as 0.28 * 50,000 is to a little more than 14,000, which must not
 * make a sample more. */
static double phase_samples(const SwitchRule *rule, int samples) {
    return ceil(rule->every * samples * (1 - 4 * DBL_EPSILON));
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

bool bcd_phase_over(BcdState *state, const SwitchRule *rule, int samples, double loss) {
    bool converged = false;
    switch (rule->kind) {
        case SWITCH_STEPS:
            return (double)state->phase_steps >= rule->every;
        case SWITCH_EPOCHS:
            return (double)(state->position - state->phase_start) >= phase_samples(rule, samples);
        case SWITCH_AUTO:
            converged = loss_converged(state, rule, loss);
            break;
        case SWITCH_KINDS:
            break;
    }
    return state->phase_steps >= (uint64_t)rule->max_steps ||
           (converged && state->phase_steps >= (uint64_t)rule->min_steps);
}

/* Returns the least updates after which SWITCH_AUTO ends a phase: it compares only at the end of a
 * window, and the first has none before it. */
static uint64_t auto_shortest(const SwitchRule *rule) {
    const uint64_t window = (uint64_t)rule->window, min = (uint64_t)rule->min_steps;
    const uint64_t max = (uint64_t)rule->max_steps;
    uint64_t windows = min / window + (min % window > 0);
    if (windows < 2) windows = 2;
    return windows * window < max ? windows * window : max;
}

/* Sets the fewest and the most updates of a phase that is over; they differ only by SWITCH_AUTO. */
static void phase_lengths(uint64_t *min, uint64_t *max, const BcdSettings *s, int samples) {
    const SwitchRule *rule = &s->rule;
    if (rule->kind == SWITCH_AUTO) {
        *max = (uint64_t)rule->max_steps;
        *min = auto_shortest(rule);
        return;
    }
    const bool steps = rule->kind == SWITCH_STEPS;
    const uint64_t unit = steps ? 1 : (uint64_t)s->batch;
    const double target = steps ? ceil(rule->every) : phase_samples(rule, samples);
    *min = *max = ((uint64_t)fmax(1, fmin(0x1p53, target)) + unit - 1) / unit;
}

uint64_t bcd_steps_left(const BcdState *state, const BcdSettings *s, int samples) {
    uint64_t min, max, left = s->steps - state->step;
    phase_lengths(&min, &max, s, sampler_used(samples, s->fraction));
    return max - state->phase_steps < left ? max - state->phase_steps : left;
}

uint64_t bcd_shortest_phase(const BcdSettings *s, int samples) {
    uint64_t min, max;
    phase_lengths(&min, &max, s, sampler_used(samples, s->fraction));
    return min;
}

bool bcd_state_possible(const BcdState *state, const BcdSettings *s, int samples) {
    uint64_t min, max;
    const uint64_t batch = (uint64_t)s->batch, steps = state->step - state->phase_steps;
    if (state->step > UINT64_MAX / batch || state->phase_steps > state->step ||
        state->position != state->step * batch || state->phase_start != steps * batch)
        return false;
    if (state->submodel < 0 || state->submodel >= s->partition.submodels) return false;
    phase_lengths(&min, &max, s, sampler_used(samples, s->fraction));
    if (state->phase_steps >= max || state->phase > steps / min ||
        steps / max + (steps % max > 0) > state->phase)
        return false;
    return s->rule.kind != SWITCH_AUTO ||
           state->windows == state->phase_steps / (uint64_t)s->rule.window;
}
