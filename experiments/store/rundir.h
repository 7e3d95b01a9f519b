/* A run's directory: run.h5, checkpoint.h5, and kept checkpoint-STEP.h5. */
#ifndef EXPERIMENTS_RUNDIR_H
#define EXPERIMENTS_RUNDIR_H

#include "../cli/options.h"

enum { RUNDIR_PATH = OPTION_TEXT + 64 };
#define RUNDIR_FRESH "runs" /* where those are that nobody named */

/* Where an experiment writes: --out, or else results, results-smoke, results-gpu, results-paper. */
void rundir_results(char dir[OPTION_TEXT], const Options *options);

void rundir_path(char path[RUNDIR_PATH], const char *dir, const char *file);
bool rundir_holds_run(const char *dir);

/* Makes the directory, with those above it.  -1 and an error. */
int rundir_make(const char *dir);
/* How much of the path, in letters, is a directory already; all, a part, or 0. */
size_t rundir_there(const char *dir);
/* Takes rundir_make back: removes the directory and those above it that were not there before,
 * those that are empty. */
void rundir_remove(const char *dir, size_t there);
/* Makes a new directory runs/MODEL-DATA-N with the first free N, and names it. */
int rundir_make_fresh(char dir[OPTION_TEXT], const Options *options);

/* Takes the directory for this process until the descriptor returned is closed (by the system, if
 * the process dies).  -1 and an error where another process has it. */
int rundir_lock(const char *dir);

/* The checkpoint file of a run's directory or of itself.  -1 and an error where there is none. */
int rundir_checkpoint(char path[RUNDIR_PATH], const char *place);
/* Settings of run.h5 over `options`, if `place` is a directory that has one. */
int rundir_settings(const char *place, Options *options);

/* Keeps checkpoint.h5 as checkpoint-STEP.h5 too, and removes all such but the last `keep`. */
int rundir_keep(const char *dir, uint64_t step, int keep);

#endif
