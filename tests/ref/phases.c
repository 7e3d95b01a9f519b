#include "phases.h"

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
