/* Predicts pre-inference: how long it takes, and what it saves.  It works as rank_infer.c does. */
#pragma once

#include "simulate.h"

/* Means over the submodels; the lowest one has no prefix. */
typedef struct {
    double parameters_s;        /* of a phase: every rank gets the parameters of the prefix */
    double compute_s, gather_s; /* of a sample, all ranks together */
    double saved_s;             /* of a sample that is trained on with its outputs cached */
    double prefix_bytes;        /* that a rank needs in addition, for the largest prefix */
} Inference;

/* Overwrites *inference for the case that the first `ranks` of each pipeline infer, at least 1 and
 * at most all.  -1 and an error if the configuration is impossible. */
int simulate_inference(Inference *inference, const Configuration *configuration, int ranks);
