/* The environment of the program: a container's limits, small stacks, closed streams, terminals of
 * many kinds, too little memory. */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../experiments/base/cgroup.h"
#include "../../experiments/base/threads.h"
#include "cli.h"

/* ---- containers ---- */

/* Files of a made-up /sys/fs/cgroup, and the lines of /proc/self/cgroup. */
typedef struct {
    const char *name, *self, *file[2][2];
    double processors, memory;
} Container;

static const Container containers[] = {
    {"no cgroups", "", {{NULL}}, INFINITY, INFINITY},
    {"version 2",
     "0::/\n",
     {{"cpu.max", "150000 100000\n"}, {"memory.max", "8589934592\n"}},
     1.5,
     8589934592},
    {"version 2 without a limit",
     "0::/\n",
     {{"cpu.max", "max 100000\n"}, {"memory.max", "max\n"}},
     INFINITY,
     INFINITY},
    {"the smallest of all above it",
     "0::/a/b\n",
     {{"a/cpu.max", "300000 100000\n"}, {"a/b/cpu.max", "400000 100000\n"}},
     3,
     INFINITY},
    {"the smallest memory of all above it",
     "0::/a/b\n",
     {{"a/memory.max", "1000000\n"}, {"a/b/memory.max", "max\n"}},
     INFINITY,
     1000000},
    {"not that of another",
     "0::/a/b\n",
     {{"a/c/cpu.max", "100000 100000\n"}, {"a/c/memory.max", "1000\n"}},
     INFINITY,
     INFINITY},
    {"version 1",
     "3:cpuset:/\n2:cpu,cpuacct:/x\n0::/\n",
     {{"cpu/x/cpu.cfs_quota_us", "250000\n"}, {"cpu/x/cpu.cfs_period_us", "100000\n"}},
     2.5,
     INFINITY},
    {"memory of version 1",
     "3:cpuset:/\n2:memory:/x\n0::/\n",
     {{"memory/x/memory.limit_in_bytes", "2000000\n"},
      {"memory/memory.limit_in_bytes", "9223372036854771712\n"}},
     INFINITY,
     2000000},
    {"version 1 without a limit",
     "2:cpu:/\n",
     {{"cpu/cpu.cfs_quota_us", "-1\n"}, {"cpu/cpu.cfs_period_us", "100000\n"}},
     INFINITY,
     INFINITY},
    {"version 1 where a container's own cgroup is the mount",
     "2:cpuacct,cpu:/docker/0123\n",
     {{"cpu/cpu.cfs_quota_us", "50000\n"}, {"cpu/cpu.cfs_period_us", "100000\n"}},
     0.5,
     INFINITY},
};

static void limits_are_found(const void *row) {
    const Container *c = row;
    char self[256], root[256], name[128];
    const int number = (int)(c - containers);
    snprintf(name, sizeof name, "container%d/self", number);
    snprintf(self, sizeof self, "%s", scratch_text(name, c->self));
    snprintf(root, sizeof root, "%s", self);
    strcpy(strrchr(root, '/'), "/system");
    for (int f = 0; f < 2 && c->file[f][0]; f++) {
        snprintf(name, sizeof name, "container%d/system/%s", number, c->file[f][0]);
        scratch_text(name, c->file[f][1]);
    }
    const double processors = cgroup_processors(self, root), memory = cgroup_memory(self, root);
    CHECK(processors == c->processors, "%g processors", processors);
    CHECK(memory == c->memory, "%g bytes", memory);
}

/* A part of a processor is worth a thread of its own. */
static void threads_use_a_quota(void) {
    static const struct {
        double processors;
        int threads, used;
    } rows[] = {{0.1, 8, 1}, {1, 8, 1},   {1.5, 8, 2}, {2, 8, 2},
                {7.5, 8, 8}, {8.5, 8, 8}, {1e9, 8, 8}, {INFINITY, 3, 3}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const int used = threads_of_quota(rows[i].processors, rows[i].threads);
        CHECK(used == rows[i].used, "%g processors: %d of %d threads", rows[i].processors, used,
              rows[i].threads);
    }
}

/* Ranks of a machine have a part of its processors each, or what OMP_NUM_THREADS says. */
static void ranks_share_the_processors(void) {
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    const int before = omp_get_max_threads();
    const char *set = getenv("OMP_NUM_THREADS");
    const Text kept = text_of("%s", set ? set : "");
    setenv("OMP_NUM_THREADS", "7", 1);
    omp_set_num_threads(7);
    threads_share(1 << 20);
    CHECK(omp_get_max_threads() == 7, "%d threads", omp_get_max_threads());
    unsetenv("OMP_NUM_THREADS");
    omp_set_num_threads(1 << 20);
    threads_share(1);
    CHECK(omp_get_max_threads() <= processors, "%d threads", omp_get_max_threads());
    threads_share(1 << 20);
    CHECK(omp_get_max_threads() == 1, "%d threads", omp_get_max_threads());
    if (set) setenv("OMP_NUM_THREADS", kept.text, 1);
    omp_set_num_threads(before);
}

/* ---- run from a shell ---- */

/* Runs `COMMANDS` in the scratch directory, in which $bcd is the program, with one thread, $train a
 * short training, and the file "errors" receives what goes to standard error. Returns the exit
 * status, or minus a signal. */
static int shell(const char *commands) {
    char line[2048];
    snprintf(line, sizeof line,
             "cd '%s' && export OMP_WAIT_POLICY=passive OMP_NUM_THREADS=1 && bcd='%s' && "
             "train='train --data words.tokens --model "
             "gpt:layers=3,width=64,heads=2,context=64 --batch 4 --limit 32 --quiet' && exec "
             "2>errors && { %s; }",
             scratch_path("."), BCD_PROGRAM, commands);
    const int status = system(line);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static void check_errors(const char *expected) {
    size_t count;
    char *text = read_bytes("errors", &count);
    const char *line = text + strspn(text, "\n"); /* libgomp begins its own with an empty one */
    CHECK(count && strchr(line, '\n') == text + count - 1 && strstr(line, expected),
          "says \"%s\", expected \"%s\"", text, expected);
    free(text);
}

static void small_stacks_are_refused(void) {
    if (TEST_SANITIZED) SKIP("a sanitizer needs larger stacks");
    for (int kib = 64; kib <= 128; kib *= 2) {
        CHECK(shell(text_of("ulimit -s %d; exec $bcd $train --steps 1", kib).text) == 1, "status");
        check_errors("the stack has ");
        check_errors(" KiB, and bcd needs 512; type: ulimit -s 8192");
    }
    CHECK(shell("OMP_NUM_THREADS=2 OMP_STACKSIZE=16K exec $bcd $train --steps 1") == 1, "status");
    check_errors("the stack of a thread has 16 KiB, and bcd needs 256; type: unset OMP_STACKSIZE");
    CHECK(shell("ulimit -s 768; OMP_NUM_THREADS=2 OMP_STACKSIZE=256K exec $bcd $train --steps 2 "
                "--out stacks") == 0,
          "what is enough");
}

/* Where the standard streams are closed, a file of the run would get their descriptors, and
 * messages would be written into it. */
static void closed_streams_get_nothing(void) {
    size_t count;
    CHECK(shell("$bcd ${train%--quiet} --steps 3 --out closed <&- >&- 2>&-") == 0, "status");
    CHECK(shell("$bcd $train --steps 3 --out open") == 0, "status");
    char *closed = read_bytes("closed/log.csv", &count), *open = read_bytes("open/log.csv", &count);
    CHECK(count && !strcmp(closed, open), "log.csv: \"%s\"", closed);
    check_same_run("closed", "open");
    free(closed);
    free(open);
}

/* Lines are rewritten in place only on a terminal that can do so. */
static void escape_codes_are_for_terminals(void) {
    static const struct {
        const char *name, *value;
        bool escapes;
    } rows[] = {{"TERM", "xterm", true},
                {"TERM", "dumb", false},
                {"TERM", "", false},
                {"PMIX_RANK", "0", false},
                {"OMPI_COMM_WORLD_RANK", "0", false},
                {"PMI_RANK", "0", false}};
    const char *term = getenv("TERM");
    const Text before = text_of("%s", term ? term : "");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        setenv("TERM", "xterm", 1);
        setenv(rows[i].name, rows[i].value, 1);
        const Text line = text_of("train " RESNET "--steps 3 --out terminal%zu", i);
        const char *text = program_on_terminal(line.text);
        unsetenv(rows[i].name);
        if (!text) SKIP("no pseudo-terminal here");
        CHECK(!strchr(text, '\x1b') == !rows[i].escapes, "%s=%s: %s", rows[i].name, rows[i].value,
              text);
    }
    setenv("TERM", before.text, 1);
}

/* A batch script has the variables of task 0, too, and may train alone. */
static void tasks_of_srun_do_not_train_alone(void) {
    if (getenv("OMPI_COMM_WORLD_SIZE") || getenv("PMI_SIZE")) SKIP("a launcher started the tests");
    CHECK(shell("SLURM_NTASKS=3 SLURM_PROCID=0 exec $bcd $train --steps 1 --out batch") == 0,
          "a batch script is refused");
    CHECK(shell("SLURM_NTASKS=3 SLURM_PROCID=1 exec $bcd $train --steps 1 --out task") == 1,
          "status");
    check_errors("SLURM_NTASKS says 3 tasks, and each would train alone; give --pipeline mpi");
}

/* HDF5 crashes when memory runs out. The program ends with an error line wherever it happens, but
 * where its libraries, as they load, already miss something. */
static void running_out_of_memory_is_reported(void) {
    if (TEST_SANITIZED) SKIP("a sanitizer needs all of the address space");
    int refused = 0, trained = 0;
    /* Small steps where the program just loads: there its stack has no room to grow. */
    for (int kib = 20000; kib < 90000 && trained < 3; kib += refused < 8 ? 100 : 3000) {
        const Text line = text_of(
            "ulimit -v %d && $bcd --version >out 2>said && [ ! -s said ] || exit 127; rm -rf short "
            "&& exec $bcd $train --save-every 5 --steps 20 --out short",
            kib);
        const int status = shell(line.text);
        if (status == 127) continue; /* the program itself does not load */
        CHECK(status >= 0 && status <= 2, "%d KiB: status %d", kib, status);
        if (status) check_errors("mem");
        refused += status != 0;
        trained += status == 0;
    }
    CHECK(refused && trained == 3, "%d times refused, %d times trained", refused, trained);
}

/* Returns the peak memory in bytes that the program had while it ran a line. What a process was
 * before it became the program counts, and a child of this one would begin with all that this one
 * has. So it is the child of a small shell, which ends and leaves it to this process. Of a huge
 * page all would count, used or not. */
static double peak_of(const char *line) {
    struct rusage usage = {0};
    int status = -1;
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    CHECK(shell(text_of("exec $bcd %s >out & :", line).text) == 0 &&
              wait4(-1, &status, 0, &usage) > 0 && status == 0,
          "bcd %s: status %d", line, status);
    prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
    prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
    return 1024.0 * (double)usage.ru_maxrss;
}

/* What a directory lacks is reported before memory is taken for its model, here of 13 GB. */
static void missing_weights_are_reported_first(void) {
    if (TEST_SANITIZED) SKIP("a sanitizer needs all of the address space");
    scratch_text("weightless/config.json",
                 "{\"model_type\": \"gpt2\", \"n_layer\": 4, \"n_embd\": 8192, \"n_head\": 64, "
                 "\"n_positions\": 8, \"vocab_size\": 256}");
    CHECK(shell("ulimit -v 1000000; exec $bcd eval --init weightless --data words.tokens "
                "--threads 1") == 1,
          "status");
    check_errors("weightless/model.safetensors");
}

/* Trains, and compares the memory that the system counts with what was planned and what the program
 * itself needs. */
static void check_resident(const char *line, const char *dir, double least) {
    const double own = peak_of("--version"), peak = peak_of(line);
    RunFile file;
    if (!read_run(&file, dir)) return;
    const double planned = (double)file.memory[MEM_ROLES].planned;
    CHECK(planned > least, "%g bytes", planned);
    CHECK(peak - own < 1.05 * planned + 8e6, "%.0f bytes, planned %.0f, of the program %.0f", peak,
          planned, own);
    runfile_free(&file);
}

/* The embedding is half of it, so a copy of it, as when a checkpoint is written, would show. */
static void resident_memory_is_as_planned(void) {
    if (TEST_SANITIZED) SKIP("a sanitizer has memory of its own");
    check_resident(
        "train --data words.tokens --model "
        "gpt:layers=1,width=64,heads=2,context=8,vocabulary=300000 --batch 1 --limit 4 --steps 1 "
        "--optimizer sgd --momentum 0 --schedule constant --threads 1 --quiet --out resident",
        "resident", 140e6);
    check_resident("train --resume resident --steps 2 --quiet", "resident", 140e6);
}

/* Nor does it grow when submodels, whose sizes differ, take turns with saves. */
static void resident_memory_stays_as_planned(void) {
    if (TEST_SANITIZED) SKIP("a sanitizer has memory of its own");
    check_resident(
        "train --data words.tokens --model "
        "gpt:layers=12,width=576,heads=4,context=8,vocabulary=256 --batch 1 --limit 8 "
        "--submodels 3 --switch-every 2 --save-every 3 --steps 24 --threads 1 --quiet "
        "--out turns",
        "turns", 300e6);
}

/* ---- full disks ---- */

static size_t bytes_of(const char *name) {
    size_t count;
    free(read_bytes(name, &count));
    return count;
}

/* The optimizer's state makes the last checkpoint the first one that does not fit: the run is not
 * finished. */
static void a_disk_full_at_the_end(void) {
    RunFile file;
    run(0, "train " RESNET "--steps 0 --out small --quiet");
    run(0, "train " RESNET "--steps 5 --out large --quiet");
    const size_t room = (bytes_of("small/checkpoint.h5") + bytes_of("large/checkpoint.h5")) / 2;
    const Printed *printed =
        program_run("train " RESNET "--steps 5 --save-every 1000000 --out tight --quiet", room);
    check_error(printed, "tight/checkpoint.h5: cannot write");
    if (read_run(&file, "tight"))
        CHECK(file.curve_rows == 5 && strcmp(file.status, "running") == 0, "%zu updates, %s",
              file.curve_rows, file.status);
    runfile_free(&file);
}

/* Where the curves have no room, the checkpoint stays where they end; a resume could not add
 * them. */
static void a_disk_full_of_curves(void) {
#define LONG                                                                              \
    "train --model gpt:layers=1,width=8,heads=1,context=4 --data words.tokens --limit 8 " \
    "--batch 1 --schedule constant --eval-every 10000 --save-every 1000000 --threads 1 --quiet "
    RunFile file;
    run(0, LONG "--steps 1 --out brief");
    const size_t room = bytes_of("brief/checkpoint.h5") + bytes_of("brief/run.h5");
    const Text line = text_of(LONG "--steps %d --out curves", (int)(room / 40));
    check_error(program_run(line.text, room), "curves/run.h5: cannot write");
    run(0, "train --resume curves --quiet");
    if (read_run(&file, "curves"))
        CHECK(file.curve_rows == room / 40, "%zu of %zu updates", file.curve_rows, room / 40);
    runfile_free(&file);
}

void test_environment(void) {
    make_words();
    for (size_t i = 0; i < sizeof containers / sizeof *containers; i++)
        RUN_ROW(containers[i].name, limits_are_found, &containers[i]);
    RUN(threads_use_a_quota);
    RUN(ranks_share_the_processors);
    RUN(small_stacks_are_refused);
    RUN(closed_streams_get_nothing);
    RUN(escape_codes_are_for_terminals);
    RUN(tasks_of_srun_do_not_train_alone);
    RUN(a_disk_full_at_the_end);
    RUN(a_disk_full_of_curves);
    RUN(running_out_of_memory_is_reported);
    RUN(missing_weights_are_reported_first);
    RUN(resident_memory_is_as_planned);
    RUN(resident_memory_stays_as_planned);
}
