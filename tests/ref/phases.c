#include "phases.h"

#include <limits.h>

#include "../../ref/bcd.h"
#include "../test.h"

/* Returns the updates of a phase, counted as the training counts them from `first` on, which is
 * within the phase. */
static int64_t counted_phase(const SwitchRule *rule, int samples, int batch, int64_t first) {
    BcdState state = {.phase_steps = (uint64_t)first, .position = (uint64_t)(first * batch)};
    do {
        state.phase_steps++;
        state.position += (uint64_t)batch;
    } while (!bcd_phase_over(&state, rule, samples, 1));
    return (int64_t)state.phase_steps;
}

/* A fraction of an epoch has as many updates as whole numbers say, although 0.28 of 50,000 is a
 * little more than 14,000 in double. */
void fractions_of_an_epoch_are_exact(void) {
    static const int samples[] = {50000, 60000, 1281167, 12, 13, 1000},
                     batches[] = {1, 4, 100, 128};
    for (size_t s = 0; s < sizeof samples / sizeof *samples; s++)
        for (size_t b = 0; b < sizeof batches / sizeof *batches; b++)
            for (int64_t whole = 10; whole <= 1000; whole *= 10)
                for (int64_t parts = 1; parts <= 3 * whole; parts += whole < 1000 ? 1 : 7) {
                    const int64_t product = parts * samples[s], unit = whole * batches[b];
                    const int64_t steps = product / unit + (product % unit > 0);
                    const BcdSettings settings = {
                        .rule = {.kind = SWITCH_EPOCHS, .every = (double)parts / (double)whole},
                        .batch = batches[b],
                        .fraction = 1};
                    const int64_t got = (int64_t)bcd_shortest_phase(&settings, samples[s]);
                    CHECK(got == steps, "%g of %d in batches of %d: %d updates, not %d",
                          settings.rule.every, samples[s], batches[b], (int)got, (int)steps);
                    /* Of a long phase only the end. */
                    const int64_t first = steps > 2000 ? steps - 10 : 0;
                    const int64_t counted =
                        counted_phase(&settings.rule, samples[s], batches[b], first);
                    CHECK(counted == steps, "%g of %d in batches of %d: ends after %d, not %d",
                          settings.rule.every, samples[s], batches[b], (int)counted, (int)steps);
                }
}

/* Checks each state of a training of three phases, each as short as the rule lets it be since the
 * loss never falls, and that the same training with an update less in them is not possible. */
static void check_auto(const BcdSettings *s, int samples) {
    const SwitchRule *r = &s->rule;
    const uint64_t shortest = bcd_shortest_phase(s, samples);
    const uint64_t counted = (uint64_t)counted_phase(r, samples, s->batch, 0);
    CHECK(shortest == counted, "windows of %d, from %d to %d: %d updates, not %d", r->window,
          r->min_steps, r->max_steps, (int)shortest, (int)counted);
    BcdState state = {.phase = 0};
    while (state.phase < 3) {
        state.step++;
        state.phase_steps++;
        state.position += (uint64_t)s->batch;
        if (bcd_phase_over(&state, r, samples, 1))
            state = (BcdState){.step = state.step,
                               .position = state.position,
                               .phase = state.phase + 1,
                               .phase_start = state.position};
        CHECK(bcd_state_possible(&state, s, samples),
              "windows of %d, from %d to %d: update %d of phase %d is refused", r->window,
              r->min_steps, r->max_steps, (int)state.phase_steps, (int)state.phase);
        BcdState other = state;
        other.windows++;
        CHECK(!bcd_state_possible(&other, s, samples), "windows of %d: %d in %d updates pass",
              r->window, (int)other.windows, (int)other.phase_steps);
    }
    state.step--;
    state.phase_start = state.position = state.step * (uint64_t)s->batch;
    CHECK(!bcd_state_possible(&state, s, samples),
          "windows of %d, from %d to %d: three phases in %d updates", r->window, r->min_steps,
          r->max_steps, (int)state.step);
}

/* The loss is compared only at the end of a window, and not of the first one. */
void the_shortest_phases_of_auto(void) {
    for (int window = 1; window <= 7; window++)
        for (int min = 1; min <= 20; min++)
            for (int max = 1; max <= 25; max++)
                check_auto(&(BcdSettings){.rule = {.kind = SWITCH_AUTO,
                                                   .window = window,
                                                   .tolerance = 0.01,
                                                   .min_steps = min,
                                                   .max_steps = max},
                                          .partition = {.submodels = 1},
                                          .batch = 4,
                                          .fraction = 1},
                           1000);
    const BcdSettings most = {.rule = {.kind = SWITCH_AUTO,
                                       .window = INT_MAX,
                                       .min_steps = INT_MAX,
                                       .max_steps = INT_MAX},
                              .batch = 1,
                              .fraction = 1};
    CHECK(bcd_shortest_phase(&most, 1000) == INT_MAX, "the largest window overflows");
}
