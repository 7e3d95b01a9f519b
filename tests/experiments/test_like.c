/* bcd train --like: another run with the settings of an earlier one. */
#include <stdio.h>
#include <string.h>

#include "cli.h"

/* Another optimizer comes with all of its own numbers. */
static void check_defaults(const OptimizerSettings *s, OptimizerKind kind) {
    const OptimizerSettings d = optimizer_defaults(kind);
    CHECK(s->kind == kind && s->lr == d.lr && s->momentum == d.momentum && s->beta1 == d.beta1 &&
              s->beta2 == d.beta2 && s->eps == d.eps && s->weight_decay == d.weight_decay,
          "%s has rate %g, momentum %g, betas %g and %g, eps %g, weight decay %g",
          optimizer_names[kind], s->lr, s->momentum, s->beta1, s->beta2, s->eps, s->weight_decay);
}

/* --like takes the settings of an earlier run, except for flags that are given and flags that
 * these replace. */
static void trains_like_another(void) {
    RunFile file;
    run(0, "train --like plain --quiet --out alike");
    check_same_checkpoint("plain", "alike");
    scratch_text("bare/checkpoint.h5", ""); /* the run has lost its run.h5 */
    copy_file("bare/checkpoint.h5", "plain/checkpoint.h5");
    run(0, "train --like bare --quiet --out barely");
    check_same_checkpoint("plain", "barely");
    run(0, "train --like plain --optimizer adam --epochs 1 --quiet --out unlike");
    if (!read_run(&file, "unlike")) return;
    const Options *o = &file.settings;
    CHECK(file.curve_rows == 8 && o->optimizer.lr == 1e-4 && o->submodels == 3, "other flags");
    check_defaults(&o->optimizer, OPTIMIZER_ADAM);
    runfile_free(&file);
    run(0, "train --like unlike --optimizer muon --steps 1 --quiet --out back");
    if (read_run(&file, "back")) check_defaults(&file.settings.optimizer, OPTIMIZER_MUON);
    runfile_free(&file);
    check_error(run(2, "train --like nothing-there"), "--like nothing-there: no run in it");
    /* The full update drops what is for submodels. */
    run(0,
        "train " GPT
        "--steps 2 --cache 1M --pre-infer --pipeline local:1 --submodel-lr 1,2 --switch-warmup 1 "
        "--out parts --quiet");
    run(0, "train --like parts --submodels 1 --out whole --quiet");
    if (!read_run(&file, "whole")) return;
    CHECK(file.settings.switch_warmup == 0 && file.settings.cache == 0, "flags of BCD are kept");
    runfile_free(&file);
}

/* Checks that a run with other parts than the one that it is like has the same settings as one that
 * was asked for directly. */
static void check_parts(const char *name, const char *flags, const char *before, const char *now) {
    run(0, "train %s %s --quiet --out %s-before", flags, before, name);
    run(0, "train --like %s-before %s --quiet --out %s-like", name, now, name);
    run(0, "train %s %s --quiet --out %s-direct", flags, now, name);
    check_same_checkpoint(text_of("%s-like", name).text, text_of("%s-direct", name).text);
}

/* Which rate fine-tuning has by default, and which blocks of a ResNet are always active, depends on
 * the submodels; what was asked for stays. */
static void parts_have_their_defaults(void) {
    static const char tune[] =
        "--init model --data words.tokens --batch 2 --limit 8 --steps 4 --threads 1";
    static const char images[] =
        "--model resnet:depth=8,width=2 --data synthetic --batch 4 --limit 8 --steps 4 --threads 1";
    run(0,
        "train --model gpt:layers=4,width=8,heads=2,context=4 --data words.tokens --steps 0 "
        "--quiet --out unlearned");
    run(0, "export unlearned --out model --quiet");
    check_parts("whole", tune, "--submodels 6", "--submodels 1");
    check_parts("sixths", tune, "", "--submodels 6");
    check_parts("asked", text_of("%s --lr 1e-3", tune).text, "--submodels 6", "--submodels 1");
    check_parts("phases", text_of("%s --switch-every 3", tune).text, "--submodels 6",
                "--submodels 2");
    check_parts("listed", tune, "", "--partition 0/1/2/3/4/5");
    check_parts("ends", images, "", "--submodels 3");
    check_parts("none", text_of("%s --submodels 3 --always-active none", images).text, "", "");
    /* Another model has its own context, not that of the one that was tuned. */
    run(0,
        "train --like sixths-before --model gpt:layers=1,width=8,heads=2,context=8 --quiet --out "
        "longer");
}

/* Phases and warm-up of a language model depend on the length, unless they are given. */
static void check_late(const char *flags, const char *late, const char *direct) {
    const char *all = "--data words.tokens --batch 2 --limit 16 --threads 1 --quiet";
    run(0, "train %s %s --steps 0 --out %s", flags, all, late);
    run(0, "train --resume %s --steps 50 --quiet", late);
    run(0, "train %s %s --steps 50 --out %s", flags, all, direct);
    check_same_checkpoint(late, direct);
}

/* A run of no updates has not decided them, for a resume and for --like. */
static void defaults_of_a_length_are_found_later(void) {
    check_late("--model gpt:layers=2,width=8,heads=2,context=4", "lateA", "directA");
    check_late("--model gpt:layers=2,width=8,heads=2,context=4 --warmup 1", "lateB", "directB");
    /* Names of directories and files of flags say nothing of what was given. */
    check_late("--model gpt:layers=2,width=8,heads=2,context=4", "late--schedule--warmup",
               "directE");
    check_late("--model gpt:layers=2,width=8,heads=2,context=4 --schedule constant --warmup 0",
               "lateF", "directF");
    scratch_text("late-flags", "model gpt:layers=2,width=8,heads=2,context=4\n");
    check_late("--config late-flags", "lateG", "directG");
    run(0,
        "train --config late-flags --data words.tokens --batch 2 --limit 16 --threads 1 --quiet "
        "--steps 0 --out lateZ");
    run(0, "train --like lateZ --steps 50 --out likeZ --quiet");
    check_same_checkpoint("likeZ", "directG");
    run(0, "export lateA --out late-model --quiet");
    check_late("--init late-model --submodels 2", "lateC", "directC");
    check_late("--init late-model --submodels 2 --switch-every 3", "lateD", "directD");
}

void test_like(void) {
    make_words();
    run(0, "train " RESNET "--steps 30 --quiet --out plain");
    RUN(trains_like_another);
    RUN(parts_have_their_defaults);
    RUN(defaults_of_a_length_are_found_later);
}
