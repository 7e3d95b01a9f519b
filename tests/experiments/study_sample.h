/* A study made by hand, for the tests of studies and reports. */
#pragma once

#include "../../experiments/study/study.h"

enum { SAMPLE_STEPS = 200 };

/* Appends a training of SAMPLE_STEPS updates, whose loss is 3 exp(-rate step): every point on the
 * way is known.  30 seconds, by BCD 20; an evaluation each 50 updates.  Seed 1. */
StudyRow *sample_training(Study *study, const char *model, bool images, int submodels, double rate);

/* Four trainings: an image model, full and BCD-1/3, with losses 3 exp(-0.02 s) and 3 exp(-0.01 s);
 * a language model with 3 exp(-0.005 s) and 3 exp(-0.008 s).  Aborts when memory runs out. */
Study sample_study(void);
