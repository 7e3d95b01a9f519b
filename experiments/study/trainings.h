/* Experiments that consist of trainings, the rows of one table: the same networks by full update
 * and by BCD (validity), with less data (compression), in other numbers of submodels (ufp), ...
 *
 *   DIR/rows/NAME/   one training each, as `bcd train` leaves it
 *   DIR/KIND.h5      the table so far (study.h), rewritten whole after each row
 *
 * An interrupted experiment goes on with the same command: rows that are finished are not trained
 * again, one that is not goes on from its checkpoint.  A row of the table is finished even where
 * its directory is gone. */
#pragma once

#include "../cli/command_line.h"
#include "../store/runfile.h"
#include "../train/setup.h"

/* A network to train, and the optimizers unless --optimizers is given.  `settings` are flags of
 * `bcd train` as "name=value name=value" or NULL; those for an optimizer, `sgd` and `adam`,
 * override them.
 *
 * `ways` are the ways in which it is trained, with a semicolon between two: "full; bcd lr=0.1; bcd4
 * x0.9".  "bcd4" is BCD in 4 submodels, and "bcd" in those of --submodels, or 3; "x0.9": each
 * submodel sees 0.9 of the data; then flags that override the settings. */
typedef struct {
    const char *model, *data, *optimizers, *settings, *sgd, *adam;
    const char *instead_of; /* stands in for this data set: trained only when it is missing */
    int seeds;              /* 0: as many as the preset has */
    const char *ways;       /* NULL: those of the experiment */
} TrainingEntry;

enum { TRAINING_ENTRIES = 15 };

/* An experiment: the networks of each preset. */
typedef struct {
    const char *name;
    int tables[3];    /* of the paper: the preset `paper` trains their rows; 0 ends */
    const char *ways; /* for entries that have none of their own */
    TrainingEntry preset[PRESET_KINDS][TRAINING_ENTRIES + 1]; /* model NULL ends */
    /* True for trainings of hours: all presets but smoke need --yes; all seeds of an entry come
     * before the next entry, else all entries of a seed; and a row of a stored curve is of
     * LONG_CURVE_ROW updates, because 120 epochs of CIFAR-10 are 46,920. */
    bool takes_hours;
    bool needs_weights; /* another experiment starts from them: a row of the table is not enough */
} TrainingKind;
enum { LONG_CURVE_ROW = 20 };

extern const TrainingKind training_validity;    /* paper/table02.c */
extern const TrainingKind training_compression; /* paper/tables09_11.c */
extern const TrainingKind training_ufp;         /* paper/tables09_11.c */
extern const TrainingKind training_converged, training_converged_pilot, training_remedies,
    training_switching; /* beyond.c */

/* One training of the plan. */
typedef struct {
    char name[128];      /* of its directory, and its row */
    Options options;     /* of bcd train */
    int number;          /* in the order of the entries */
    double work;         /* in any unit, for the time left */
    double step_seconds; /* of a full update of its network; 0: not measured */
    bool finished;       /* trained to the length asked for */
    int process;         /* that trains it now; 0: none */
    bool ended;          /* such a process has ended */
} TrainingRow;

typedef struct {
    const TrainingKind *kind;
    CommandLine asked;
    int rows;
    TrainingRow *row;
    Text dir;
    bool long_run; /* needs --yes */
    Text missing;  /* a line: data sets that others stand in for; "": none */
} TrainingPlan;

/* Plans the rows that a command line asks for.  Returns -1 with an error set, e.g. for an unknown
 * model or optimizer; trainings_free is safe either way. */
int trainings_plan(TrainingPlan *plan, const TrainingKind *kind, const CommandLine *asked);
void trainings_free(TrainingPlan *plan);

/* Trains the rows that a command line asks for and writes the table; long ones are only estimated
 * without --yes.  Returns 0, -1 with an error set, or the exit status when interrupted. */
int trainings_run(const TrainingKind *kind, const CommandLine *asked);

/* trainings_row.c: appends the rows of a network, one for each of its ways, with the seed-th seed
 * from --seed on.  Flags given on the command line override the entry's settings.  Returns -1 with
 * an error set. */
int trainings_add(TrainingPlan *plan, const TrainingEntry *entry, const char *optimizer, int seed);

/* Reads run.h5 of a row.  Returns 1, 0 when there is none, or -1 with an error set; runfile_free is
 * safe either way. */
int trainings_read_run(RunFile *run, const TrainingRow *row);
/* Returns which part of its updates a row has done, 0 to 1, by the run.h5 of its directory, which a
 * training rewrites about once a minute. */
double trainings_done(const TrainingRow *row);
/* Returns the work of the rows that are not finished and have not ended, without that part. */
double trainings_work_left(const TrainingPlan *plan);

/* trainings_process.c: starts `bcd train` for a row as row->process.  It ends with this process at
 * the latest, and prints its own error.  With a single job it prints its progress too.  Its threads
 * are those of --threads (0: all, or its share of them).  Returns -1 with an error set. */
int trainings_start(const TrainingPlan *plan, TrainingRow *row);

/* estimate.c: measures a few steps of each network, and prints how long the rows that are not
 * finished would take here, each and together, with the simulated hours and cost on rented GPUs,
 * which also go into the table of DIR/KIND-PRESET-estimate.h5.  Sets `work` of these rows to the
 * seconds here.  Returns -1 with an error set, e.g. when a data set is missing. */
int trainings_estimate(TrainingPlan *plan);
