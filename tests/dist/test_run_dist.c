/* The program under mpirun. */
#include <string.h>

#include "mpirun.h"

/* CHECKs that a script succeeds, and prints these words. */
static void check_script(const char *script, const char *words) {
    int status = run_script(script);
    CHECK(status == 0 && strstr(script_output, words), "status %d:\n%s", status, script_output);
}

/* Runs the script of `make run-dist`: one of four processes is killed, and three resume. */
static void three_resume_after_a_rank_is_killed(void) {
    NEED_PROGRAM_UNDER_MPI();
    check_script("$source/tests/dist/run_dist --quick --bcd $bcd --out $PWD/dist", "");
}

/* A rank of another build might read the run config wrongly.  The other build is a copy of this one
 * in which the name of the commit is changed; only its beginning, as a compiler may store a name in
 * pieces of eight characters.  Status 77: it does so in smaller ones. */
static void another_build_is_refused(void) {
    NEED_PROGRAM_UNDER_MPI();
    int status = run_script(
        "set -e; ln -sf $(dirname $bcd)/libbcd-mpi.so .; "
        "name=$($bcd --version | cut -c 5-11); "
        "sed \"s/$name/$(echo $name | tr 0-9a-z 1-9a-z0)/g\" $bcd >bcd; chmod +x bcd; "
        "[ \"$(./bcd --version)\" != \"$($bcd --version)\" ] || exit 77; "
        "train=\"train --pipeline mpi --data synthetic --limit 8 --batch 4 --steps 1 --quiet\"; "
        "mpirun -n 2 $source/tests/dist/each_rank \"exec $bcd $train\" \"exec ./bcd $train\"");
    if (status == 77) SKIP("the name of the commit cannot be changed in this program");
    CHECK(status > 0 && strstr(script_output, "pipeline: rank 1 is another build ("),
          "status %d:\n%s", status, script_output);
}

/* The bits are the same with processes, with threads and on one device. */
static void pre_inference_over_processes(void) {
    NEED_PROGRAM_UNDER_MPI();
    check_script(
        "set -e; bcd=\"$bcd train --model "
        "llama:layers=4,width=16,heads=2,ffn=24,context=16 --data text --limit 32 --batch 8 "
        "--accumulate 4 --submodels 3 --switch-every 7 --steps 30 --quiet\"; "
        "losses() { h5dump -y -w 1 -m %.17g -d /curve/loss $1/run.h5 | "
        "grep -o \"^ *[0-9][0-9.e+-]*\"; }; "
        "$bcd --out one; losses one >one.txt; [ $(wc -l <one.txt) = 30 ]; "
        "for n in 1 2 4; do "
        "mpirun -n $n $bcd --pipeline mpi --cache 1M --pre-infer --out mpi$n; "
        "losses mpi$n | cmp - one.txt; done",
        "");
}

/* Only rank 0 needs the data and --out: the other has another directory, and computes again what
 * rank 0 keeps in a file. */
static void a_rank_without_the_directory(void) {
    NEED_PROGRAM_UNDER_MPI();
    check_script(
        "set -e; mkdir a b; bcd=\"$bcd train --data synthetic --limit 60 --model "
        "resnet:depth=14,width=2 --batch 4 --steps 30 --switch-every 10 --submodels 3 "
        "--always-active none --accumulate 2 --quiet --threads 1\"; $bcd --out one; "
        "two=\"$bcd --pipeline mpi --cache 1\"; "
        "mpirun -n 2 $source/tests/dist/each_rank \"cd a && exec $two --out run\" "
        "\"cd b && exec $two --out run\"; "
        "[ ! -e b/run ]; for run in one a/run; do "
        "h5dump -y -w 1 -d /curve/loss $run/run.h5 | grep -o \"^ *[0-9][0-9.e+-]*\" >$(basename "
        "$run).txt; done; [ $(wc -l <one.txt) = 30 ]; cmp one.txt run.txt",
        "");
}

/* A resume that names no ranks has those of the run so far: alone, each process would train. */
static void a_resume_is_one_training(void) {
    NEED_PROGRAM_UNDER_MPI();
    check_script(
        "set -e; bcd=\"$bcd train\"; "
        "mpirun -n 2 $bcd --pipeline mpi --model gpt:layers=2,width=8,heads=2,context=8 --data "
        "text --limit 8 --batch 4 --steps 2 --schedule constant --quiet --threads 1 --out run; "
        "mpirun -n 2 $bcd --resume run --steps 3",
        "2 ranks (");
    CHECK(!strstr(script_output, "each trains alone"), "%s", script_output);
}

/* As by scontrol suspend, for longer than the timeout; the ranks do not go on at the same moment.
 */
static void a_suspended_job_goes_on(void) {
    NEED_PROGRAM_UNDER_MPI();
    check_script(
        SHELL_WAITS
        "mpirun -n 2 sh -c \"echo \\$\\$ >pid\\$OMPI_COMM_WORLD_RANK\\$PMI_RANK; exec $bcd train "
        "--pipeline mpi --model llama:layers=4,width=16,heads=2,ffn=24,context=16 --data text "
        "--limit 32 --batch 8 --accumulate 4 --steps 1000000 --save-every 5 --timeout 2 --quiet "
        "--out a\" & job=$!; saved a/checkpoint.h5; saved a/checkpoint.h5; kill -STOP $(cat pid*); "
        "for pid in $(cat pid*); do stopped $pid; done; sleep 3; for pid in $(cat pid*); do kill "
        "-CONT $pid; sleep 1.5; done; "
        "saved a/checkpoint.h5; saved a/checkpoint.h5; echo it goes on; kill $job; wait $job; "
        "[ $? != 0 ]",
        "it goes on");
    CHECK(!strstr(script_output, "bcd: "), "%s", script_output);
}

void test_run_dist(void) {
    RUN(three_resume_after_a_rank_is_killed);
    RUN(another_build_is_refused);
    RUN(pre_inference_over_processes);
    RUN(a_rank_without_the_directory);
    RUN(a_resume_is_one_training);
    RUN(a_suspended_job_goes_on);
}
