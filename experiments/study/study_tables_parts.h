/* What the files that make a study's tables share. */
#ifndef EXPERIMENTS_STUDY_TABLES_PARTS_H
#define EXPERIMENTS_STUDY_TABLES_PARTS_H

#include "cases.h"
#include "paper.h"
#include "study_tables.h"

#define MIB (1024.0 * 1024)

/* Parameters, gradients and optimizer state at their peaks: what the paper counts as memory. */
double study_trained_bytes(const StudyRow *row);
/* Per cent correct, or perplexity. */
double study_score(const StudyRow *row);
/* What a training had spent at its end, and in an update on average; NAN: unknown. */
double study_end(const StudyRow *row, StudyAxis axis);
double study_per_update(const StudyRow *row, StudyAxis axis);
/* Seconds of an update of one over those of another; NAN where they must not be compared. */
double study_time_ratio(const StudyRow *row, const StudyRow *full);
extern const char study_clock_note[]; /* study_same_clock, said below a table */
/* How many standard errors the mean of n differences has to be from 0 (95 %, two-sided); NAN below
 * 2.  In study_tables_budgets.c. */
double study_student(int n);
/* Whether a method is BCD and one of its seeds has a full update beside it; whether any is. */
bool study_pairs(const Cases *cases, const Case *item, const CaseMethod *method);
bool study_any_pairs(const Cases *cases);
/* A mean over seeds into a cell, with its spread. */
void study_put_mean(Table *table, int column, const Mean *mean, Source source);

/* Each adds tables, where the study has something for them; -1 and an error. */
int study_add_published(Tables *tables, const Cases *cases);   /* Tables 2, 9, 10, 11 */
int study_add_same_loss(Tables *tables, const Cases *cases);   /* beside the full update */
int study_add_budgets(Tables *tables, const Cases *cases);     /* at equal updates, seconds, ... */
int study_add_multipliers(Tables *tables, const Cases *cases); /* B-F: study_tables.c */
int study_add_finetuned(Tables *tables, const Cases *cases);   /* --init; and LoRA, published */
int study_add_switching(Tables *tables, const Cases *cases);   /* when, and in what order */
int study_add_ufp(Tables *tables, const Cases *cases);         /* against the unfrozen part */
int study_add_trainings(Tables *tables, const Cases *cases);   /* each with its identity */

#endif
