/* A study made by hand, for the tests of studies and reports. */
#ifndef TESTS_EXPERIMENTS_STUDY_SAMPLE_H
#define TESTS_EXPERIMENTS_STUDY_SAMPLE_H

#include "../../experiments/study/study.h"

enum { SAMPLE_STEPS = 200 };

/* Four trainings: an image model, full and BCD-1/3, with losses 3 exp(-0.02 s) and 3 exp(-0.01 s);
 * a language model with 3 exp(-0.005 s) and 3 exp(-0.008 s).  Aborts when memory runs out. */
Study sample_study(void);

#endif
