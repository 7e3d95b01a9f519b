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
    /* batch: samples of a micro-batch.  deferred: a chunk hands its gradient down before its weight
     * gradients, which zero bubble is about; else after them, whatever the schedule. */
    StageSettings stage;
    PlacementKind placement;
    ScheduleKind schedule;
    int submodels;            /* 1: full update */
    int pipeline, replicas;   /* ranks of a pipeline, and how many pipelines share the data */
    int micro_batches, slack; /* of a pipeline and step; beyond the schedule's bound */
    bool cached;              /* the frozen prefix is not computed: its outputs are kept */
    const Placement *placed;  /* who holds and trains what; NULL: cut by the roofline's work */
} Configuration;

typedef struct {
    double step_s;                               /* mean over the submodels */
    double bubble;                               /* share of the GPUs' time in which they wait */
    double passes_s, reduce_s, tied_s, update_s; /* of it */
    double samples_per_s, tokens_per_s;
    double bytes[MEM_ROLES],
        total_bytes;   /* of the fullest rank, with the submodel that needs most */
    double host_bytes; /* of a node: offloaded state */
    bool fits;
} Prediction;

/* GPUs are taken node by node: pipeline after pipeline, rank after rank.
 *
 * Times are simulated, bytes closed form.  submodel_s[submodels], unless NULL, gets each submodel's
 * step time.  `measured` [submodels][blocks], unless NULL, replaces the roofline's block times (of
 * one micro-batch).  -1 and an error when the configuration is impossible. */
int simulate(Prediction *prediction, double *submodel_s, const Configuration *configuration,
             const BlockCost *measured);

/* The same without a schedule: bytes exact, times from below (the passes take as long as the
 * busiest rank computes), in a fraction of the time.  For searches. */
int simulate_bound(Prediction *prediction, const Configuration *configuration);

/* The forward and backward passes of one submodel as a timeline in seconds: who computes what when,
 * and between the tasks of a rank its bubbles.  -1 and an error as above. */
int simulate_timeline(Schedule *schedule, const Configuration *configuration, int submodel,
                      const BlockCost *measured);

/* Finds the value of *number, one in configuration->cluster.efficiency that a step gets faster with
 * (a fraction of a peak, a rate), at which the simulated step takes step_s.  -1 and an error when
 * none between a thousandth and a thousand times its present value does; it is then as before. */
int simulate_calibrate(Configuration *configuration, double *number, double step_s);

#endif
