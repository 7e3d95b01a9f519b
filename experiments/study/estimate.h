/* What a plan would take. */
#ifndef EXPERIMENTS_ESTIMATE_H
#define EXPERIMENTS_ESTIMATE_H

#include "trainings.h"

/* Measures a few steps of each network, prints how long each row and all would take here (measured)
 * and what they would cost on rented GPUs (simulated), and sets `work` to the seconds here.  -1 and
 * an error, e.g. where a data set is missing. */
int plan_estimate(TrainingPlan *plan, const Options *asked);

#endif
