#include "waiting.h"

#include <omp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "library.h"

/* Programs that run or would, beside this one; 0 where the system does not say. */
static int others_now(void) {
    static const char key[] = "procs_running ";
    char line[256];
    int running = 1;
    FILE *stat = fopen("/proc/stat", "r");
    while (stat && fgets(line, sizeof line, stat))
        if (strncmp(line, key, sizeof key - 1) == 0) running = atoi(line + sizeof key - 1);
    if (stat) fclose(stat);
    return running - 1;
}

/* Over a hundredth of a second, a quarter of the processors being too many; what runs for a moment,
 * as every system has, does not count. */
static bool machine_is_busy(int threads) {
    enum { LOOKS = 10 };
    const struct timespec pause = {.tv_nsec = 1000000};
    double others = 0, processors = omp_get_num_procs();
    for (int i = 0; i < LOOKS; i++) {
        others += others_now() / (double)LOOKS;
        nanosleep(&pause, NULL);
    }
    return threads > 1 && others + threads > 1.25 * processors;
}

static bool user_chose(void) {
    static const char *const names[] = {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (getenv(names[i])) return true;
    return false;
}

void waiting_choose(char **argv, int threads) {
    char program[512];
    if (user_chose()) return;
    if (program_path(program, sizeof program, "threads")) return;
    bool set = machine_is_busy(threads) ? setenv("OMP_WAIT_POLICY", "passive", 1) == 0
                                        : setenv("GOMP_SPINCOUNT", "3000", 1) == 0 &&
                                              setenv("KMP_BLOCKTIME", "5", 1) == 0;
    if (set) execv(program, argv);
}
