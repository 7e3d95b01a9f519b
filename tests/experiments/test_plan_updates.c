/* bcd plan: how many updates BCD takes, and with how many it is no better than the others. */
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

/* ---- break-even ------------------------------------------------------------------------------ */

/* With so many updates a row of BCD costs what the cheapest of some rows of other methods does. */
static void check_break_even(const Tables *t, const char *row, int count,
                             const char *const others[]) {
    double best = INFINITY;
    for (int i = 0; i < count; i++) best = fmin(best, cell(t, "plan", others[i], "dollars"));
    const double even = cell(t, "plan", row, "break_even");
    CHECK(near(even * cell(t, "plan", row, "dollars"), best), "%s: x %g", row, even);
}

static void case_break_even(void) {
    static const char *const others[] = {"full", "offload", "cheapest: full", "cheapest: offload"};
    Tables t;
    run(0, "plan --model G-1.6B --per-node 4 --pipeline 4 --batch 64 --out even.h5");
    if (!read_tables(&t, "even.h5")) return;
    check_break_even(&t, "BCD-1/3", 2, others);
    const char *cheapest = tables_find(&t, "plan")->label[5];
    CHECK(!strncmp(cheapest, "cheapest: BCD-1/", 16), "%s", cheapest);
    check_break_even(&t, cheapest, 4, others);
    tables_free(&t);
    const char *alone = run(0, "plan --model G-1.6B --method bcd")->out;
    CHECK(!strstr(alone, "break-even:"), "without another method: %s", alone);
}

/* Of all kinds of GPUs with a price: BCD on one of them costs with so many updates what the
 * cheapest other row does. */
static void check_break_evens(const Table *table) {
    double best = INFINITY;
    int found = 0;
    for (int r = 0; r < table->rows; r++)
        if (!strstr(table->label[r], "BCD"))
            best = fmin(best, table->cell[r * table->columns + 6].value);
    for (int r = 0; r < table->rows; r++) {
        const Cell *cell = &table->cell[r * table->columns];
        const bool is_bcd = strstr(table->label[r], "BCD");
        const double even = is_bcd ? best / cell[6].value : NAN;
        CHECK(near(cell[10].value, even) || (isnan(even) && isnan(cell[10].value)), "%s: x %g",
              table->label[r], cell[10].value);
        found += is_bcd && isfinite(even);
    }
    CHECK(found == 3, "%d kinds of GPUs have a price", found);
}

static void case_break_even_of_kinds(void) {
    Tables t;
    run(0, "plan --model G-1.6B --search --nodes 2 --batch 32 --gpus 8 --budget 6 --out kinds.h5");
    if (!read_tables(&t, "kinds.h5")) return;
    check_break_evens(tables_find(&t, "cheapest"));
    tables_free(&t);
}

void test_plan_updates(void) {
    for (size_t i = 0; i < sizeof updates_rows / sizeof *updates_rows; i++)
        RUN_ROW(updates_rows[i].name, case_updates, &updates_rows[i]);
    RUN(case_updates_of_candidates);
    RUN(case_break_even);
    RUN(case_break_even_of_kinds);
}
