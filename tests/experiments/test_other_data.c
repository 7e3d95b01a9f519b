/* Data that are not those of the training, or too few. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../experiments/base/text.h"
#include "cli.h"

#define TINY "--model gpt:layers=1,width=8,heads=1,context=4 "
#define TRAIN "train " TINY "--schedule constant --batch 2 --quiet "

static void make_tokens(const char *name, const char *text) {
    scratch_text("own.txt", text);
    run(0, "tokenize own.txt --tokenizer bytes --out %s", name);
}

static const char abc[] = "abc bca cab abc bca cab abc bca cab abc bca cab abc bca cab abc";
static const char xyz[] = "xyz yzx zxy xyz yzx zxy xyz yzx zxy xyz yzx zxy xyz yzx zxy xyz";

/* By a resume and by an evaluation; only a user who names the file means it. */
static void what_was_replaced_is_refused(void) {
    static const char trained[] = "data.tokens is not the one this run was trained on";
    static const char evaluated[] = "tokens is not the one this run was evaluated on";
    make_tokens("data.tokens", abc);
    make_tokens("judge.tokens", abc);
    run(0, TRAIN "--data data.tokens --steps 3 --out found");
    run(0, TRAIN "--data words.tokens --valid judge.tokens --steps 3 --out judged");
    make_tokens("data.tokens", xyz);
    make_tokens("judge.tokens", xyz);
    check_error(run(1, "train --resume found --steps 4"), trained);
    check_error(run(1, "eval found --split train"), trained);
    check_error(run(1, "eval found"), evaluated);
    check_error(run(1, "eval judged"), evaluated);
    check_error(run(1, "train --resume judged --steps 4"), evaluated);
    run(0, "eval found --data data.tokens");
    run(0, "eval judged --valid judge.tokens");
}

/* A training of thousands of steps, of whose flags used.tokens is overwritten in place. */
static int overwritten(const char *name, const char *flags, off_t length) {
    const Text line = text_of(TRAIN "%s " ENDLESS "--save-every 5 --out %s", flags, name);
    const Text checkpoint = text_of("%s/checkpoint.h5", name);
    copy_file("used.tokens", "words.tokens");
    pid_t process = program_start(line.text);
    if (!wait_for_saves(process, checkpoint.text, 0, 2)) return 0;
    const char *path = scratch_path("used.tokens"); /* not valid for long */
    FILE *file = fopen(path, "r+b");
    fseek(file, 1000, SEEK_SET);
    fputs("others", file);
    fclose(file);
    CHECK(truncate(path, length) == 0, "not truncated");
    return program_wait(process);
}

/* Checks that the training ended after an update, the last of its curve, with this error. */
static void check_noticed(const char *dir, const char *error) {
    RunFile file;
    size_t count;
    char *text = read_bytes("started", &count);
    if (read_run(&file, dir)) {
        const Text line = text_of("bcd: step %zu: %s", file.curve_rows, error);
        CHECK(strstr(text, line.text), "no \"%s\": %s", line.text, text);
    }
    runfile_free(&file);
    free(text);
}

static void what_is_overwritten_is_noticed(void) {
    size_t count;
    static const char written[] = "used.tokens: its file was written to while it was in use";
    CHECK(overwritten("misjudged", "--data words.tokens --valid used.tokens", 12064) == 1,
          "not noticed of the data to evaluate on");
    check_noticed("misjudged", written);
    CHECK(overwritten("overwritten", "--data used.tokens", 12064) == 1, "not noticed");
    check_noticed("overwritten", written);
    copy_file("used.tokens", "words.tokens");
    run(0, "train --resume overwritten --steps %d --quiet", steps_beyond("overwritten"));
    const int status = overwritten("cut", "--data used.tokens", 64);
    char *text = read_bytes("started", &count);
    CHECK(status == 1 && (strstr(text, "bcd: a data file was cut short while it was in use") ||
                          strstr(text, "its file was written to")),
          "status %d: %s", status, text);
    free(text);
}

/* Its checksum tells that it is the same; a text can be sampled without it. */
static void what_was_moved_is_found(void) {
    make_tokens("before.tokens", abc);
    make_tokens("after.tokens", abc);
    run(0, TRAIN "--data before.tokens --steps 3 --out moved");
    unlink(scratch_path("before.tokens"));
    check_error(run(1, "train --resume moved --steps 4"), "before.tokens");
    run(0, "train --resume moved --data after.tokens --steps 4 --quiet");
    unlink(scratch_path("after.tokens"));
    run(0, "sample moved --tokens 3");
}

/* A copy of the training data is no text that was held out, wherever the first one is. */
static void what_was_trained_on_is_known_elsewhere(void) {
    char score[300];
    make_tokens("here.tokens", abc);
    make_tokens("copy.tokens", abc);
    run(0, TRAIN "--data here.tokens --steps 3 --out known");
    snprintf(score, sizeof score, "%s", strchr(run(0, "eval known")->out, '('));
    for (int gone = 0; gone < 2; gone++) {
        const char *out = run(0, "eval known --data copy.tokens")->out;
        CHECK(strstr(out, "valid split of copy.tokens") && strstr(out, score), "%s, not %s", out,
              score);
        unlink(scratch_path("here.tokens"));
    }
    run(0, TRAIN "--data words.tokens --valid copy.tokens --steps 1 --out all-known");
    check_error(run(1, "eval all-known --data words.tokens"),
                "--data words.tokens: all of it was trained on");
    CHECK(strstr(run(0, "eval all-known --data words.tokens --split train")->out, "train split of"),
          "what was trained on");
}

/* Without run.h5 the checkpoint says where the data are, however long their path is. */
static void a_checkpoint_names_its_data(void) {
    const char long_name[] = "a-name-that-is-longer-than-what-a-data-set-is-called-here.tokens";
    make_tokens(long_name, abc);
    run(0, TRAIN "--data %s --steps 3 --out alone", long_name);
    CHECK(unlink(scratch_path("alone/run.h5")) == 0, "setup");
    CHECK(strstr(run(0, "eval alone")->out, "valid split of a-name-"), "%s", "no evaluation");
    run(0, "train --resume alone --steps 4 --quiet");
}

/* The settings and the data of an evaluation are those of the checkpoint. */
static void a_checkpoint_beside_another_run(void) {
    run(0, TRAIN "--data words.tokens --steps 2 --out mine");
    run(0, TRAIN "--data words.tokens --seed 2 --steps 2 --out seed2");
    make_tokens("theirs.tokens", abc);
    run(0, TRAIN "--data theirs.tokens --steps 2 --out theirs");
    for (int i = 0; i < 2; i++) {
        const char *from = i ? "theirs" : "seed2";
        copy_file("mine/from.h5", text_of("%s/checkpoint.h5", from).text);
        check_error(run(1, "eval mine/from.h5"),
                    i ? "mine/run.h5 is of another run: it was trained on other data"
                      : "they are of different runs");
    }
}

/* Of a checkpoint from a later session the curves would have a hole. */
static void a_checkpoint_beyond_the_curves(void) {
    size_t before, after;
    run(0, TRAIN "--data words.tokens --steps 4 --out curves4");
    run(0, TRAIN "--data words.tokens --steps 6 --out curves6");
    copy_file("curves4/checkpoint.h5", "curves6/checkpoint.h5");
    char *curves = read_bytes("curves4/run.h5", &before);
    check_error(
        run(1, "train --resume curves4 --steps 8"),
        "curves4: checkpoint.h5 is of step 6, and the curves of run.h5 end at step 4; if you "
        "remove that file, the run can continue, with new curves");
    char *now = read_bytes("curves4/run.h5", &after);
    CHECK(before == after && !memcmp(curves, now, after), "run.h5 was written");
    free(curves);
    free(now);
    CHECK(unlink(scratch_path("curves4/run.h5")) == 0, "setup");
    run(0, "train --resume curves4 --steps 6 --quiet");
    run(0, "train --resume curves4 --steps 8 --quiet");
}

/* The model of a run reads tokens or images; data of the other kind are refused. */
static void data_of_the_other_kind(void) {
    run(0,
        "train --model resnet:depth=8,width=2 --data synthetic --limit 8 --batch 4 --steps 1 "
        "--out seer --quiet");
    check_error(run(1, "eval mine --data synthetic"), " reads tokens, synthetic holds images");
    check_error(run(1, "eval seer --data words.tokens"),
                " reads images, words.tokens holds tokens");
    check_error(run(1, "eval seer --valid words.tokens"),
                " reads images, words.tokens holds tokens");
    check_error(run(2, "eval mine --data words.tokens --valid theirs.tokens"),
                "--valid is what is evaluated on; leave out --data");
}

static void a_text_has_no_test_split(void) {
    run(0, TRAIN "--data words.tokens --steps 1 --out text");
    check_error(run(1, "eval text --split test"), "words.tokens: a text without a test split");
    check_error(run(2, "eval text --valid words.tokens --split train"),
                "--valid is what the valid split is; it goes with no --split train");
}

/* Of a token file that was not trained on all is evaluated, whichever flag names it. */
static void all_of_a_file_that_was_held_out(void) {
    static const char *const lines[] = {"eval whole", "eval whole --data judge.tokens",
                                        "eval --init wholly --data judge.tokens",
                                        "eval --init wholly --valid judge.tokens"};
    char score[300] = "";
    make_tokens("judge.tokens", abc);
    run(0, TRAIN "--data words.tokens --valid judge.tokens --steps 0 --out whole");
    run(0, "export whole --out wholly --quiet");
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        const char *out = run(0, "%s", lines[i])->out, *found = strstr(out, ", judge.tokens (15 ");
        if (!*score) snprintf(score, sizeof score, "%s", found ? found : "nothing");
        CHECK(found && strcmp(found, score) == 0, "%s: %s, not %s", lines[i], out, score);
    }
    const char *part = run(0, "eval --init wholly --data judge.tokens --split train")->out;
    CHECK(strstr(part, "train split of judge.tokens (14 "), "%s", part);
    part = run(0, "eval --init wholly --data words.tokens --split valid")->out;
    CHECK(strstr(part, "valid split of words.tokens (149 "), "%s", part);
}

/* A sample would be in it several times. */
static void no_batch_of_more_samples_than_there_are(void) {
    static const char line[] = "train " TINY "--data words.tokens --steps 1 --out big ";
    check_error(run(1, "%s --batch 2000", line),
                "--batch 2000: words.tokens has only 1349 samples");
    check_error(run(1, "%s --batch 2 --fraction 0.001", line),
                "has only 1349 samples, of which --fraction takes 1");
}

/* With --valid nothing is held out of the training data, and evaluation reads the given file. */
static void validates_on_a_file(void) {
    RunFile file;
    char expected[96];
    const char *spare = "tokenize some.txt --tokenizer bytes --out spare.tokens";
    scratch_text("some.txt", "abc bca cab abc bca cab abc bca cab abc");
    run(0, "%s", spare);
    run(0,
        "train --model gpt:layers=1,width=8,heads=1,context=4 --data words.tokens --valid "
        "spare.tokens --steps 3 --batch 2 --out own --quiet");
    if (!read_run(&file, "own")) return;
    CHECK(file.samples == (6000 - 1) / 4, "%d samples", (int)file.samples);
    snprintf(expected, sizeof expected, ", spare.tokens (9 samples of 4 tokens): loss %.4f",
             file.evaluations[0].loss);
    CHECK(strstr(run(0, "eval own")->out, expected), "expected %s", expected);
    CHECK(fabs(file.evaluations[0].perplexity - exp(file.evaluations[0].loss)) < 1e-9,
          "perplexity %g", file.evaluations[0].perplexity);
    runfile_free(&file);
    run(0,
        "train --model gpt:layers=1,width=8,heads=1,context=4 --data words.tokens --limit 20 "
        "--eval-samples 2 --steps 1 --batch 2 --out short --quiet");
    CHECK(strstr(run(0, "eval short")->out, "words.tokens (2 samples of") &&
              strstr(run(0, "eval short --data spare.tokens --split train")->out, "(8 samples of"),
          "all of other data");
    check_error(run(2, "train " RESNET "--valid spare.tokens --steps 1"),
                "--valid is for language models");
}

void test_other_data(void) {
    make_words();
    RUN(what_was_replaced_is_refused);
    RUN(what_is_overwritten_is_noticed);
    RUN(what_was_moved_is_found);
    RUN(what_was_trained_on_is_known_elsewhere);
    RUN(a_checkpoint_names_its_data);
    RUN(a_checkpoint_beside_another_run);
    RUN(validates_on_a_file);
    RUN(a_checkpoint_beyond_the_curves);
    RUN(data_of_the_other_kind);
    RUN(a_text_has_no_test_split);
    RUN(all_of_a_file_that_was_held_out);
    RUN(no_batch_of_more_samples_than_there_are);
}
