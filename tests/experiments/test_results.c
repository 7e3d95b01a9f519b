/* The committed files of results. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../experiments/study/converge.h"
#include "../../experiments/tables/table.h"
#include "../../ref/base/error.h"
#include "cli.h"

static const char *const studies[] = {"validity",        "ufp",       "switching",
                                      "recompute",       "finetune",  "pretraining",
                                      "converged-pilot", "converged", "remedies"};
enum { STUDIES = sizeof studies / sizeof *studies };

static Text path_of(const char *name) {
    return text_of("%s/experiments/results/%s.h5", BCD_SOURCE_DIR, name);
}

/* Returns false, after a failed CHECK, if the committed study cannot be read. */
static bool read_committed(Study *study, const char *name) {
    *study = (Study){0};
    return CHECK(study_read(study, path_of(name).text) == 0, "%s", error_message());
}

/* What is computed from the curves in the committed files is what the program computes today, but
 * for roundings, which differ by compiler and -O: some of 1e-16, of quotients of differences. */
static void case_computed_columns(void) {
    for (int f = 0; f < STUDIES; f++) {
        Study stored, today;
        if (!read_committed(&stored, studies[f]) || !read_committed(&today, studies[f])) return;
        study_converge(&today);
        for (int r = 0; r < stored.rows; r++)
            for (int c = 0; c < study_column_count; c++) {
                const H5Column *column = &study_columns[c];
                double had, has;
                if (!column->optional) continue; /* not computed */
                memcpy(&had, (char *)&stored.row[r] + column->offset, sizeof had);
                memcpy(&has, (char *)&today.row[r] + column->offset, sizeof has);
                CHECK(fabs(had - has) <= 1e-12 * fabs(had) || (isnan(had) && isnan(has)),
                      "%s: %s: %s is %g, not %g", studies[f], stored.row[r].name, column->name, has,
                      had);
            }
        study_free(&stored);
        study_free(&today);
    }
}

/* The files say by which rule: today's. */
static void case_rule(void) {
    for (int f = 0; f < STUDIES; f++) {
        H5File file;
        char rule[2000] = "";
        if (!CHECK(h5_open(&file, path_of(studies[f]).text) == 0, "%s", error_message())) return;
        CHECK(h5_get_text(&file, "/", "convergence", rule, sizeof rule) == 0 &&
                  !strcmp(rule, study_convergence_rule),
              "%s.h5 (bcd report FILE --study FILE writes it anew): %s", studies[f], rule);
        h5_close(&file);
    }
}

/* Returns true when `git -C SOURCE COMMAND` succeeds. */
static bool git(const char *command) {
    const Text line = text_of("git -C %s %s >/dev/null 2>&1", BCD_SOURCE_DIR, command);
    return system(line.text) == 0;
}

static void check_provenance(const char *name, const Provenance *provenance, bool history) {
    CHECK(provenance->wall > 0, "%s.h5: took no time", name);
    CHECK(!history || git(text_of("merge-base --is-ancestor %s HEAD", provenance->commit).text),
          "%s.h5: commit %s is not in the history", name, provenance->commit);
}

/* Every result can be made again: it is of a commit in the history, without changes.  A copy
 * without the whole history cannot tell. */
static void case_provenance(void) {
    static const char *const tables[] = {"cost",
                                         "memory",
                                         "timing",
                                         "validity-paper-estimate",
                                         "compression-paper-estimate",
                                         "ufp-paper-estimate",
                                         "converged-laptop-estimate",
                                         "converged-gpu-estimate"};
    bool history =
        git("rev-parse --verify HEAD") && !git("rev-parse --is-shallow-repository | grep true");
    for (int f = 0; f < STUDIES; f++) {
        Study study;
        if (!read_committed(&study, studies[f])) return;
        for (int r = 0; r < study.rows; r++)
            check_provenance(studies[f], &study.row[r].provenance, history);
        study_free(&study);
    }
    for (size_t f = 0; f < sizeof tables / sizeof *tables; f++) {
        Tables file = {0};
        if (CHECK(tables_read(&file, path_of(tables[f]).text) == 0, "%s", error_message()))
            check_provenance(tables[f], &file.provenance, history);
        tables_free(&file);
    }
}

/* What the page says of their seconds. */
static void case_seconds(void) {
    static const struct {
        const char *name;
        double less_than; /* s */
    } said[] = {{"cost", 1}, {"memory", 60}, {"timing", 1800}};
    for (size_t f = 0; f < sizeof said / sizeof *said; f++) {
        Tables file = {0};
        if (CHECK(tables_read(&file, path_of(said[f].name).text) == 0, "%s", error_message()))
            CHECK(file.provenance.wall < said[f].less_than, "%s.h5: %g s", said[f].name,
                  file.provenance.wall);
        tables_free(&file);
    }
}

/* In no training BCD reaches the loss of its full update in fewer updates. */
static void case_multipliers(void) {
    int compared = 0;
    for (int f = 0; f < STUDIES; f++) {
        Study study;
        if (!read_committed(&study, studies[f])) return;
        for (int r = 0; r < study.rows; r++) {
            const StudyRow *row = &study.row[r];
            if (row->submodels == 1) continue;
            CHECK(!(row->multiplier <= 1) && !(row->valid_multiplier <= 1), "%s.h5: %s: %g, %g",
                  studies[f], row->name, row->multiplier, row->valid_multiplier);
            compared += row->multiplier > 1 && row->valid_multiplier > 1;
        }
        study_free(&study);
    }
    CHECK(compared > 100, "%d trainings compared", compared);
}

/* CHECKs that the training had these settings: "batch=128 clip=0". */
static void check_settings(const StudyRow *row, const char *settings) {
    char text[400];
    snprintf(text, sizeof text, "%s", settings);
    for (char *rest, *item = strtok_r(text, " ", &rest); item; item = strtok_r(NULL, " ", &rest)) {
        Options expected = row->settings;
        char *value = strchr(item, '=');
        *value++ = 0;
        int flag = options_find(item, COMMAND_TRAIN);
        if (!CHECK(options_set(&expected, item, value) == 0, "%s", error_message())) return;
        const Text had = options_format(&row->settings, flag);
        const Text says = options_format(&expected, flag);
        CHECK(!strcmp(had.text, says.text), "%s: %s is %s, not %s", row->name, item, had.text,
              says.text);
    }
}

/* The settings that paper_repro.md states of the converged trainings, and the appendix of the short
 * ones: by the beginning of the specification, the optimizer and the schedule; "" are all. */
static void case_settings(void) {
    static const struct {
        const char *study, *model, *optimizer, *schedule, *settings;
    } said[] = {
        {"converged", "", "", "",
         "weight-decay=1e-5 decay=all order=cyclic keep-state=0 frozen-norm=running precision=fp32 "
         "device=cpu always-active=none"},
        {"converged", "resnet", "", "", "batch=128 augment=1 clip=0 eval-samples=0"},
        {"converged", "resnet", "sgd", "", "momentum=0.9"},
        {"converged", "resnet", "", "constant", "warmup=0"},
        {"converged", "resnet", "", "cosine", "warmup=79 final-lr=0 limit=10000"},
        {"converged", "gpt", "", "",
         "batch=16 context=64 augment=0 clip=1 warmup=100 eval-samples=1000"},
        {"converged", "gpt", "", "cosine", "final-lr=0"},
        {"validity", "", "", "", "weight-decay=1e-5 augment=0"},
        {"validity", "", "sgd", "", "momentum=0.9 lr=0.1"},
        {"validity", "resnet", "", "", "batch=128 warmup=0 clip=0"},
        {"validity", "resnet", "adam", "", "lr=0.003"},
        {"validity", "gpt", "", "", "batch=16 warmup=50"},
        {"validity", "gpt", "sgd", "", "clip=1"},
        {"validity", "gpt", "adam", "", "lr=0.001 clip=0"},
    };
    for (size_t s = 0; s < sizeof said / sizeof *said; s++) {
        Study study;
        int found = 0;
        if (!read_committed(&study, said[s].study)) return;
        for (int r = 0; r < study.rows; r++) {
            const StudyRow *row = &study.row[r];
            const char *schedule = lr_names[row->settings.optimizer.schedule];
            if (strncmp(row->model, said[s].model, strlen(said[s].model)) == 0 &&
                strstr(row->optimizer, said[s].optimizer) && strstr(schedule, said[s].schedule)) {
                check_settings(row, said[s].settings);
                found++;
            }
        }
        CHECK(found, "%s.h5: no %s %s %s", said[s].study, said[s].model, said[s].optimizer,
              said[s].schedule);
        study_free(&study);
    }
}

void test_results(void) {
    RUN(case_computed_columns);
    RUN(case_rule);
    RUN(case_provenance);
    RUN(case_seconds);
    RUN(case_multipliers);
    RUN(case_settings);
}
