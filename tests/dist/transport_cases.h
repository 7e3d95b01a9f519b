/* Test cases for every kind of transport: each runs a scenario (transport_scenarios.h) and CHECKs
 * its results. */
#pragma once

#include "transport_scenarios.h"

enum { MAX_RANKS = 5 };

/* What one rank's part of a scenario returned. */
typedef struct {
    int result;
    double results[SCENARIO_RESULTS];
    char error[400];
} Outcome;

/* Runs a scenario on ranks that are joined by some kind of transport.  Overwrites outcome[ranks].
 */
typedef void (*RunScenario)(Outcome *outcome, int ranks, double timeout_s,
                            const Scenario *scenario);

/* These are for 1 to MAX_RANKS ranks. */
void transport_swaps(RunScenario run, int ranks);
void transport_sends_ahead(RunScenario run, int ranks);
void transport_sums(RunScenario run, int ranks);
void transport_broadcasts(RunScenario run, int ranks);
void transport_shares_much(RunScenario run, int ranks);
void transport_groups(RunScenario run, int ranks);
/* These are for two ranks. */
void transport_keeps_order(RunScenario run);
void transport_carries_much(RunScenario run);
void transport_checks_lengths(RunScenario run);
/* A time limit in seconds that no machine reaches, for what must not time out. */
enum { TIME_LIMIT_S = 600 };
/* Of four ranks, rank 2 fails and says so: the others end with the same error, which contains
 * `words`. */
void transport_reports_failure(RunScenario run, const char *scenario, const char *words);
/* Of four ranks, rank 2 fails silently: after a short timeout the others name it in their error,
 * which contains `words`. */
void transport_names_silent_rank(RunScenario run, const char *scenario, const char *words);
