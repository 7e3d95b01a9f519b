/* bcd train --pipeline writes the same files as one device, whatever the number of ranks. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "compare.h"

#define TINY                                                                                    \
    "--model llama:layers=4,width=16,heads=2,ffn=24,context=16 --data words.tokens --limit 32 " \
    "--batch 8 --accumulate 4 --optimizer adam --lr 1e-2 --schedule constant --switch-every 7 " \
    "--eval-every 20 "
#define LLAMA TINY "--submodels 3 "
#define STAGES                                                                              \
    "--model resnet:depth=14,width=2 --data synthetic --limit 32 --batch 4 --accumulate 2 " \
    "--submodels 3 --switch-every 7 --eval-every 20 "

/* ---- the same bits ------------------------------------------------------------------------- */

typedef struct {
    const char *name, *flags, *ranks, *says;
} Row;

static const Row rows[] = {
    {"llama, 1 rank", LLAMA, "local:1", "1 rank (threads), virtual placement, 1f1b, "},
    {"llama, 2 ranks, virtual stages", LLAMA, "local:2",
     "2 ranks (threads), virtual placement, 1f1b, "},
    {"llama, 4 ranks", LLAMA, "local:4 --placement plain",
     "4 ranks (threads), plain placement, 1f1b, "},
    {"llama, 2 ranks, zero bubble", LLAMA, "local:2 --pipeline-schedule zero-bubble",
     "2 ranks (threads), virtual placement, zero-bubble, "},
    /* One rank has no gaps to fill. */
    {"tied gpt, 1 rank, zero bubble", GPT "--accumulate 4 ",
     "local:1 --pipeline-schedule zero-bubble", "1 rank (threads), virtual placement, 1f1b, "},
    {"llama, 3 ranks, recompute", LLAMA "--recompute ", "local:3",
     "3 ranks (threads), plain placement, 1f1b, "},
    {"llama, 2 ranks, cached prefix", LLAMA "--cache 1M ", "local:2",
     "2 ranks (threads), virtual placement, 1f1b, "},
    {"llama, 3 ranks, cached prefix in a file", LLAMA "--cache 1 ", "local:3",
     "3 ranks (threads), plain placement, 1f1b, "},
    {"llama, 1 rank, pre-inference", LLAMA "--cache 1M ", "local:1 --pre-infer",
     "1 rank (threads), virtual placement, 1f1b, "},
    {"llama, 2 ranks, pre-inference", LLAMA "--cache 1M ", "local:2 --pre-infer",
     "2 ranks (threads), virtual placement, 1f1b, "},
    {"llama, 4 ranks, pre-inference into a file", LLAMA "--cache 1 ",
     "local:4 --placement plain --pre-infer", "4 ranks (threads), plain placement, 1f1b, "},
    {"resnet, 3 ranks, pre-inference", STAGES "--cache 1M ", "local:3 --pre-infer",
     "3 ranks (threads), plain placement, 1f1b, "},
    {"llama, 2 ranks, ends always active", LLAMA "--always-active ends --switch-warmup 2 ",
     "local:2", "2 ranks (threads), plain placement, 1f1b, "},
    {"resnet, 3 ranks", STAGES, "local:3", "3 ranks (threads), plain placement, 1f1b, "},
    {"resnet, 2 ranks, keeps state", STAGES "--keep-state ", "local:2",
     "2 ranks (threads), plain placement, 1f1b, "},
};

/* Names the directory of these flags on one device, which the first row that has them trains. */
static Text train_on_one_device(const char *flags) {
    int first = 0;
    while (strcmp(rows[first].flags, flags) != 0) first++;
    const Text dir = text_of("one%d", first);
    if (!file_exists(scratch_path(dir.text)))
        run(0, "train %s--steps 30 --quiet --out %s", flags, dir.text);
    return dir;
}

/* The numbers are the same with and without a feature, so that it has taken part is checked by what
 * is said and stored. */
static void same_as_one_device(const void *data) {
    const Row *row = data;
    const Text one = train_on_one_device(row->flags), many = text_of("many%d", (int)(row - rows));
    const char *said =
        run(0, "train %s--steps 30 --out %s --pipeline %s", row->flags, many.text, row->ranks)->out;
    CHECK(strstr(said, row->says), "not %s: %s", row->says, said);
    check_same_run(one.text, many.text);
    RunFile file;
    if (!read_run(&file, many.text)) return;
    CHECK((file.memory[MEM_CACHE].peak > 0) == (strstr(row->flags, "--cache") != NULL),
          "%d bytes of cache", (int)file.memory[MEM_CACHE].peak);
    CHECK((file.inference_seconds > 0) == (strstr(row->ranks, "--pre-infer") != NULL),
          "pre-inference took %g s", file.inference_seconds);
    runfile_free(&file);
}

/* A training that starts on four ranks is resumed on two, three and one. */
static void any_number_of_ranks_resumes(void) {
    run(0, "train " LLAMA "--steps 40 --quiet --out whole");
    run(0, "train " LLAMA "--steps 11 --quiet --out moved --pipeline local:4");
    run(0, "train --resume moved --steps 18 --quiet --pipeline local:2 --placement virtual");
    run(0, "train --resume moved --steps 25 --quiet --pipeline local:3");
    run(0, "train --resume moved --steps 40 --quiet --pipeline none");
    check_same_checkpoint("whole", "moved");
}

/* A resume that names no ranks has those of the run so far, and so the bits of a run that was never
 * interrupted. */
static void a_resume_keeps_its_ranks(void) {
    run(0, "train " LLAMA
           "--steps 5 --quiet --out kept --pipeline local:4 --replicas 2 "
           "--pipeline-schedule zero-bubble --placement plain");
    const Printed *printed = run(0, "train --resume kept --steps 12");
    CHECK(strstr(printed->out, "4 ranks (threads), 2 replicas, ") &&
              strstr(printed->out, ", plain placement, zero-bubble, "),
          "%s", printed->out);
    check_same_checkpoint("copies0", "kept");
    check_error(run(1, "train --resume kept --timeout 77"), "--timeout is for mpi and nccl");
    check_error(run(1, "train --resume alone --replicas 2"), "--replicas needs --pipeline");
    run(0, "train --resume kept --steps 13 --quiet --pipeline none");
}

/* With fewer replicas a pipeline has more ranks, which may be too many for its placement so far. */
static void fewer_replicas_are_placed_again(void) {
    run(0, "train " LLAMA
           "--steps 2 --quiet --out halves --pipeline local:4 --replicas 2 --placement virtual");
    const Printed *printed = run(0, "train --resume halves --steps 3 --replicas 1");
    CHECK(strstr(printed->out, "4 ranks (threads), plain placement, "), "%s", printed->out);
}

/* Threads wait for each other however long the process was stopped, as by Ctrl-Z. */
static void a_stopped_process_goes_on(void) {
    static const char checkpoint[] = "paused/checkpoint.h5";
    pid_t process =
        program_start("train " LLAMA ENDLESS "--save-every 5 --pipeline local:3 --out paused");
    wait_for_saves(process, checkpoint, inode_of(checkpoint), 2);
    kill(process, SIGSTOP);
    sleep_ms(400);
    kill(process, SIGCONT);
    CHECK(wait_for_saves(process, checkpoint, inode_of(checkpoint), 3), "it does not go on");
    kill(process, SIGTERM);
    int status = program_wait(process);
    CHECK(status == 128 + SIGTERM, "status %d", status);
}

/* The submodels of --placement figure2 are not contiguous; a resume with other ranks keeps them.
 * */
static void figure_2_keeps_its_submodels(void) {
    run(0, "train " TINY
           "--submodels 2 --steps 11 --quiet --out figure --pipeline local:3 "
           "--placement figure2");
    RunFile file;
    char partition[OPTION_TEXT] = "";
    if (read_run(&file, "figure")) strcpy(partition, file.settings.partition);
    runfile_free(&file);
    CHECK(strcmp(partition, "0,2,4/1,3,5") == 0, "the submodels are %s", partition);
    run(0, "train --resume figure --steps 30 --quiet --pipeline local:2");
    run(0, "train " TINY "--submodels 2 --partition %s --steps 30 --quiet --out by-hand",
        partition);
    check_same_checkpoint("by-hand", "figure");
}

/* Replicas add up their gradients, which rounds differently; the training is otherwise the same,
 * and the same from run to run. */
static void replicas_share_the_batch(void) {
    run(0, "train " LLAMA "--steps 1 --quiet --out start");
    run(0, "train " LLAMA "--steps 12 --quiet --out alone");
    for (int i = 0; i < 2; i++)
        run(0, "train " LLAMA "--steps 12 --quiet --out copies%d --pipeline local:4 --replicas 2",
            i);
    check_same_run("copies0", "copies1");
    compare_checkpoints("alone/checkpoint.h5", "copies0/checkpoint.h5", "start/checkpoint.h5",
                        1e-3);
}

/* Neither the replicas nor the micro-batches of one have as many samples as the others. */
static void shares_of_the_batch_are_uneven(void) {
#define UNEVEN                                                                                  \
    "--model llama:layers=4,width=16,heads=2,ffn=24,context=16 --data words.tokens --limit 32 " \
    "--batch 7 --optimizer adam --lr 1e-2 --schedule constant --submodels 3 --switch-every 4 "
    run(0, "train " UNEVEN "--steps 1 --quiet --out uneven-start");
    run(0, "train " UNEVEN "--steps 9 --quiet --out uneven-alone");
    run(0, "train " UNEVEN
           "--steps 9 --quiet --out uneven --pipeline local:4 --replicas 2 --accumulate 3");
    compare_checkpoints("uneven-alone/checkpoint.h5", "uneven/checkpoint.h5",
                        "uneven-start/checkpoint.h5", 1e-3);
}

/* ---- what is reported ---------------------------------------------------------------------- */

/* The peaks of all ranks together are as planned. */
static void memory_is_as_planned(const void *flags) {
    RunFile file;
    const bool infers = strstr(flags, "--pre-infer");
    const char *dir = infers ? "reported-infer" : "reported";
    const Printed *printed = run(0, "train " LLAMA "--steps 22 --out %s --pipeline local:2 %s", dir,
                                 (const char *)flags);
    CHECK(strstr(printed->out, "2 ranks (threads), virtual placement, 1f1b, 4 parts"), "\"%s\"",
          printed->out);
    CHECK(strstr(printed->out, "2 ranks together"), "\"%s\"", printed->out);
    CHECK(!infers || strstr(printed->out, "pre-inference for submodel 2: 32 samples in "), "\"%s\"",
          printed->out);
    if (!read_run(&file, dir)) return;
    const double all = file.curve[file.curve_rows - 1].seconds;
    CHECK(infers ? file.inference_seconds > 0 && file.inference_seconds < all
                 : file.inference_seconds == 0,
          "pre-inference took %g of %g s", file.inference_seconds, all);
    uint64_t now = 0;
    for (int role = 0; role < MEM_ROLES; role++) now += file.memory[role].current;
    CHECK(file.memory[MEM_ROLES].current == now &&
              (infers || file.memory[MEM_PARAMETERS].current == file.memory[MEM_PARAMETERS].peak),
          "at the end %llu bytes, and %llu of parameters",
          (unsigned long long)file.memory[MEM_ROLES].current,
          (unsigned long long)file.memory[MEM_PARAMETERS].current);
    for (int role = 0; role < MEM_ROLES; role++)
        if (role != MEM_CACHE) /* the cache takes what the samples need */
            CHECK(file.memory[role].peak == file.memory[role].planned,
                  "%s: peak %llu, planned %llu", file.memory[role].role,
                  (unsigned long long)file.memory[role].peak,
                  (unsigned long long)file.memory[role].planned);
    runfile_free(&file);
}

/* With fewer ranks the peaks are those of these ranks, which need less. */
static void memory_is_that_of_the_last_ranks(void) {
    RunFile file;
    run(0, "train " LLAMA "--steps 8 --quiet --out fewer --pipeline local:4 --placement plain");
    run(0, "train --resume fewer --steps 22 --quiet --pipeline none");
    if (!read_run(&file, "fewer")) return;
    for (int role = 0; role <= MEM_ROLES; role++)
        CHECK(file.memory[role].peak == file.memory[role].planned, "%s: peak %llu, planned %llu",
              file.memory[role].role, (unsigned long long)file.memory[role].peak,
              (unsigned long long)file.memory[role].planned);
    runfile_free(&file);
}

/* A cache holds the outputs of 32 samples, of 16 x 16 numbers each, and those of a batch on their
 * way: of a micro-batch of 2, or over ranks of the whole batch of 8.  That much is announced. */
static void a_batch_of_the_cache_is_counted(void) {
    static const char *const flags[] = {"--out cache-alone", "--out cache-rank --pipeline local:1"};
    static const char *const dir[] = {"cache-alone", "cache-rank"};
    for (int i = 0; i < 2; i++) {
        RunFile file;
        const size_t samples = i ? 32 + 8 : 32 + 2, expected = samples * 16 * 16 * sizeof(real);
        const Text said = text_of("and up to %s of --cache\n", format_bytes((double)expected).text);
        const char *printed = run(0, "train " LLAMA "--steps 14 --cache 1M %s", flags[i])->out;
        CHECK(strstr(printed, said.text), "not %s: %s", said.text, printed);
        if (!read_run(&file, dir[i])) continue;
        CHECK(file.memory[MEM_CACHE].peak == expected, "%llu bytes, not %llu",
              (unsigned long long)file.memory[MEM_CACHE].peak, (unsigned long long)expected);
        runfile_free(&file);
    }
}

/* A resume keeps the peak of a cache, which is in no plan, unless it moves to another device. */
static void a_resume_keeps_the_peak_of_a_cache(void) {
    RunFile file;
    run(0, "train " LLAMA "--steps 14 --quiet --out cache-peak --cache 1M");
    if (!read_run(&file, "cache-peak")) return;
    const uint64_t cache = file.memory[MEM_CACHE].peak, total = file.memory[MEM_ROLES].peak;
    runfile_free(&file);
    run(0, "train --resume cache-peak --steps 15 --quiet");
    if (!read_run(&file, "cache-peak")) return;
    CHECK(cache > 0 && file.memory[MEM_CACHE].peak == cache && file.memory[MEM_ROLES].peak == total,
          "cache %llu, total %llu", (unsigned long long)file.memory[MEM_CACHE].peak,
          (unsigned long long)file.memory[MEM_ROLES].peak);
    runfile_free(&file);
    run(0, "train --resume cache-peak --steps 16 --quiet --cache 1 --device plain");
    if (!read_run(&file, "cache-peak")) return;
    CHECK(file.memory[MEM_CACHE].peak < cache / 2, "cache %llu on another device",
          (unsigned long long)file.memory[MEM_CACHE].peak);
    runfile_free(&file);
}

/* Batch norms see what a replica has, so that replicas do not only round differently, and a resume
 * keeps them. */
static void replicas_of_batch_norms(void) {
    const char *words =
        "batch norms see 1 sample at a time, of a replica, which changes the result";
    run(0, "train " STAGES "--steps 2 --quiet --out norm");
    check_error(run(1, "train --resume norm --steps 4 --quiet --pipeline local:2 --replicas 2"),
                "--replicas 2: this run was started with 1, and its batch norms would see other");
    const char *printed = run(0, "train " STAGES
                                 "--steps 2 --out norm-copies --pipeline local:2 "
                                 "--replicas 2")
                              ->out;
    CHECK(strstr(printed, words), "%s", printed);
    check_error(run(1, "train --resume norm-copies --steps 4 --quiet --pipeline none"),
                "--replicas 1: this run was started with 2");
    CHECK(remove(scratch_path("norm-copies/run.h5")) == 0, "cannot remove");
    check_error(run(1, "train --resume norm-copies --steps 4 --quiet"),
                "--replicas 1: this run was started with 2");
    run(0, "train --resume norm-copies --steps 4 --quiet --pipeline local:2 --replicas 2");
}

/* The two parts of a tied embedding's gradient are on two ranks, and those of replicas on others.
 */
static void rounding_is_reported(void) {
    static const char words[] = "added up over ranks, so this differs from one device by rounding";
    static const struct {
        const char *flags;
        bool reported;
    } trainings[] = {
        {GPT "--pipeline local:2", true},
        {GPT "--pipeline local:1", false},
        {LLAMA "--pipeline local:2", false},
        {GPT, false},
        {LLAMA "--pipeline local:2 --replicas 2", true},
    };
    for (size_t i = 0; i < sizeof trainings / sizeof *trainings; i++) {
        const Printed *printed = run(0, "train %s --steps 1 --out tied%zu", trainings[i].flags, i);
        CHECK((strstr(printed->out, words) != NULL) == trainings[i].reported, "%s: \"%s\"",
              trainings[i].flags, printed->out);
    }
}

static const struct {
    const char *flags, *says;
} wrong[] = {
    {"--pipeline local:0", "local:N needs a number of ranks from 1 to 64"},
    {"--pipeline local:x", "local:N needs a number of ranks"},
    {"--pipeline local", "it takes none, local:N, mpi or nccl"},
    {"--pipeline tcp", "it takes none, local:N, mpi or nccl"},
    {"--pipeline local:3 --replicas 2", "--replicas 2: 3 ranks are not a multiple of that"},
    {"--replicas 2", "--replicas needs --pipeline"},
    {"--cache 1M --pre-infer", "--pre-infer needs --pipeline"},
    {"--pipeline local:2 --pre-infer", "--pre-infer computes what --cache keeps"},
    {"--placement virtual", "--placement needs --pipeline"},
    {"--pipeline-schedule 1f1b --pipeline none", "--pipeline-schedule needs --pipeline"},
    {"--pipeline local:16 --replicas 16", "--replicas 16: a batch has only 8 samples"},
    {"--pipeline local:2 --order gauss-southwell", "--order gauss-southwell is for one device"},
    {"--pipeline local:2 --placement figure2 --always-active ends",
     "--placement figure2 puts every block into a submodel"},
    {"--pipeline mpi --correct-above 0.1", "--correct-above is for one device"},
    {"--pipeline local:2 --device simt --method offload", "--method offload is for one device"},
    {"--pipeline local:2 --device simt --cache 1M --device-cache 1M",
     "--device-cache is for one device; with --pipeline use --cache"},
    {"--pipeline local:65", "local:N needs a number of ranks from 1 to 64"},
};

static void wrong_use_is_reported(void) {
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char line[1024];
        snprintf(line, sizeof line, "train " LLAMA "--steps 2 --quiet --out wrong %s",
                 wrong[i].flags);
        const Printed *printed = program_run(line, 0);
        CHECK(printed->status == 2, "%s: status %d", wrong[i].flags, printed->status);
        check_error(printed, wrong[i].says);
    }
    check_error(run(1, "train " LLAMA "--out wrong --pipeline nccl"),
                "--pipeline nccl needs --device cuda");
    check_error(run(1, "train " LLAMA "--out wrong --pipeline local:7"), "too few for 7 ranks");
    check_error(run(1, "train " LLAMA "--out wrong --pipeline local:4 --placement virtual"),
                "too few for 4 pieces");
    check_error(run(1, "train " STAGES "--out wrong --pipeline local:2 --placement virtual"),
                "contiguous in depth, without blocks that are always active; give --always-active "
                "none");
}

/* ---- interrupted --------------------------------------------------------------------------- */

/* With pre-inference the ranks may be killed in the middle of it. */
static void killed_ranks_resume(void) {
    pid_t process = program_start("train " LLAMA ENDLESS
                                  "--save-every 5 --out ranks-cut --pipeline local:3 --cache 1M "
                                  "--pre-infer");
    wait_for_saves(process, "ranks-cut/checkpoint.h5", 0, 4);
    kill(process, SIGKILL);
    CHECK(program_wait(process) == -SIGKILL, "ended before it was killed");
    int steps = steps_beyond("ranks-cut");
    run(0, "train --resume ranks-cut --steps %d --quiet --pipeline local:2", steps);
    run(0, "train " LLAMA "--steps %d --quiet --out ranks-unkilled", steps);
    check_same_run("ranks-unkilled", "ranks-cut");
}

void test_ranks(void) {
    make_words();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        RUN_ROW(rows[i].name, same_as_one_device, &rows[i]);
    RUN(any_number_of_ranks_resumes);
    RUN(figure_2_keeps_its_submodels);
    RUN(a_stopped_process_goes_on);
    RUN(replicas_share_the_batch);
    RUN(shares_of_the_batch_are_uneven);
    RUN(a_resume_keeps_its_ranks);
    RUN(fewer_replicas_are_placed_again);
    RUN_ROW("memory_is_as_planned", memory_is_as_planned, "");
    RUN_ROW("memory_is_as_planned pre-inference", memory_is_as_planned, "--cache 1M --pre-infer");
    RUN(memory_is_that_of_the_last_ranks);
    RUN(a_batch_of_the_cache_is_counted);
    RUN(a_resume_keeps_the_peak_of_a_cache);
    RUN(replicas_of_batch_norms);
    RUN(rounding_is_reported);
    RUN(wrong_use_is_reported);
    RUN(killed_ranks_resume);
}
