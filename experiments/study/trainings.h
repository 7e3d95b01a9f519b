/* Experiments made of trainings, as one table: the same network with every parameter updated and by
 * BCD (validity), with less data (compression), in more and smaller submodels (ufp).
 *
 *   DIR/rows/NAME/   one training each, as `bcd train` leaves it
 *   DIR/KIND.h5      the table so far (study.h), rewritten whole after each row
 *
 * An interrupted experiment goes on with the same command: rows that are finished are not trained
 * again, one that is not goes on from its checkpoint.  A row of the table is finished even where
 * its directory is gone. */
#ifndef EXPERIMENTS_TRAININGS_H
#define EXPERIMENTS_TRAININGS_H

#include "../store/h5.h"
#include "../train/setup.h"

/* A way each network is trained; submodels 0: as --submodels says, or 3. */
typedef struct {
    int submodels;
    double fraction;      /* of the data each submodel sees */
    const char *settings; /* more of them, over the entry's; NULL: none */
} TrainingVariant;

/* One network to train, with which optimizers unless the command line says.  Settings are flags of
 * `bcd train`, as "name=value name=value" or NULL; those for an optimizer come after the common
 * ones. */
typedef struct {
    const char *model, *data, *optimizers, *settings, *sgd, *adam;
    const char *instead_of; /* a data set: trained only where that is missing */
    bool optional;          /* only where its data are */
    bool full_only;         /* to compare with BCD of a larger network that takes as much memory */
    int seeds;              /* at most so many; 0: as many as all */
    const TrainingVariant *variant; /* ways of its own, fraction 0 ends; NULL: the experiment's */
} TrainingEntry;

enum { TRAINING_ENTRIES = 12, VARIANTS = 8 };

typedef struct {
    const char *name;
    int tables[3]; /* of the paper, whose rows the preset `paper` trains; 0 ends */
    TrainingVariant variant[VARIANTS + 1];                    /* fraction 0 ends */
    TrainingEntry preset[PRESET_KINDS][TRAINING_ENTRIES + 1]; /* model NULL ends */
    bool hours;        /* not started without --yes, whatever the preset, but for smoke */
    bool by_entry;     /* all seeds of an entry before the next entry, not the other way round */
    bool weights;      /* are used by another experiment: a row of the table is not enough */
    size_t curve_rows; /* a row of a stored curve is a mean over so many updates; 0: over one */
} TrainingKind;

extern const TrainingKind training_validity;    /* paper/table02.c */
extern const TrainingKind training_compression; /* paper/table09_10.c */
extern const TrainingKind training_ufp;         /* paper/table11.c */
extern const TrainingKind training_switching;   /* switching.c */
extern const TrainingKind training_converged, training_converged_pilot,
    training_remedies; /* converged.c */

/* One training of the plan. */
typedef struct {
    char name[128];  /* of its directory, and its row */
    const char *own; /* settings of its variant; NULL: none */
    Options options; /* of bcd train */
    double work;     /* relative, to tell the time left; of steps that may not be resolved yet */
    double step_seconds; /* of a full update of its network, where measured */
    bool finished;       /* before its experiment went on */
    bool in_table;       /* with these settings; its directory need not be there */
} TrainingRow;

typedef struct {
    const TrainingKind *kind;
    int rows;
    TrainingRow *row;
    char dir[OPTION_TEXT];
    bool long_run;     /* hours: not started without --yes */
    int jobs, threads; /* --jobs, --threads */
    char missing[256]; /* what is trained on other data than it would be */
} TrainingPlan;

/* The rows a command line asks for.  -1 and an error: an unknown model or optimizer.
 * trainings_free is safe either way. */
int trainings_plan(TrainingPlan *plan, const TrainingKind *kind, const Options *asked);
void trainings_free(TrainingPlan *plan);

/* Trains the rows a command line asks for, and writes the table.  Long ones without --yes are only
 * estimated.  0; -1 and an error; the exit status when interrupted. */
int trainings_run(const TrainingKind *kind, const Options *asked);

/* trainings_row.c: appends the row of a network in a variant, with the seed-th seed from --seed on;
 * flags given on the command line go over the entry's settings.  -1 and an error. */
int trainings_add(TrainingPlan *plan, const Options *asked, const TrainingEntry *entry,
                  const char *optimizer, const TrainingVariant *variant, int seed);

/* trainings_ahead.c: trains the rows that are not finished, plan->jobs at the same time, each with
 * plan->threads (0: its share).  A row that fails says so itself; -1 and an error where none can be
 * started. */
int trainings_run_parallel(const TrainingPlan *plan);

/* estimate.c: measures a few steps of each network, prints how long each row and all would take
 * here (measured) and what they would cost on rented GPUs (simulated), and sets `work` to the
 * seconds here.  -1 and an error, e.g. where a data set is missing. */
int trainings_estimate(TrainingPlan *plan, const Options *asked);

#endif
