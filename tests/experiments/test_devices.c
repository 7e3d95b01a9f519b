/* The program on other devices than the CPU.  SIMT, which runs the kernels of the GPU thread by
 * thread on the processor, is available wherever these tests run; as it is slow, the trainings are
 * tiny. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"
#include "compare.h"

/* Trainings of two steps per submodel.  Adam is for the model without biases: the gradient of a
 * key's bias is 0 except for rounding errors, which Adam would scale up to whole steps. */
#define SMALL_RESNET                                                                     \
    "--model resnet:depth=8,width=2 --data synthetic --limit 8 --batch 2 --submodels 3 " \
    "--switch-every 2 --threads 1 "
#define WORDS "--data words.tokens --limit 8 --batch 2 --threads 1 "
#define PLAINLY "--schedule constant --clip 0 "
#define GPT_WORDS "--model gpt:layers=2,width=8,heads=2,context=8 --optimizer sgd " PLAINLY WORDS
#define SMALL_GPT GPT_WORDS "--submodels 2 --switch-every 2 "
#define LLAMA "--model llama:layers=2,width=8,heads=2,context=8 --lr 1e-3 " PLAINLY WORDS
#define LLAMA_WORDS LLAMA "--optimizer adam "
#define SMALL_LLAMA LLAMA_WORDS "--submodels 2 --switch-every 2 "

/* ---- who computed what --------------------------------------------------------------------- */

static void sessions_are_recorded(void) {
    RunFile file;
    run(0, "train " SMALL_RESNET "--steps 2 --out twice --quiet");
    sleep_ms(1000); /* a unit of the times */
    run(0, "train --resume twice --steps 4 --quiet");
    if (read_run(&file, "twice") &&
        CHECK(file.session_rows == 2, "%zu sessions", file.session_rows)) {
        CHECK(!strcmp(file.provenance.started, file.sessions[0].started) &&
                  strcmp(file.sessions[1].started, file.sessions[0].started) > 0,
              "started %s; the sessions %s and %s", file.provenance.started,
              file.sessions[0].started, file.sessions[1].started);
        for (uint64_t s = 0; s < 2; s++)
            CHECK(file.sessions[s].step == 2 * s && !strcmp(file.sessions[s].device, "cpu") &&
                      !strcmp(file.sessions[s].precision, "fp32") && *file.sessions[s].computer,
                  "session %d: step %d, %s, %s", (int)s, (int)file.sessions[s].step,
                  file.sessions[s].device, file.sessions[s].precision);
    }
    runfile_free(&file);
    run(0, "train --resume twice --steps 6 --quiet --threads 1 --pipeline local:2");
    if (read_run(&file, "twice") &&
        CHECK(file.session_rows == 3, "%zu sessions", file.session_rows))
        CHECK(file.sessions[1].ranks == 0 && file.sessions[2].ranks == 2 &&
                  file.sessions[2].threads == 1 && file.sessions[1].threads > 0,
              "%d, then %d ranks of %d threads", file.sessions[1].ranks, file.sessions[2].ranks,
              file.sessions[2].threads);
    runfile_free(&file);
}

/* A committed file is read as it was written. */
static void old_files_are_read(void) {
    RunFile file;
    const char *path = BCD_SOURCE_DIR "/experiments/results/gpt-wikitext2-bcd3.h5";
    if (!CHECK(runfile_read(&file, path) == 0, "%s", error_message())) return;
    CHECK(file.session_rows == 1 && file.sessions[0].step == 0 &&
              !strcmp(file.sessions[0].device, "cpu") &&
              !strcmp(file.sessions[0].started, file.provenance.started) &&
              !*file.provenance.accelerator && file.settings.device == DEVICE_CPU,
          "%zu sessions", file.session_rows);
    runfile_free(&file);
}

/* ---- trained ------------------------------------------------------------------------------- */

static void copy_run(const char *to, const char *from) {
    static const char *const files[] = {"run.h5", "checkpoint.h5"};
    for (int i = 0; i < 2; i++) {
        char target[64], source[64];
        snprintf(target, sizeof target, "%s/%s", to, files[i]);
        snprintf(source, sizeof source, "%s/%s", from, files[i]);
        copy_file(target, source);
    }
}

/* Returns the loss of step `step`, NAN if there is none. */
static double loss_at(const char *dir, size_t step) {
    RunFile file;
    double loss = read_run(&file, dir) && file.curve_rows >= step ? file.curve[step - 1].loss : NAN;
    runfile_free(&file);
    return loss;
}

/* ---- trained ------------------------------------------------------------------------------- */

typedef struct {
    const char *name, *flags;
} Family;

static const Family families[] = {
    {"resnet", SMALL_RESNET}, {"gpt", SMALL_GPT}, {"llama", SMALL_LLAMA}};
enum { FAMILIES = sizeof families / sizeof *families };

/* Trains three steps on one device, and the fourth on both from the same checkpoint.  Rounding
 * errors of 6e-8 through a few dozen operations are about 1e-6 of the movement. */
static void continues(const char *flags, const char *from, const char *name) {
    char first[32], cpu[48], simt[48], a[64], b[64], start[64];
    snprintf(first, sizeof first, "%s-%s", name, from);
    snprintf(cpu, sizeof cpu, "%s-then-cpu", first);
    snprintf(simt, sizeof simt, "%s-then-simt", first);
    snprintf(start, sizeof start, "%s/checkpoint.h5", first);
    snprintf(a, sizeof a, "%s/checkpoint.h5", cpu);
    snprintf(b, sizeof b, "%s/checkpoint.h5", simt);
    run(0, "train %s--steps 3 --device %s --out %s --quiet", flags, from, first);
    copy_run(cpu, first);
    copy_run(simt, first);
    run(0, "train --resume %s --steps 4 --device cpu --quiet", cpu);
    run(0, "train --resume %s --steps 4 --device simt --quiet", simt);
    compare_checkpoints(a, b, start, 2e-5);
    double x = loss_at(cpu, 4), y = loss_at(simt, 4);
    CHECK(fabs(x - y) <= 1e-5 * fabs(x), "loss %.8f on the cpu, %.8f on simt", x, y);
}

/* Only training steps need a device that has --correct-above. */
static void evaluates_what_was_corrected(void) {
    if (!has_device("simt")) SKIP("built without SIMT");
    run(0, "train " SMALL_RESNET "--correct-above 0.5 --steps 2 --out corrected --quiet");
    run(0, "eval corrected --device simt");
}

static void trains(const void *row) {
    const Family *f = row;
    if (!has_device("simt")) SKIP("built without SIMT");
    continues(f->flags, "simt", f->name);
    continues(f->flags, "cpu", f->name);
    char dir[32];
    RunFile file;
    snprintf(dir, sizeof dir, "%s-cpu-then-simt", f->name);
    if (read_run(&file, dir) && CHECK(file.session_rows == 2, "%zu sessions", file.session_rows))
        CHECK(!strcmp(file.sessions[0].device, "cpu") && !strcmp(file.sessions[1].device, "simt") &&
                  !strcmp(file.provenance.device, "simt") && *file.provenance.accelerator &&
                  *file.provenance.runtime,
              "%s, then %s", file.sessions[0].device, file.sessions[1].device);
    runfile_free(&file);
}

/* A checkpoint that is loaded to a device and saved again is the same. */
static void hands_back(const char *from, const char *device, const char *precision) {
    run(0, "train --resume %s --device %s --precision %s --quiet", from, device, precision);
}

static void nothing_is_lost(const void *row) {
    const Family *f = row;
    char first[48], copy[48], a[64], b[64];
    if (!has_device("simt")) SKIP("built without SIMT");
    snprintf(first, sizeof first, "%s-simt", f->name);
    snprintf(copy, sizeof copy, "%s-copied", f->name);
    snprintf(a, sizeof a, "%s/checkpoint.h5", first);
    snprintf(b, sizeof b, "%s/checkpoint.h5", copy);
    copy_run(copy, first);
    hands_back(copy, "simt", "bf16");
    compare_checkpoints(a, b, a, 0);
    hands_back(copy, "cpu", "fp32");
    compare_checkpoints(a, b, a, 0);
}

/* As on the CPU, a resumed training has the bits of one that was not interrupted: in every
 * precision, and with a cache on the device. */
typedef struct {
    const char *name, *flags;
    const char *watched; /* flags where a sanitizer watches, under which nothing is resumed */
} Variant;

static const Variant variants[] = {
    {"fp32", SMALL_LLAMA "--device simt ", NULL},
    {"bf16", SMALL_LLAMA "--device simt --precision bf16 ", NULL},
    {"tf32", SMALL_GPT "--device simt --precision tf32 ", NULL},
    {"resnet bf16", SMALL_RESNET "--device simt --precision bf16 ", "stage_exact"},
    {"offload bf16", LLAMA_WORDS "--device simt --precision bf16 --method offload ", NULL},
    {"offload muon", LLAMA "--optimizer muon --device simt --method offload ", NULL},
    {"kept state bf16", SMALL_LLAMA "--device simt --precision bf16 --keep-state ", "stage"},
};
enum { VARIANTS = sizeof variants / sizeof *variants };

static void resumes_exactly(const void *row) {
    const Variant *v = row;
    static int number;
    char whole[32], cut[32], to[64], from[64];
    if (!has_device("simt")) SKIP("built without SIMT");
    if (TEST_SANITIZED && v->watched) SKIP("watched in %s", v->watched);
    snprintf(whole, sizeof whole, "unbroken%d", ++number);
    snprintf(cut, sizeof cut, "broken%d", number);
    snprintf(to, sizeof to, "%s/checkpoint.h5", cut);
    run(0, "train %s--steps 5 --out %s --quiet", v->flags, whole);
    run(0, "train %s--steps 5 --save-every 1 --keep-last 5 --out %s --quiet", v->flags, cut);
    for (int step = 3; step >= 1;
         step -= 2) { /* within a submodel; before a switch, curves ahead */
        snprintf(from, sizeof from, "%s/checkpoint-%d.h5", cut, step);
        copy_file(to, from);
        run(0, "train --resume %s --quiet", cut);
        check_same_run(whole, cut);
    }
}

/* Ranks that each have a stage on the device give the bits of a single stage, and either kind of
 * run resumes the other's checkpoint. */
typedef struct {
    const char *name, *flags;
    int ranks;
    const char *schedule;
} Shared;
static const Shared shared_out[] = {
    {"llama bf16, 2 ranks", SMALL_LLAMA "--precision bf16 ", 2, "1f1b"},
    {"llama bf16, 3 ranks, recompute, cached prefix",
     SMALL_LLAMA "--precision bf16 --recompute --cache 1M ", 3, "1f1b"},
    {"resnet, 2 ranks", SMALL_RESNET, 2, "1f1b"},
    {"llama tf32, 2 ranks, zero bubble", SMALL_LLAMA "--precision tf32 ", 2, "zero-bubble"},
};

static void shares_out_the_model(const void *row) {
    const Shared *v = row;
    int number = (int)(v - shared_out);
    char whole[32], many[32];
    if (!has_device("simt")) SKIP("built without SIMT");
    snprintf(whole, sizeof whole, "undivided%d", number);
    snprintf(many, sizeof many, "divided%d", number);
    run(0, "train %s--device simt --accumulate 2 --steps 6 --out %s --quiet", v->flags, whole);
    run(0,
        "train %s--device simt --accumulate 2 --steps 3 --out %s --quiet --pipeline local:%d "
        "--pipeline-schedule %s",
        v->flags, many, v->ranks, v->schedule);
    run(0, "train --resume %s --steps 5 --quiet --pipeline local:%d", many, v->ranks);
    run(0, "train --resume %s --steps 6 --quiet", many);
    check_same_checkpoint(whole, many);
}

/* bf16 gives other numbers than fp32, though not far from them: it rounds to 8 bits, through ten
 * layers. */
static void precisions_differ(void) {
    if (!has_device("simt")) SKIP("built without SIMT");
    double plain = loss_at("unbroken1", 1), half = loss_at("unbroken2", 1);
    CHECK(plain != half && fabs(plain - half) <= 0.02 * plain, "loss %g in fp32, %g in bf16", plain,
          half);
}

static void killed_and_resumed(void) {
    if (!has_device("simt")) SKIP("built without SIMT");
    pid_t process =
        program_start("train " SMALL_GPT ENDLESS "--device simt --save-every 2 --out killed");
    wait_for_saves(process, "killed/checkpoint.h5", 0, 3);
    kill(process, SIGKILL);
    CHECK(program_wait(process) == -SIGKILL, "it was done before it was killed");
    int steps = steps_beyond("killed");
    run(0, "train --resume killed --steps %d --quiet", steps);
    run(0, "train " SMALL_GPT "--device simt --steps %d --out unkilled --quiet", steps);
    check_same_run("unkilled", "killed");
}

/* Runs six steps of four to the epoch above a frozen prefix.  The last two find its outputs in the
 * cache: on the device, in host memory, and in a file. */
#define CACHED \
    GPT_WORDS "--device simt --submodels 2 --switch-every 6 --order descending --steps 7 "

static void caches_do_not_matter(void) {
    if (!has_device("simt")) SKIP("built without SIMT");
    run(0, "train " CACHED "--out plain-steps --quiet");
    run(0, "train " CACHED "--recompute --cache 512 --device-cache 1K --out cached --quiet");
    check_same_checkpoint("plain-steps", "cached");
    run(0, "train --like cached --submodels 1 --steps 1 --out uncached --quiet"); /* without both */
}

static void trains_by_the_plain_ops(void) {
    run(0, "train " LLAMA_WORDS "--steps 4 --quiet --out on-cpu");
    run(0, "train " LLAMA_WORDS "--steps 4 --quiet --device plain --out plain");
    double x = loss_at("on-cpu", 4), y = loss_at("plain", 4);
    CHECK(fabs(x - y) <= 1e-5 * fabs(x), "loss %.8f, by the plain ops %.8f", x, y);
}

static void offloads(void) {
    if (!has_device("simt")) SKIP("built without SIMT");
    run(0, "train " LLAMA_WORDS "--steps 4 --quiet --device simt --method offload --out offloaded");
    RunFile file;
    if (read_run(&file, "offloaded"))
        CHECK(file.memory[MEM_STATE].peak == 0 && file.memory[MEM_GRADIENTS].peak > 0,
              "%d bytes of state on the device", (int)file.memory[MEM_STATE].peak);
    runfile_free(&file);
    for (size_t step = 1; step <= 4; step++) {
        double x = loss_at("on-cpu", step), y = loss_at("offloaded", step);
        CHECK(fabs(x - y) <= 1e-5 * fabs(x), "step %zu: loss %.8f, offloaded %.8f", step, x, y);
    }
    /* The checkpoint has the state of the optimizer, with which any device can resume. */
    copy_run("halfway", "offloaded");
    copy_run("onloaded", "offloaded");
    run(0, "train --resume onloaded --steps 5 --device cpu --method bcd --quiet");
    run(0, "train --resume offloaded --steps 5 --quiet");
    compare_checkpoints("onloaded/checkpoint.h5", "offloaded/checkpoint.h5",
                        "halfway/checkpoint.h5", 2e-5);
}

/* ---- the other commands -------------------------------------------------------------------- */

static void evaluates_and_samples(void) {
    if (!has_device("simt")) SKIP("built without SIMT");
    char text[256];
    snprintf(text, sizeof text, "%.255s", run(0, "eval gpt-simt")->out);
    CHECK(strcmp(text, run(0, "eval gpt-simt --device simt")->out) == 0, "%s, on simt %s", text,
          run(0, "eval gpt-simt --device simt")->out);
    snprintf(text, sizeof text, "%.255s",
             run(0, "sample gpt-simt --tokens 4 --temperature 0")->out);
    CHECK(
        strcmp(text, run(0, "sample gpt-simt --tokens 4 --temperature 0 --device simt")->out) == 0,
        "another text");
}

static void traces(void) {
    if (!has_device("simt")) SKIP("built without SIMT");
    const Printed *printed =
        run(0, "trace --model llama:layers=2,width=8,heads=2,context=8 " WORDS
               "--optimizer adam --submodels 2 --device simt --precision bf16");
    CHECK(strstr(printed->out, "one adam step of 2 sequences, bf16, SIMT") &&
              strstr(printed->out, "by the device's own clock"),
          "%s", printed->out);
}

static void refuses_large_models(void) {
    if (!has_device("simt")) SKIP("built without SIMT");
    const Printed *printed =
        run(1, "train --data words.tokens --model " TOO_LARGE " --device simt --out never");
    check_error(printed, "GiB");
    check_error(printed, "parameters");
    CHECK(!file_exists(scratch_path("never")), "a directory was made for nothing");
}

void test_devices(void) {
    make_words();
    RUN(sessions_are_recorded);
    RUN(old_files_are_read);
    for (int i = 0; i < FAMILIES; i++) RUN_ROW(families[i].name, trains, &families[i]);
    for (int i = 0; i < FAMILIES; i++) RUN_ROW(families[i].name, nothing_is_lost, &families[i]);
    for (int i = 0; i < VARIANTS; i++) RUN_ROW(variants[i].name, resumes_exactly, &variants[i]);
    RUN(precisions_differ);
    for (size_t i = 0; i < sizeof shared_out / sizeof *shared_out; i++)
        RUN_ROW(shared_out[i].name, shares_out_the_model, &shared_out[i]);
    RUN(killed_and_resumed);
    RUN(caches_do_not_matter);
    RUN(trains_by_the_plain_ops);
    RUN(offloads);
    RUN(evaluates_and_samples);
    RUN(evaluates_what_was_corrected);
    RUN(traces);
    RUN(refuses_large_models);
}
