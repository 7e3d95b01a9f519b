/* bcd plan: how many updates BCD takes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../experiments/plan/plan.h"
#include "../near.h"
#include "cli.h"
#include "tables_sample.h"

#define TINY "--model gpt:layers=6,width=64,heads=4,context=32,vocabulary=96 "

typedef struct {
    const char *name;
    PlanTask task;
    int submodels;
    double updates;
} UpdatesRow;

/* Measured; halfway between two that are; a multiple of the last one.  One submodel is the full
 * update itself. */
static const UpdatesRow updates_rows[] = {
    {"one submodel", PLAN_TEXT, 1, 1},
    {"measured", PLAN_TEXT, 4, 5.31},
    {"from the full update on", PLAN_IMAGES, 2, (1 + 3.24) / 2},
    {"between", PLAN_TUNING, 18, (4.19 + 4.90) / 2},
    {"beyond", PLAN_TEXT, 112, 28 * 5.31},
};

static void case_updates(const void *data) {
    const UpdatesRow *row = data;
    CHECK(near(plan_updates(row->task, row->submodels), row->updates), "x %g",
          plan_updates(row->task, row->submodels));
}

/* More submodels have more updates in a space, unless --multiplier gives them. */
static void case_updates_of_candidates(void) {
    static const char *const flags[] = {TINY "--batch 2", TINY "--batch 2 --multiplier 1.5"};
    for (int i = 0; i < 2; i++) {
        PlanQuestion q;
        CommandLine line;
        Plan *plans;
        char words[256];
        snprintf(words, sizeof words, "plan %s", flags[i]);
        if (!CHECK(parse_line(&line, words) == 0 && question_open(&q, &line) == 0, "%s",
                   error_message()))
            return;
        for (PlanMethod method = 0; method < PLAN_METHODS; method++) {
            PlanSpace space;
            CHECK(question_space(&space, &q, method, q.gpu, true) == 0, "%s", error_message());
            choices_add(&space.gpus, 1);
            const int count = plan_candidates(&plans, &space);
            for (int p = 0; p < count; p++) {
                const int m = plans[p].configuration.submodels;
                const double wanted = i && m > 1 ? 1.5 : plan_updates(PLAN_TEXT, m);
                CHECK(plans[p].updates == wanted, "%d submodels: x %g", m, plans[p].updates);
            }
            free(plans);
        }
        question_free(&q);
    }
}

static void case_bcd_alone_has_no_break_even(void) {
    const char *alone = run(0, "plan --model G-1.6B --method bcd")->out;
    CHECK(!strstr(alone, "break-even:"), "%s", alone);
}

void test_plan_updates(void) {
    for (size_t i = 0; i < sizeof updates_rows / sizeof *updates_rows; i++)
        RUN_ROW(updates_rows[i].name, case_updates, &updates_rows[i]);
    RUN(case_updates_of_candidates);
    RUN(case_bcd_alone_has_no_break_even);
}
