/* `bcd report`: the same lines as a table in the terminal and as a page. */
#ifndef EXPERIMENTS_REPORT_H
#define EXPERIMENTS_REPORT_H

#include <stdio.h>

#include "../study/paper.h"
#include "../study/study.h"
#include "../tables/table.h"

enum { REPORT_CELLS = 12, REPORT_LINES = 18, REPORT_METHODS = 6 };

typedef struct {
    const char *head, *unit; /* the two lines above the column */
    const char *what;        /* for the page */
    int width;               /* in the terminal; negative: to the left */
} ReportColumn;

extern const ReportColumn report_columns[REPORT_CELLS];

typedef struct {
    char cell[REPORT_CELLS][32]; /* "" where there is nothing to say; cell 0 is the source */
} ReportLine;

/* One group of trainings, beside what the paper says about such a training. */
typedef struct {
    const StudyRow *row[REPORT_METHODS];
    int rows, left_out; /* trainings shown, and not shown for want of room */
    size_t window;
    int lines;
    ReportLine line[REPORT_LINES];
    int findings; /* two sentences for each BCD training beside a full one */
    char finding[REPORT_METHODS][384];
    char comparison[REPORT_METHODS][256]; /* at equal updates, seconds, operations */
    char title[448], subtitle[384], published[256], imbalance[384];
} ReportGroup;

/* Fills group `number` of study_groups. */
void report_group(ReportGroup *report, const Study *study, const int *group, int number);

/* "measured" mean multipliers and the published ones, one line of text each; returns how many. */
enum { REPORT_MEANS = 8 };
int report_means(const Study *study, char line[REPORT_MEANS][160]);

/* What a page shows: trainings, and the files of tables. */
typedef struct {
    Study study;
    Tables trainings; /* of the study: study_tables.h */
    int files;
    Tables *file; /* [files] */
} Report;

/* Writes the page whole, or nothing.  *drawn tells whether gnuplot could draw the figures.  -1 and
 * an error. */
int report_html(const Report *report, const char *path, bool *drawn);

#endif
