/* The committed files of results, and the page that is written from them. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../experiments/study/converge.h"
#include "../../experiments/study/study_file.h"
#include "../../ref/error.h"
#include "cli.h"

/* The tables of paper_repro.md, between "<!-- table FILES NAME -->" and "<!-- end -->", are what
 * the program prints of the committed files. */
static void case_paper_repro(void) {
    static const char marker[] = "<!-- table ",
                      directory[] = BCD_SOURCE_DIR "/experiments/results/";
    static char text[1 << 20];
    int tables = 0;
    FILE *file = fopen(BCD_SOURCE_DIR "/paper_repro.md", "r");
    if (!CHECK(file, "no paper_repro.md")) return;
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    for (char *at = text; (at = strstr(at, marker)); tables++) {
        char files[256] = "", name[64] = "", paths[2048] = "";
        char *begin = strchr(at, '\n'), *end = strstr(at, "<!-- end -->");
        CHECK(sscanf(at + strlen(marker), "%255s %63s -->", files, name) == 2, "%.80s", at);
        if (!CHECK(begin && end, "no end: %s", name)) break;
        for (char *name_of = strtok(files, ","); name_of; name_of = strtok(NULL, ",")) {
            size_t used = strlen(paths);
            snprintf(paths + used, sizeof paths - used, "%s%s ", directory, name_of);
        }
        const Printed *printed = run(0, "report %s--markdown --table %s", paths, name);
        CHECK(strlen(printed->out) == (size_t)(end - begin - 1) &&
                  !strncmp(printed->out, begin + 1, strlen(printed->out)),
              "table %s is not as in the files: make paper-tables", name);
        at = end;
    }
    CHECK(tables > 3, "%d tables", tables);
}

/* What is computed from the curves in the committed files is what the program computes today. */
static void case_computed_columns(void) {
    static const char *const files[] = {"validity",    "compression",     "ufp",
                                        "switching",   "recompute",       "finetune",
                                        "pretraining", "converged-pilot", "converged"};
    for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
        char path[400];
        Study stored = {0}, today = {0};
        snprintf(path, sizeof path, "%s/experiments/results/%s.h5", BCD_SOURCE_DIR, files[f]);
        if (access(path, F_OK)) continue; /* trained in a later session */
        if (CHECK(study_read(&stored, path) == 0 && study_read(&today, path) == 0 &&
                      study_converge(&today) == 0,
                  "%s", error_message()))
            for (int r = 0; r < stored.rows; r++)
                for (int c = 0; c < study_column_count; c++) {
                    const H5Column *column = &study_columns[c].column;
                    double had, has;
                    if (!study_columns[c].computed) continue;
                    memcpy(&had, (char *)&stored.row[r] + column->offset, sizeof had);
                    memcpy(&has, (char *)&today.row[r] + column->offset, sizeof has);
                    CHECK(had == has || (isnan(had) && isnan(has)), "%s: %s: %s is %g, not %g",
                          files[f], stored.row[r].name, column->name, has, had);
                }
        study_free(&stored);
        study_free(&today);
    }
}

void test_results(void) {
    RUN(case_paper_repro);
    RUN(case_computed_columns);
}
