/* Simulated times of published steps: what must come out whatever the machines reach. */
#include <math.h>

#include "../../experiments/timing/paper_times.h"
#include "../../ref/error.h"
#include "../test.h"

/* The cell that a GPU's fraction is found from comes out; it is a fraction of the peak. */
static void calibrated_cell_comes_out(void) {
    static const char *const gpus[] = {"rtx4090", "a100", "a800"};
    for (int g = 0; g < 3; g++) {
        PaperStep step;
        Practice practice;
        double published = paper_calibration_ms(gpus[g], &step), ms;
        if (!CHECK(paper_practice(&practice, gpus[g], SETTING_CALIBRATED) == 0, "%s",
                   error_message()))
            continue;
        double fraction = practice.products[PRECISION_FP32];
        CHECK(fraction > 0.1 && fraction < 0.8, "%s reaches %g of its peak", gpus[g], fraction);
        CHECK(paper_step_ms(&ms, NULL, &step, SETTING_CALIBRATED, &practice) == 0, "%s",
              error_message());
        CHECK(fabs(ms / published - 1) < 1e-5, "%s: %g ms, published %g", gpus[g], ms, published);
        CHECK(timing_simulated_ms(&ms, step.gpu, step.model, step.gpus,
                                  step.method == TIMED_BCD ? step.submodels : 1) == 0 &&
                  fabs(ms / published - 1) < 1e-5,
              "%s in one call: %g ms", gpus[g], ms);
    }
    Practice practice;
    CHECK(paper_practice(&practice, "h200", SETTING_CALIBRATED) == -1, "the paper has no H200");
}

/* Without communication and overlap each submodel takes its share of a full update. */
static void submodels_in_theory(void) {
    static const double share[3] = {7.0 / 9, 6.0 / 9, 5.0 / 9},
                        cached[3] = {7.0 / 9, 5.0 / 9, 3.0 / 9};
    Practice practice;
    CHECK(paper_practice(&practice, "rtx4090", SETTING_ROOFLINE) == 0, "%s", error_message());
    PaperStep step = {"rtx4090", "G-10B", {1, 1}, TIMED_FULL, 1};
    double full, mean, ms[3];
    CHECK(paper_step_ms(&full, NULL, &step, SETTING_ROOFLINE, &practice) == 0, "%s",
          error_message());
    for (int c = 0; c < 2; c++) {
        step.method = c ? TIMED_CACHED : TIMED_BCD;
        step.submodels = 3;
        CHECK(paper_step_ms(&mean, ms, &step, SETTING_ROOFLINE, &practice) == 0, "%s",
              error_message());
        CHECK(fabs(mean - (ms[0] + ms[1] + ms[2]) / 3) < 1e-9 * mean, "mean %g ms", mean);
        for (int k = 0; k < 3; k++)
            CHECK(fabs(ms[k] / full - (c ? cached : share)[k]) < 0.05, "submodel %d: %g of full",
                  k + 1, ms[k] / full);
    }
}

static void unknown_models_are_left_out(void) {
    double ms = 0;
    CHECK(timing_simulated_ms(&ms, "rtx4090", "L-8.0B", (PaperGpus){2, 6}, 1) == 0 && isnan(ms),
          "L-8.0B takes %g ms", ms);
}

void test_timing(void) {
    RUN(calibrated_cell_comes_out);
    RUN(submodels_in_theory);
    RUN(unknown_models_are_left_out);
}
