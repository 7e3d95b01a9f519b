#include "transport_cases.h"

#include <stdio.h>
#include <string.h>

#include "../test.h"

/* Runs a scenario in which all ranks must succeed. */
static void run_all(Outcome *outcome, RunScenario run, int ranks, const char *name) {
    memset(outcome, 0, MAX_RANKS * sizeof *outcome);
    run(outcome, ranks, TIME_LIMIT_S, scenario_find(name));
    for (int r = 0; r < ranks; r++)
        CHECK(outcome[r].result == 0, "%s: rank %d of %d: %s", name, r, ranks, outcome[r].error);
}

/* Runs a scenario whose results are two numbers of errors. */
static void run_without_errors(RunScenario run, int ranks, const char *name) {
    Outcome outcome[MAX_RANKS];
    run_all(outcome, run, ranks, name);
    for (int r = 0; r < ranks; r++)
        CHECK(outcome[r].results[0] == 0 && outcome[r].results[1] == 0,
              "%s: rank %d of %d: %g and %g are wrong", name, r, ranks, outcome[r].results[0],
              outcome[r].results[1]);
}

void transport_swaps(RunScenario run, int ranks) { run_without_errors(run, ranks, "swap"); }
void transport_sends_ahead(RunScenario run, int ranks) { run_without_errors(run, ranks, "ahead"); }
void transport_shares_much(RunScenario run, int ranks) {
    run_without_errors(run, ranks, "large");
    run_without_errors(run, ranks, "moves");
}
void transport_carries_much(RunScenario run) { run_without_errors(run, 2, "much"); }

void transport_keeps_order(RunScenario run) {
    Outcome outcome[MAX_RANKS];
    run_all(outcome, run, 2, "order");
    for (int i = 0; i < 12; i++)
        CHECK(outcome[1].results[i] == i, "message %d is %g", i, outcome[1].results[i]);
}

static void check_length(RunScenario run, const char *name, const char *words) {
    Outcome outcome[MAX_RANKS] = {{0}};
    run(outcome, 2, TIME_LIMIT_S, scenario_find(name));
    for (int r = 0; r < 2; r++)
        CHECK(strstr(outcome[r].error, words), "rank %d: \"%s\"", r, outcome[r].error);
}

void transport_checks_lengths(RunScenario run) {
    check_length(run, "too-long", "rank 0 sent more than the 8 bytes that rank 1 expects");
    check_length(run, "too-short", "rank 0 sent 5000000 bytes where rank 1 expects 5000001");
}

/* Numbers are added in the order of ranks, so that the bits are the same on every transport. */
void transport_sums(RunScenario run, int ranks) {
    Outcome outcome[MAX_RANKS];
    run_all(outcome, run, ranks, "sums");
    for (size_t i = 0; i < SCENARIO_SUMS; i++) {
        real sum = 0;
        for (int r = 0; r < ranks; r++) sum += (real)scenario_number(r, i);
        for (int r = 0; r < ranks; r++)
            CHECK(outcome[r].results[i] == (double)sum, "rank %d of %d: [%zu] is %.9g, not %.9g", r,
                  ranks, i, outcome[r].results[i], (double)sum);
    }
}

void transport_broadcasts(RunScenario run, int ranks) {
    Outcome outcome[MAX_RANKS];
    run_all(outcome, run, ranks, "broadcasts");
    for (int r = 0; r < ranks; r++)
        for (int root = 0; root < ranks; root++)
            CHECK(outcome[r].results[root] == 11 * root, "rank %d of %d has %g from rank %d", r,
                  ranks, outcome[r].results[root], root);
}

void transport_groups(RunScenario run, int ranks) {
    Outcome outcome[MAX_RANKS];
    run_all(outcome, run, ranks, "groups");
    for (int r = 0; r < ranks; r++) {
        int sum = 0, last = r;
        for (int i = r % 2; i < ranks; i += 2) {
            sum += i + 1;
            last = i;
        }
        int below = r >= 2 ? r - 2 : last;
        CHECK(outcome[r].results[0] == sum, "rank %d of %d adds up to %g, not %d", r, ranks,
              outcome[r].results[0], sum);
        CHECK(outcome[r].results[1] == below, "rank %d of %d hears from rank %g, not %d", r, ranks,
              outcome[r].results[1], below);
        CHECK(outcome[r].results[2] == 0, "rank %d of %d: its peers were overwritten", r, ranks);
    }
}

static void check_failed(const Outcome *outcome, const char *name, const char *words) {
    for (int r = 0; r < 4; r++) {
        if (r == 2) continue;
        CHECK(outcome[r].result == -1, "%s: rank %d goes on without rank 2", name, r);
        CHECK(strstr(outcome[r].error, words), "%s: rank %d says \"%s\"", name, r,
              outcome[r].error);
    }
}

void transport_reports_failure(RunScenario run, const char *name, const char *words) {
    Outcome outcome[MAX_RANKS] = {{0}};
    run(outcome, 4, TIME_LIMIT_S, scenario_find(name));
    check_failed(outcome, name, words);
    CHECK(outcome[2].result == 0, "%s: rank 2 did not end", name);
}

/* Returns true if ranks 0, 1 and 3 failed since rank 2 did, with these words, and the error is that
 * of rank 0 or 3, which had to ask the others to find out. */
static bool all_name_rank_2(const Outcome *outcome, const char *words) {
    for (int r = 0; r < 4; r++) {
        const char *error = outcome[r].error;
        const bool says = strstr(error, " for rank 2 (") && strstr(error, words);
        if (r != 2 && (outcome[r].result != -1 || !says || strstr(error, "rank 1 waited")))
            return false;
    }
    return true;
}

/* On a busy machine rank 1 may start too late and be named itself; then a longer timeout is tried.
 */
void transport_names_silent_rank(RunScenario run, const char *scenario, const char *words) {
    Outcome outcome[MAX_RANKS];
    bool named = false;
    for (double limit_s = 0.25; limit_s < 20 && !named; limit_s *= 4) {
        memset(outcome, 0, sizeof outcome);
        run(outcome, 4, limit_s, scenario_find(scenario));
        named = all_name_rank_2(outcome, words);
    }
    CHECK(named, "%s: not every rank names rank 2: %s", scenario, outcome[0].error);
}
