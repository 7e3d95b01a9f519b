/* What `bcd train` prints. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../experiments/base/text.h"
#include "../../experiments/train/modules.h"
#include "../../experiments/train/progress.h"
#include "cli.h"

static void help_has_each_section_once(void) {
    static const char *const sections[] = {"\nModel and data\n", "\nOptimizer\n", "\nRunning\n"};
    const char *help = run(0, "train --help")->out;
    for (int i = 0; i < 3; i++) {
        const char *section = strstr(help, sections[i]);
        CHECK(section && !strstr(section + 1, sections[i]), "%s", sections[i]);
    }
}

/* Returns true for flags that need SIMT, where it was not built. */
static bool needs_more(const char *flags) {
    return strstr(flags, "simt") && !device_module_open("simt");
}

/* Checks the lines before the first step. */
static void says_what_it_trains(void) {
    static const char gpt[] =
        "--model gpt:layers=3,width=16,heads=2,context=16 --data words.tokens --limit 32";
    static const struct {
        const char *flags, *line;
    } rows[] = {
        {"--optimizer sgd", "ordinary training, the whole network at once\n"},
        {"--optimizer sgd", ", 1 step ("},
        {"--optimizer sgd",
         "\nsgd trains language models badly from scratch; the default is adamw\n"},
        {"--method offload --device simt", "at once; optimizer state and update in host memory\n"},
        /* (256 + 16) w for tokens and positions, 12 w^2 + 13 w in a block, 2 w in the head */
        {"--submodels 2", " of 7.6k, 6.6k parameters (the largest 7.3 % over the mean), cyclic"},
        {"--submodels 2 --always-active block1", ", and 3.3k that are always active, cyclic order"},
        {"--submodels 2 --switch-every 1", "the next one after 1 step\n"},
        {"--submodels 2 --switch-every 2e", "the next one after 2 epochs\n"},
        {"--submodels 2 --switch-every auto", "the next one when the loss stops falling\n"},
        {"--fraction 0.25 --submodels 2", "\ndataset reduction: each submodel sees 0.25 of them\n"},
        {"--warmup 7 --clip 2 --schedule constant", "(constant, warm-up 7 steps, clipped at 2)"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (needs_more(rows[i].flags)) continue;
        const Printed *printed = run(0, "train %s --batch 4 --steps 1 --threads 1 --out said%zu %s",
                                     gpt, i, rows[i].flags);
        CHECK(strstr(printed->out, rows[i].line), "%s: %s", rows[i].flags, printed->out);
    }
}

/* Settings that are allowed, and hardly what is wanted, are named in the first line. */
static void names_what_is_doubtful(void) {
    static const char gpt[] =
        "--model gpt:layers=3,width=16,heads=2,context=16 --data words.tokens --limit 32";
    /* 32 samples are 8 batches an epoch. */
    static const struct {
        const char *flags, *line;
    } rows[] = {
        {"--submodels 3 --steps 12",
         "12 updates train only 2 of 3 submodels, as a phase takes 8; --switch-every 4 "
         "gives each a turn\n"},
        {"--submodels 3 --steps 2 --switch-every 1", "2 updates train only 2 of 3 submodels\n"},
        {"--submodels 2 --steps 5 --brief --switch-every auto",
         "5 updates train only 1 of 2 submodels, as a phase takes 100; --switch-every 2 "
         "gives each a turn\n"},
        {"--warmup 8 --steps 2 --lr 0.1",
         "the warm-up takes 8 updates, and the training 2: the rate reaches 0.025 of 0.1\n"},
        {"--submodels 2 --steps 4 --switch-every 2 --switch-warmup 5 --lr 0.1",
         "a phase takes 2 updates, and its warm-up 5: the rate reaches 0.04 of 0.1\n"},
        {"--steps 1 --valid ./words.tokens",
         "--valid has the tokens of --data: validation is on what is trained on\n"},
        {"--submodels 2 --steps 16 --cache 1M",
         "a phase of 8 updates is at most an epoch: it sees few samples twice, and --cache saves "
         "little\n"},
        {"--submodels 2 --steps 32 --cache 1M --switch-every 2e", NULL},
        {"--submodels 3 --steps 17", NULL},
        {"--submodels 3 --steps 3 --switch-every 1", NULL},
        {"--submodels 3 --steps 0", NULL},
        {"--submodels 3 --steps 2 --quiet", NULL},
        {"--submodels 2 --steps 4 --switch-every 2 --switch-warmup 2", NULL},
        {"--warmup 2 --steps 2", NULL},
        {"--warmup 8 --steps 0", NULL},
        {"--steps 2", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *out =
            run(0, "train %s --batch 4 --threads 1 --out doubt%zu %s", gpt, i, rows[i].flags)->out;
        const char *first = rows[i].line ? rows[i].line : "gpt:layers=3";
        CHECK((!*out && !rows[i].line) || strncmp(out, first, strlen(first)) == 0, "%s: %s",
              rows[i].flags, out);
    }
}

/* The ends of a ResNet are always active, unless something is in the way, which is said. */
static void says_where_no_end_is_active(void) {
    static const char words[] = "no block is always active, as both ends are otherwise: ";
    static const struct {
        const char *flags, *why;
    } rows[] = {
        {"--submodels 3", NULL},
        {"--submodels 4", "the blocks between them are fewer than the submodels\n"},
        {"--submodels 3 --cache 1M", "--cache keeps outputs of frozen blocks\n"},
        {"--submodels 3 --cache 1M --always-active none", NULL},
        {"--submodels 1", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *out = run(0,
                              "train --model resnet:depth=8,width=2 --limit 8 --batch 8 --steps 6 "
                              "--threads 1 --out noend%zu %s",
                              i, rows[i].flags)
                              ->out;
        const char *said = strstr(out, words);
        CHECK(rows[i].why
                  ? said && strncmp(said + strlen(words), rows[i].why, strlen(rows[i].why)) == 0
                  : !said,
              "%s: %s", rows[i].flags, out);
    }
}

/* With --init a phase is 20 updates, or fewer so that every submodel trains, and a long context is
 * used only on request. */
static void fine_tunes_by_its_own_defaults(void) {
    run(0,
        "train --model gpt:layers=2,width=16,heads=2,context=2048 --data words.tokens --valid "
        "words.tokens --batch 1 --steps 0 --quiet --out long");
    run(0, "export long --out model --quiet");
    static const struct {
        const char *flags, *line;
    } rows[] = {
        {"--context 8 --submodels 2 --steps 60", "the next one after 20 steps\n"},
        {"--context 8 --submodels 3 --steps 10", "the next one after 3 steps\n"},
        {"--context 8 --submodels 2 --steps 2 --switch-every 1e", "the next one after 1 epoch\n"},
        {"--steps 0",
         "the model reads up to 2048 tokens; it trains on 1024, as --context does not say more\n"},
        {"--context 2048 --steps 0", "sequences of 2048 tokens, vocabulary 256\nordinary"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *out = run(0,
                              "train --init model --data words.tokens --valid words.tokens --limit "
                              "4 --batch 2 --threads 1 --out tuned%zu %s",
                              i, rows[i].flags)
                              ->out;
        CHECK(strstr(out, rows[i].line), "%s: %s", rows[i].flags, out);
    }
    const char *score = run(0, "eval --init model --valid words.tokens")->out;
    CHECK(strstr(score, " samples of 1024 tokens): loss "), "%s", score);
    /* The phase is stored: a longer training keeps it. */
    const char *more = run(0, "train --resume tuned1 --steps 10")->out;
    CHECK(strstr(more, "the next one after 3 steps\n"), "%s", more);
}

/* Checks that what other settings are said to need is what is planned with them, and returns how
 * many there are.  `line` begins a training of BCD-1/3 and ends in the start of its --out; out[] is
 * what one printed. */
static int check_choices(const char *line, const char *out) {
    char flags[64], bytes[32];
    int choices = 0, used;
    const char *at = strstr(out, "instead with --");
    for (at = at ? at + strlen("instead with") : ""; *at == ' ' || *at == ','; at += used) {
        at += strspn(at, ", ");
        if (!CHECK(sscanf(at, "%63[^:]: %31[^,\n]%n", flags, bytes, &used) == 2, "%s", at)) break;
        const bool submodels = strstr(flags, "submodels") != NULL;
        const char *other =
            run(0, "%s%d %s %s", line, choices++, submodels ? "" : "--submodels 3", flags)->out;
        const Text expected = text_of("memory planned: %s (", bytes);
        CHECK(strstr(other, expected.text), "%s: no \"%s\" in %s", flags, expected.text, other);
    }
    return choices;
}

/* The plan that is printed before the first step is what the training then needs. */
static void plans_memory_before_it_trains(void) {
    static const char gpt[] =
        "train --model gpt:layers=6,width=16,heads=2,context=16,vocabulary=900 --data words.tokens "
        "--limit 8 --batch 4 --steps 3 --switch-every 1 --threads 1 --out choice";
    static char out[1 << 16];
    char planned[32];
    snprintf(out, sizeof out, "%s", run(0, "%s --submodels 3", gpt)->out);
    const char *plan = strstr(out, "memory planned: "), *total = strstr(out, "\ntotal ");
    if (!CHECK(plan && total && sscanf(plan, "memory planned: %31[^(]", planned) == 1, "%s", out))
        return;
    CHECK(strstr(total, planned), "planned %s: %s", planned, total);
    const int choices = check_choices(gpt, out);
    CHECK(choices == 5, "%d choices: %s", choices, out);
    CHECK(strstr(out,
                 "\nthe largest block, embedding, which the head shares, has 14.7k of 34.4k "
                 "parameters: more than 3 submodels save no more\n"),
          "%s", out);
    CHECK(!strstr(run(0, "%s-two --submodels 2", gpt)->out, "the largest block"), "two submodels");
    CHECK(strstr(run(0, "%s-ranks --submodels 2 --pipeline local:2", gpt)->out, " for all ranks ("),
          "ranks");
    /* Smaller parts of a batch are not the same training where there are batch norms. */
    const char *images = run(0,
                             "train --model resnet:depth=8,width=2 --data synthetic --limit 16 "
                             "--batch 8 --steps 1 --threads 1 --out images")
                             ->out;
    CHECK(strstr(images, "instead with") && !strstr(images, "--accumulate"), "%s", images);
}

/* The phases of a fine-tuning become shorter with more submodels, so that each has its turn. */
static void plans_more_submodels_of_a_fine_tuning(void) {
    static const char tune[] =
        "train --init six --data words.tokens --limit 8 --batch 4 --steps 7 --order descending "
        "--threads 1 --out tune";
    static char out[1 << 16];
    run(0,
        "train --model gpt:layers=6,width=16,heads=2,context=16 --data words.tokens --batch 1 "
        "--steps 0 --quiet --out sixth");
    run(0, "export sixth --out six --quiet");
    snprintf(out, sizeof out, "%s", run(0, "%s --submodels 3", tune)->out);
    CHECK(check_choices(tune, out) == 5 && strstr(out, "--submodels 6: "), "%s", out);
}

/* By default stem and head of a ResNet are always active, if blocks lie between them. */
static void images_train_their_ends(void) {
    static const struct {
        const char *flags;
        bool ends;
    } rows[] = {{"--submodels 3", true},
                {"--submodels 3 --always-active none", false},
                {"--submodels 4", false},
                {"--partition 0-1/2/3-4", false},
                {"--submodels 3 --cache 1M", false},
                {"--submodels 3 --device simt --device-cache 1M", false},
                {"--submodels 2 --pipeline local:2 --placement figure2", false},
                {"", false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (needs_more(rows[i].flags)) continue;
        const Printed *printed = run(0,
                                     "train --model resnet:depth=8,width=4 --data synthetic "
                                     "--limit 32 --batch 8 --steps 1 --out ends%zu %s",
                                     i, rows[i].flags);
        CHECK(!strstr(printed->out, "that are always active") == !rows[i].ends, "%s: %s",
              rows[i].flags, printed->out);
    }
}

/* At a rate that is much too high no line has hundreds of digits, or the sign of a NaN. */
static void a_loss_that_diverges_is_short(void) {
    const Printed *printed = run(1,
                                 "train --model resnet:depth=8,width=4 --data synthetic "
                                 "--limit 32 --batch 8 --lr 1000 --steps 6 --out huge");
    CHECK(strstr(printed->error, "the validation loss is nan"), "%s", printed->error);
    CHECK(!strstr(printed->out, "-nan"), "printed \"%s\"", printed->out);
    static const struct {
        double loss;
        const char *text;
    } rows[] = {{2.30258, "2.3026"},
                {633508.368, "633508.3680"},
                {1.25e30, "1.2e+30"},
                {-NAN, "nan"},
                {INFINITY, "inf"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const Text text = format_loss(rows[i].loss);
        CHECK(!strcmp(text.text, rows[i].text), "%s", text.text);
    }
}

static void one_line_on_a_terminal(void) {
    setenv("TERM", "xterm", 1);
    const char *text = program_on_terminal("train " RESNET "--steps 30 --out shown");
    if (!text) SKIP("no pseudo-terminal here");
    CHECK(strstr(text, "\r\033[K") && strstr(text, "step 30/30  loss "), "printed \"%s\"", text);
    CHECK(strstr(text, "images/s") && strstr(text, " left\r\033[Kstep 30, epoch "),
          "printed \"%s\"", text);
    /* The loss shown is a mean of the losses so far, of which each weighs 0.95 of the next one. */
    RunFile file;
    if (!read_run(&file, "shown")) return;
    double sum = 0, weight = 0;
    for (size_t i = 0; i < file.curve_rows; i++) {
        sum = 0.95 * sum + file.curve[i].loss;
        weight = 0.95 * weight + 1;
    }
    const Text expected = text_of("step 30/30  loss %s ", format_loss(sum / weight).text);
    CHECK(strstr(text, expected.text), "no \"%s\" in \"%s\"", expected.text, text);
    runfile_free(&file);
}

static void names_the_submodel_that_trains(void) {
    RunFile file;
    const char *out = run(0, "train " RESNET "--steps 8 --out turns")->out;
    CHECK(strstr(out, "step 7: submodel 2 of 3 ("), "%s", out);
    if (!read_run(&file, "turns")) return;
    const Text score = format_loss(file.evaluations[file.evaluation_rows - 1].loss),
               expected = text_of(", validation loss %s, accuracy", score.text);
    CHECK(strstr(out, expected.text), "no \"%s\" in \"%s\"", expected.text, out);
    runfile_free(&file);
}

static void says_where_it_was_trained(void) {
    run(0, "train " RESNET "--steps 2 --out moved");
    const Printed *printed = run(0, "train --resume moved --steps 3 --device plain");
    CHECK(strstr(printed->out, "so far trained on cpu in fp32, now on plain in fp32,"), "%s",
          printed->out);
    CHECK(!strstr(run(0, "train --resume moved --steps 4")->out, "rounds differently"),
          "not moved");
}

/* ---- progress ---- */

/* Shows two steps at once, a note, and the last step. */
static void show_steps(bool quiet, bool terminal, bool brief) {
    Progress p = {.quiet = quiet,
                  .brief = brief,
                  .terminal = terminal,
                  .total = 100,
                  .per_step = 32,
                  .unit = "images"};
    progress_step(&p, 1, 9, 0, 0, 1); /* it took less time than the clock can measure */
    progress_step(&p, 1, 2, 0.5, 0, 3);
    progress_step(&p, 2, 2, 0.5, 1, 3);
    progress_note(&p, "note %d", 7);
    progress_step(&p, 100, 1, 1.5, 2, 3);
    progress_end(&p);
}

/* Runs show_steps while stdout goes to a file. */
static void capture(const char *name, bool quiet, bool terminal, bool brief) {
    FILE *file = fopen(scratch_path(name), "w");
    int before = dup(STDOUT_FILENO);
    fflush(stdout);
    if (!file || before < 0 || dup2(fileno(file), STDOUT_FILENO) < 0) abort();
    show_steps(quiet, terminal, brief);
    fflush(stdout);
    if (dup2(before, STDOUT_FILENO) < 0) abort();
    close(before);
    fclose(file);
}

/* 32 images take half a second. Then the mean time is 0.95 * 0.5 + 0.05 * 1.5 = 0.55, and the mean
 * loss (0.9025 * 2 + 0.95 * 2 + 1) / (0.9025 + 0.95 + 1). */
#define FIRST "step 1/100  loss 2.0000  submodel 1 of 3  64 images/s  50 s left"
#define LAST "step 100/100  loss 1.6494  submodel 3 of 3  58 images/s  0 s left"
#define WIPE "\r\033[K"

static void progress_by_hand(void) {
    static const struct {
        const char *name;
        bool quiet, terminal, brief;
        const char *text;
    } rows[] = {
        {"log", false, false, false, FIRST "\nnote 7\n" LAST "\n"},
        {"terminal", false, true, false, FIRST WIPE "note 7\n" LAST "\n"},
        {"brief log", false, false, true, FIRST "\n" LAST "\n"},
        {"brief terminal", false, true, true, FIRST WIPE LAST WIPE},
        {"quiet", true, true, false, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t count;
        capture("shown.txt", rows[i].quiet, rows[i].terminal, rows[i].brief);
        char *text = read_bytes("shown.txt", &count);
        CHECK(strcmp(text, rows[i].text) == 0, "%s: \"%s\"", rows[i].name, text);
        free(text);
    }
}

void test_train_print(void) {
    make_words();
    RUN(help_has_each_section_once);
    RUN(says_what_it_trains);
    RUN(names_what_is_doubtful);
    RUN(says_where_no_end_is_active);
    RUN(fine_tunes_by_its_own_defaults);
    RUN(plans_memory_before_it_trains);
    RUN(plans_more_submodels_of_a_fine_tuning);
    RUN(images_train_their_ends);
    RUN(a_loss_that_diverges_is_short);
    RUN(one_line_on_a_terminal);
    RUN(names_the_submodel_that_trains);
    RUN(says_where_it_was_trained);
    RUN(progress_by_hand);
}
