/* The directory of a run: run.h5, checkpoint.h5 and, with --keep-last, checkpoint-STEP.h5; and an
 * empty file .lock, which a training holds locked. */
#pragma once

#include "../base/text.h"
#include "../cli/options.h"

/* "DIR/FILE" */
Text rundir_path(const char *dir, const char *file);
/* Returns true if run.h5 or checkpoint.h5 is in the directory. */
bool rundir_holds_run(const char *dir);
/* Returns 0 if one is.  -1 and an error: there is none, or the directory cannot be looked into. */
int rundir_check(const char *dir);

/* Creates the directory and those above it.  -1 and an error. */
int rundir_make(const char *dir);
/* Creates runs/MODEL-DATA-N with the first free N, and overwrites `dir` with it.  -1 and an
 * error. */
int rundir_make_fresh(char dir[OPTION_TEXT], const Options *options);

/* Locks the directory until the descriptor that is returned is closed, or the process ends.  -1 and
 * an error if another process has locked it. */
int rundir_lock(const char *dir);
/* Leaves a directory that this process has locked as it was before, if no run came into it: removes
 * it if this process has `made` it. */
void rundir_give_up(const char *dir, bool made);

/* Overwrites *path with the checkpoint in a run's directory, or with `place` if that is no
 * directory, there or not.  -1 and an error if the directory has none. */
int rundir_checkpoint(Text *path, const char *place);
/* The path of run.h5 in a run's directory, or beside `place` if that is a checkpoint. */
Text rundir_run(const char *place);
/* Reads the settings of run.h5, in `place` or beside it, over `options`, or without it those of the
 * checkpoint, which has only its data and what decides its bits.  Returns 0 and changes nothing if
 * neither is there.  -1 and an error. */
int rundir_settings(const char *place, Options *options);

/* Keeps a copy of checkpoint.h5 as checkpoint-STEP.h5, and removes all such but the last `keep` up
 * to that step.  -1 and an error. */
int rundir_keep(const char *dir, uint64_t step, int keep);
