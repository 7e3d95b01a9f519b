/* transport-mpi-ranks SCENARIO TIMEOUT_S DIRECTORY: a rank of tests/dist/test_transport_mpi.c,
 * started by mpirun.  Writes its outcome to DIRECTORY/RANK, which appears when it is complete. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../../../experiments/train/modules.h"
#include "../../../ref/base/clock.h"
#include "../../../ref/base/error.h"
#include "../transport_cases.h"

static int write_outcome(const Outcome *outcome, const char *directory, int rank) {
    char path[600], part[610];
    snprintf(path, sizeof path, "%s/%d", directory, rank);
    snprintf(part, sizeof part, "%s.part", path);
    FILE *file = fopen(part, "wb");
    if (!file) return -1;
    size_t count = fwrite(outcome, sizeof *outcome, 1, file);
    return fclose(file) || count != 1 || rename(part, path) ? -1 : 0;
}

/* mpirun ends all ranks when one fails or leaves without MPI_Finalize, so each waits until the
 * others have written their outcome, except rank 2 where it is killed or stopped. */
static void wait_for_others(const char *scenario, const char *directory, int ranks) {
    const bool lost = strcmp(scenario, "kill") == 0 || strcmp(scenario, "stop") == 0;
    static const struct timespec moment = {0, 10000000};
    const double until = clock_seconds() + TIME_LIMIT_S;
    for (int r = 0; r < ranks; r++) {
        char path[600];
        snprintf(path, sizeof path, "%s/%d", directory, r);
        while (!(lost && r == 2) && access(path, F_OK) && clock_seconds() < until)
            nanosleep(&moment, NULL);
    }
}

int main(int argc, char **argv) {
    const Scenario *scenario = argc == 4 ? scenario_find(argv[1]) : NULL;
    Transport *transport = scenario ? mpi_module_open(strtod(argv[2], NULL)) : NULL;
    if (!transport) {
        fprintf(stderr, "transport-mpi-ranks: %s\n", scenario ? error_message() : "bad arguments");
        return 2;
    }
    Outcome outcome = {.result = scenario->run(transport, outcome.results)};
    int rank = transport->rank, ranks = transport->ranks;
    if (scenario->reports) {
        if (transport_reports(transport)) {
            fprintf(stderr, "rank %d reports it\n", rank);
            /* As a rank that writes its curves to a slow disk. */
            if (strcmp(scenario->name, "stop-in-sums") == 0) sleep(8);
        }
        transport_free(transport);
        return 1;
    }
    if (outcome.result) {
        snprintf(outcome.error, sizeof outcome.error, "%s", error_message());
        fprintf(stderr, "%s\n", outcome.error);
    }
    transport_free(transport);
    if (write_outcome(&outcome, argv[3], rank)) return 2;
    wait_for_others(argv[1], argv[3], ranks);
    return outcome.result != 0;
}
