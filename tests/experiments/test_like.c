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
    check_parts("ends", images, "", "--submodels 3");
    check_parts("none", text_of("%s --submodels 3 --always-active none", images).text, "", "");
}

void test_like(void) {
    make_words();
    run(0, "train " RESNET "--steps 30 --quiet --out plain");
    RUN(trains_like_another);
    RUN(parts_have_their_defaults);
}
