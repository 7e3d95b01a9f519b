/* The experiments that consist of trainings: what they train, and the committed results of it. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../data/checksum.h"
#include "../../experiments/study/study.h"
#include "../../experiments/study/trainings.h"
#include "../../experiments/tables/table.h"
#include "../../ref/base/error.h"
#include "../data/scratch.h"
#include "cli.h"

static uint64_t add_text(uint64_t sum, const char *text) {
    return text ? checksum_bytes(sum, (const unsigned char *)text, strlen(text) + 1)
                : checksum_add(sum, 256);
}

static uint64_t add_entry(uint64_t sum, const TrainingEntry *e) {
    const char *const texts[] = {e->model, e->data, e->optimizers, e->settings,
                                 e->sgd,   e->adam, e->instead_of, e->ways};
    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) sum = add_text(sum, texts[t]);
    return checksum_add(sum, (uint64_t)e->seeds);
}

typedef struct {
    const TrainingKind *kind;
    int old; /* rows of the committed file that are not planned; -1: no file is committed */
    int entries[PRESET_KINDS];
    uint64_t sum; /* over all entries */
} KindRow;

/* The networks, settings and seeds of all presets.  Whoever changes an experiment changes its sum
 * here: the rows of its committed file were trained as it says. */
static void presets(const void *data) {
    const KindRow *row = data;
    uint64_t sum = add_text(CHECKSUM_START, row->kind->ways);
    for (int t = 0; t < 3; t++) sum = checksum_add(sum, (uint64_t)row->kind->tables[t]);
    sum = checksum_add(sum, row->kind->takes_hours);
    for (int p = 0; p < PRESET_KINDS; p++) {
        int entries = 0;
        for (const TrainingEntry *e = row->kind->preset[p]; e->model; e++, entries++)
            sum = add_entry(sum, e);
        CHECK(entries == row->entries[p], "preset %d has %d networks", p, entries);
    }
    CHECK(sum == row->sum, "%s: the sum is 0x%" PRIX64, row->kind->name, sum);
}

/* What the experiment sets is what the training had. */
static void check_settings(const StudyRow *stored, const TrainingRow *planned) {
    for (int o = 0; option_table[o].name; o++) {
        const Option *option = &option_table[o];
        bool trains = (option->commands & COMMAND_TRAIN) && option->role != OPTION_LOCAL;
        if (!trains || !planned->options.given[o]) continue;
        const Text had = options_format(&stored->settings, o),
                   has = options_format(&planned->options, o);
        CHECK(!strcmp(had.text, has.text), "%s: trained with --%s %s, planned with %s",
              stored->name, option->name, had.text, has.text);
    }
}

/* Every training of a committed file is planned today, with the same settings; of the pilot five
 * are not, of a network that it had before. */
static void results(const void *data) {
    const KindRow *row = data;
    char path[400];
    char *argv[] = {"bcd", "experiment", (char *)row->kind->name, "--preset", "laptop", NULL};
    Study study = {0};
    CommandLine line;
    TrainingPlan plan = {0};
    int found = 0;
    scratch_text("cifar-10-batches-bin/data_batch_1.bin", "");
    scratch_text("wikitext-2/train.txt", "");
    snprintf(path, sizeof path, "%s/experiments/results/%s.h5", BCD_SOURCE_DIR, row->kind->name);
    if (!CHECK(command_line_parse(&line, 5, argv) == 0, "%s", error_message())) return;
    snprintf(line.options.data_dir, sizeof line.options.data_dir, "%s", scratch_path("."));
    if (CHECK(study_read(&study, path) == 0 && trainings_plan(&plan, row->kind, &line) == 0, "%s",
              error_message()))
        for (int r = 0; r < study.rows; r++) {
            int p = 0;
            while (p < plan.rows && strcmp(plan.row[p].name, study.row[r].name)) p++;
            if (p == plan.rows) continue;
            check_settings(&study.row[r], &plan.row[p]);
            found++;
        }
    CHECK(study.rows > row->old && found == study.rows - row->old, "%s: of %d rows %d are planned",
          path, study.rows, found);
    trainings_free(&plan);
    study_free(&study);
}

/* Of a training of 5 updates, of which 6 are an epoch: in a plan it may be longer, or ended, or
 * another one that has not begun. */
static void work_left(void) {
    static const struct {
        uint64_t steps;
        double epochs;
        bool begun, finished, ended;
        double done, left;
    } cases[] = {{20, 0, true, false, false, 0.25, 60},
                 {99, 5, true, false, false, 5. / 30, 80 * (1 - 5. / 30)},
                 {4, 0, true, false, false, 1, 0},
                 {20, 0, false, false, false, 0, 80},
                 {20, 0, true, true, false, 0.25, 0},
                 {20, 0, true, false, true, 0.25, 0}};
    TrainingRow rows[2] = {{.work = 80}, {.work = 7, .finished = true}};
    const TrainingPlan plan = {.rows = 2, .row = rows};
    run(0,
        "train --model resnet:depth=8,width=2 --data synthetic --limit 96 --batch 16 --steps 5 "
        "--out begun");
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        Options *o = &rows[0].options;
        o->steps = cases[c].steps;
        o->epochs = cases[c].epochs;
        snprintf(o->out, sizeof o->out, "%s", scratch_path(cases[c].begun ? "begun" : "nowhere"));
        rows[0].finished = cases[c].finished;
        rows[0].ended = cases[c].ended;
        double done = trainings_done(&rows[0]), left = trainings_work_left(&plan);
        CHECK(done == cases[c].done && left == cases[c].left, "case %zu: %g done, %g left", c, done,
              left);
    }
}

/* Of the second training: not far more than the first one took, which may be less than a second. */
static void time_left(void) {
    RunFile first;
    double left = NAN;
    const char *out = run(0,
                          "experiment validity --preset smoke --models resnet:depth=8,width=2 "
                          "--optimizers sgd --threads 1 --steps 120 --out two")
                          ->out;
    const char *second = strstr(out, "row 2 of 2: ");
    if (!CHECK(second, "%s", out) ||
        !read_run(&first, "two/rows/resnet-depth-8-width-2-synthetic-sgd-full"))
        return;
    CHECK(sscanf(second, "row 2 of 2: %*s (about %lf s left in all)", &left) == 1, "%s", second);
    CHECK(left >= 0 && left <= 10 * (1 + first.provenance.wall), "%g s left after %g s", left,
          first.provenance.wall);
    runfile_free(&first);
}

/* At 1000 and 3000 dollars an hour, where a cent is far less than the digits that are printed. */
static void dollars_of_an_estimate(void) {
    static const struct {
        const char *name, *hours, *dollars;
        double price;
    } gpus[] = {{"RTX 4090", "rtx4090_hours", "rtx4090_dollars", 1000},
                {"A100 80GB", "a100_hours", "a100_dollars", 3000}};
    Tables tables = {0};
    make_words();
    const char *out =
        run(0,
            "experiment validity --preset gpu --models gpt:layers=6,width=32,heads=2,context=16 "
            "--data words.tokens --optimizers adam --seeds 1 --price rtx4090=1000,a100=3000 "
            "--out told")
            ->out;
    if (!CHECK(tables_read(&tables, scratch_path("told/validity-gpu-estimate.h5")) == 0, "%s",
               error_message()))
        return;
    for (int g = 0; g < 2; g++) {
        char line[80];
        double hours = NAN, dollars = NAN, price = NAN;
        snprintf(line, sizeof line, "on one %s, simulated: ", gpus[g].name);
        const char *found = strstr(out, line);
        CHECK(found && sscanf(found + strlen(line), "%lf hours, %lf dollars at %lf an hour", &hours,
                              &dollars, &price) == 3,
              "%s", out);
        CHECK(price == gpus[g].price && fabs(dollars / (hours * price) - 1) < 0.01,
              "%g hours, %g dollars at %g", hours, dollars, price);
        const Table *table = tables_find(&tables, "estimate");
        for (int r = 0; table && r < table->rows; r++) {
            const Cell *h = table_find(table, table->label[r], gpus[g].hours),
                       *d = table_find(table, table->label[r], gpus[g].dollars);
            CHECK(h && d && h->value > 0 && d->value == h->value * price, "%s", table->label[r]);
        }
    }
    tables_free(&tables);
}

static const KindRow rows[] = {
    {&training_validity, 0, {2, 6, 7, 0}, 0x1C180FAD5B146533},
    {&training_compression, -1, {2, 4, 2, 0}, 0xE329CD11BD454499},
    {&training_ufp, 0, {1, 2, 1, 0}, 0xB699000EBF0ACF4E},
    {&training_switching, 0, {1, 2, 2, 1}, 0xE113A8E030C95359},
    {&training_converged, 0, {1, 14, 7, 0}, 0xD70D91FF7262B6C4},
    {&training_converged_pilot, 5, {1, 4, 0, 0}, 0x2EE24047F7850A1E},
    {&training_remedies, 0, {1, 2, 0, 0}, 0x33C3C9C9582977A7},
};

void test_study_kinds(void) {
    RUN(work_left);
    RUN(time_left);
    RUN(dollars_of_an_estimate);
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        RUN_ROW(rows[r].kind->name, presets, &rows[r]);
        if (rows[r].old >= 0) RUN_ROW(rows[r].kind->name, results, &rows[r]);
    }
}
