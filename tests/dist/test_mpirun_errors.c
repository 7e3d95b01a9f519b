/* What goes wrong under mpirun is reported once: one line names the rank and its reason, and then
 * all ranks end. */
#include <stdio.h>
#include <string.h>

#include "mpirun.h"

#define MODEL                                                                         \
    "train --pipeline mpi --model llama:layers=4,width=16,heads=2,ffn=24,context=16 " \
    "--limit 32 --batch 8 --accumulate 4 --submodels 3 --switch-every 7 --quiet "
#define TINY MODEL "--data text "

/* Returns how many lines are of ranks, and those without these words in *others. */
static int lines_of_bcd(const char *words, int *others) {
    int lines = 0;
    *others = 0;
    for (const char *at = script_output; at; at = strchr(at, '\n')) {
        at += *at == '\n';
        if (strncmp(at, "bcd: ", 5) != 0) continue;
        const char *found = strstr(at, words);
        lines++;
        *others += !found || found > at + strcspn(at, "\n");
    }
    return lines;
}

/* CHECKs that the run failed, and that exactly one rank printed exactly one line, which contains
 * these words; or `any` rank one such line. */
static void check_lines(int status, const char *words, bool any) {
    int others;
    const int lines = lines_of_bcd(words, &others);
    CHECK(status > 0 && status != 124, "status %d:\n%s", status, script_output);
    CHECK(any ? lines > 0 : lines == 1, "%d lines:\n%s", lines, script_output);
    CHECK(others == 0, "no \"%s\":\n%s", words, script_output);
}

static void check_one_line(int status, const char *words) { check_lines(status, words, false); }

typedef struct {
    const char *name, *script, *words;
    /* The ranks have not joined. All but the first hold their line back for a moment, in which the
     * launcher ends them, unless the machine is busy. */
    bool alone;
} Row;

/* Only rank 0 finds these errors. The other ranks wait for it to report them. */
static const Row rows[] = {
    {"no data", "mpirun -n 2 $bcd " MODEL "--steps 1 --data nowhere.tokens", "nowhere.tokens",
     false},
    {"no such model", "mpirun -n 2 $bcd train --pipeline mpi --model nonsense --data text",
     "nonsense", false},
    {"a directory that has a run",
     "$bcd train --data synthetic --limit 8 --batch 4 --steps 1 --quiet --out a; "
     "mpirun -n 4 $bcd " TINY "--steps 1 --out a",
     "a: has a run already", false},
    {"too many ranks", "mpirun -n 7 $bcd " TINY "--steps 1", "too few for 7 ranks", false},
    /* All ranks find these. */
    {"a flag that is not known", "mpirun -n 2 $bcd train --nonsense 3 --pipeline mpi --data text",
     "--nonsense", true},
    {"no device", "mpirun -n 2 $bcd train --pipeline nccl --model gpt2 --data text",
     "--pipeline nccl needs --device cuda", true},
    {"no run", "mpirun -n 2 $bcd train --resume nothing",
     "--resume nothing: run.h5 cannot be read here; name --pipeline, as OMPI_COMM_WORLD_SIZE",
     true},
    /* Only another rank finds these errors. */
    {"a full disk on rank 1", /* from when MPI has made its own files */
     SHELL_WAITS " mkdir b; bcd=\"$bcd " TINY "--steps 1000000 --save-every 5 --cache 1\"; "
                 "mpirun -n 3 $source/tests/dist/each_rank \"exec $bcd --out b/c\" "
                 "\"echo \\$\\$ >pid; exec $bcd\" \"exec $bcd\" & job=$!; "
                 "saved b/c/checkpoint.h5; prlimit --pid $(cat pid) --fsize=512; wait $job",
     "rank 1 gave up: cache: cannot write to ", false},
};

static void said_once(const void *data) {
    const Row *row = data;
    NEED_PROGRAM_UNDER_MPI();
    check_lines(run_script(row->script), row->words, row->alone);
}

/* Several ranks that wait for a rank that hangs may find out at the same time; one reports it. That
 * is rank 0 or, if rank 0 itself hangs, rank 1.  The rank hangs after the training has begun,
 * because in MPI_Init the others would wait for it for ever. */
static void a_stopped_rank_is_named_once(void) {
    NEED_PROGRAM_UNDER_MPI();
    for (int rank = 0; rank < 4; rank += 2) {
        char script[1500], words[100];
        snprintf(script, sizeof script,
                 "%s mpirun -n 4 sh -c \"echo \\$\\$ >pid\\$OMPI_COMM_WORLD_RANK\\$PMI_RANK; exec "
                 "$bcd " TINY
                 "--steps 1000000 --save-every 5 --timeout 10 --out a\" & job=$!; "
                 "saved a/checkpoint.h5; saved a/checkpoint.h5; pid=$(cat pid%d); "
                 "kill -STOP $pid; stopped $pid; wait $job",
                 SHELL_WAITS, rank);
        snprintf(words, sizeof words, "waited 10 s for rank %d (", rank);
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
                 "--steps 30 --timeout 5\"; mpirun -n 3 $source/tests/dist/each_rank "
                 "\"exec $bcd --out a\" \"ulimit -v %d; exec $bcd\" \"exec $bcd\"",
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
