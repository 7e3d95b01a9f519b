/* `bcd experiment finetune` as a user runs it, and its table. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../experiments/commands.h"
#include "../../experiments/study/converge.h"
#include "../../experiments/study/measures.h"
#include "../../ref/base/error.h"
#include "cli.h"

static bool read_study(Study *study, const char *path) {
    *study = (Study){0};
    return CHECK(study_read(study, scratch_path(path)) == 0, "%s", error_message());
}

/* Pretrains and exports a small model, and fine-tunes it twice from the same files. */
static void all_starts_from_one_model(void) {
    Study study, before;
    run(0, "experiment finetune --preset smoke --quiet --threads 1 --out tuned");
    CHECK(file_exists(scratch_path("tuned/pretrained/config.json")), "nothing exported");
    if (!read_study(&before, "tuned/pretraining.h5") || !read_study(&study, "tuned/finetune.h5"))
        return;
    CHECK(before.rows == 1 && before.row[0].submodels == 1 && !strcmp(before.row[0].data, "text1"),
          "%d rows of pretraining", before.rows);
    if (!CHECK(study.rows == 2, "%d rows", study.rows)) return;
    for (int r = 0; r < 2; r++) {
        const StudyRow *row = &study.row[r];
        CHECK(!strcmp(row->settings.init, "tuned/pretrained") && !strcmp(row->data, "text2"),
              "%s from %s", row->data, row->settings.init);
        CHECK(row->submodels == (r ? 3 : 1), "row %d: %d submodels", r, (int)row->submodels);
        if (!CHECK(row->evaluation_rows == 4, "%zu evaluations", row->evaluation_rows)) continue;
        CHECK(row->evaluation[0].step == 0 &&
                  row->evaluation[0].loss == study.row[0].evaluation[0].loss &&
                  row->evaluation[0].loss < log(256) - 0.5,
              "before: %g", row->evaluation[0].loss);
        /* The text is the tree's own sources, which change with every commit: a few steps may leave
         * the loss about where it was. */
        CHECK(row->valid_loss < row->evaluation[0].loss + 0.1 &&
                  row->valid_loss != row->evaluation[0].loss,
              "%g became %g", row->evaluation[0].loss, row->valid_loss);
    }
    study_free(&study);
    study_free(&before);
    const Printed *again = run(0, "experiment finetune --preset smoke --threads 1 --out tuned");
    CHECK(strstr(again->out, "row 2 of 2") && !strstr(again->out, "step "), "%s", again->out);
}

/* Does the same from the files that were exported; the flags are those of the fine-tuning. */
static void starts_from_a_directory(void) {
    Study own, given;
    run(0,
        "experiment finetune --preset smoke --quiet --threads 1 --init tuned/pretrained --data "
        "text2 --out given");
    CHECK(!file_exists(scratch_path("given/pretrained")), "it pretrains all the same");
    if (!read_study(&own, "tuned/finetune.h5") || !read_study(&given, "given/finetune.h5")) return;
    for (int r = 0; r < 2; r++)
        CHECK(given.row[r].valid_loss == own.row[r].valid_loss, "%g, not %g",
              given.row[r].valid_loss, own.row[r].valid_loss);
    study_free(&own);
    study_free(&given);
    run(0, "experiment finetune --preset smoke --quiet --steps 6 --seeds 2 --out short");
    if (!read_study(&own, "short/pretraining.h5") || !read_study(&given, "short/finetune.h5"))
        return;
    CHECK(own.row[0].steps == 60, "pretrained for %d steps", (int)own.row[0].steps);
    CHECK(given.rows == 4 && given.row[0].steps == 6 && given.row[3].seed == 2, "%d rows",
          given.rows);
    study_free(&own);
    study_free(&given);
}

static void check_cell(const Table *table, const char *label, const char *column, double value,
                       Source source) {
    const Cell *cell = table_find(table, label, column);
    if (!CHECK(cell, "no %s of %s", column, label)) return;
    CHECK(isnan(value) ? isnan(cell->value)
                       : cell->source == source && fabs(cell->value - value) <= 1e-12,
          "%s of %s: %g", column, label, cell->value);
}

static void the_table_says_what_is_known(void) {
    Study study;
    Cases cases = {0};
    Tables tables = {0};
    if (!read_study(&study, "short/finetune.h5")) return;
    CHECK(study_tables(&tables, &cases, &study, true) == 0, "%s", error_message());
    const Table *table = tables_find(&tables, "finetune");
    if (CHECK(table && table->rows == 2, "full, BCD")) {
        const StudyRow *row = study.row;
        check_cell(table, table->label[0], "before", row[0].evaluation[0].loss, SOURCE_MEASURED);
        check_cell(table, table->label[0], "validation_loss",
                   (row[0].valid_loss + row[2].valid_loss) / 2, SOURCE_MEASURED);
        check_cell(table, table->label[1], "validation_loss",
                   (row[1].valid_loss + row[3].valid_loss) / 2, SOURCE_MEASURED);
        check_cell(table, table->label[1], "updates", 6, SOURCE_NONE);
        CHECK(strstr(table->label[1], "BCD-1/3"), "%s", table->label[1]);
    }
    table = tables_find(&tables, "multipliers");
    for (int r = 0; table && r < table->rows;
         r++) /* those of Table 2 are of training from nothing */
        check_cell(table, table->label[r], "trainings", 0, SOURCE_NONE);
    tables_free(&tables);
    cases_free(&cases);
    study_free(&study);
    CHECK(strstr(run(0, "report short/finetune.h5")->out, "Fine-tuning by full update"),
          "the report lacks it");
}

/* Where the weights that a training began with are gone, or others lie in their place, the learned
 * positions beyond the trained context are missing, and the export says so. */
static void exports_what_it_has(void) {
    make_words();
    run(0, "train " GPT "--steps 0 --out begun --quiet");
    run(0, "export begun --out base --quiet");
    run(0,
        "train --init base --data words.tokens --context 4 --limit 8 --batch 2 --steps 1 --out "
        "shorter --quiet");
    CHECK(rename(scratch_path("base/model.safetensors"), scratch_path("kept.safetensors")) == 0,
          "cannot rename");
    check_error(run(1, "export shorter --out export0"), "base/model.safetensors.index.json: No");
    run(0,
        "train --model gpt:layers=2,width=16,heads=2,context=4 --data words.tokens --limit 8 "
        "--batch 2 --steps 0 --out other --quiet");
    run(0, "export other --out place --quiet");
    copy_file("base/model.safetensors", "place/model.safetensors");
    check_error(run(1, "export shorter --out export0"), "has no transformer.wpe.weight of 16 x 16");
    CHECK(!file_exists(scratch_path("export0/config.json")), "half an export is left");
    copy_file("base/model.safetensors", "kept.safetensors");
    run(0, "export shorter --out export0 --quiet");
    run(0, "eval --init export0 --data words.tokens --limit 4");
}

/* An export says that it replaces files, and never replaces those that the run began with. */
static void exports_with_care(void) {
    size_t before, after;
    run(0, "export begun --out careful --quiet");
    run(0,
        "train --init careful --data words.tokens --context 4 --limit 8 --batch 2 --steps 1 --out "
        "tended --quiet");
    char *old = read_bytes("careful/model.safetensors", &before);
    /* LLVM's OpenMP needs a file of 1024 bytes. */
    for (size_t room = 2048; room < before; room += before / 3) {
        check_error(program_run("export tended --out full", room), "File too large");
        CHECK(!file_exists(scratch_path("full/model.safetensors")), "half a file is left");
    }
    check_error(run(1, "export tended --out tended/../careful/"),
                "--out tended/../careful/: the run began with the model there; give another name");
    char *now = read_bytes("careful/model.safetensors", &after);
    CHECK(before == after && memcmp(old, now, before) == 0, "replaced");
    free(old);
    free(now);
    CHECK(!strcmp(run(0, "export tended --out twice")->out,
                  "twice: config.json, model.safetensors\n"),
          "the first one");
    CHECK(!strcmp(run(0, "export tended --out twice")->out,
                  "twice: config.json, model.safetensors; files that were there are replaced\n"),
          "the second one");
}

static void mistakes_are_refused(void) {
    check_error(run(1, "experiment finetune --init tuned/pretrained --out no"),
                "give --data, to fine-tune on");
    check_error(run(1,
                    "experiment finetune --init tuned/pretrained --data text2 --models gpt2 "
                    "--out no"),
                "the model comes from there");
    check_error(run(1, "experiment finetune --init nowhere --data text2 --out no"),
                "nowhere/config.json");
    char *argv[] = {"bcd",     "experiment", "finetune", "--models", "gpt2 gpt2:context=8",
                    "--quiet", "--out",      "no",       NULL};
    CommandLine line;
    CHECK(command_line_parse(&line, 8, argv) == 0 && experiment_finetune(&line) == -1 &&
              strstr(error_message(), "one model"),
          "two models: %s", error_message());
}

/* The laptop preset runs without the data sets that it is for. */
static void text_stands_in(void) {
    const Printed *printed =
        run(0,
            "experiment finetune --data-dir /nowhere --steps 2 --seeds 1 --batch 2 --limit 40 "
            "--models gpt:layers=1,width=8,heads=1,context=8 --preset smoke --out stand-in");
    CHECK(!strstr(printed->out, "replace"), "the smoke preset needs no data: %s", printed->out);
    CHECK(strstr(run(0, "experiment finetune --preset paper")->out, "not known"), "paper");
}

void test_finetune(void) {
    RUN(all_starts_from_one_model);
    RUN(starts_from_a_directory);
    RUN(the_table_says_what_is_known);
    RUN(exports_what_it_has);
    RUN(exports_with_care);
    RUN(mistakes_are_refused);
    RUN(text_stands_in);
}
