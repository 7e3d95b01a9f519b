#include "study_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/error.h"
#include "cases.h"
#include "converge.h"

/* Language models with Adam, with SGD, image models with Adam, with SGD: in order of preference,
 * because language models with Adam are what is priced. */
enum { KINDS = 4 };

static void add_method(Mean mean[KINDS], const CaseMethod *method) {
    const StudyRow *first = method->row[0];
    if (!study_is_bcd3(first) || !case_is_plain(method)) return;
    int kind = 2 * study_is_images(first) + !strcmp(first->optimizer, "sgd");
    for (int s = 0; s < method->seeds; s++) mean_add(&mean[kind], method->row[s]->multiplier);
}

/* Sets the mean of the first kind for which there are trainings. */
static int mean_multiplier(double *multiplier, const Study *study, const char *files) {
    Mean mean[KINDS] = {{0}};
    Cases cases;
    if (cases_make(&cases, study)) return -1;
    for (int m = 0; m < cases.methods; m++) add_method(mean, &cases.method[m]);
    cases_free(&cases);
    int kind = 0;
    while (kind + 1 < KINDS && !mean[kind].count) kind++;
    *multiplier = mean_value(&mean[kind]);
    if (isfinite(*multiplier)) return 0;
    return error_set(
        "--multiplier %.200s: no BCD-1/3 on all of the data with a full update of its seed", files);
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
