/* Reports made by hand, for the tests of figures and pages. */
#ifndef TESTS_EXPERIMENTS_REPORT_SAMPLE_H
#define TESTS_EXPERIMENTS_REPORT_SAMPLE_H

#include "../../experiments/report/report.h"
#include "study_sample.h"

/* How often `what` is in the text. */
size_t count_of(const char *text, const char *what);

/* A study ready to be reported; the caller frees it. */
void sample_report(Report *report, Study study);

/* The same training with other seeds, its losses `more` times those of the first. */
void sample_seed(Study *study, int row, int64_t seed, double more);

#endif
