/* transport-mpi-ranks PLAY TIMEOUT_S DIRECTORY: a rank of tests/dist/test_transport_mpi.c, started
 * by mpirun. Leaves what came of the play in DIRECTORY/RANK, at once and whole. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../../../dist/deadline.h"
#include "../../../experiments/train/modules.h"
#include "../../../ref/error.h"
#include "../transport_cases.h"

static int keep(const Played *played, const char *directory, int rank) {
    char path[600], part[610];
    snprintf(path, sizeof path, "%s/%d", directory, rank);
    snprintf(part, sizeof part, "%s.part", path);
    FILE *file = fopen(part, "wb");
    if (!file) return -1;
    size_t count = fwrite(played, sizeof *played, 1, file);
    return fclose(file) || count != 1 || rename(part, path) ? -1 : 0;
}

/* mpirun ends the others when the first ends badly: all shall have said their line, but rank 2,
 * which may be the one that is gone. */
static void wait_for_others(const char *directory, int ranks) {
    static const struct timespec moment = {0, 10000000};
    Deadline until = deadline_in(PATIENCE_S);
    for (int r = 0; r < ranks; r++) {
        char path[600];
        snprintf(path, sizeof path, "%s/%d", directory, r);
        while (r != 2 && access(path, F_OK) && !deadline_over(until)) nanosleep(&moment, NULL);
    }
}

int main(int argc, char **argv) {
    const PlayRow *row = argc == 4 ? play_find(argv[1]) : NULL;
    Transport *transport = row ? mpi_module_open(strtod(argv[2], NULL)) : NULL;
    if (!transport) {
        fprintf(stderr, "transport-mpi-ranks: %s\n", row ? error_message() : "bad arguments");
        return 2;
    }
    Played played = {.result = row->play(transport, played.seen)};
    int rank = transport->rank, ranks = transport->ranks;
    if (played.result) {
        snprintf(played.error, sizeof played.error, "%s", error_message());
        fprintf(stderr, "%s\n", played.error);
    }
    transport->is->free(transport);
    if (keep(&played, argv[3], rank)) return 2;
    if (played.result) wait_for_others(argv[3], ranks);
    return played.result != 0;
}
