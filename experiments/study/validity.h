/* `bcd experiment validity`: the same training with every parameter updated and by BCD, for several
 * models and optimizers, as one table.
 *
 *   DIR/rows/NAME/   one training each, as `bcd train` leaves it
 *   DIR/validity.h5  the table so far (study.h), rewritten whole after each row
 *
 * An interrupted experiment goes on with the same command: rows that are finished are not trained
 * again, one that is not goes on from its checkpoint. */
#ifndef EXPERIMENTS_VALIDITY_H
#define EXPERIMENTS_VALIDITY_H

#include "../options/options.h"

/* One training of the plan. */
typedef struct {
    char name[128];  /* of its directory, and its row */
    Options options; /* of bcd train */
    double work;     /* relative, to tell the time left; of steps that may not be resolved yet */
} PlanRow;

typedef struct {
    int rows;
    PlanRow *row;
    char dir[OPTION_TEXT];
    bool long_run; /* hours: not started without --yes */
} Plan;

/* The rows a command line asks for.  -1 and an error: an unknown model or optimizer.
 * plan_free is safe either way. */
int plan_make(Plan *plan, const Options *asked);
void plan_free(Plan *plan);

/* Measures a few steps of each network, prints how long each row and all would take, and sets
 * `work` to these seconds.  -1 and an error, e.g. where a data set is missing. */
int plan_estimate(Plan *plan, const Options *asked);

#endif
