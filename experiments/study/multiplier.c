#include "cases.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/error.h"
#include "converge.h"

Multipliers multipliers_of(const Cases *cases, const char *optimizer, int images) {
    Multipliers mean = {{0}, {0}};
    for (int m = 0; m < cases->methods; m++) {
        const CaseMethod *method = &cases->method[m];
        const StudyRow *first = method->row[0];
        if (!study_is_bcd3(first) || !case_is_plain(method) ||
            strncmp(first->optimizer, optimizer, strlen(optimizer)) ||
            (images >= 0 && study_is_images(first) != (images == 1)))
            continue;
        for (int s = 0; s < method->seeds; s++) {
            mean_add(&mean.training, method->row[s]->multiplier);
            mean_add(&mean.validation, method->row[s]->valid_multiplier);
        }
    }
    return mean;
}

/* Sets the mean of the first kind for which there are trainings: language models with Adam first,
 * because they are what is priced. */
static int mean_multiplier(double *multiplier, const Study *study, const char *files) {
    Mean mean = {0};
    Cases cases;
    cases_make(&cases, study);
    for (int kind = 0; kind < 4 && !mean.count; kind++)
        mean = multipliers_of(&cases, kind % 2 ? "sgd" : "adam", kind / 2).training;
    cases_free(&cases);
    *multiplier = mean_value(&mean);
    if (isfinite(*multiplier)) return 0;
    return error_set(
        "--multiplier %.200s: no BCD-1/3 on all of the data with a full update of its seed", files);
}

static int measured_multiplier(double *multiplier, const char *files) {
    Study study = {0};
    Text list = text_of("%s", files);
    int failed = 0;
    for (char *path = strtok(list.text, ","); path && !failed; path = strtok(NULL, ","))
        failed = study_read(&study, path);
    if (!failed) study_converge(&study);
    failed = failed || mean_multiplier(multiplier, &study, files);
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
