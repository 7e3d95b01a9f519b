/* Who a process is, from all the names that starters use. */
#include <stdlib.h>
#include <string.h>

#include "../../dist/launch.h"
#include "../../ref/error.h"
#include "../test.h"

static const char *const names[] = {
    "RANK",
    "WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "TORCHELASTIC_USE_AGENT_STORE",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "SLURM_PROCID",
    "SLURM_NTASKS",
    "SLURM_STEP_NODELIST",
    "SLURM_LAUNCH_NODE_IPADDR",
};
enum { NAMES = sizeof names / sizeof *names };

/* NAME=value NAME=value ..., and nothing else of ours; values without blanks. */
static void set_environment(const char *assignments) {
    char text[400], *rest = text;
    strcpy(text, assignments);
    for (int i = 0; i < NAMES; i++) unsetenv(names[i]);
    for (char *one; (one = strtok_r(rest, " ", &rest));) {
        char *value = strchr(one, '=');
        *value = 0;
        setenv(one, value + 1, 1);
    }
}

static int read_with(Launch *launch, const char *assignments) {
    char *kept[NAMES];
    for (int i = 0; i < NAMES; i++) {
        const char *value = getenv(names[i]);
        kept[i] = value ? strdup(value) : NULL;
    }
    set_environment(assignments);
    int failed = launch_read(launch);
    for (int i = 0; i < NAMES; i++) {
        if (kept[i])
            setenv(names[i], kept[i], 1);
        else
            unsetenv(names[i]);
        free(kept[i]);
    }
    return failed;
}

#define TORCH "RANK=2 WORLD_SIZE=4 MASTER_ADDR=node7 MASTER_PORT=1234 "
#define OPEN_MPI "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=3 "
#define SLURM "SLURM_PROCID=5 SLURM_NTASKS=8 "

static void ranks_are_found(void) {
    static const struct {
        const char *environment;
        int rank, ranks, port;
        const char *address, *names;
    } rows[] = {
        {TORCH, 2, 4, 1234, "node7", "RANK"},
        {TORCH OPEN_MPI SLURM, 2, 4, 1234, "node7", "RANK"},
        {TORCH "TORCHELASTIC_USE_AGENT_STORE=True", 2, 4, 1235, "node7", "RANK"},
        {TORCH "TORCHELASTIC_USE_AGENT_STORE=False", 2, 4, 1234, "node7", "RANK"},
        {"RANK=0 WORLD_SIZE=1 MASTER_ADDR=::1 MASTER_PORT=65535", 0, 1, 65535, "::1", "RANK"},
        {OPEN_MPI "OMPI_COMM_WORLD_LOCAL_SIZE=3", 1, 3, 29500, "127.0.0.1", "Open MPI"},
        {OPEN_MPI "MASTER_ADDR=10.0.0.5 MASTER_PORT=77", 1, 3, 77, "10.0.0.5", "Open MPI"},
        {OPEN_MPI SLURM "OMPI_COMM_WORLD_LOCAL_SIZE=3", 1, 3, 29500, "127.0.0.1", "Open MPI"},
        {SLURM "SLURM_STEP_NODELIST=a", 5, 8, 29500, "a", "Slurm"},
        {SLURM "SLURM_STEP_NODELIST=a1,a2", 5, 8, 29500, "a1", "Slurm"},
        {SLURM "SLURM_STEP_NODELIST=n[07-09,12],login", 5, 8, 29500, "n07", "Slurm"},
        {SLURM "SLURM_STEP_NODELIST=n[3,5]", 5, 8, 29500, "n3", "Slurm"},
        {SLURM "SLURM_STEP_NODELIST=r[1-2]n[010-012]-ib,x", 5, 8, 29500, "r1n010-ib", "Slurm"},
        {SLURM "SLURM_LAUNCH_NODE_IPADDR=10.1.1.1", 5, 8, 29500, "10.1.1.1", "Slurm"},
        {SLURM "MASTER_ADDR=b SLURM_STEP_NODELIST=a", 5, 8, 29500, "b", "Slurm"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Launch l;
        if (!CHECK(read_with(&l, rows[i].environment) == 0, "%s: %s", rows[i].environment,
                   error_message()))
            continue;
        CHECK(l.rank == rows[i].rank && l.ranks == rows[i].ranks && l.port == rows[i].port &&
                  strcmp(l.address, rows[i].address) == 0 && strcmp(l.names, rows[i].names) == 0,
              "%s: rank %d of %d at %s:%d, says %s", rows[i].environment, l.rank, l.ranks,
              l.address, l.port, l.names);
    }
}

static void nonsense_is_refused(void) {
    static const struct {
        const char *environment, *words;
    } rows[] = {
        {"", "this process is no rank"},
        {"MASTER_ADDR=a MASTER_PORT=1", "this process is no rank"},
        {"RANK=0", "WORLD_SIZE is not set"},
        {"WORLD_SIZE=2", "RANK is not set"},
        {"RANK=0 WORLD_SIZE=2 MASTER_PORT=1", "MASTER_ADDR, the host of rank 0, is not"},
        {"RANK=0 WORLD_SIZE=2 MASTER_ADDR=a", "MASTER_PORT is not set"},
        {"RANK=2 WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=1", "RANK is \"2\", not a number from 0"},
        {"RANK=-1 WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=1", "RANK is \"-1\""},
        {"RANK=1x WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=1", "RANK is \"1x\""},
        {"RANK=0 WORLD_SIZE=0 MASTER_ADDR=a MASTER_PORT=1", "WORLD_SIZE is \"0\""},
        {"RANK=0 WORLD_SIZE=99999999999999999999 MASTER_ADDR=a MASTER_PORT=1", "WORLD_SIZE is"},
        {"RANK=0 WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=65536", "MASTER_PORT is \"65536\""},
        {OPEN_MPI "OMPI_COMM_WORLD_LOCAL_SIZE=2", "set MASTER_ADDR"},
        {OPEN_MPI, "OMPI_COMM_WORLD_LOCAL_SIZE is not set"},
        {SLURM, "SLURM_STEP_NODELIST is not set"},
        {SLURM "SLURM_STEP_NODELIST=n[1-", "no list of hosts"},
        {SLURM "SLURM_STEP_NODELIST=n[]", "no list of hosts"},
        {SLURM "SLURM_STEP_NODELIST=,a", "names no host"},
        {"SLURM_PROCID=8 SLURM_NTASKS=8 SLURM_STEP_NODELIST=a", "SLURM_PROCID is \"8\""},
    };
    Launch l;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECK(read_with(&l, rows[i].environment) == -1 && strstr(error_message(), rows[i].words),
              "%s: \"%s\"", rows[i].environment, error_message());
    char long_name[400] = SLURM "SLURM_STEP_NODELIST=";
    memset(long_name + strlen(long_name), 'n', 300);
    CHECK(read_with(&l, long_name) == -1 && strstr(error_message(), "names no host"), "\"%s\"",
          error_message());
}

void test_launch(void) {
    RUN(ranks_are_found);
    RUN(nonsense_is_refused);
}
