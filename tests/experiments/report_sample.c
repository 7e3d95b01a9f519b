#include "report_sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/base/error.h"
#include "../test.h"

size_t count_of(const char *text, const char *what) {
    size_t count = 0;
    for (; text && (text = strstr(text, what)); text += strlen(what)) count++;
    return count;
}

bool has_figures(void) {
    static int status = -1;
    char command[512];
    const char *python = getenv("PYTHON");
    snprintf(command, sizeof command, "'%s' -c 'import h5py, matplotlib, jinja2' 2>/dev/null",
             python ? python : "/usr/bin/python3");
    if (status < 0) status = system(command);
    return status == 0;
}

void sample_seed(Study *study, int row, int64_t seed, double more) {
    StudyRow *added = study_add(study);
    const StudyRow *from = &study->row[row];
    *added = *from;
    added->seed = seed;
    added->curve = malloc(from->curve_rows * sizeof *added->curve);
    added->evaluation = malloc(from->evaluation_rows * sizeof *added->evaluation);
    added->switches = NULL;
    added->switch_rows = 0;
    if (!added->curve || !added->evaluation) abort();
    memcpy(added->curve, from->curve, from->curve_rows * sizeof *added->curve);
    memcpy(added->evaluation, from->evaluation, from->evaluation_rows * sizeof *added->evaluation);
    for (size_t i = 0; i < from->curve_rows; i++) added->curve[i].loss *= more;
}
