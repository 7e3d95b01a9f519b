/* Which trainings a command line asks for. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../data/checksum.h"
#include "../../experiments/study/trainings.h"
#include "../../ref/base/error.h"
#include "../data/scratch.h"
#include "../test.h"

static int plan_of(TrainingPlan *plan, int argc, char **argv) {
    CommandLine line;
    *plan = (TrainingPlan){0};
    if (command_line_parse(&line, argc, argv)) return -1;
    return trainings_plan(plan, &training_validity, &line);
}

static void case_plan(void) {
    char *argv[] = {"bcd",          "experiment",  "validity", "--preset", "smoke",
                    "--optimizers", "adamw",       "--steps",  "7",        "--out",
                    "somewhere/x",  "--submodels", "2",        NULL};
    TrainingPlan plan;
    if (!CHECK(plan_of(&plan, 13, argv) == 0, "%s", error_message())) return;
    CHECK(plan.rows == 4, "%d rows", plan.rows);
    for (int r = 0; r < plan.rows; r++) {
        const Options *o = &plan.row[r].options;
        CHECK(o->steps == 7 && o->optimizer.kind == OPTIMIZER_ADAMW, "row %d: the flags given", r);
        CHECK(o->submodels == (r % 2 ? 2 : 1), "row %d: %d submodels", r, o->submodels);
        CHECK(strstr(o->out, "somewhere/x/rows/") && strstr(o->out, plan.row[r].name), "%s",
              o->out);
        for (int other = 0; other < r; other++)
            CHECK(strcmp(plan.row[r].name, plan.row[other].name), "two rows %s", plan.row[r].name);
    }
    /* The time left goes by operations: of equal parts an update of BCD-1/M takes
     * (1 + (1 + 1/M) / 2 + 1/M) / 3 of a full one, forward, input and weight gradients. */
    for (int r = 0; r < plan.rows; r += 2)
        CHECK(plan.row[r].work > 0 &&
                  fabs(plan.row[r + 1].work / plan.row[r].work - (1 + 0.75 + 0.5) / 3) <= 1e-12,
              "BCD-1/2 works %g of a full update", plan.row[r + 1].work / plan.row[r].work);
    trainings_free(&plan);
}

/* The rows of Table 2 that can be run, as long as they were published: 16 of images, 4 of text. */
static void case_plan_paper(void) {
    char *argv[] = {"bcd", "experiment", "validity", "--preset", "paper", NULL};
    TrainingPlan plan;
    if (!CHECK(plan_of(&plan, 5, argv) == 0, "%s", error_message())) return;
    CHECK(plan.rows == 20 && plan.long_run, "%d rows", plan.rows);
    CHECK(plan.row[1].options.epochs == 395 && plan.row[1].options.submodels == 3, "%s: %g epochs",
          plan.row[1].name, plan.row[1].options.epochs);
    CHECK(plan.row[19].options.epochs == 50 && plan.row[19].options.batch == 1, "%s: %g epochs",
          plan.row[19].name, plan.row[19].options.epochs);
    trainings_free(&plan);
    scratch_text("webtext2.tokens", "");
    char *there[] = {"bcd",
                     "experiment",
                     "validity",
                     "--preset",
                     "paper",
                     "--data-dir",
                     (char *)scratch_path("."),
                     NULL};
    if (!CHECK(plan_of(&plan, 7, there) == 0, "%s", error_message())) return;
    CHECK(plan.rows == 24 && plan.row[21].options.steps == 2770000 &&
              !strcmp(plan.row[21].options.data, "webtext2"),
          "with WebText2: %d rows", plan.rows);
    trainings_free(&plan);
}

/* Other experiments train the same networks in other ways. */
static void case_ways(void) {
    char *argv[] = {"bcd", "experiment", "ufp", "--preset", "smoke", "--seeds", "2", NULL};
    CommandLine line;
    TrainingPlan plan;
    if (!CHECK(command_line_parse(&line, 7, argv) == 0, "%s", error_message())) return;
    CHECK(trainings_plan(&plan, &training_ufp, &line) == 0, "%s", error_message());
    CHECK(!strcmp(plan.dir.text, "results-smoke"), "into %s", plan.dir.text);
    CHECK(plan.rows == 16, "%d rows", plan.rows); /* two seeds, two optimizers, M = 1 to 4 */
    for (int r = 0; r < plan.rows; r++) {
        const Options *o = &plan.row[r].options;
        CHECK(o->submodels == r % 4 + 1 && o->seed == (uint64_t)(r / 8 + 1), "row %d", r);
        for (int other = 0; other < r; other++)
            CHECK(strcmp(plan.row[r].name, plan.row[other].name), "two rows %s", plan.row[r].name);
    }
    trainings_free(&plan);
    line.experiment.preset = PRESET_LAPTOP;
    CHECK(trainings_plan(&plan, &training_ufp, &line) == 0 && !plan.long_run, "asks for --yes");
    trainings_free(&plan);
    line.experiment.preset = PRESET_PAPER;
    line.experiment.seeds = 1;
    CHECK(trainings_plan(&plan, &training_ufp, &line) == 0 && plan.rows == 8, "Table 11: %d rows",
          plan.rows);
    trainings_free(&plan);
    CHECK(trainings_plan(&plan, &training_switching, &line) == 0 && plan.rows == 16, "%d rows",
          plan.rows);
    CHECK(plan.row[5].options.keep_state && plan.row[5].options.switch_rule.every == 10 &&
              plan.row[6].options.order == ORDER_DESCENDING &&
              strstr(plan.row[5].name, "bcd3-switch-every-10-keep"),
          "%s", plan.row[5].name);
    trainings_free(&plan);
    CHECK(trainings_plan(&plan, &training_compression, &line) == 0 && plan.rows == 9,
          "Tables 9 and 10: %d rows", plan.rows);
    CHECK(plan.row[0].options.fraction == 0.9 && plan.row[0].options.submodels == 3 &&
              plan.row[0].options.epochs == 40,
          "the first row of Table 9");
    trainings_free(&plan);
}

/* A way that is misspelt is refused. */
static void case_wrong_ways(void) {
    const char *const wrong[] = {"ful lr=0.1", "full; BCD4", "fully", "bcd4x0.9"};
    char *argv[] = {"bcd", "experiment", "ufp", "--preset", "smoke", NULL};
    CommandLine line;
    if (!CHECK(command_line_parse(&line, 5, argv) == 0, "%s", error_message())) return;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        TrainingPlan plan = {.kind = &training_ufp, .asked = line};
        TrainingEntry entry = {.model = "resnet8", .data = "synthetic", .ways = wrong[i]};
        CHECK(trainings_add(&plan, &entry, "sgd", 0) == -1, "accepted: %s", wrong[i]);
        trainings_free(&plan);
    }
}

/* Rows of long names, which are cut, have directories of their own. */
static void case_long_names(void) {
    char *argv[] = {"bcd",
                    "experiment",
                    "switching",
                    "--preset",
                    "smoke",
                    "--models",
                    "gpt:layers=2,width=0000000016,heads=0000000002,context=0000000016",
                    "--data",
                    (char *)scratch_text("dir/text.tokens", ""),
                    "--seeds",
                    "2",
                    "--seed",
                    "1234567890123456",
                    "--fraction",
                    "0.25",
                    NULL};
    CommandLine line;
    TrainingPlan plan;
    if (!CHECK(command_line_parse(&line, 15, argv) == 0, "%s", error_message())) return;
    CHECK(trainings_plan(&plan, &training_switching, &line) == 0, "%s", error_message());
    size_t longest = 0;
    for (int r = 0; r < plan.rows; r++) {
        const char *name = plan.row[r].name;
        if (strlen(name) > longest) longest = strlen(name);
        CHECK(strstr(name, "-text.tokens-"), "%s", name);
        for (int other = 0; other < r; other++)
            CHECK(strcmp(name, plan.row[other].name), "two rows %s", name);
    }
    CHECK(longest == 127, "%zu characters", longest);
    trainings_free(&plan);
}

/* Trainings of hours: an entry with all its seeds before the next, so that what is finished is
 * whole rows of the table; as many seeds, and in such ways, as each entry says. */
static void case_plan_by_entry(void) {
    char *argv[] = {"bcd", "experiment", "converged", "--preset", "laptop", NULL};
    CommandLine line;
    TrainingPlan plan;
    if (!CHECK(command_line_parse(&line, 5, argv) == 0, "%s", error_message())) return;
    CHECK(trainings_plan(&plan, &training_converged, &line) == 0, "%s", error_message());
    CHECK(plan.rows == 6 + 9 + 6 + 6 + 2 * 7 + 6 + 9 + 6 + 3 + 2 + 2 && plan.long_run, "%d rows",
          plan.rows);
    for (int r = 0; r < plan.rows && r < 6; r++) {
        const Options *o = &plan.row[r].options;
        CHECK(o->seed == (uint64_t)(r / 2 + 1) && o->epochs == (r % 2 ? 240 : 80) && o->augment,
              "row %d: %s", r, plan.row[r].name);
    }
    for (int r = 0; r < plan.rows; r++)
        for (int other = 0; other < r; other++)
            CHECK(strcmp(plan.row[r].name, plan.row[other].name), "two rows %s", plan.row[r].name);
    trainings_free(&plan);
    CHECK(trainings_plan(&plan, &training_converged_pilot, &line) == 0, "%s", error_message());
    CHECK(plan.rows == 11 + 10 + 7 + 2, "%d rows", plan.rows);
    for (int r = 0; r < plan.rows; r++)
        for (int other = 0; other < r; other++)
            CHECK(strcmp(plan.row[r].name, plan.row[other].name), "two rows %s", plan.row[r].name);
    trainings_free(&plan);
    line.experiment.preset = PRESET_PAPER;
    CHECK(trainings_plan(&plan, &training_converged, &line) == -1 &&
              strstr(error_message(), "--preset paper"),
          "a preset without trainings: %s", error_message());
    trainings_free(&plan);
}

/* What a preset trains depends on the data there: each network on its own, or on what stands in. */
static void case_stand_ins(void) {
    char *argv[] = {"bcd", "experiment", "validity", "--data-dir", "/nowhere", NULL};
    CommandLine line;
    TrainingPlan plan;
    if (!CHECK(command_line_parse(&line, 5, argv) == 0, "%s", error_message())) return;
    CHECK(trainings_plan(&plan, &training_validity, &line) == 0, "%s", error_message());
    /* 3 seeds: of the images one optimizer, of the text two, each twice */
    CHECK(plan.rows == 18, "%d rows", plan.rows);
    for (int r = 0; r < plan.rows; r++) {
        const char *data = plan.row[r].options.data;
        CHECK(!strcmp(data, r % 6 < 2 ? "synthetic" : "text"), "row %d on %s", r, data);
    }
    CHECK(strstr(plan.missing.text, "cifar10 is missing, synthetic replaces it; wikitext2"), "%s",
          plan.missing.text);
    trainings_free(&plan);
    scratch_text("cifar-10-batches-bin/data_batch_1.bin", "");
    scratch_text("wikitext-2/train.txt", "");
    snprintf(line.options.data_dir, sizeof line.options.data_dir, "%s", scratch_path("."));
    CHECK(trainings_plan(&plan, &training_validity, &line) == 0, "%s", error_message());
    CHECK(plan.rows == 36 && !*plan.missing.text, "%d rows: %s", plan.rows, plan.missing.text);
    int bcd = 0, smaller = 0;
    for (int r = 0; r < plan.rows; r++) {
        const Options *o = &plan.row[r].options;
        CHECK(!strcmp(o->data, "cifar10") || !strcmp(o->data, "wikitext2:2048"), "on %s", o->data);
        bcd += o->submodels > 1;
        smaller += strstr(o->model, "width=13") || strstr(o->model, "width=96");
        if (strstr(o->model, "width=13")) CHECK(o->submodels == 1, "a smaller network by BCD");
    }
    CHECK(bcd == 12 && smaller == 12, "%d by BCD, %d smaller", bcd, smaller);
    trainings_free(&plan);
    line.experiment.preset = PRESET_GPU;
    CHECK(trainings_plan(&plan, &training_validity, &line) == 0 &&
              plan.row[plan.rows - 1].options.seed == 3,
          "seeds on a GPU");
    trainings_free(&plan);
}

static void case_plan_mistakes(void) {
    static char *const wrong[][2] = {{"--preset", "huge"},      {"--models", "resnet9"},
                                     {"--optimizers", "lbfgs"}, {"--submodels", "1"},
                                     {"--submodels", "60"},     {"--models", "gpt:layers=2"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char *argv[] = {"bcd", "experiment", "validity", wrong[i][0], wrong[i][1], NULL};
        TrainingPlan plan;
        CHECK(plan_of(&plan, 5, argv) == -1 && *error_message(), "%s %s", wrong[i][0], wrong[i][1]);
        trainings_free(&plan);
    }
}

/* ---- settings -------------------------------------------------------------------------------- */

/* What a row trains with, as text. */
static void describe_row(char *text, size_t size, const TrainingRow *row) {
    static const char *const names[] = {
        "model",      "data",  "context", "limit",  "submodels", "switch-every", "order",
        "keep-state", "batch", "steps",   "epochs", "seed",      "fraction",     "augment"};
    const OptimizerSettings s = setup_optimizer(&row->options);
    size_t used = (size_t)snprintf(
        text, size, "%s %d %.17g %.17g %.17g %.17g %.17g %.17g %d %.17g %d %d %.17g %d %.17g",
        row->name, s.kind, s.lr, s.momentum, s.beta1, s.beta2, s.eps, s.weight_decay,
        s.decay_matrices_only, s.clip_norm, s.schedule, s.warmup_steps, s.final_fraction,
        s.step_every, s.step_factor);
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        int option = options_find(names[n], COMMAND_TRAIN);
        Text value = options_format(&row->options, option);
        if (option_table[option].kind == OPTION_IS_REAL) /* with any number of digits */
            value = text_of("%.17g", strtod(value.text, NULL));
        used += (size_t)snprintf(text + used, size - used, " %s", value.text);
    }
}

static uint64_t add_entry(uint64_t sum, const TrainingKind *kind, const TrainingEntry *entry) {
    TrainingPlan plan = {.kind = kind};
    char optimizers[64], text[2048];
    command_line_defaults(&plan.asked, COMMAND_EXPERIMENT);
    snprintf(optimizers, sizeof optimizers, "%s", entry->optimizers);
    TrainingEntry counted = *entry;
    if (entry->ways && !strcmp(entry->ways, "full")) counted.ways = NULL; /* as it always was */
    for (char *name = strtok(optimizers, ","); name; name = strtok(NULL, ","))
        CHECK(trainings_add(&plan, &counted, name, 0) == 0, "%s", error_message());
    for (int r = 0; r < plan.rows; r++) {
        describe_row(text, sizeof text, &plan.row[r]);
        sum = checksum_bytes(sum, (const unsigned char *)text, strlen(text));
    }
    trainings_free(&plan);
    return sum;
}

/* Defaults of `bcd train` may change; what an experiment trains with does not. */
static void case_settings_stay(void) {
    static const TrainingKind *const kinds[] = {
        &training_validity,  &training_compression,     &training_ufp,     &training_switching,
        &training_converged, &training_converged_pilot, &training_remedies};
    uint64_t sum = CHECKSUM_START;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (int preset = 0; preset < PRESET_KINDS; preset++)
            for (const TrainingEntry *e = kinds[k]->preset[preset]; e->model; e++)
                sum = add_entry(sum, kinds[k], e);
    CHECK(sum == 0x655af3440608634bu, "the checksum of all settings is 0x%llx",
          (unsigned long long)sum);
}

void test_trainings_plan(void) {
    RUN(case_plan);
    RUN(case_plan_paper);
    RUN(case_ways);
    RUN(case_wrong_ways);
    RUN(case_long_names);
    RUN(case_plan_by_entry);
    RUN(case_stand_ins);
    RUN(case_plan_mistakes);
    RUN(case_settings_stay);
}
