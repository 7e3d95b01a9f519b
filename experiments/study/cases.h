/* Groups the trainings of a study.  A case is a network, data and settings; its methods are ways to
 * train it (full update, BCD in M submodels, ...); a method has a training for each seed.  Also
 * means over seeds. */
#pragma once

#include "study.h"

typedef struct StudyCase StudyCase;

/* A method: trainings that differ in the seed alone. */
typedef struct {
    const StudyCase *of;
    int seeds;
    const StudyRow *const *row; /* [seeds], ordered by seed; row[0] has the common settings */
} CaseMethod;

/* A case: trainings with the same network, data, optimizer with its settings except the learning
 * rate, batch, device and precision. */
struct StudyCase {
    int methods;
    const CaseMethod *method; /* full updates first, then by M, by fraction of the data, as read */
};

typedef struct {
    const Study *study;
    int cases, methods;
    StudyCase *item;    /* [cases], ordered by their first row */
    CaseMethod *method; /* [methods] of all cases */
    const StudyRow **row;
    int left_out; /* rows with the settings and seed of an earlier row, but other losses */
} Cases;

/* Groups the rows of a study, which must outlive the cases.  Of rows with the same settings and
 * seed, which are one training read from two files, only the first counts.  Generated images count
 * as the same data, although each seed generates others. */
void cases_make(Cases *cases, const Study *study);
void cases_free(Cases *cases);

/* Returns true when two trainings have the same data and settings of a case, on whatever network.
 */
bool case_settings_equal(const StudyRow *a, const StudyRow *b);

/* Returns the full update (not offloaded) with the same seed; of several, one with the same
 * learning rate, then one with as many updates, else the longest.  NULL when there is none. */
const StudyRow *case_full_update(const StudyCase *item, const StudyRow *row);

/* Returns true when no earlier method of the case has the same M and fraction of the data.  The
 * later ones are variants with other phases, orders or learning rates. */
bool case_is_plain(const CaseMethod *method);

/* Short names.  case_name: "gpt-4x128 text sgd" (a network of 4 layers, width 128), with the
 * schedule of the rate unless it is constant, and with device and precision unless it is the CPU.
 * case_method: "BCD-1/3", with the settings in which variants of the case differ. */
Text case_name(const StudyRow *row);
Text case_method(const CaseMethod *method);
/* case_name and case_method: "resnet8 cifar10 sgd BCD-1/3". */
Text case_label(const CaseMethod *method);

/* A running mean (Welford 1962) over the finite values that are added. */
typedef struct {
    int count;
    double mean, squares; /* sum of squared differences from the mean */
} Mean;

void mean_add(Mean *mean, double value);
double mean_value(const Mean *mean);  /* NAN for no values */
double mean_spread(const Mean *mean); /* standard deviation of a value (n - 1); NAN for count < 2 */

/* ---- measures.c: B-F multipliers ------------------------------------------------------------- */

/* B-F multipliers by training and by validation loss. */
typedef struct {
    Mean training, validation;
} Multipliers;

/* Returns their means over the BCD-1/3 trainings on all of the data with an optimizer of that name;
 * "adam" includes adamw, because the paper's Adam may be either.  Of image models (images = 1),
 * language models (0), or both (-1). */
Multipliers multipliers_of(const Cases *cases, const char *optimizer, int images);

/* Reads --multiplier, a B-F multiplier: a number such as "2.5", or files of results
 * ("validity.h5", "full/run.h5,bcd/run.h5").  From files it is the mean over the BCD-1/3 trainings
 * on all of the data that have a full update of the same seed, as in Table 2: over the language
 * models with Adam, or if there are none those with SGD, image models with Adam, with SGD.
 * *multiplier is NAN for "".  Returns -1 with an error set. */
int multiplier_read(double *multiplier, const char *text);
