/* What a training step would take, in time and memory, on machines that are not here: the very
 * lists of schedule.h, with block times from a roofline (cost.h) or measured. */
#ifndef DIST_SIMULATE_H
#define DIST_SIMULATE_H

#include "../ref/memory.h"
#include "cost.h"
#include "placement.h"
#include "schedule.h"

typedef struct {
    const Model *model;
    Cluster cluster;
    StageSettings stage; /* batch: samples of a micro-batch */
    PlacementKind placement;
    ScheduleKind schedule;
    int submodels;            /* 1: full update */
    int pipeline, replicas;   /* ranks of a pipeline, and how many pipelines share the data */
    int micro_batches, slack; /* of a pipeline and step; beyond the schedule's bound */
    bool cached;              /* the frozen prefix is not computed: its outputs are kept */
} Configuration;

typedef struct {
    double step_s;                       /* mean over the submodels */
    double bubble;                       /* share of the GPUs' time in which they wait */
    double passes_s, reduce_s, update_s; /* of it */
    double samples_per_s, tokens_per_s;
    double bytes[MEM_ROLES],
        total_bytes;   /* of the fullest rank, with the submodel that needs most */
    double host_bytes; /* of a node: offloaded state */
    bool fits;
} Prediction;

/* Times are simulated, bytes closed form.  submodel_s[submodels], unless NULL, gets each submodel's
 * step time.  `measured` [submodels][blocks], unless NULL, replaces the roofline's block times (of
 * one micro-batch).  -1 and an error when the configuration is impossible. */
int simulate(Prediction *prediction, double *submodel_s, const Configuration *configuration,
             const BlockCost *measured);

#endif
