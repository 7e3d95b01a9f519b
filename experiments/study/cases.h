/* The trainings of a study in order: cases, which differ in what is trained on what and how; in
 * each the methods (full update, BCD with so many submodels, ...); in each method the seeds.  And
 * means over seeds. */
#ifndef EXPERIMENTS_CASES_H
#define EXPERIMENTS_CASES_H

#include "study.h"

typedef struct StudyCase StudyCase;

/* One way to train: rows that differ in the seed alone. */
typedef struct {
    const StudyCase *of;
    int seeds;
    const StudyRow *const *row; /* [seeds], in order of the seed: the first has what all share */
} CaseMethod;

/* Same network, data, optimizer with all its settings but the rate, batch, device and precision. */
struct StudyCase {
    int methods;
    const CaseMethod *method; /* full updates first, then by M, by the part of the data, as read */
};

typedef struct {
    const Study *study;
    int cases, methods;
    StudyCase *item;    /* in order of their first row */
    CaseMethod *method; /* of all cases, one behind the other */
    const StudyRow **row;
    int left_out; /* rows with the settings and seed of an earlier one, but other losses */
} Cases;

/* Orders the rows of a study, which stays as it is.  Rows with the same settings and seed are one
 * training, read from two files: only the first counts.  Generated images are others with each
 * seed, and the same data.  -1 and an error when memory runs out; cases_free is safe either way. */
int cases_make(Cases *cases, const Study *study);
void cases_free(Cases *cases);

/* The row of the full update (in the device's memory) with the same seed; of several one of the
 * same rate, then the one with as many updates, or else the longest; NULL: none. */
const StudyRow *case_full_update(const StudyCase *item, const StudyRow *row);

/* Whether no method before has the same M and part of the data: the others of these differ in when
 * and in what order the submodels take turns. */
bool case_is_plain(const CaseMethod *method);

/* Short names: "resnet8", "gpt-4x128" of a specification (layers or depth, width); "resnet8 cifar10
 * sgd", with device and precision unless those are a CPU's; "BCD-1/3", with what tells it from
 * others of the case that are called so too.  Each returns `text`. */
enum { CASE_NAME = 120 };
const char *case_network(const StudyRow *row, char text[CASE_NAME]);
const char *case_name(const StudyRow *row, char text[CASE_NAME]);
const char *case_method(const CaseMethod *method, char text[CASE_NAME]);
/* case_name and case_method: "resnet8 cifar10 sgd BCD-1/3". */
enum { CASE_LABEL = 2 * CASE_NAME };
const char *case_label(const CaseMethod *method, char text[CASE_LABEL]);

/* A running mean; what is not finite does not count. */
typedef struct {
    int count;
    double mean, squares; /* sum of squared distances from the mean */
} Mean;

void mean_add(Mean *mean, double value);
double mean_value(const Mean *mean);  /* NAN: of nothing */
double mean_spread(const Mean *mean); /* standard deviation of a single one (n - 1); NAN below 2 */

#endif
