/* Shared by the files of `bcd train`. */
#pragma once

#include <stdio.h>

#include "../store/rundir.h"
#include "../store/runfile.h"
#include "progress.h"
#include "setup.h"
#include "train.h"

/* What can be done about a damaged run.h5. */
#define WITHOUT_CURVES "; if you remove that file, the run can continue, with new curves"

typedef struct {
    char dir[OPTION_TEXT];
    Text run_path, checkpoint_path;
    int lock;
    bool made; /* this session created the directory */
    Setup setup;
    BcdState state;
    RunFile run;
    Progress progress;
    uint64_t eval_every;
    double seconds;          /* of training, of all sessions */
    double mark;             /* clock at the start of the current step */
    double infer_seconds;    /* of the pre-inference that is going on */
    double saved, save_cost; /* clock at the end of the last save, and how long it took */
    double started;          /* clock at the start of this session, less the time of those before */
    bool resumed, save_failed;
    bool other_samples;  /* a resume evaluates on more samples than before, or fewer */
    bool lost_curves;    /* a resume found a checkpoint without run.h5 */
    bool watching;       /* what is done after an update is not over */
    bool diverged;       /* the last step left numbers that are not finite */
    FILE *log, *samples; /* log.csv, --log-samples; or NULL */
    Sampler sampler;     /* of --log-samples */
} Training;

/* Opens directory, lock, settings, model, data and engine, and for a resume restores the state.
 * -1 and an error; train_close is safe either way. */
int train_open(Training *t, const Options *options);
/* Also removes the directory if this session created it and wrote nothing. */
void train_close(Training *t);

/* Prints a line for each setting that is allowed, and hardly what is wanted: phases or warm-ups
 * that are too long for the training, a validation on the training data. */
void train_print_doubts(const Training *t);
/* Print what is about to be trained, and what came out. */
void train_print_start(const Training *t);
void train_print_end(const Training *t, bool interrupted);

/* Opens log.csv in the run's directory, for other tools to read while it trains:
 *   step,loss,rate,submodel,validation_loss,accuracy
 * with a row for each update, whose last two fields are empty, and a row for each evaluation with
 * only the step and these.  Opens the file of --log-samples as well: a line for each update with
 * its number and those of its samples; a resume goes on behind the last update that is done, and
 * refuses a file that ends before it, or is of another training.  -1 and an error. */
int train_log_open(Training *t);
/* Write rows of log.csv; one that cannot be written does not stop the training. */
void train_log_curve(Training *t, const CurveRow *row);
void train_log_evaluation(Training *t, const EvaluationRow *row);
/* Writes a line of --log-samples.  -1 and an error. */
int train_log_samples(Training *t, const BcdState *state);
void train_log_close(Training *t);

/* Returns true after an update whose state is to be saved. */
bool train_save_due(const Training *t);
