/* From flags to a training: what does not suit the model or the data is refused, and every flag
 * reaches the settings. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "../../experiments/train/setup.h"
#include "../../experiments/train/train.h"
#include "../../ref/blocks/models.h"
#include "../data/scratch.h"
#include "../ref/tiny.h"
#include "program.h"

/* Mistakes that can be found only when the model and the kind of data are known. */
static const Wrong mismatched[] = {
    {"train --data cifr10",
     "data: no data set \"cifr10\"; there are synthetic, text, text1, text2, cifar10, "
     "cifar10-holdout, "
     "cifar100, shakespeare, shakespeare:N, wikitext2, wikitext2:N, webtext2, and token files "
     "FILE.tokens"},
    {"train --data text", "the model resnet8 reads images, the data set text holds tokens"},
    {"train --model gpt:layers=1,width=8,heads=1,context=8",
     "the model gpt:layers=1,width=8,heads=1,context=8 reads tokens, the data set synthetic holds "
     "images"},
    {"train --context 8", "--context is for models that read tokens; resnet8 reads images"},
    {"train --data text --model gpt:layers=1,width=8,heads=1,context=8 --context 16",
     "--context 16: gpt:layers=1,width=8,heads=1,context=8 sets context=8 itself; give one of "
     "them"},
    {"train --augment --cache 1M",
     "--augment changes the images in each epoch, so --cache would keep outputs of other images; "
     "drop one of them"},
    {"train --optimizer adamw --eps 0",
     "--eps 0: where a gradient was always 0 the update would be 0 / 0; give 1e-30 or more"},
    {"train --optimizer muon --eps 1e-50",
     "--eps 1e-50: where a gradient was always 0 the update would be 0 / 0; give 1e-30 or more"},
    {"train --switch-every 7", "--switch-every is for --submodels M"},
    {"train --order random", "--order is for --submodels M"},
    {"train --keep-state", "--keep-state is for --submodels M"},
    {"train --always-active ends", "--always-active is for --submodels M"},
    {"train --frozen-norm batch", "--frozen-norm is for --submodels M"},
    {"train --correct-above 0.5", "--correct-above is for --submodels M"},
    {"train --switch-warmup 5", "--switch-warmup is for --submodels M"},
    {"train --model gpt:layers=2,width=8,heads=1,context=8 --data text --submodels 2 --frozen-norm "
     "batch",
     "--frozen-norm: gpt:layers=2,width=8,heads=1,context=8 has no batch norm"},
    {"train --final-lr 0", "--final-lr is for --schedule cosine"},
    {"train --schedule cosine --step-factor 0.5", "--step-factor is for --schedule step"},
    {"train --submodels 3 --switch-every 7 --auto-max 9", "--auto-max is for --switch-every auto"},
    {"train --submodels 3 --switch-every auto --auto-min 50 --auto-max 5 --auto-window 2",
     "--auto-min 50: it is above --auto-max 5"},
    {"train --submodels 3 --switch-every auto --auto-window 500 --auto-max 600",
     "--auto-window 500: two of them are more than --auto-max 600, so that no phase could end "
     "before it"},
    {"train --submodels 3 --cache 1M --always-active ends",
     "--cache keeps outputs of frozen blocks at the input, and the first block is always active: "
     "give --always-active none"},
    {"train --limit 10 --batch 128", "--batch 128: --limit leaves only 10 samples"},
    {"train --cache 1M",
     "--cache keeps outputs of frozen blocks; with one submodel there are none: give --submodels, "
     "or leave it out"},
    {"train --batch 4 --accumulate 5", "--accumulate 5: a batch has only 4 samples"},
    {"train --accumulate 200", "--accumulate 200: a batch has only 128 samples"},
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

static void refuses_mismatch(const void *row) {
    const Wrong *w = row;
    Options o;
    if (!CHECK(parse_train(&o, w->line) == 0, "refused early: %s", error_message())) return;
    CHECK(setup_check(&o) || setup_check_idle(&o), "accepted: bcd %s", w->line);
    CHECK_ERROR("%s", w->error);
}

/* A setting of other optimizers is refused, with their names: those whose default is not 0. */
static void refuses_settings_of_other_optimizers(void) {
    static const struct {
        const char *line, *error;
        size_t setting;
    } rows[] = {
        {"train --optimizer adam --momentum 0.5", "--momentum: adam has none; it is for ",
         offsetof(OptimizerSettings, momentum)},
        {"train --beta1 0.8", "--beta1: sgd has none; it is for ",
         offsetof(OptimizerSettings, beta1)},
        {"train --beta2 0.9", "--beta2: sgd has none; it is for ",
         offsetof(OptimizerSettings, beta2)},
        {"train --optimizer lion --eps 1e-6", "--eps: lion has none; it is for ",
         offsetof(OptimizerSettings, eps)},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Text error = text_of("%s", rows[i].error);
        const char *comma = "";
        for (int kind = 0; kind < OPTIMIZER_KINDS; kind++) {
            const OptimizerSettings defaults = optimizer_defaults((OptimizerKind)kind);
            const char *setting = (const char *)&defaults + rows[i].setting;
            if (*(const double *)(const void *)setting == 0) continue;
            text_add(&error, "%s%s", comma, optimizer_names[kind]);
            comma = ", ";
        }
        refuses_mismatch(&(Wrong){rows[i].line, error.text});
    }
}

/* What is just not too much, and no setting of other optimizers, which 0 says. */
static void takes_the_most(void) {
    static const char *const lines[] = {
        "train --submodels 3 --switch-every auto --auto-min 100 --auto-max 100 --auto-window 50",
        "train --optimizer adam --momentum 0",
        "train --optimizer sgd --eps 0",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        Options o;
        CHECK(parse_train(&o, lines[i]) == 0 && setup_check(&o) == 0 && setup_check_idle(&o) == 0,
              "%s: %s", lines[i], error_message());
    }
}

/* A flag that has no effect without submodels is accepted where --submodels is given, or comes from
 * a run. */
static void takes_what_is_idle_on_purpose(void) {
    static const char *const lines[] = {
        "train --order random --keep-state --submodels 1",
        "train --order random --partition 0-4",
        "train --like runs/bcd --frozen-norm batch",
        "trace --keep-state",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        CommandLine line;
        CHECK(parse_line(&line, lines[i]) == 0 && setup_check_idle(&line.options) == 0, "%s: %s",
              lines[i], error_message());
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

/* Flags that decide the result. */
static const char decide[] =
    "train --model resnet:depth=8,width=2 --limit 64 --batch 16 --accumulate 3 "
    "--partition 0-2/3 --order random --switch-every auto --auto-window 7 "
    "--auto-tolerance 0.25 --auto-min 8 --auto-max 9 --keep-state --frozen-norm "
    "batch --fraction 0.5 --optimizer adamw --lr 0.25 --weight-decay 0.125 --beta1 0.5 "
    "--beta2 0.75 --eps 0.001 --decay "
    "matrices --clip 3 --schedule step --warmup 4 --final-lr 0.5 --step-every 6 "
    "--step-factor 0.75 --epochs 2.5 --seed 77 --recompute --always-active 4 "
    "--switch-warmup 3 --submodel-lr 1,0.5 --correct-above 0.25";
static const char decide_otherwise[] =
    "train --model resnet:depth=8,width=2 --limit 64 --submodels 3 --optimizer sgd --momentum 0.5 "
    "--augment";
/* Those that the tests of their own follow to the data. */
static const char *const elsewhere[] = {"init", "valid", "context"};

static void every_fixed_flag_is_checked(void) {
    for (int row = 0; option_table[row].name; row++) {
        const Option *option = &option_table[row];
        const Text flag = text_of("--%s ", option->name);
        bool found = !(option->commands & COMMAND_TRAIN) || option->role != OPTION_FIXED ||
                     strstr(decide, flag.text) ||
                     strstr(text_of("%s ", decide_otherwise).text, flag.text);
        for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
            found |= strcmp(option->name, elsewhere[i]) == 0;
        CHECK(found, "--%s decides the result, and no line has it", option->name);
    }
}

static void the_others_reach_the_settings(void) {
    Options o;
    Setup s;
    CHECK(parse_train(&o, decide_otherwise) == 0, "%s", error_message());
    if (!CHECK(setup_open(&s, &o) == 0, "%s", error_message())) return;
    CHECK(s.train->augmented && !s.valid->augmented, "augment");
    CHECK(s.bcd.partition.submodels == 3 && s.bcd.optimizer.momentum == 0.5 &&
              s.stage_settings.optimizer.momentum == 0.5,
          "submodels, momentum");
    setup_free(&s);
}

/* Every flag that decides the result arrives in the settings of the training. */
static void reaches_the_settings(void) {
    Options o;
    Setup s;
    CHECK(parse_train(&o, decide) == 0, "%s", error_message());
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
    /* 4.7 batches: the last one is trained, too. */
    CHECK(parse_train(&o, "train --model resnet:depth=8,width=2 --limit 200 --epochs 3") == 0 &&
              setup_open(&s, &o) == 0 && s.options.steps == 5,
          "%d steps", (int)s.options.steps);
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
    {"--optimizer muon", OPTIMIZER_MUON, LR_COSINE, 5, 3e-4, 1},
    {"--optimizer muon --init nowhere", OPTIMIZER_MUON, LR_COSINE, 5, 1e-5, 1},
    {"--schedule constant --lr 1", OPTIMIZER_ADAMW, LR_CONSTANT, 0, 1, 1},
    {"--init nowhere", OPTIMIZER_ADAMW, LR_COSINE, 5, 5e-5, 1},
    {"--init nowhere --submodels 5", OPTIMIZER_ADAMW, LR_COSINE, 5, 5e-5, 1},
    {"--init nowhere --submodels 6", OPTIMIZER_ADAMW, LR_COSINE, 5, 2e-4, 1},
    {"--init nowhere --submodels 30", OPTIMIZER_ADAMW, LR_COSINE, 5, 8e-4, 1},
    {"--init nowhere --submodels 30 --always-active ends", OPTIMIZER_ADAMW, LR_COSINE, 5, 2e-4, 1},
    {"--init nowhere --submodels 30 --always-active none", OPTIMIZER_ADAMW, LR_COSINE, 5, 8e-4, 1},
    {"--submodels 30", OPTIMIZER_ADAMW, LR_COSINE, 5, 3e-4, 1},
    {"--optimizer sgd --init nowhere --submodels 30", OPTIMIZER_SGD, LR_COSINE, 5, 0.04, 1},
    {"--optimizer sgd --init nowhere", OPTIMIZER_SGD, LR_COSINE, 5, 0.04, 1},
    {"--optimizer lion --init nowhere", OPTIMIZER_LION, LR_COSINE, 5, 1e-5, 1},
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

/* ---- evaluation ---- */

static struct { int calls, samples[4]; } evaluated;

static int note_samples(Engine *engine, const Batch *batch, Loss *loss) {
    (void)engine;
    evaluated.samples[evaluated.calls++] = batch->n;
    loss->count += 7 * (size_t)batch->n; /* targets */
    loss->correct += 3 * (size_t)batch->n;
    loss->loss_sum += 14 * (double)batch->n;
    return 0;
}

/* One micro-batch at a time would leave all ranks but one idle: they come by steps of a training,
 * here two micro-batches of three samples in each of two replicas. */
static void evaluates_as_many_samples_as_a_step_has(void) {
    static const EngineClass class = {.evaluate = note_samples};
    Engine engine = {.is = &class};
    Setup s = {.engine = &engine,
               .model = model_create(tiny_models[0]),
               .stage_settings = {.batch = 3},
               .options = {.accumulate = 2, .replicas = 2}};
    Dataset *data = tiny_dataset(s.model, 29, false);
    EvaluationRow row;
    CHECK(eval_dataset(&row, &s, data, NULL) == 0, "%s", error_message());
    CHECK(evaluated.calls == 3 && evaluated.samples[0] == 12 && evaluated.samples[2] == 5,
          "%d calls, of %d samples first", evaluated.calls, evaluated.samples[0]);
    CHECK(row.accuracy == 3.0 / 7 && row.loss == 2 && row.perplexity == exp(2.0),
          "of targets: accuracy %g, loss %g, perplexity %g", row.accuracy, row.loss,
          row.perplexity);
    dataset_free(data);
    model_free(s.model);
}

void test_setup(void) {
    for (size_t i = 0; i < sizeof mismatched / sizeof *mismatched; i++)
        RUN_ROW(mismatched[i].line, refuses_mismatch, &mismatched[i]);
    RUN(refuses_settings_of_other_optimizers);
    RUN(takes_the_most);
    RUN(takes_what_is_idle_on_purpose);
    RUN(reaches_the_settings);
    RUN(the_others_reach_the_settings);
    RUN(every_fixed_flag_is_checked);
    RUN(fills_in_defaults);
    RUN(defaults_of_a_language_model);
    RUN(evaluates_as_many_samples_as_a_step_has);
}
