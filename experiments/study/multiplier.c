#include "multiplier.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/error.h"
#include "study.h"

/* The mean of a study's BCD rows: language models if it has any, for those are what is priced. */
static int mean_multiplier(double *multiplier, const Study *study, const char *files) {
    double sum[2] = {0};
    int rows[2] = {0};
    for (int r = 0; r < study->rows; r++) {
        const StudyRow *row = &study->row[r];
        if (!study_is_third(row) || !isfinite(row->multiplier)) continue;
        bool images = study_is_images(row);
        sum[images] += row->multiplier;
        rows[images]++;
    }
    int kind = rows[0] ? 0 : 1;
    if (!rows[kind])
        return error_set(
            "--multiplier %.200s: no BCD-1/3 on all of the data beside a full update in it", files);
    *multiplier = sum[kind] / rows[kind];
    return 0;
}

static int measured_multiplier(double *multiplier, const char *files) {
    Study study = {0};
    char list[OPTION_TEXT];
    int failed = 0;
    snprintf(list, sizeof list, "%s", files);
    for (char *path = strtok(list, ","); path && !failed; path = strtok(NULL, ","))
        failed = study_read(&study, path);
    failed = failed || study_converge(&study) || mean_multiplier(multiplier, &study, files);
    study_free(&study);
    return failed ? -1 : 0;
}

int multiplier_read(double *multiplier, const char *text) {
    char *end;
    *multiplier = NAN;
    if (!*text) return 0;
    *multiplier = strtod(text, &end);
    if (*end) return measured_multiplier(multiplier, text);
    if (*multiplier > 0 && isfinite(*multiplier)) return 0;
    return error_set("--multiplier %s: it takes a number above 0, or files of results", text);
}
