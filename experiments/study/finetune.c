/* `bcd experiment finetune`: fine-tunes a pretrained model on other data by full update and by BCD.
 * Without --init it first pretrains a model by full update and exports it to DIR/pretrained, so
 * that all trainings start from the same files. */
#include <stdio.h>
#include <string.h>

#include "../../data/data.h"
#include "../../ref/base/error.h"
#include "../commands.h"
#include "../convert/convert.h"
#include "../store/rundir.h"
#include "trainings.h"

/* clang-format off */

/* The model that is fine-tuned without --init. */
static const TrainingKind training_pretraining = {
    .name = "pretraining",
    .needs_weights = true,
    .ways = "full",
    .preset = {
    [PRESET_SMOKE] = {
        {.model = "gpt:layers=2,width=32,heads=2,context=32", .data = "text1",
         .optimizers = "adamw", .settings = "limit=400 batch=8 steps=60 lr=3e-3"},
    },
    [PRESET_LAPTOP] = {
        {.model = "gpt:layers=4,width=128,heads=4,context=64", .data = "wikitext2:2048",
         .optimizers = "adamw",
         .settings = "batch=16 steps=1500 eval-every=300 eval-samples=1000 warmup=50 lr=1e-3 "
                     "schedule=cosine"},
    },
    [PRESET_GPU] = {
        {.model = "gpt:layers=12,width=768,heads=12,context=256", .data = "wikitext2:8192",
         .optimizers = "adamw", .settings = "batch=32 epochs=8 warmup=200 lr=3e-4 schedule=cosine"},
    },
    },
};

/* The laptop's rate is the best of 3e-4, 1e-3 and 3e-3, for the full update and for BCD. */
static const TrainingKind training_finetune = {
    .name = "finetune",
    .ways = "full; bcd",
    .preset = {
    [PRESET_SMOKE] = {
        {.model = "gpt:layers=2,width=32,heads=2,context=32", .data = "text2",
         .optimizers = "adamw",
         .settings = "limit=96 batch=8 steps=24 switch-every=4 eval-every=8 lr=1e-3"},
    },
    [PRESET_LAPTOP] = {
        {.model = "gpt:layers=4,width=128,heads=4,context=64", .data = "shakespeare:2048",
         .optimizers = "adamw",
         .settings = "batch=16 steps=360 switch-every=20 eval-every=60 warmup=20 lr=1e-3"},
    },
    [PRESET_GPU] = {
        {.model = "gpt:layers=12,width=768,heads=12,context=256", .data = "shakespeare:8192",
         .optimizers = "adamw", .settings = "batch=32 epochs=4 switch-every=20 warmup=20 lr=5e-5"},
    },
    },
};
/* clang-format on */

/* Takes over the flags that hold for the pretraining too. */
static int set_shared(CommandLine *before, const CommandLine *asked) {
    static const char *const shared[] = {"preset", "out",       "models",  "model",    "context",
                                         "device", "precision", "threads", "data-dir", "quiet",
                                         "yes",    "price",     NULL};
    command_line_defaults(before, COMMAND_EXPERIMENT);
    if (options_take(&before->options, &asked->options, shared, true)) return -1;
    return options_set(&before->options, "seeds", "1");
}

/* Takes the two halves of the project's own text when one of the data sets is missing. */
static int choose_data(CommandLine *before, CommandLine *after) {
    const char *first = training_pretraining.preset[after->experiment.preset]->data;
    const char *then = training_finetune.preset[after->experiment.preset]->data;
    const char *dir = *after->options.data_dir ? after->options.data_dir : NULL;
    bool given = options_given(&after->options, "data");
    if (data_present(first, dir) && (given || data_present(then, dir))) return 0;
    if (!after->options.quiet)
        printf("%s or %s is missing; text1 and text2 replace both\n", first, then);
    return options_set(&before->options, "data", "text1") ||
           (!given && options_set(&after->options, "data", "text2"));
}

/* Trains a model as `before` says and sets --init of `after` to it.  Without --yes a long training
 * is only estimated, and --init stays empty.  Returns as trainings_run. */
static int pretrain(CommandLine *after, const CommandLine *before) {
    TrainingPlan plan;
    int status = trainings_plan(&plan, &training_pretraining, before);
    if (!status && plan.rows != 1) status = error_set("--models: finetune takes one model");
    if (!status) status = trainings_run(&training_pretraining, before);
    if (!status && (before->experiment.yes || !plan.long_run)) {
        const Text dir = rundir_path(plan.dir.text, "pretrained");
        status = convert_export(plan.row[0].options.out, dir.text, &before->options, NUMBER_F32) ||
                         options_set(&after->options, "init", dir.text)
                     ? -1
                     : 0;
    }
    trainings_free(&plan);
    return status;
}

int experiment_finetune(const CommandLine *asked) {
    CommandLine before, after = *asked;
    char spec[OPTION_TEXT];
    if (asked->experiment.preset == PRESET_PAPER) {
        printf("finetune: the published settings are not known; --preset gpu has our own\n");
        return 0;
    }
    if (*asked->options.init && !options_given(&asked->options, "data"))
        return error_set("--init %s: give --data, to fine-tune on", asked->options.init);
    if (*asked->options.init &&
        (*asked->experiment.models || options_given(&asked->options, "model")))
        return error_set("--init %s: the model comes from there; leave out --models and --model",
                         asked->options.init);
    if (!*asked->options.init) {
        if (set_shared(&before, asked) || choose_data(&before, &after)) return -1;
        int status = pretrain(&after, &before);
        if (status || !*after.options.init) return status;
    }
    *after.experiment.models = 0;
    if (convert_spec(spec, after.options.init, after.options.context) ||
        options_set(&after.options, "model", spec))
        return -1;
    return trainings_run(&training_finetune, &after);
}
