/* What goes wrong under mpirun is reported once: one line names the rank and its reason, and then
 * all ranks end. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../data/scratch.h"
#include "mpirun.h"

#define MODEL                                                                         \
    "train --pipeline mpi --model llama:layers=4,width=16,heads=2,ffn=24,context=16 " \
    "--limit 32 --batch 8 --accumulate 4 --submodels 3 --switch-every 7 --quiet "
#define TINY MODEL "--data text "

static char output[1 << 16];

/* Runs a script in which $bcd is the program and $out a new directory.  Returns its exit status; -1
 * if it has not ended after two minutes. */
static int run_script(const char *script) {
    static int number;
    char line[2600], name[32];
    snprintf(name, sizeof name, "errors%d/x", ++number);
    scratch_text(name, "");
    snprintf(
        line, sizeof line,
        "export bcd=%s out=%s OMP_NUM_THREADS=1; cd $(dirname $out); timeout -k 5 120 sh -c '%s'",
        BCD_PROGRAM, scratch_path(name), script);
    int status = run_shell(output, sizeof output, line);
    test_note("status %d: %s", status, output);
    return status;
}

static int lines_of_bcd(void) {
    int lines = 0;
    for (const char *at = output; at; at = strchr(at, '\n')) {
        at += *at == '\n';
        lines += strncmp(at, "bcd: ", 5) == 0;
    }
    return lines;
}

/* CHECKs that the run failed, and that exactly one rank printed exactly one line, which contains
 * these words. */
static void check_one_line(int status, const char *words) {
    CHECK(status > 0 && status != 124, "status %d:\n%s", status, output);
    CHECK(lines_of_bcd() == 1, "%d lines:\n%s", lines_of_bcd(), output);
    CHECK(strstr(output, words), "no \"%s\":\n%s", words, output);
}

typedef struct {
    const char *name, *script, *words;
} Row;

/* Only rank 0 finds these errors. The other ranks wait for it to report them. */
static const Row rows[] = {
    {"no data", "mpirun -n 4 $bcd " MODEL "--steps 1 --data nowhere.tokens", "nowhere.tokens"},
    {"no such model", "mpirun -n 4 $bcd train --pipeline mpi --model nonsense --data text",
     "nonsense"},
    {"a directory that has a run",
     "$bcd train --data synthetic --limit 8 --batch 4 --steps 1 --quiet --out a; "
     "mpirun -n 4 $bcd " TINY "--steps 1 --out a",
     "a: has a run already"},
    /* All ranks find these, and the first one says them. */
    {"a flag that is not known", "mpirun -n 4 $bcd train --nonsense 3 --pipeline mpi --data text",
     "--nonsense"},
    {"no device", "mpirun -n 4 $bcd train --pipeline nccl --model gpt2 --data text",
     "--pipeline nccl needs --device cuda"},
    {"no run", "mpirun -n 4 $bcd train --resume nothing",
     "--resume nothing: run.h5 cannot be read here; name --pipeline, as OMPI_COMM_WORLD_SIZE"},
    {"too many ranks", "mpirun -n 7 $bcd " TINY "--steps 1", "too few for 7 ranks"},
    /* Only another rank finds these errors. */
    {"a full disk on rank 1",
     "bcd=\"$bcd " TINY "--steps 90 --cache 1\"; mkdir b; "
     "mpirun -n 1 $bcd --out b/c : -n 1 sh -c \"ulimit -f 1; exec $bcd\" : -n 1 $bcd",
     "rank 1 gave up: cache: cannot write to "},
};

/* What only another rank finds runs several times, since which rank is first differs from run to
 * run. */
static void said_once(const void *data) {
    const Row *row = data;
    NEED_MPI();
    if (TEST_SANITIZED) SKIP("the MPI transport is watched in transport_mpi");
    const int times = strstr(row->script, "ulimit") ? 3 : 1;
    for (int i = 0; i < times; i++) check_one_line(run_script(row->script), row->words);
}

/* Several ranks that wait for a rank that hangs may find out at the same time; one reports it. That
 * is rank 0 or, if rank 0 itself hangs, rank 1.  The rank hangs after the training has begun,
 * because in MPI_Init the others would wait for it for ever. */
static void a_stopped_rank_is_named_once(void) {
    NEED_MPI();
    if (TEST_SANITIZED) SKIP("the MPI transport is watched in transport_mpi");
    for (int rank = 0; rank < 4; rank += 2) {
        char script[1000], words[100];
        snprintf(script, sizeof script,
                 "mpirun -n 4 sh -c \"[ \\$OMPI_COMM_WORLD_RANK\\$PMI_RANK != %d ] || "
                 "(until [ -e a/run.h5 ]; do kill -0 \\$\\$ || exit; sleep 0.1; done; sleep 0.5; "
                 "kill -STOP \\$\\$) & exec $bcd " TINY "--steps 1000000 --timeout 3 --out a\"",
                 rank);
        snprintf(words, sizeof words, "waited 3 s for rank %d (", rank);
        check_one_line(run_script(script), words);
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
              output);
    }
}

/* mpirun and the program may use different MPI libraries. Each process would then train alone. */
static void ranks_that_mpi_did_not_join_are_refused(void) {
    static const char *const launchers[] = {"PMI_SIZE=3 PMI_RANK=0",
                                            "OMPI_COMM_WORLD_SIZE=3 OMPI_COMM_WORLD_RANK=0",
                                            "SLURM_NTASKS=3 SLURM_PROCID=0"};
    NEED_MPI();
    if (TEST_SANITIZED) SKIP("the MPI transport is watched in transport_mpi");
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        char script[1000], words[200];
        snprintf(script, sizeof script, "env %s $bcd " TINY "--steps 1 --out a", launchers[i]);
        snprintf(words, sizeof words, "%.*s says 3 ranks, but MPI joined 1",
                 (int)strcspn(launchers[i], "="), launchers[i]);
        check_one_line(run_script(script), words);
        CHECK(strstr(output, "bcd: rank 0 on "), "no rank and host: %s", output);
    }
    /* mpirun's count is valid, also inside a job of Slurm with more tasks. */
    int status = run_script("SLURM_NTASKS=9 SLURM_PROCID=0 mpirun -n 2 $bcd " TINY "--steps 1");
    CHECK(status == 0, "status %d: %s", status, output);
}

void test_mpirun_errors(void) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        RUN_ROW(rows[i].name, said_once, &rows[i]);
    RUN(a_stopped_rank_is_named_once);
    RUN(a_rank_without_memory_ends_all);
    RUN(ranks_that_mpi_did_not_join_are_refused);
}
