/* The counters of a checkpoint. Counters that a training can have are read; others are refused, as
 * they would choose other samples or submodels. */
#include <stdio.h>
#include <string.h>

#include "../../experiments/train/checkpoint.h"
#include "../data/scratch.h"
#include "program.h"

#define RESNET \
    "train --model resnet:depth=8,width=2 --data synthetic --limit 24 --batch 4 --submodels 3 "

static const char *const flags[] = {
    RESNET "--switch-every 5", RESNET "--switch-every 0.7e --fraction 0.7",
    RESNET "--switch-every auto --auto-window 2 --auto-min 3 --auto-max 8"};

static int open_flags(Setup *setup, const char *text) {
    CommandLine line;
    memset(setup, 0, sizeof *setup);
    return parse_line(&line, text) || setup_open(setup, &line.options) ||
           setup_engine(setup, NULL, NULL, NULL);
}

static BcdState sum_of(BcdState a, BcdState b) {
    a.step += b.step;
    a.position += b.position;
    a.phase += b.phase;
    a.phase_start += b.phase_start;
    a.phase_steps += b.phase_steps;
    a.submodel += b.submodel;
    return a;
}

static void counters_fit_together(const void *data) {
    const char *path = scratch_path("counters.h5"), *text = data;
    Setup setup, fresh;
    BcdState state = {0}, read;
    if (!CHECK(!open_flags(&setup, text) && !open_flags(&fresh, text), "%s", error_message()))
        return;
    for (setup.bcd.steps = 1; setup.bcd.steps <= 13; setup.bcd.steps++)
        CHECK(bcd_train(&state, &setup.bcd, setup.engine, setup.train, NULL, NULL) == 0 &&
                  checkpoint_write(path, &setup, &state) == 0 &&
                  checkpoint_resume(path, &fresh, &read) == 0,
              "step %d: %s", (int)state.step, error_message());
    CHECK(state.phase > 0 && state.phase_steps > 0, "all are 0");
    const BcdState wrong[] = {{.position = state.position},
                              {.phase = state.phase},
                              {.phase = -state.phase},
                              {.phase_start = 4},
                              {.step = 1},
                              {.phase_steps = 20},
                              {.submodel = 3},
                              {.submodel = -3}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const BcdState changed = sum_of(state, wrong[i]);
        /* These phases end by a rule, so they may have been shorter. */
        if (wrong[i].phase && setup.bcd.rule.kind == SWITCH_AUTO) continue;
        CHECK(checkpoint_write(path, &setup, &changed) == 0, "%s", error_message());
        CHECK(checkpoint_resume(path, &fresh, &read) == -1, "row %zu is taken", i);
        CHECK(strstr(error_message(), "do not fit together"), "%s", error_message());
    }
    setup_free(&setup);
    setup_free(&fresh);
}

void test_counters(void) {
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        RUN_ROW(flags[i], counters_fit_together, flags[i]);
}
