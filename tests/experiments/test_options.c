/* The command line: every wrong use gets a clear line of its own, and every flag reaches the
 * settings. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../../experiments/train/setup.h"
#include "../data/scratch.h"
#include "program.h"

typedef struct {
    const char *line, *error;
} Wrong;

static const Wrong wrong[] = {
    {"trian", "no command \"trian\"; did you mean bcd train?"},
    {"xyzzy", "no command \"xyzzy\"; bcd --help lists them"},
    {"train --sbumodels 3", "bcd train has no flag --sbumodels; did you mean --submodels?"},
    {"train --swtich-every=3",
     "bcd train has no flag --swtich-every; did you mean --switch-every?"},
    {"train --zzzzzzzz 3", "bcd train has no flag --zzzzzzzz; bcd train --help lists them"},
    {"train --prompt x", "bcd train has no flag --prompt; it is a flag of bcd sample"},
    {"eval a --lr 1", "bcd eval has no flag --lr; it is a flag of bcd train"},
    {"train -lr 1", "\"-lr\": flags start with two dashes"},
    {"train --lr", "--lr needs a value: --lr RATE"},
    {"train --lr 1 --lr 2", "--lr is given twice"},
    {"train --augment=1", "--augment takes no value"},
    {"train more", "bcd train: unexpected argument \"more\"; flags start with --"},
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
    {"experiment validity --steps 0", "--steps \"0\": it takes a whole number from 1 up"},
    {"train --steps 99999999999999999999",
     "--steps \"99999999999999999999\": it takes a whole number from 0 up"},
    {"train --batch 99999999999",
     "--batch \"99999999999\": it takes a whole number from 1 to 1048576"},
    {"train --steps 5 --epochs 2", "--steps and --epochs both say how long to train; give one"},
    {"train --order upwards",
     "--order \"upwards\": it takes cyclic, descending, random or gauss-southwell"},
    {"train --optimizer sdg", "--optimizer \"sdg\": it takes sgd, adam, adamw or lion"},
    {"train --device gpu", "--device \"gpu\": it takes cpu, plain, cuda or simt"},
    {"train --precision fp16", "--precision \"fp16\": it takes fp32, tf32 or bf16"},
    {"train --cache 2X", "--cache \"2X\": it takes bytes, as in 2G, 512M or 65536"},
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

/* Mistakes that show only when the model and the kind of data are known. */
static const Wrong mismatched[] = {
    {"train --data cifr10",
     "data: no data set \"cifr10\"; there are synthetic, cifar10, cifar100, text, text1, "
     "text2, shakespeare, wikitext2, shakespeare:N and wikitext2:N in N tokens, webtext2, and "
     "token "
     "files FILE.tokens"},
    {"train --data text", "the model resnet8 reads images, the data set text holds tokens"},
    {"train --model gpt:layers=1,width=8,heads=1,context=8",
     "the model gpt:layers=1,width=8,heads=1,context=8 reads tokens, the data set synthetic holds "
     "images"},
    {"train --context 8", "--context is for models that read tokens; resnet8 reads images"},
    {"train --data text --model gpt:layers=1,width=8,heads=1,context=8 --context 16",
     "--context 16: the model gpt:layers=1,width=8,heads=1,context=8 has 8"},
    {"train --augment --cache 1M",
     "--augment changes the images in each epoch, so --cache would keep outputs of other images; "
     "drop one of them"},
    {"train --optimizer adam --momentum 0.5", "--momentum is for sgd, not for adam"},
    {"train --beta1 0.8",
     "--beta1, --beta2 and --eps are for adam, adamw and lion; sgd has "
     "--momentum"},
    {"train --final-lr 0", "--final-lr is for --schedule cosine"},
    {"train --schedule cosine --step-factor 0.5", "--step-factor is for --schedule step"},
    {"train --switch-every 7 --auto-max 9", "--auto-max is for --switch-every auto"},
    {"train --limit 10 --batch 128", "--batch 128: --limit leaves only 10 samples"},
    {"train --cache 1M",
     "--cache keeps outputs of frozen blocks; with one submodel there are none: give --submodels, "
     "or leave it out"},
    {"train --batch 4 --accumulate 5", "--accumulate 5: a batch has only 4 samples"},
    {"train --precision bf16",
     "--precision bf16: the cpu computes in fp32; bf16 is for --device cuda or simt"},
    {"train --method offload",
     "--method offload moves optimizer state from a device's memory to the host's; it needs "
     "--device cuda or simt"},
    {"train --device-cache 1M", "--device-cache: the cpu has no memory of its own; use --cache"},
    {"train --device simt --method offload --submodels 3",
     "--method offload updates all parameters at each step; it needs one submodel, not 3"},
    {"train --device simt --device-cache 1M --augment",
     "--augment changes the images in each epoch, so --cache would keep outputs of other images; "
     "drop one of them"},
    {"train --submodels 3 --submodel-lr 1,2",
     "partition: \"1,2\" is not 3 factors of the learning rate above 0, separated by commas"},
    {"train --always-active end",
     "partition: no block \"end\" in resnet8; blocks are stem to head, or 0 to 4"},
    {"train --device simt --correct-above 0.1", "--correct-above needs --device cpu or plain"},
    {"train --submodels 3 --partition 0-2/3-4", "--submodels 3: --partition \"0-2/3-4\" has 2"},
};

/* Parses a line of `bcd train`. */
static int parse_train(Options *options, const char *text) {
    CommandLine line;
    int failed = parse_line(&line, text);
    *options = line.options;
    return failed;
}

static void refuses_mismatch(const void *row) {
    const Wrong *w = row;
    Options o;
    if (!CHECK(parse_train(&o, w->line) == 0, "refused early: %s", error_message())) return;
    CHECK(setup_check(&o) || setup_check_idle(&o), "accepted: bcd %s", w->line);
    CHECK_ERROR("%s", w->error);
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
    CHECK(o.steps == 7 && o.epochs == 0, "%g epochs beside --steps", o.epochs);
    CHECK(o.seed == 12345678901u && strcmp(o.out, "runs/x") == 0, "seed, out");
    CHECK(options_given(&o, "lr") && !options_given(&o, "momentum"), "given");
    CHECK(o.optimizer.weight_decay == 0 && o.fraction == 1 && o.switch_rule.window == 50,
          "defaults");
}

static void takes_files_and_help(void) {
    CommandLine line;
    CHECK(parse_line(&line, "report a b c --out page.html") == 0, "%s", error_message());
    CHECK(line.positionals == 3 && strcmp(line.positional[2], "c") == 0, "%d files",
          line.positionals);
    CHECK(parse_line(&line, "gradients --checkpoint c --batch file.h5 --out o") == 0, "%s",
          error_message());
    CHECK(strcmp(line.gradients.batch_file, "file.h5") == 0, "--batch of gradients is a file");
    CHECK(parse_line(&line, "train --nonsense --help") == 0 && line.help &&
              line.options.command == COMMAND_TRAIN,
          "--help comes before errors");
    CHECK(parse_line(&line, "--help") == 0 && line.help && !line.options.command,
          "help about the program");
    CHECK(parse_line(&line, "--help nonsense") == 0 && line.help, "--help comes before errors");
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
        options_defaults(&b);
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

static void check_optimizer(const OptimizerSettings *a) {
    CHECK(a->beta1 == 0.5 && a->beta2 == 0.75 && a->eps == 0.001, "moments");
    CHECK(a->kind == OPTIMIZER_ADAMW && a->lr == 0.25 && a->weight_decay == 0.125 &&
              a->decay_matrices_only && a->clip_norm == 3 && a->schedule == LR_STEP &&
              a->warmup_steps == 4 && a->final_fraction == 0.5 && a->step_every == 6 &&
              a->step_factor == 0.75,
          "optimizer");
}

/* Every flag that decides the result arrives in the settings of the training. */
static void reaches_the_settings(void) {
    Options o;
    Setup s;
    CHECK(parse_train(
              &o,
              "train --model resnet:depth=8,width=2 --limit 64 --batch 16 --accumulate 3 "
              "--partition 0-2/3 --order random --switch-every auto --auto-window 7 "
              "--auto-tolerance 0.25 --auto-min 8 --auto-max 9 --keep-state --frozen-norm "
              "batch --fraction 0.5 --optimizer adamw --lr 0.25 --weight-decay 0.125 --beta1 0.5 "
              "--beta2 0.75 --eps 0.001 --decay "
              "matrices --clip 3 --schedule step --warmup 4 --final-lr 0.5 --step-every 6 "
              "--step-factor 0.75 --epochs 2.5 --seed 77 --recompute --always-active 4 "
              "--switch-warmup 3 --submodel-lr 1,0.5 --correct-above 0.25") == 0,
          "%s", error_message());
    if (!CHECK(setup_open(&s, &o) == 0, "%s", error_message())) return;
    const BcdSettings *b = &s.bcd;
    const StageSettings *stage = &s.stage_settings;
    CHECK(s.train->samples == 64 && s.valid->samples == 64, "limit");
    CHECK(b->partition.submodels == 2 && b->partition.of_block[3] == 1, "partition");
    CHECK(b->partition.of_block[4] == ALWAYS_ACTIVE && b->partition.lr_factor[1] == 0.5 &&
              b->switch_warmup == 3,
          "remedies");
    CHECK(b->order == ORDER_RANDOM && b->batch == 16 && b->fraction == 0.5 && b->seed == 77 &&
              b->steps == 5 && s.steps_per_epoch == 2,
          "loop: %d steps", (int)b->steps);
    CHECK(b->rule.kind == SWITCH_AUTO && b->rule.window == 7 && b->rule.tolerance == 0.25 &&
              b->rule.min_steps == 8 && b->rule.max_steps == 9,
          "switch rule");
    CHECK(stage->batch == 6 && stage->recompute && stage->keep_state && stage->seed == 77 &&
              stage->correct_factor == 0.25 && stage->frozen_norm == FROZEN_BATCH,
          "stage");
    check_optimizer(&b->optimizer);
    check_optimizer(&stage->optimizer);
    setup_free(&s);
}

/* The defaults that depend on optimizer, model and data are those of the paper. */
static void fills_in_defaults(void) {
    Options o;
    Setup s;
    CHECK(parse_train(&o, "train --model resnet:depth=8,width=2 --limit 256") == 0 &&
              setup_open(&s, &o) == 0,
          "%s", error_message());
    CHECK(s.options.optimizer.lr == 0.1 && s.options.optimizer.momentum == 0.9 &&
              s.options.optimizer.weight_decay == 1e-5 && s.options.batch == 128 &&
              s.options.steps == 12 && s.options.submodels == 1,
          "lr %g, batch %d, %d steps", s.options.optimizer.lr, s.options.batch,
          (int)s.options.steps);
    setup_free(&s);
    CHECK(
        parse_train(&o,
                    "train --data text --model gpt:layers=1,width=8,heads=1,context=16 --limit 20 "
                    "--optimizer adam --context 16") == 0 &&
            setup_open(&s, &o) == 0,
        "%s", error_message());
    CHECK(s.options.optimizer.lr == 3e-4 && s.options.batch == 8 && s.options.context == 16 &&
              s.model->outputs == 256 && s.options.steps == 15,
          "lr %g, batch %d, vocabulary %d", s.options.optimizer.lr, s.options.batch,
          s.model->outputs);
    setup_free(&s);
}

/* The defaults of a language model are the usual ones, and flags that are given override them. */
static const struct {
    const char *line;
    int optimizer, schedule, warmup;
    double lr, clip;
} language[] = {
    {"", OPTIMIZER_ADAMW, LR_COSINE, 5, 3e-4, 1},
    {"--optimizer sgd", OPTIMIZER_SGD, LR_COSINE, 5, 0.1, 1},
    {"--optimizer lion --warmup 7 --clip 0", OPTIMIZER_LION, LR_COSINE, 7, 1e-4, 0},
    {"--schedule constant --lr 1", OPTIMIZER_ADAMW, LR_CONSTANT, 0, 1, 1},
    {"--init nowhere", OPTIMIZER_ADAMW, LR_COSINE, 5, 1e-5, 1},
};

static void defaults_of_a_language_model(void) {
    for (size_t i = 0; i < sizeof language / sizeof *language; i++) {
        Options o;
        char line[256];
        snprintf(line, sizeof line, "train --data text --steps 100 %s", language[i].line);
        if (!CHECK(parse_train(&o, line) == 0, "%s", error_message())) continue;
        OptimizerSettings s = setup_optimizer(&o);
        CHECK((int)s.kind == language[i].optimizer && (int)s.schedule == language[i].schedule &&
                  s.warmup_steps == language[i].warmup && s.lr == language[i].lr &&
                  s.clip_norm == language[i].clip,
              "%s: kind %d, schedule %d, warm-up %d, rate %g, clip %g", line, (int)s.kind,
              (int)s.schedule, s.warmup_steps, s.lr, s.clip_norm);
    }
    Options endless;
    CHECK(parse_train(&endless, "train --data text --steps 60000000000") == 0 &&
              setup_optimizer(&endless).warmup_steps == INT32_MAX,
          "a warm-up beyond the type");
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

/* Flags in a file count unless the command line has them, too. */
static const Wrong config[] = {
    {"lr 0.5\n", NULL},
    {"# all of it\n\n  --batch = 7   # small\nkeep-state\n", NULL},
    {"steps 9\nlr=0.25\n", NULL},
    {"batch 1\nbatch 2\n", ":2: --batch is given twice"},
    {"batch\n", ":1: --batch needs a value: --batch SAMPLES"},
    {"keep-state 1\n", ":1: --keep-state takes no value"},
    {"\nbatsh 3\n", ":2: bcd train has no flag --batsh; did you mean --batch?"},
    {"config other\n", ":1: --config cannot be given in a file of flags"},
};

static void reads_a_config(const void *row) {
    const Wrong *w = row;
    Options o;
    char line[300];
    scratch_text("flags", w->line);
    snprintf(line, sizeof line, "train --lr 0.5 --epochs 2 --config %s", scratch_path("flags"));
    int failed = parse_train(&o, line);
    CHECK(!failed == !w->error, "%s", error_message());
    if (w->error) CHECK(strstr(error_message(), w->error), "%s", error_message());
    if (w->error) return;
    CHECK(o.optimizer.lr == 0.5 && o.epochs == 2 && o.steps == 0, "the command line");
    CHECK(!strstr(w->line, "batch") || (o.batch == 7 && o.keep_state), "the file");
}

/* The rest of a line that is cut is not taken for a line of its own. */
static void refuses_a_long_line_of_a_config(void) {
    char text[1300], line[300];
    Options o;
    memset(text, ' ', sizeof text);
    strcpy(text + sizeof text - 10, "batch 7\n");
    text[0] = '#';
    scratch_text("long", text);
    snprintf(line, sizeof line, "train --config %s", scratch_path("long"));
    CHECK(parse_train(&o, line) == -1, "batch %d", o.batch);
    CHECK(strstr(error_message(), ":1: the line is longer than 1022 characters"), "%s",
          error_message());
}

/* Looks for mistakes in the table of flags: a flag without help, or two flags of one name in a
 * command. */
static void table_is_sound(void) {
    for (int row = 0; option_table[row].name; row++) {
        const Option *option = &option_table[row];
        CHECK(option->commands != 0, "--%s belongs to no command", option->name);
        CHECK((option->kind == OPTION_IS_FLAG) == (option->argument == NULL), "--%s: argument",
              option->name);
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

void test_options(void) {
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        RUN_ROW(wrong[i].line, refuses, &wrong[i]);
    for (size_t i = 0; i < sizeof mismatched / sizeof *mismatched; i++)
        RUN_ROW(mismatched[i].line, refuses_mismatch, &mismatched[i]);
    RUN(takes_values);
    RUN(takes_files_and_help);
    RUN(formats_what_it_reads);
    RUN(reaches_the_settings);
    RUN(fills_in_defaults);
    RUN(defaults_of_a_language_model);
    for (size_t i = 0; i < sizeof config / sizeof *config; i++)
        RUN_ROW(config[i].error ? config[i].error : "a config", reads_a_config, &config[i]);
    RUN(quotes_names);
    RUN(refuses_a_long_line_of_a_config);
    RUN(table_is_sound);
}
