/* Trainings as tables: published cells beside ours, pairs, budgets, seeds. */
#include "../../experiments/study/measures.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../experiments/study/converge.h"
#include "../../ref/base/error.h"
#include "../leak.h"
#include "cli.h"
#include "study_sample.h"

#define GPT_SAMPLE "gpt:layers=2,width=64,heads=2,context=32"

static Tables tables_of(Study *study) {
    Tables tables = {0};
    Cases cases = {0};
    CHECK(study_tables(&tables, &cases, study, true) == 0, "%s", error_message());
    for (int r = 0; r < study->rows; r++) CHECK(study->row[r].operations, "%s", study->row[r].name);
    cases_free(&cases);
    return tables;
}

static const Cell none = {NAN, NAN, SOURCE_NONE, ""};
/* The cell, CHECKed to be there. */
static const Cell *cell_of(const Tables *tables, const char *table, const char *row,
                           const char *column) {
    const Table *found = tables_find(tables, table);
    const Cell *cell = found ? table_find(found, row, column) : NULL;
    CHECK(cell, "%s, %s, %s is not there", table, row, column);
    return cell ? cell : &none;
}

static void check_cell(const Tables *tables, const char *table, const char *row, const char *column,
                       double value, Source source) {
    const Cell *cell = cell_of(tables, table, row, column);
    CHECK(fabs(cell->value - value) <= 1e-9 * fabs(value) && cell->source == source,
          "%s, %s, %s: %g %s instead of %g", table, row, column, cell->value,
          source_names[cell->source], value);
}

static void check_empty(const Tables *tables, const char *table, const char *row,
                        const char *column) {
    const Cell *cell = cell_of(tables, table, row, column);
    CHECK(isnan(cell->value) && cell->source == SOURCE_NONE, "%s, %s, %s: %g", table, row, column,
          cell->value);
}

/* All tables as a terminal shows them, to be freed. */
static char *printed(const Tables *tables) {
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    for (int t = 0; out && t < tables->tables; t++)
        CHECK(table_print(out, tables->table[t]) == 0, "%s", error_message());
    CHECK(out && fclose(out) == 0, "memory");
    return text;
}

/* ---- beside the paper ------------------------------------------------------------------------ */

#define HERE "  here: resnet8 synthetic sgd "
#define HERE_GPT "  here: gpt-2x64 text sgd "

static void case_table_2(void) {
    Study study = sample_study();
    study.row[1].settings.optimizer.lr = 0.2;
    Tables tables = tables_of(&study);
    const char *third = "ResNet8 SGD, 1/3", *gpt = HERE_GPT "BCD-1/3";
    const StudyRow *bcd = &study.row[1];
    check_cell(&tables, "table2_images", third, "trained", 395, SOURCE_PUBLISHED);
    check_cell(&tables, "table2_images", third, "multiplier", 395.0 / 639, SOURCE_RECOMPUTED);
    check_cell(&tables, "table2_images", third, "score", 87.2, SOURCE_PUBLISHED);
    check_cell(&tables, "table2_images", "ResNet20 Adam, 1/3", "train_loss", 0.0222,
               SOURCE_PUBLISHED);
    check_empty(&tables, "table2_images", third, "valid_loss");
    check_cell(&tables, "table2_images", HERE "BCD-1/3", "score", 72.51, SOURCE_MEASURED);
    check_cell(&tables, "table2_images", HERE "BCD-1/3", "multiplier", bcd->multiplier,
               SOURCE_MEASURED);
    check_cell(&tables, "table2_images", HERE "BCD-1/3", "to_level", 4, SOURCE_MEASURED);
    check_cell(&tables, "table2_images", HERE "BCD-1/3", "rate", 0.2, SOURCE_NONE);
    check_cell(&tables, "table2_images", HERE "full", "rate", 0.1, SOURCE_NONE);
    check_cell(&tables, "table2_images", HERE "full", "trained", 4, SOURCE_NONE);
    check_empty(&tables, "table2_images", HERE "full", "multiplier");
    check_cell(&tables, "table2_language", gpt, "score", exp(0.71), SOURCE_MEASURED);
    check_cell(&tables, "table2_language", gpt, "to_level", study.row[3].steps_to_converge,
               SOURCE_MEASURED);
    const Table *table = tables_find(&tables, "table2_images");
    CHECK(table && table->rows == 18 && !strcmp(table->label[2], third) &&
              !strcmp(table->label[3], HERE "BCD-1/3"),
          "ours are not below the published one");
    CHECK(!tables_find(&tables, "table9") && !tables_find(&tables, "table10") &&
              !tables_find(&tables, "table11"),
          "tables without trainings");
    CHECK(table && !strcmp(table->column[5].head, "accuracy") &&
              !strcmp(tables_find(&tables, "table2_language")->column[5].head, "perplexity"),
          "the heads of the scores");
    check_cell(&tables, "multipliers", "SGD, image models", "training_loss", bcd->multiplier,
               SOURCE_MEASURED);
    check_empty(&tables, "multipliers", "Adam, language models", "training_loss");
    char *text = printed(&tables);
    CHECK(!strstr(text, "nan"), "a NaN is shown: %s", text);
    free(text);
    tables_free(&tables);
    study_free(&study);
}

/* Tables 9 to 11: "Acc" is shown as the perplexity it is; mean multipliers leave these out. */
static void case_tables_9_to_11(void) {
    Study study = sample_study();
    sample_training(&study, GPT_SAMPLE, false, 3, 0.004)->settings.fraction = 0.9;
    sample_training(&study, GPT_SAMPLE, false, 2, 0.003);
    sample_training(&study, "resnet8", true, 3, 0.009)->settings.fraction = 0.9;
    sample_training(&study, "resnet8", true, 1, 0.009)->settings.init[0] = '.'; /* fine-tuned */
    Tables tables = tables_of(&study);
    check_cell(&tables, "table9", "0.9 1/3 SGD", "score", 6.89, SOURCE_RECOMPUTED);
    check_cell(&tables, "table9", HERE_GPT "1/3 x.9", "multiplier", study.row[4].multiplier,
               SOURCE_MEASURED);
    check_cell(&tables, "table9", "1 1/3 SGD", "memory", 1013.58, SOURCE_PUBLISHED);
    check_cell(&tables, "table9", HERE_GPT "full", "memory", 9, SOURCE_MEASURED);
    check_cell(&tables, "table10", HERE "1/3 x.9", "multiplier", study.row[6].multiplier,
               SOURCE_MEASURED);
    check_cell(&tables, "table11", HERE_GPT "BCD-1/2", "memory", 6, SOURCE_MEASURED);
    check_cell(&tables, "table11", HERE_GPT "BCD-1/3", "closed_form", 5, SOURCE_CLOSED_FORM);
    const Table *table = tables_find(&tables, "table11");
    CHECK(table && table->rows == 8 + 3, "%d rows", table ? table->rows : 0);
    check_cell(&tables, "multipliers", "SGD, language models", "training_loss",
               study.row[3].multiplier, SOURCE_MEASURED);
    tables_free(&tables);
    study_free(&study);
}

/* ---- pairs ----------------------------------------------------------------------------------- */

/* Losses that fall by one to 1 at update 440: the mean of a fortieth of them, the last 11, is 6. */
static void case_long_window(void) {
    Study study = sample_study();
    for (int r = 0; r < 2; r++) {
        StudyRow *row = &study.row[r];
        row->curve_rows = 440;
        row->curve = realloc(row->curve, row->curve_rows * sizeof *row->curve);
        if (!row->curve) abort();
        for (int s = 0; s < 440; s++)
            row->curve[s] = (CurveRow){.step = (uint64_t)s + 1, .loss = 440 - s};
    }
    study_converge(&study);
    CHECK(study.row[1].level == 6, "level %g", study.row[1].level);
    study_free(&study);
}

/* BCD-1/3 has the losses of the full update at half the pace, and 2/3 of its time per update. */
static void case_same_loss(void) {
    Study study = sample_study();
    Tables tables = tables_of(&study);
    const StudyRow *full = &study.row[0], *bcd = &study.row[1];
    const char *row = "resnet8 synthetic sgd BCD-1/3";
    size_t at = (size_t)bcd->steps_to_converge - 1;
    size_t full_at = (size_t)round(bcd->steps_to_converge / bcd->multiplier) - 1;
    check_cell(&tables, "same_loss", row, "updates", bcd->multiplier, SOURCE_MEASURED);
    check_cell(&tables, "same_loss", row, "seconds", bcd->multiplier * 2 / 3, SOURCE_MEASURED);
    check_cell(&tables, "same_loss", row, "operations",
               bcd->operations[at] / full->operations[full_at], SOURCE_MEASURED);
    check_cell(&tables, "per_update", row, "ms", 100, SOURCE_MEASURED);
    check_cell(&tables, "per_update", row, "time", 2.0 / 3, SOURCE_MEASURED);
    check_cell(&tables, "per_update", row, "operations",
               bcd->operations[199] / full->operations[199], SOURCE_CLOSED_FORM);
    check_cell(&tables, "per_update", row, "trained", 5.0 / 9, SOURCE_MEASURED);
    check_cell(&tables, "per_update", row, "peak", 10.0 / 14, SOURCE_MEASURED);
    tables_free(&tables);
    study_free(&study);
}

/* 20 seconds are 200 updates of BCD and 133 of the full one, two thirds of the way from its second
 * evaluation to its third; and a smaller network that fits. */
static void case_equal_budgets(void) {
    Study study = sample_study();
    StudyRow *small = sample_training(&study, "resnet:depth=8,width=8", true, 1, 0.004);
    small->peak[MEM_ROLES] = 9 * 1024 * 1024;
    small->evaluation[3].accuracy = 0.6;
    small = sample_training(&study, "resnet:depth=8,width=4", true, 1, 0.004);
    small->peak[MEM_ROLES] = 8 * 1024 * 1024;
    /* One that fits better, but was not trained alike. */
    small = sample_training(&study, "resnet:depth=8,width=9", true, 1, 0.004);
    small->peak[MEM_ROLES] = 9.5 * 1024 * 1024;
    small->settings.augment = true;
    Tables tables = tables_of(&study);
    const char *label = "resnet8 synthetic sgd BCD-1/3";
    static const struct {
        const char *column, *verdict;
        double difference;
    } expected[] = {{"equal_updates", "updates_verdict", 0},
                    {"equal_seconds", "seconds_verdict", 71 - (57 + 7.0 * 33 / 50)},
                    {"equal_memory", "memory_verdict", 71 - 60}};
    for (int i = 0; i < 3; i++) {
        const Cell *cell = cell_of(&tables, "answer", label, expected[i].column),
                   *verdict = cell_of(&tables, "answer", label, expected[i].verdict);
        CHECK(fabs(cell->value - expected[i].difference) <= 1e-9, "%s: %g", expected[i].column,
              cell->value);
        CHECK(!*verdict->text, "a verdict of one seed: %s", verdict->text);
    }
    check_cell(&tables, "answer", label, "bcd", 71, SOURCE_MEASURED);
    check_cell(&tables, "answer", label, "full", 71, SOURCE_MEASURED);
    check_cell(&tables, "answer", label, "memory", 10.0 / 14, SOURCE_MEASURED);
    check_cell(&tables, "answer", label, "time", 2.0 / 3, SOURCE_MEASURED);
    check_cell(&tables, "answer", label, "updates", study.row[1].multiplier, SOURCE_MEASURED);
    CHECK(!strcmp(tables.table[0]->name, "answer"), "%s comes first", tables.table[0]->name);
    tables_free(&tables);
    study_free(&study);
}

/* A training whose rate depends on its length says nothing of shorter ones. */
static void case_cosine(void) {
    Study study = sample_study();
    for (int r = 0; r < 2; r++) {
        StudyRow *row = &study.row[r];
        EvaluationRow *evaluation = calloc(20, sizeof *evaluation);
        if (!CHECK(evaluation, "memory")) return;
        for (int e = 0; e < 20; e++)
            evaluation[e] = (EvaluationRow){.step = 10 * ((uint64_t)e + 1),
                                            .loss = exp(-0.1 * (2 - r) * e),
                                            .accuracy = 0.4 + 0.01 * e};
        free(row->evaluation);
        row->evaluation = evaluation;
        row->evaluation_rows = r ? 20 : 10;
    }
    study.row[0].steps = 100;
    study.row[0].curve_rows = 100;
    for (int cosine = 0; cosine < 2; cosine++) {
        const char *label =
            cosine ? "resnet8 synthetic sgd cosine BCD-1/3" : "resnet8 synthetic sgd BCD-1/3";
        study.row[0].settings.optimizer.schedule = study.row[1].settings.optimizer.schedule =
            cosine ? LR_COSINE : LR_CONSTANT;
        Tables tables = tables_of(&study);
        bool equal = isfinite(cell_of(&tables, "answer", label, "equal_updates")->value);
        CHECK(equal == !cosine, "after 100 updates");
        check_cell(&tables, "converged", label, "end", 57, SOURCE_MEASURED);
        check_cell(&tables, "converged", label, "end_difference", 10, SOURCE_MEASURED);
        if (cosine) {
            check_empty(&tables, "converged", label, "at_equal");
            check_empty(&tables, "converged", label, "same_loss");
        } else {
            check_cell(&tables, "converged", label, "at_equal", 47, SOURCE_MEASURED);
            check_cell(&tables, "converged", label, "same_loss",
                       plateau_multiplier(&study.row[1], &study.row[0]), SOURCE_MEASURED);
        }
        tables_free(&tables);
    }
    study_free(&study);
}

/* ---- seeds ----------------------------------------------------------------------------------- */

/* Three seeds, whose scores differ now this way and now that; then BCD is ahead in all, then the
 * full update, and then BCD by a lower perplexity. */
static void case_seeds(void) {
    static const double off[] = {-0.04, 0.03, 0.02};
    Study study = {0};
    for (int seed = 1; seed <= 3; seed++)
        for (int submodels = 1; submodels <= 3; submodels += 2) {
            StudyRow *row = sample_training(&study, "resnet8", true, submodels,
                                            (submodels == 1 ? 0.02 : 0.01) + 1e-4 * seed);
            row->seed = seed;
            snprintf(row->checksum, H5_NAME, "images of seed %d", seed);
            row->accuracy = row->evaluation[3].accuracy = 0.7 + (submodels == 3) * off[seed - 1];
        }
    Tables tables = tables_of(&study);
    const Cell *score = cell_of(&tables, "table2_images", HERE "BCD-1/3", "score");
    CHECK(fabs(score->value - 100 * (0.7 + 0.01 / 3)) <= 1e-9 &&
              fabs(score->spread - 100 * sqrt((0.0433333 * 0.0433333 + 0.0266667 * 0.0266667 +
                                               0.0166667 * 0.0166667) /
                                              2)) <= 1e-3,
          "%g +- %g", score->value, score->spread);
    check_cell(&tables, "table2_images", HERE "BCD-1/3", "seeds", 3, SOURCE_NONE);
    check_cell(&tables, "multipliers", "SGD, image models", "trainings", 3, SOURCE_NONE);
    const Cell *ahead =
        cell_of(&tables, "answer", "resnet8 synthetic sgd BCD-1/3", "updates_verdict");
    CHECK(!strcmp(ahead->text, "undecided"), "%s", ahead->text);
    check_cell(&tables, "trainings", "resnet8 synthetic sgd full", "seeds", 3, SOURCE_NONE);
    check_cell(&tables, "trainings", "resnet8 synthetic sgd BCD-1/3", "peak", 10, SOURCE_MEASURED);
    tables_free(&tables);
    for (int round = 0; round < 3; round++) {
        for (int r = 0; r < study.rows; r++) {
            StudyRow *row = &study.row[r];
            if (round == 2) strcpy(row->input, "tokens");
            for (size_t e = 0; e < row->evaluation_rows; e++) {
                double more = 1e-3 * (double)row->seed * (r % 2);
                row->evaluation[e].accuracy = (r % 2 == 0 ? 0.7 : round ? 0.5 : 0.9) + more;
                row->evaluation[e].perplexity = (r % 2 ? 10 : 20) + more;
            }
        }
        tables = tables_of(&study);
        ahead = cell_of(&tables, "answer", "resnet8 synthetic sgd BCD-1/3", "updates_verdict");
        CHECK(!strcmp(ahead->text, round == 1 ? "full ahead" : "BCD ahead"), "%s", ahead->text);
        tables_free(&tables);
    }
    study_free(&study);
}

/* Seconds of one thread say nothing beside those of two. */
static void case_other_clock(void) {
    Study study = sample_study();
    study.row[0].threads = study.row[1].threads + 1;
    Tables tables = tables_of(&study);
    const char *row = "resnet8 synthetic sgd BCD-1/3";
    CHECK(isnan(cell_of(&tables, "same_loss", row, "seconds")->value) &&
              isnan(cell_of(&tables, "per_update", row, "time")->value) &&
              isnan(cell_of(&tables, "answer", row, "equal_seconds")->value) &&
              isfinite(cell_of(&tables, "same_loss", row, "operations")->value),
          "seconds of other threads are compared");
    tables_free(&tables);
    study_free(&study);
}

/* Another order and another time to switch: rows of their own, and no part of the means. */
static void case_switching(void) {
    Study study = sample_study();
    StudyRow *row = sample_training(&study, "resnet8", true, 3, 0.005);
    strcpy(row->order, "descending");
    row->settings.order = ORDER_DESCENDING;
    row = sample_training(&study, "resnet8", true, 3, 0.006);
    row->settings.keep_state = true;
    Tables tables = tables_of(&study);
    check_cell(&tables, "trainings", "resnet8 synthetic sgd BCD-1/3 descending", "multiplier",
               study.row[4].multiplier, SOURCE_MEASURED);
    check_cell(&tables, "trainings", "resnet8 synthetic sgd BCD-1/3 keeps state", "switches", 1,
               SOURCE_MEASURED);
    check_cell(&tables, "multipliers", "SGD, image models", "trainings", 1, SOURCE_NONE);
    const Table *table = tables_find(&tables, "table2_images");
    CHECK(table && table->rows == 18, "Table 2 has the plain way alone");
    tables_free(&tables);
    study_free(&study);
}

/* A file that is given twice, or that holds what another one has, changes nothing. */
static void case_same_training_twice(void) {
    Study study = sample_study();
    Tables tables = tables_of(&study);
    char *once = printed(&tables);
    tables_free(&tables);
    sample_training(&study, "resnet8", true, 1, 0.02);
    sample_training(&study, "resnet8", true, 3, 0.01);
    tables = tables_of(&study);
    char *twice = printed(&tables);
    CHECK(strcmp(once, twice) == 0, "\n%s\n%s", once, twice);
    free(once);
    free(twice);
    tables_free(&tables);
    study_free(&study);
}

/* Another training with the same settings and seed is told, and seeds that were not trained alike.
 */
static void case_unlike(void) {
    Study study = sample_study();
    sample_training(&study, "resnet8", true, 1, 0.021);
    sample_training(&study, "resnet8", true, 3, 0.01)->seed = 2;
    Tables tables = tables_of(&study);
    char *text = printed(&tables);
    CHECK(
        strstr(text, "Left out: 1 with the settings and seed") && !strstr(text, "Means are over t"),
        "%s", text);
    free(text);
    tables_free(&tables);
    study.row[5].threads = study.row[1].threads + 1;
    tables = tables_of(&study);
    text = printed(&tables);
    CHECK(strstr(text, "Means are over t") && strstr(text, "threads: of resnet8"), "%s", text);
    free(text);
    tables_free(&tables);
    study_free(&study);
}

static void print_once(void) {
    Study study = sample_study();
    Tables tables = tables_of(&study);
    free(printed(&tables));
    tables_free(&tables);
    study_free(&study);
}

static void case_nothing_is_left(void) {
    CHECK(allocations_left(print_once) == 0, "tables of trainings are not freed");
}

void test_study_tables(void) {
    RUN(case_table_2);
    RUN(case_tables_9_to_11);
    RUN(case_long_window);
    RUN(case_same_loss);
    RUN(case_equal_budgets);
    RUN(case_cosine);
    RUN(case_seeds);
    RUN(case_other_clock);
    RUN(case_switching);
    RUN(case_same_training_twice);
    RUN(case_unlike);
    RUN(case_nothing_is_left);
}
