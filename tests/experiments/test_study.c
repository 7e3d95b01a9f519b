/* Studies: the published tables, the convergence rule, what they are counted in. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../experiments/paper/trainings.h"
#include "../../experiments/study/cases.h"
#include "../../experiments/study/converge.h"
#include "../../experiments/study/measures.h"
#include "../../ref/base/error.h"
#include "../data/scratch.h"
#include "cli.h"
#include "study_sample.h"

/* ---- the paper ------------------------------------------------------------------------------- */

static void case_published_multipliers(void) {
    static const struct {
        const char *row, *optimizer;
        double multiplier;
    } audit[] = {{"ResNet8", "adam", 0.79},
                 {"ResNet14", "adam", 0.76},
                 {"ResNet20", "adam", 0.55},
                 {"GPT2-wiki", "adam", 2.78},
                 {"GPT2-web", "adam", 2.09}};
    size_t found = 0;
    for (const PaperRow *row = paper_table2; row->table; row++)
        for (size_t a = 0; a < sizeof audit / sizeof *audit; a++)
            if (row->submodels == 3 && !strcmp(row->row, audit[a].row) &&
                !strcmp(row->optimizer, audit[a].optimizer)) {
                found++;
                CHECK(fabs(paper_multiplier(row) - audit[a].multiplier) <= 0.005, "%s: %g",
                      audit[a].row, paper_multiplier(row));
            }
    CHECK(found == 5, "%zu rows", found);
    CHECK(fabs(paper_mean_multiplier("adam", -1) - 1.39) <= 0.005, "%g",
          paper_mean_multiplier("adam", -1));
    CHECK(fabs(paper_mean_multiplier("adam", 0) - 2.44) <= 0.005, "%g",
          paper_mean_multiplier("adam", 0));
    CHECK(fabs(paper_mean_multiplier("adam", 1) - 0.70) <= 0.005, "%g",
          paper_mean_multiplier("adam", 1));
}

/* The language rows are consistent only if "Acc" is ten times the perplexity, cut off. */
static void case_published_perplexity(void) {
    static const int tables[] = {2, 9, 10, 11};
    int checked = 0;
    for (int t = 0; t < 4; t++)
        for (const PaperRow *row = paper_rows(tables[t]); row->table; row++) {
            CHECK(row->table == tables[t], "Table %d in Table %d", row->table, tables[t]);
            if (row->score_kind == SCORE_ACCURACY) continue;
            double error = exp(row->loss) - paper_score(row);
            double allowed = row->score_kind == SCORE_PERPLEXITY ? 2e-3 * paper_score(row) : 0.1;
            CHECK(fabs(error) <= allowed, "table %d %s: loss %g, perplexity %g", row->table,
                  row->row, row->loss, paper_score(row));
            checked++;
        }
    CHECK(checked == 22, "%d rows", checked);
}

static void case_published_twins(void) {
    const PaperRow *row = paper_find(2, "resnet8", "cifar10", true, "sgd", 3, 1);
    CHECK(row && row->duration == 395, "resnet8");
    row = paper_find(2, "resnet8", "synthetic", true, "sgd", 3, 1);
    CHECK(row && row->duration == 395, "other data");
    row = paper_find(11, "gpt:layers=2", "text", false, "adamw", 4, 1);
    CHECK(row && row->table == 11 && row->duration == 60, "adamw, a quarter");
    CHECK(!paper_find(2, "resnet8", "cifar10", true, "sgd", 7, 1), "sevenths");
}

/* ---- convergence ----------------------------------------------------------------------------- */

/* The window is 10 updates.  BCD ends near 3 exp(-0.01 200), the level; the full update, twice as
 * fast, is there after half of the steps, but for the lag of the window. */
static void case_multiplier(void) {
    Study study = sample_study();
    const StudyRow *full = &study.row[0], *bcd = &study.row[1];
    CHECK(full->multiplier == 1 && isnan(full->level) && isnan(full->steps_to_converge),
          "a full update has no level of its own: %g", full->level);
    CHECK(bcd->steps_to_converge == SAMPLE_STEPS && bcd->epochs_to_converge == SAMPLE_STEPS / 50.0,
          "BCD after %g", bcd->steps_to_converge);
    double full_steps = bcd->steps_to_converge / bcd->multiplier;
    CHECK(full_steps >= 100 && full_steps <= 105, "full after %g", full_steps);
    double end = 0;
    for (int i = SAMPLE_STEPS - 10; i < SAMPLE_STEPS; i++) end += bcd->curve[i].loss / 10;
    CHECK(fabs(bcd->train_loss - end) <= 1e-12 && fabs(bcd->level - bcd->train_loss) <= 1e-12,
          "level %g, loss %g", bcd->level, bcd->train_loss);
    /* The other way round: there BCD is faster. */
    CHECK(study.row[3].multiplier < 1 && study.row[3].level > study.row[3].train_loss, "B-F %g",
          study.row[3].multiplier);
    study_free(&study);
}

/* Validation losses 1 - 0.07 e, the same for both: reached at the same evaluation.  Then the full
 * update gets down to 0.5 at its second evaluation, BCD to 0.79 at its last; that is the level,
 * which the full update has reached 21/50 of the way from its first, of loss 1. */
static void case_validation_multiplier(void) {
    Study study = sample_study();
    const StudyRow *bcd = &study.row[1];
    CHECK(bcd->valid_steps == 200 && bcd->valid_multiplier == 1, "validation: %g, %g",
          bcd->valid_steps, bcd->valid_multiplier);
    study.row[0].evaluation[1].loss = 0.5;
    study_converge(&study);
    CHECK(bcd->valid_level == bcd->evaluation[3].loss, "level %g", bcd->valid_level);
    CHECK(bcd->valid_steps == 200 && fabs(bcd->valid_multiplier - 200 / 71.0) <= 1e-12, "%g, %g",
          bcd->valid_steps, bcd->valid_multiplier);
    /* A loss that was there from the first evaluation on, and one that rose before it fell. */
    study.row[0].evaluation[0].loss = 0.79;
    study_converge(&study);
    CHECK(bcd->valid_multiplier == 4, "%g", bcd->valid_multiplier);
    study.row[0].evaluation[0].loss = 0.8;
    study.row[0].evaluation[1].loss = 2.79;
    study.row[0].evaluation[2].loss = 0.29;
    study_converge(&study);
    CHECK(fabs(bcd->valid_multiplier - 200 / 140.0) <= 1e-12, "%g", bcd->valid_multiplier);
    study_free(&study);
}

/* A row like another one, but without curves of its own to free. */
static StudyRow *add_like(Study *study, int row) {
    StudyRow *added = study_add(study);
    *added = study->row[row];
    added->curve = NULL;
    added->evaluation = NULL;
    added->switches = NULL;
    added->curve_rows = added->evaluation_rows = added->switch_rows = 0;
    return added;
}

/* What other rows are there changes no pair's numbers. */
static void case_pairs_alone(void) {
    Study study = sample_study();
    double multiplier = study.row[1].multiplier, level = study.row[1].level;
    StudyRow *worse = add_like(&study, 1);
    worse->submodels = 4;
    worse->curve = calloc(20, sizeof *worse->curve);
    worse->curve_rows = 20;
    for (uint64_t s = 0; s < 20; s++) worse->curve[s] = (CurveRow){.step = s + 1, .loss = 2.9};
    study_converge(&study);
    CHECK(study.row[1].multiplier == multiplier && study.row[1].level == level, "B-F %g",
          study.row[1].multiplier);
    CHECK(fabs(study.row[4].level - 2.9) <= 1e-12 && study.row[4].steps_to_converge == 10,
          "level %g", study.row[4].level);
    study.row[4].seed = 2; /* no full update has this one */
    study_converge(&study);
    CHECK(isnan(study.row[4].multiplier), "B-F %g", study.row[4].multiplier);
    study_free(&study);
}

/* Rows of up to three updates, none of two phases: the losses are means, the rest is of the last.
 */
static void case_thinned(void) {
    static const struct {
        double loss;
        int submodel;
    } update[] = {{9, 0}, {6, 0}, {3, 0}, {8, 0}, {4, 1}, {2, 1}};
    CurveRow curve[6];
    StudyRow row = {.curve = curve, .curve_rows = 6};
    for (int i = 0; i < 6; i++)
        curve[i] = (CurveRow){.step = (uint64_t)i + 1,
                              .loss = update[i].loss,
                              .lr = 0.1 * i,
                              .submodel = update[i].submodel,
                              .seconds = 2 * i};
    study_thin(&row, 3);
    if (!CHECK(row.curve_rows == 3, "%zu rows", row.curve_rows)) return;
    CHECK(curve[0].loss == 6 && curve[0].step == 3 && curve[0].seconds == 4, "three updates");
    CHECK(curve[1].loss == 8 && curve[1].step == 4 && curve[1].submodel == 0, "what is left");
    CHECK(curve[2].loss == 3 && curve[2].step == 6 && curve[2].lr == 0.5, "the next phase");
}

static void check_name(const StudyRow *row, const char *expected) {
    const Text name = case_name(row);
    CHECK(!strcmp(name.text, expected), "%s", name.text);
}

/* ---- cases ----------------------------------------------------------------------------------- */

static void case_cases(void) {
    Study study = sample_study();
    StudyRow *row = add_like(&study, 1); /* another seed, and images generated by it */
    row->seed = 2;
    strcpy(row->checksum, "another");
    add_like(&study, 0); /* the same training from another file */
    row = add_like(&study, 1);
    strcpy(row->order, "descending");
    row = add_like(&study, 0);
    strcpy(row->method, "offload");
    row = add_like(&study, 0);
    strcpy(row->provenance.device, "cuda");
    strcpy(row->provenance.precision, "bf16");
    row = add_like(&study, 1);
    row->settings.optimizer.momentum = 0.5;
    Cases cases;
    cases_make(&cases, &study);
    CHECK(cases.cases == 4, "%d cases", cases.cases);
    const StudyCase *first = &cases.item[0];
    if (CHECK(first->methods == 4, "%d methods", first->methods)) {
        CHECK(first->method[0].seeds == 1 && first->method[0].row[0] == study.row, "full");
        CHECK(first->method[1].row[0] == &study.row[7], "offload");
        const CaseMethod *bcd = &first->method[2];
        if (bcd->seeds == 1) bcd++; /* the two orders, in some order */
        CHECK(bcd->seeds == 2 && bcd->row[0] == &study.row[1] && bcd->row[1] == &study.row[4],
              "seeds");
        CHECK(strcmp(case_method(bcd).text, "BCD-1/3") == 0, "%s", case_method(bcd).text);
        CHECK(case_full_update(first, &study.row[1]) == &study.row[0] &&
                  !case_full_update(first, &study.row[4]),
              "partners");
    }
    check_name(&study.row[2], "gpt-2x64 text sgd");
    check_name(&study.row[8], "resnet8 synthetic sgd cuda bf16");
    study.row[2].settings.limit = 500;
    check_name(&study.row[2], "gpt-2x64 text[:500] sgd");
    study.row[2].settings.optimizer.schedule = LR_COSINE;
    check_name(&study.row[2], "gpt-2x64 text[:500] sgd cosine");
    cases_free(&cases);
    study_free(&study);
}

/* A longer full update of the same seed changes nothing for a row that has one of its own length;
 * and a full update never switches, whatever its flag says. */
static void case_partners(void) {
    Study study = sample_study();
    StudyRow *longer = add_like(&study, 0);
    longer->steps = 10 * study.row[0].steps;
    strcpy(longer->switching, "3e");
    StudyRow *other = add_like(&study, 1);
    other->steps = longer->steps + 1;
    const int full = 0, bcd = 1, long_full = study.rows - 2, long_bcd = study.rows - 1;
    Cases cases;
    cases_make(&cases, &study);
    const StudyCase *item = &cases.item[0];
    CHECK(case_full_update(item, &study.row[bcd]) == &study.row[full], "of the same length");
    CHECK(case_full_update(item, &study.row[long_bcd]) == &study.row[long_full], "the longest");
    for (int m = 0; m < item->methods; m++)
        if (item->method[m].row[0]->submodels == 1)
            CHECK(!strstr(case_method(&item->method[m]).text, "every"), "a phase is named");
    cases_free(&cases);
    study_free(&study);
}

/* Each method at its best rate: another rate is another method, and the full update it has.  The
 * name has the rate, and other flags that differ. */
static void case_rates(void) {
    Study study = sample_study();
    StudyRow *own = add_like(&study, 1);
    own->settings.optimizer.lr = 0.05;
    own = add_like(&study, 1);
    own->settings.switch_warmup = 40;
    Cases cases;
    cases_make(&cases, &study);
    const StudyCase *item = &cases.item[0];
    const int full = 0, bcd = 4;
    CHECK(cases.cases == 2 && item->methods == 4, "%d cases", cases.cases);
    CHECK(case_full_update(item, &study.row[bcd]) == &study.row[full], "the only full update");
    int named = 0;
    for (int m = 0; m < item->methods; m++) {
        const Text name = case_method(&item->method[m]);
        named += !strcmp(name.text, "BCD-1/3 rate 0.05") ||
                 !strcmp(name.text, "BCD-1/3 rate 0.1 switch-warmup 40");
    }
    CHECK(named == 2, "a rate or the warm-up is not told");
    cases_free(&cases);
    StudyRow *twin = add_like(&study, full);
    twin->settings.optimizer.lr = 0.05;
    twin->steps *= 2;
    cases_make(&cases, &study);
    CHECK(case_full_update(&cases.item[0], &study.row[bcd]) == &study.row[6] &&
              case_full_update(&cases.item[0], &study.row[1]) == &study.row[full],
          "of the same rate");
    cases_free(&cases);
    study_free(&study);
}

static void case_means(void) {
    Mean mean = {0};
    CHECK(isnan(mean_value(&mean)) && isnan(mean_spread(&mean)), "of nothing");
    mean_add(&mean, 2);
    mean_add(&mean, NAN);
    CHECK(mean_value(&mean) == 2 && isnan(mean_spread(&mean)), "of one");
    mean_add(&mean, 4);
    mean_add(&mean, 9);
    CHECK(mean.count == 3 && fabs(mean_value(&mean) - 5) <= 1e-12 &&
              fabs(mean_spread(&mean) - sqrt(13)) <= 1e-12,
          "%g %g", mean_value(&mean), mean_spread(&mean));
}

/* A transformer small enough to count by hand: products of linear layers, the same number in each
 * phase, and attention.  The output shares the embedding's matrix, which trains with the embedding.
 */
static void case_operations(void) {
    enum { T = 8, C = 16, V = 256 };
    const double linear = 2.0 * T * C * (3 * C + C + 4 * C + 4 * C), head = 2.0 * T * C * V,
                 attention = 2.0 * T * T * C, forward = linear + head + attention,
                 backward = linear + head + 2.5 * attention;
    const double expected[] = {forward + backward + head, forward + backward + linear,
                               forward + head};
    CurveRow curve[3] = {{.step = 1}, {.step = 2, .submodel = 1}, {.step = 3, .submodel = 2}};
    StudyRow row = {.submodels = 3, .batch = 4, .curve = curve, .curve_rows = 3};
    strcpy(row.spec, "gpt:layers=1,width=16,heads=2,context=8,vocabulary=256");
    row.settings.submodels = 3;
    study_operations(&row);
    if (!CHECK(row.operations, "%s", error_message())) return;
    for (int i = 0; i < 3; i++) {
        double step = row.operations[i] - (i ? row.operations[i - 1] : 0);
        CHECK(step == 4 * expected[i], "submodel %d: %g instead of %g", i + 1, step,
              4 * expected[i]);
        CHECK(study_axis_value(&row, (size_t)i, AXIS_OPERATIONS) == row.operations[i], "axis");
    }
    curve[1].step = 5; /* a row that stands for four updates */
    curve[2].step = 6;
    study_operations(&row);
    CHECK(row.operations && row.operations[1] == 4 * (expected[0] + 4 * expected[1]),
          "a thinned curve: %g", row.operations ? row.operations[1] : NAN);
    for (uint64_t i = 0; i < 3; i++) curve[i].step = i + 1;
    curve[0].submodel = curve[1].submodel = curve[2].submodel = 0;
    row.submodels = row.settings.submodels = 1;
    study_operations(&row);
    CHECK(row.operations && row.operations[2] == 3 * 4 * (forward + backward + linear + head),
          "full: %g", row.operations ? row.operations[2] : NAN);
    strcpy(row.settings.partition, "0/1,2");
    study_operations(&row);
    CHECK(!row.operations && isnan(study_axis_value(&row, 0, AXIS_OPERATIONS)),
          "two submodels that are one");
    row.submodels = row.settings.submodels = 2;
    curve[1].submodel = 2;
    study_operations(&row);
    CHECK(!row.operations, "update 2 is of submodel 3 of 2");
    strcpy(row.spec, "nothing");
    study_operations(&row);
    CHECK(!row.operations, "no such model");
}

/* Student's density with v degrees of freedom, integrated by Simpson's rule from 0 to the quantile:
 * the part of the distribution that lies below, less one half.  A wrong term of the expansion
 * shows. */
static double student_below(double quantile, double v) {
    enum { STRIPS = 4000 };
    double sum = 0, scale = exp(lgamma((v + 1) / 2) - lgamma(v / 2)) / sqrt(v * acos(-1));
    for (int i = 0; i <= STRIPS; i++) {
        double x = quantile * i / STRIPS, weight = i % STRIPS ? 2 + 2 * (i % 2) : 1;
        sum += weight * scale * pow(1 + x * x / v, -(v + 1) / 2);
    }
    return sum * quantile / STRIPS / 3;
}

static void case_student(void) {
    for (int n = 2; n < 102; n++)
        CHECK(fabs(student_below(study_student(n), n - 1) - 0.475) <= 2e-5, "%d: %g, below it %.6f",
              n, study_student(n), 0.5 + student_below(study_student(n), n - 1));
    for (int n = 11; n < 102; n++) /* the terms left out are positive */
        CHECK(student_below(study_student(n), n - 1) < 0.475, "%d: %g", n, study_student(n));
    CHECK(isnan(study_student(1)), "of one");
}

static void case_no_tables(void) {
    Study study = {0};
    Cases cases = {0};
    Tables tables = {0};
    CHECK(study_tables(&tables, &cases, &study, true) == 0 && tables.tables == 0,
          "tables of nothing");
    cases_free(&cases);
}

void test_study(void) {
    RUN(case_published_multipliers);
    RUN(case_published_perplexity);
    RUN(case_published_twins);
    RUN(case_multiplier);
    RUN(case_validation_multiplier);
    RUN(case_pairs_alone);
    RUN(case_thinned);
    RUN(case_cases);
    RUN(case_partners);
    RUN(case_rates);
    RUN(case_means);
    RUN(case_operations);
    RUN(case_student);
    RUN(case_no_tables);
}
