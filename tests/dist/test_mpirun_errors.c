/* What goes wrong under mpirun is reported once: one line names the rank and its reason, and then
 * all ranks end. */
#include <stdio.h>
#include <string.h>

#include "mpirun.h"

#define MODEL                                                                         \
    "train --pipeline mpi --model llama:layers=4,width=16,heads=2,ffn=24,context=16 " \
    "--limit 32 --batch 8 --accumulate 4 --submodels 3 --switch-every 7 --quiet "
#define TINY MODEL "--data text "

static int lines_of_bcd(void) {
    int lines = 0;
    for (const char *at = script_output; at; at = strchr(at, '\n')) {
        at += *at == '\n';
        lines += strncmp(at, "bcd: ", 5) == 0;
    }
    return lines;
}

/* CHECKs that the run failed, and that exactly one rank printed exactly one line, which contains
 * these words. */
static void check_one_line(int status, const char *words) {
    CHECK(status > 0 && status != 124, "status %d:\n%s", status, script_output);
    CHECK(lines_of_bcd() == 1, "%d lines:\n%s", lines_of_bcd(), script_output);
    CHECK(strstr(script_output, words), "no \"%s\":\n%s", words, script_output);
}

typedef struct {
    const char *name, *script, *words;
} Row;

/* Only rank 0 finds these errors. The other ranks wait for it to report them. */
static const Row rows[] = {
    {"no data", "mpirun -n 2 $bcd " MODEL "--steps 1 --data nowhere.tokens", "nowhere.tokens"},
    {"no such model", "mpirun -n 2 $bcd train --pipeline mpi --model nonsense --data text",
     "nonsense"},
    {"a directory that has a run",
     "$bcd train --data synthetic --limit 8 --batch 4 --steps 1 --quiet --out a; "
     "mpirun -n 4 $bcd " TINY "--steps 1 --out a",
     "a: has a run already"},
    /* All ranks find these, and the first one says them. */
    {"a flag that is not known", "mpirun -n 2 $bcd train --nonsense 3 --pipeline mpi --data text",
     "--nonsense"},
    {"no device", "mpirun -n 2 $bcd train --pipeline nccl --model gpt2 --data text",
     "--pipeline nccl needs --device cuda"},
    {"no run", "mpirun -n 2 $bcd train --resume nothing",
     "--resume nothing: run.h5 cannot be read here; name --pipeline, as OMPI_COMM_WORLD_SIZE"},
    {"too many ranks", "mpirun -n 7 $bcd " TINY "--steps 1", "too few for 7 ranks"},
    /* Only another rank finds these errors. */
    {"a full disk on rank 1",
     "bcd=\"$bcd " TINY "--steps 90 --cache 1\"; mkdir b; "
     "mpirun -n 1 $bcd --out b/c : -n 1 sh -c \"ulimit -f 1; exec $bcd\" : -n 1 $bcd",
     "rank 1 gave up: cache: cannot write to "},
};

static void said_once(const void *data) {
    const Row *row = data;
    NEED_PROGRAM_UNDER_MPI();
    check_one_line(run_script(row->script), row->words);
}

/* Several ranks that wait for a rank that hangs may find out at the same time; one reports it. That
 * is rank 0 or, if rank 0 itself hangs, rank 1.  The rank hangs after the training has begun,
 * because in MPI_Init the others would wait for it for ever.  On a busy machine another rank may be
 * slow and be named itself; then a longer timeout is tried. */
static void a_stopped_rank_is_named_once(void) {
    NEED_PROGRAM_UNDER_MPI();
    for (int rank = 0; rank < 4; rank += 2) {
        char script[1000], words[100];
        double limit_s = 0.75;
        int status;
        do {
            snprintf(script, sizeof script,
                     "mpirun -n 4 sh -c \"[ \\$OMPI_COMM_WORLD_RANK\\$PMI_RANK != %d ] || (until "
                     "[ -e a/run.h5 ]; do kill -0 \\$\\$ || exit; sleep 0.1; done; sleep 0.5; kill "
                     "-STOP \\$\\$) & exec $bcd " TINY "--steps 1000000 --timeout %g --out a\"",
                     rank, limit_s);
            status = run_script(script);
            snprintf(words, sizeof words, "waited %g s for rank %d (", limit_s, rank);
            limit_s *= 4;
        } while (!strstr(script_output, words) && limit_s < 50);
        check_one_line(status, words);
    }
}

/* Depending on the limit the rank fails before, inside or after MPI_Init, works with less memory,
 * or has no shared memory with another rank. In each case all ranks end; with the first limit it
 * cannot even be loaded. */
static void a_rank_without_memory_ends_all(void) {
    static const int limits_kb[] = {40000, 120000, 220000, 240000};
    NEED_MPI();
    if (TEST_SANITIZED) SKIP("a sanitizer needs more address space");
    for (size_t i = 0; i < sizeof limits_kb / sizeof *limits_kb; i++) {
        char script[1000];
        snprintf(script, sizeof script,
                 "bcd=\"$bcd " TINY
                 "--steps 30 --timeout 5\"; mpirun -n 1 $bcd --out a : "
                 "-n 1 sh -c \"ulimit -v %d; exec $bcd\" : -n 1 $bcd",
                 limits_kb[i]);
        int status = run_script(script);
        CHECK(status != 124 && status >= (i == 0), "%d kB: status %d:\n%s", limits_kb[i], status,
              script_output);
    }
}

/* mpirun and the program may use different MPI libraries. Each process would then train alone. */
static void ranks_that_mpi_did_not_join_are_refused(void) {
    static const char *const launchers[] = {"PMI_SIZE=3 PMI_RANK=0",
                                            "OMPI_COMM_WORLD_SIZE=3 OMPI_COMM_WORLD_RANK=0",
                                            "SLURM_NTASKS=3 SLURM_PROCID=0"};
    NEED_PROGRAM_UNDER_MPI();
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        char script[1000], words[200];
        snprintf(script, sizeof script, "env %s $bcd " TINY "--steps 1 --out a", launchers[i]);
        snprintf(words, sizeof words, "%.*s says 3 ranks, but MPI joined 1",
                 (int)strcspn(launchers[i], "="), launchers[i]);
        check_one_line(run_script(script), words);
        CHECK(strstr(script_output, "bcd: rank 0 on "), "no rank and host: %s", script_output);
    }
    /* mpirun's count is valid, also inside a job of Slurm with more tasks. */
    int status = run_script("SLURM_NTASKS=9 SLURM_PROCID=0 mpirun -n 2 $bcd " TINY "--steps 1");
    CHECK(status == 0, "status %d: %s", status, script_output);
}

void test_mpirun_errors(void) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        RUN_ROW(rows[i].name, said_once, &rows[i]);
    RUN(a_stopped_rank_is_named_once);
    RUN(a_rank_without_memory_ends_all);
    RUN(ranks_that_mpi_did_not_join_are_refused);
}
