/* The command line: every wrong use gets a clear line of its own. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../experiments/plan/plan.h"
#include "../../ref/base/error.h"
#include "../data/scratch.h"
#include "program.h"

static const Wrong wrong[] = {
    {"trian", "no command \"trian\"; did you mean bcd train?"},
    {"report", "bcd report is the program bcd-report, which is not next to bcd; make builds it"},
    {"xyzzy", "no command \"xyzzy\"; bcd --help lists them"},
    {"train --sbumodels 3", "bcd train has no flag --sbumodels; did you mean --submodels?"},
    {"train --swtich-every=3",
     "bcd train has no flag --swtich-every; did you mean --switch-every?"},
    {"train --zzzzzzzz 3", "bcd train has no flag --zzzzzzzz; bcd train --help lists them"},
    {"train --prompt x", "bcd train has no flag --prompt; it is a flag of bcd sample"},
    {"eval a --lr 1", "bcd eval has no flag --lr; it is a flag of bcd train"},
    {"train -lr 1", "\"-lr\": flags start with two dashes"},
    {"train --lr", "--lr needs a value: --lr RATE"},
    {"train --lr --schedule cosine", "--lr needs a value: --lr RATE"},
    {"train --lr --batch=2", "--lr needs a value: --lr RATE"},
    {"train --lr 1 --lr 2", "--lr is given twice"},
    {"train --augment=1", "--augment takes no value"},
    {"train --no-augment=1", "--augment takes no value"},
    {"train --augment --no-augment", "--augment is given twice"},
    {"train --no-lr 1", "bcd train has no flag --no-lr; bcd train --help lists them"},
    {"train more", "unexpected argument \"more\" of bcd train; flags start with --"},
    {"export", "bcd export needs DIR; see bcd export --help"},
    {"train --lr abc", "--lr \"abc\": it takes a number from 0 to 1000"},
    {"train --lr -0.1", "--lr \"-0.1\": it takes a number from 0 to 1000"},
    {"train --lr nan", "--lr \"nan\": it takes a number from 0 to 1000"},
    {"train --lr inf", "--lr \"inf\": it takes a number from 0 to 1000"},
    {"train --lr 1x", "--lr \"1x\": it takes a number from 0 to 1000"},
    {"train --lr ''", "--lr \"\": it takes a number from 0 to 1000"},
    {"train --submodels 0", "--submodels \"0\": it takes a whole number from 1 to 10000"},
    {"train --submodels 2.5", "--submodels \"2.5\": it takes a whole number from 1 to 10000"},
    {"train --submodels -1", "--submodels \"-1\": it takes a whole number from 1 to 10000"},
    {"train --steps 99999999999999999999",
     "--steps \"99999999999999999999\": it takes a whole number from 0 to 9000000000000000"},
    {"train --seed 18446744073709551615",
     "--seed \"18446744073709551615\": it takes a whole number from 0 to 9000000000000000"},
    {"train --seed one", "--seed \"one\": it takes a whole number from 0 up"},
    {"train --seed \t-18446744073709551615",
     "--seed \"\t-18446744073709551615\": it takes a whole number from 0 up"},
    {"train --seed \t5", "--seed \"\t5\": it takes a whole number from 0 up"},
    {"train --seed 0x10", "--seed \"0x10\": it takes a whole number from 0 up"},
    {"train --lr 0x1p-3", "--lr \"0x1p-3\": it takes a number from 0 to 1000"},
    {"train --lr \t0.1", "--lr \"\t0.1\": it takes a number from 0 to 1000"},
    {"train --lr +1", "--lr \"+1\": it takes a number from 0 to 1000"},
    {"train --lr .", "--lr \".\": it takes a number from 0 to 1000"},
    {"train --lr 1e-400", "--lr \"1e-400\": it is too small a number"},
    {"train --lr 1e-310", "--lr \"1e-310\": it is too small a number"},
    {"train --cache 0x10", "--cache \"0x10\": it takes bytes, as in 2G, 512M or 65536"},
    {"train --switch-every \t5",
     "--switch-every \"\t5\": it takes steps (500), epochs (2e, 0.5e) or auto"},
    {"train --switch-every 0x10",
     "--switch-every \"0x10\": it takes steps (500), epochs (2e, 0.5e) or auto"},
    {"train --batch 99999999999",
     "--batch \"99999999999\": it takes a whole number from 1 to 1048576"},
    {"train --steps 5 --epochs 2", "--steps and --epochs both say how long to train; give one"},
    {"train --device gpu", "--device \"gpu\": it takes cpu, plain, cuda or simt"},
    {"train --precision fp16", "--precision \"fp16\": it takes fp32, tf32 or bf16"},
    {"train --cache 2X", "--cache \"2X\": it takes bytes, as in 2G, 512M or 65536"},
    {"train --cache G", "--cache \"G\": it takes bytes, as in 2G, 512M or 65536"},
    {"train --cache 0.5", "--cache \"0.5\": it takes bytes, as in 2G, 512M or 65536"},
    {"train --cache -1", "--cache \"-1\": it takes bytes, as in 2G, 512M or 65536"},
    {"train --cache 1e16", "--cache \"1e16\": it takes bytes, as in 2G, 512M or 65536"},
    {"train --cache 1024T", "--cache \"1024T\": it takes bytes, as in 2G, 512M or 65536"},
    {"train --cache nan", "--cache \"nan\": it takes bytes, as in 2G, 512M or 65536"},
    {"train --cache 2GG", "--cache \"2GG\": it takes bytes, as in 2G, 512M or 65536"},
    {"train --switch-every 2.5",
     "--switch-every \"2.5\": it takes steps (500), epochs (2e, 0.5e) or auto"},
    {"train --switch-every e",
     "--switch-every \"e\": it takes steps (500), epochs (2e, 0.5e) or auto"},
    {"train --switch-every 0e",
     "--switch-every \"0e\": it takes steps (500), epochs (2e, 0.5e) or auto"},
    {"train --resume ''", "--resume \"\": the value is empty; it takes DIR"},
    {"train --init ''", "--init \"\": the value is empty; it takes DIR|FILE"},
    {"eval ''", "\"\": the name of a file is empty"},
    {"train --qui", "bcd train has no flag --qui; did you mean --quiet?"},
    {"train --switch-every never",
     "--switch-every \"never\": it takes steps (500), epochs (2e, 0.5e) or auto"},
};

static void refuses(const void *row) {
    const Wrong *w = row;
    CommandLine line;
    CHECK(parse_line(&line, w->line) != 0, "accepted: bcd %s", w->line);
    CHECK_ERROR("%s", w->error);
}

/* Returns "sgd, adam or adamw": those of the names that are in[], or all. */
static Text listed(const char *const *names, const bool *in, int count, const char *last) {
    Text text = {""};
    for (int i = 0; i < count; i++) {
        if (in && !in[i]) continue;
        bool more = false;
        for (int j = i + 1; j < count; j++) more |= !in || in[j];
        text_add(&text, "%s%s", !*text.text ? "" : more ? ", " : last, names[i]);
    }
    return text;
}

/* A wrong name of a table gets all of the table. */
static void lists_what_it_takes(void) {
    const Text orders = listed(order_names, NULL, ORDER_KINDS, " or ");
    const Text optimizers = listed(optimizer_names, NULL, OPTIMIZER_KINDS, " or ");
    refuses(&(Wrong){"train --order upwards",
                     text_of("--order \"upwards\": it takes %s", orders.text).text});
    refuses(&(Wrong){"train --optimizer sdg",
                     text_of("--optimizer \"sdg\": it takes %s", optimizers.text).text});
}

static void takes_values(void) {
    Options o;
    CHECK(parse_train(&o,
                      "train --lr=1e-3 --submodels 3 --order random --cache 1.5K --augment "
                      "--switch-every 0.5e --steps 7 --seed 12345678901 --out runs/x") == 0,
          "%s", error_message());
    CHECK(o.command == COMMAND_TRAIN, "command %d", (int)o.command);
    CHECK(o.optimizer.lr == 1e-3 && o.submodels == 3 && o.order == ORDER_RANDOM && o.cache == 1536,
          "lr %g, submodels %d, order %d, cache %zu", o.optimizer.lr, o.submodels, o.order,
          o.cache);
    CHECK(o.augment && o.switch_rule.kind == SWITCH_EPOCHS && o.switch_rule.every == 0.5,
          "augment, switch");
    CHECK(o.steps == 7 && o.epochs == 0, "%g epochs next to --steps", o.epochs);
    CHECK(o.seed == 12345678901u && strcmp(o.out, "runs/x") == 0, "seed, out");
    CHECK(options_given(&o, "lr") && !options_given(&o, "momentum"), "given");
    CHECK(o.optimizer.weight_decay == 0 && o.fraction == 1 && o.switch_rule.window == 50,
          "defaults");
}

static void takes_units_of_bytes(void) {
    static const struct {
        const char *line;
        size_t bytes;
    } rows[] = {{"train --cache 0", 0},
                {"train --cache 77", 77},
                {"train --cache 3K", (size_t)3 << 10},
                {"train --cache 3M", (size_t)3 << 20},
                {"train --cache 3G", (size_t)3 << 30},
                {"train --cache 3T", (size_t)3 << 40}};
    Options o;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECK(parse_train(&o, rows[i].line) == 0 && o.cache == rows[i].bytes, "%s: %zu bytes",
              rows[i].line, o.cache);
}

/* A flag that is turned off counts as given; one of the command line is not turned on by a file. */
static void turns_off(void) {
    Options o;
    char line[300];
    CHECK(parse_train(&o, "train --no-augment") == 0 && !o.augment && options_given(&o, "augment"),
          "%s", error_message());
    scratch_text("on", "augment\nno-keep-state\n");
    snprintf(line, sizeof line, "train --no-augment --config %s", scratch_path("on"));
    CHECK(parse_train(&o, line) == 0 && !o.augment && !o.keep_state &&
              options_given(&o, "keep-state"),
          "%s", error_message());
}

/* Options by themselves, not as a part of a command line, have a field for every flag: the address
 * sanitizer reports a row that writes beyond them. */
static void options_hold_every_flag(void) {
    for (int i = 0; i < COMMANDS; i++) {
        Options *o = malloc(sizeof *o);
        if (!o) abort();
        options_defaults(o, command_table[i].command);
        for (int row = 0; option_table[row].name; row++) {
            const Option *option = &option_table[row];
            if (!(option->commands & command_table[i].command)) continue;
            CHECK(option->offset < sizeof *o, "--%s at %zu of %zu", option->name, option->offset,
                  sizeof *o);
            const Text text = options_format(o, row);
            if (option->default_text)
                CHECK(options_set(o, option->name, text.text) == 0, "%s", error_message());
        }
        free(o);
    }
}

/* A number's default can be typed as --help shows it. */
static void takes_none_and_all(void) {
    int typed = 0;
    for (int i = 0; i < COMMANDS; i++)
        for (int row = 0; option_table[row].name; row++) {
            static CommandLine line;
            const Option *option = &option_table[row];
            const char *words = option->default_words ? option->default_words : "";
            const Text word = text_of("%.*s", (int)strcspn(words, ";"), words);
            if (!(option->commands & command_table[i].command) || option->kind == OPTION_IS_TEXT ||
                (strcmp(word.text, "none") && strcmp(word.text, "all")))
                continue;
            command_line_defaults(&line, command_table[i].command);
            const Text before = options_format(&line.options, row);
            CHECK(options_set(&line.options, option->name, word.text) == 0, "%s", error_message());
            CHECK(!strcmp(options_format(&line.options, row).text, before.text), "--%s %s",
                  option->name, word.text);
            typed++;
        }
    CHECK(typed > 5, "%d flags", typed);
    Options o;
    CHECK(parse_train(&o, "train --clip none") == 0 && o.optimizer.clip_norm == 0 &&
              options_given(&o, "clip"),
          "%s", error_message());
    CHECK(parse_train(&o, "train --batch none") == -1 && parse_train(&o, "train --lr all") == -1,
          "a default that is not none");
}

static void takes_files_and_help(void) {
    CommandLine line;
    CHECK(parse_line(&line, "tokenize a b c --out page.tokens") == 0, "%s", error_message());
    CHECK(line.positionals == 3 && strcmp(line.positional[2], "c") == 0, "%d files",
          line.positionals);
    CHECK(parse_line(&line, "gradients --checkpoint c --batch file.h5 --out o") == 0, "%s",
          error_message());
    CHECK(strcmp(line.options.gradients.batch_file, "file.h5") == 0,
          "--batch of gradients is a file");
    CHECK(parse_line(&line, "train --nonsense --help") == 0 && line.help &&
              line.options.command == COMMAND_TRAIN,
          "--help comes before errors");
    CHECK(parse_line(&line, "--help") == 0 && line.help && !line.options.command,
          "help about the program");
    CHECK(parse_line(&line, "--help nonsense") == 0 && line.help, "--help comes before errors");
}

/* A prompt can fill a context of thousands of tokens. */
static void takes_a_long_prompt(void) {
    static char prompt[2 * PROMPT_BYTES];
    char *argv[] = {"bcd", "sample", "run", "--prompt", prompt};
    static CommandLine line;
    memset(prompt, 'a', PROMPT_BYTES - 1);
    CHECK(command_line_parse(&line, 5, argv) == 0 && !strcmp(line.options.sample.prompt, prompt),
          "%s", error_message());
    prompt[PROMPT_BYTES - 1] = 'a';
    CHECK(command_line_parse(&line, 5, argv) == -1 &&
              strstr(error_message(), "aaa...\": longer than 16383 characters"),
          "%s", error_message());
}

static const struct {
    const char *list, *error;
    double dollars;
} prices[] = {
    {"", NULL, 1.2},
    {"rtx4090=0.5,a100=2", NULL, 2},
    {"a100=1,a100=2", "--price: a100 is given twice", 0},
    {"rtx4090=1,a100=1,rtx4090=1", "--price: rtx4090 is given twice", 0},
    {"a100=0", "--price a100=0: it takes GPU=DOLLARS, as in rtx4090=0.31", 0},
};

static void reads_prices(void) {
    for (size_t i = 0; i < sizeof prices / sizeof *prices; i++) {
        double dollars = 0;
        CommandLine line;
        const PlanQuestion question = {.line = &line};
        command_line_defaults(&line, COMMAND_PLAN);
        CHECK(options_set(&line.options, "price", prices[i].list) == 0, "%s", error_message());
        const int failed = question_price(&dollars, &question, gpu_find("a100"));
        if (prices[i].error)
            CHECK(failed && !strcmp(error_message(), prices[i].error), "\"%s\": %s", prices[i].list,
                  error_message());
        else
            CHECK(!failed && dollars == prices[i].dollars, "\"%s\": %g", prices[i].list, dollars);
    }
}

/* Setting a flag to what options_format wrote gives the same value: experiments store settings and
 * rebuild them in this way. */
static void formats_what_it_reads(void) {
    static const char *const lines[] = {
        "train",
        ("train --lr 0.30000000000000004 --switch-every auto --order descending --decay matrices "
         "--schedule cosine --fraction 0.1 --epochs 2.5 --cache 3G --partition 0/1-4 --keep-state"),
        "train --switch-every 77 --optimizer adamw --steps 8999999999999999 --data a.tokens",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        Options a, b;
        if (!CHECK(parse_train(&a, lines[i]) == 0, "%s", error_message())) continue;
        options_defaults(&b, COMMAND_TRAIN);
        for (int row = 0; option_table[row].name; row++) {
            if (!a.given[row]) continue;
            CHECK(options_set(&b, option_table[row].name, options_format(&a, row).text) == 0, "%s",
                  error_message());
        }
        for (int row = 0; option_table[row].name; row++) {
            if (!(option_table[row].commands & COMMAND_TRAIN)) continue;
            const Text text = options_format(&a, row), again = options_format(&b, row);
            CHECK(strcmp(text.text, again.text) == 0, "--%s: %s, then %s", option_table[row].name,
                  text.text, again.text);
        }
    }
}

static const struct {
    const char *name, *text;
} names[] = {
    {"runs/a-1", "runs/a-1"}, {"two words", "'two words'"}, {"it's", "'it'\\''s'"}, {"", "''"}};

static void quotes_names(void) {
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const Quoted text = quoted(names[i].name);
        CHECK(strcmp(text.text, names[i].text) == 0, "%s", text.text);
    }
}

/* Looks for mistakes in the table of flags: a flag without help, or two flags of one name in a
 * command. */
static void table_is_sound(void) {
    for (int row = 0; option_table[row].name; row++) {
        const Option *option = &option_table[row];
        CHECK((option->commands != 0) == (*option->name != 0), "--%s belongs to no command",
              option->name);
        if (!*option->name) continue;
        const bool none = option->kind == OPTION_IS_FLAG || option->kind == OPTION_IS_CHOICE;
        CHECK(none == (option->argument == NULL), "--%s: argument", option->name);
        CHECK(option->help || option->default_words, "--%s says nothing", option->name);
        CHECK(!(option->commands & COMMAND_TRAIN) || option->offset < sizeof(Options),
              "--%s: a flag of bcd train outside Options", option->name);
        for (int other = row + 1; option_table[other].name; other++)
            CHECK(strcmp(option->name, option_table[other].name) != 0 ||
                      !(option->commands & option_table[other].commands),
                  "two flags --%s of one command", option->name);
    }
    for (int i = 0; i < COMMANDS; i++) {
        CHECK(command_table[i].min <= command_table[i].max, "%s", command_table[i].name);
    }
}

/* --help shows the choices of a flag, and of a setting of the optimizer the defaults of all
 * optimizers that have it, from their tables. */
static void shows_choices_and_defaults(void) {
    const Option *optimizer = &option_table[options_find("optimizer", COMMAND_TRAIN)];
    Text kinds = {""};
    for (int kind = 0; kind < OPTIMIZER_KINDS; kind++)
        text_add(&kinds, "%s%s", kind ? "|" : "", optimizer_names[kind]);
    CHECK(!strcmp(option_argument(optimizer).text, kinds.text), "--optimizer %s",
          option_argument(optimizer).text);
    for (int kind = 0; kind < OPTIMIZER_KINDS; kind++) {
        const OptimizerSettings defaults = optimizer_defaults((OptimizerKind)kind);
        const Option *momentum = &option_table[options_find("momentum", COMMAND_TRAIN)];
        const bool shown = strstr(option_default(momentum).text, optimizer_names[kind]);
        CHECK(shown == (defaults.momentum > 0), "--momentum [%s]: %s",
              option_default(momentum).text, optimizer_names[kind]);
    }
    const Text lr = option_default(&option_table[options_find("lr", COMMAND_TRAIN)]);
    CHECK(!strncmp(lr.text, "sgd", 3) && strstr(lr.text, "; adam, adamw") &&
              strstr(lr.text, "; language models: sgd"),
          "--lr [%s]", lr.text);
    static const char *const zeros[][2] = {{"limit", "0: all"},
                                           {"context", "0: the model's; of --init at most 1024"},
                                           {"threads", "0: all cores"},
                                           {"eval-every", "0: an epoch"},
                                           {"clip", "0: none; language models 1"},
                                           {"switch-warmup", "0"},
                                           {"final-lr", "0.1"}};
    for (size_t i = 0; i < sizeof zeros / sizeof *zeros; i++) {
        const Option *option = &option_table[options_find(zeros[i][0], COMMAND_TRAIN)];
        CHECK(!strcmp(option_default(option).text, zeros[i][1]), "--%s [%s]", option->name,
              option_default(option).text);
    }
}

/* The help of --optimizer names the optimizers whose weight decay is part of the gradient. */
static void says_whose_decay_is_coupled(void) {
    bool coupled[OPTIMIZER_KINDS];
    for (int kind = 0; kind < OPTIMIZER_KINDS; kind++) {
        OptimizerSettings settings = optimizer_defaults((OptimizerKind)kind);
        settings.weight_decay = 0.5;
        coupled[kind] = optimizer_factors(&settings, 0.1, 1, true).coupled_decay > 0;
    }
    const Option *optimizer = &option_table[options_find("optimizer", COMMAND_TRAIN)];
    const Text words = text_of("part of the gradient in %s, and a step of its own in the others",
                               listed(optimizer_names, coupled, OPTIMIZER_KINDS, " and ").text);
    CHECK(strstr(option_help(optimizer).text, words.text), "--optimizer: \"%s\", not \"%s\"",
          option_help(optimizer).text, words.text);
}

void test_options(void) {
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        RUN_ROW(wrong[i].line, refuses, &wrong[i]);
    RUN(takes_values);
    RUN(takes_units_of_bytes);
    RUN(lists_what_it_takes);
    RUN(shows_choices_and_defaults);
    RUN(says_whose_decay_is_coupled);
    RUN(turns_off);
    RUN(options_hold_every_flag);
    RUN(takes_none_and_all);
    RUN(takes_files_and_help);
    RUN(takes_a_long_prompt);
    RUN(reads_prices);
    RUN(formats_what_it_reads);
    RUN(quotes_names);
    RUN(table_is_sound);
}
