/* What the files of `bcd train` share. */
#ifndef EXPERIMENTS_TRAIN_PARTS_H
#define EXPERIMENTS_TRAIN_PARTS_H

#include <stdio.h>

#include "../store/rundir.h"
#include "../store/runfile.h"
#include "eval.h"
#include "progress.h"
#include "setup.h"
#include "train.h"

typedef struct {
    char dir[OPTION_TEXT], run_path[RUNDIR_PATH], checkpoint_path[RUNDIR_PATH];
    int lock;
    bool made;    /* the directory is this session's, */
    size_t there; /*   which was there up to this letter */
    int threads;  /* of all ranks in this process */
    Setup setup;
    BcdState state;
    RunFile run;
    Progress progress;
    uint64_t eval_every;
    double seconds;          /* of training, of all sessions */
    double mark;             /* clock at the start of the step being timed */
    double saved, save_cost; /* clock at the end of the last save, and how long it took */
    double started;          /* clock at the start of this session */
    double earlier_wall;     /* s, of the sessions before */
    bool resumed, save_failed;
    bool diverged;       /* the last step left numbers that are not finite */
    FILE *log, *samples; /* log.csv, --log-samples; or NULL */
    Sampler sampler;     /* of --log-samples */
} Training;

/* Directory, lock, settings, model, data, engine, and for a resume the place in the training.
 * -1 and an error; train_close is safe either way. */
int train_open(Training *t, const Options *options);
/* Also removes a new directory that no run came to be in. */
void train_close(Training *t);

/* What is about to happen; what came out. */
void train_print_start(const Training *t);
void train_print_end(Training *t, const RunSummary *summary);

/* log.csv in the run's directory, for other tools while it trains, from the first step on:
 *   step,loss,rate,submodel,validation_loss,accuracy
 * a row for each update, whose last two are empty, and one for each evaluation, with these alone.
 * And the file of --log-samples: a line for each update, its number and those of its samples; a
 * resume goes on in it.  Logs that cannot be written later on stop nothing.  -1 and an error. */
int train_log_open(Training *t);
void train_log_curve(Training *t, const CurveRow *row);
void train_log_evaluation(Training *t, const EvaluationRow *row);
void train_log_samples(Training *t, const BcdState *state);
void train_log_close(Training *t);

/* Fills run.memory from the engine and the plan. */
int train_count_memory(Training *t);

#endif
