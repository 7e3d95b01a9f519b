/* A training with the plain ops has the curve of one with the fast ops. */
#include <math.h>
#include <stdlib.h>

#include "../test.h"
#include "tiny.h"
#include "tolerance.h"

enum { STEPS = 9 };

static int record_loss(void *context, const BcdState *state, const Loss *loss, double lr) {
    double *losses = context;
    (void)lr;
    losses[state->step - 1] = loss_mean(loss);
    return 0;
}

static void train(Tiny *tiny, double losses[STEPS], const void *spec, bool plain) {
    tiny_open(tiny, &(Recipe){.spec = spec, .steps = STEPS, .plain = plain});
    CHECK(!tiny_train(tiny, record_loss, losses), "%s", error_message());
}

/* The results of an op differ by rounding; the longest sums here have some hundred products, so one
 * step differs by tolerance(256).  The update passes a fraction of the difference on to the
 * parameters, so that after i steps it is at most i times as much. */
static void is_the_same_curve(const void *spec) {
    Tiny plain, fast;
    double expected[STEPS], got[STEPS];
    train(&plain, expected, spec, true);
    train(&fast, got, spec, false);
    for (int i = 0; i < STEPS; i++) {
        double error = fabs(got[i] - expected[i]);
        double allowed = (i + 1) * tolerance(256, expected[i]);
        CHECK(error <= allowed, "step %d: loss %.9g, by the plain ops %.9g (allowed %.3g)", i + 1,
              got[i], expected[i], allowed);
    }
    tiny_close(&plain);
    tiny_close(&fast);
}

static void repeats_its_bits(const void *spec) {
    for (int plain = 0; plain <= 1; plain++) {
        Tiny first, again;
        double losses[STEPS];
        train(&first, losses, spec, plain);
        train(&again, losses, spec, plain);
        tiny_check_same(&first, &again, plain ? "plain" : "fast");
        tiny_close(&first);
        tiny_close(&again);
    }
}

void test_plain(void) {
    for (const char *const *spec = tiny_models; *spec; spec++) {
        RUN_ROW(*spec, is_the_same_curve, *spec);
        RUN_ROW(*spec, repeats_its_bits, *spec);
    }
}
