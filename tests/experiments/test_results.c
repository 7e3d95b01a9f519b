/* The committed files of results, and the page that is written from them. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../experiments/study/converge.h"
#include "../../ref/error.h"
#include "cli.h"

/* The tables of paper_repro.md and of its appendix, and the numbers in their sentences, are what
 * the program prints of the committed files. */
static void case_paper_repro(void) {
    static const char line[] =
        "python3 " BCD_SOURCE_DIR "/tests/experiments/paper_tables --check " BCD_PROGRAM " 2>&1";
    char text[2000];
    FILE *out = popen(line, "r");
    if (!CHECK(out, "no process")) return;
    text[fread(text, 1, sizeof text - 1, out)] = 0;
    CHECK(pclose(out) == 0 && !*text, "%s", text);
}

/* What is computed from the curves in the committed files is what the program computes today, but
 * for roundings, which differ by compiler and -O: some of 1e-16, of quotients of differences. */
static void case_computed_columns(void) {
    static const char *const files[] = {"validity",        "ufp",       "switching",
                                        "recompute",       "finetune",  "pretraining",
                                        "converged-pilot", "converged", "remedies"};
    for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
        char path[400];
        Study stored = {0}, today = {0};
        snprintf(path, sizeof path, "%s/experiments/results/%s.h5", BCD_SOURCE_DIR, files[f]);
        if (access(path, F_OK)) continue; /* trained in a later session */
        if (!CHECK(study_read(&stored, path) == 0 && study_read(&today, path) == 0, "%s",
                   error_message()))
            return;
        study_converge(&today);
        for (int r = 0; r < stored.rows; r++)
            for (int c = 0; c < study_column_count; c++) {
                const H5Column *column = &study_columns[c];
                double had, has;
                if (!column->optional) continue; /* not computed */
                memcpy(&had, (char *)&stored.row[r] + column->offset, sizeof had);
                memcpy(&has, (char *)&today.row[r] + column->offset, sizeof has);
                CHECK(fabs(had - has) <= 1e-12 * fabs(had) || (isnan(had) && isnan(has)),
                      "%s: %s: %s is %g, not %g", files[f], stored.row[r].name, column->name, has,
                      had);
            }
        study_free(&stored);
        study_free(&today);
    }
}

void test_results(void) {
    RUN(case_paper_repro);
    RUN(case_computed_columns);
}
