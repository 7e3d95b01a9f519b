/* Predicts the time and memory of a training step on machines that are not here.  Its schedules are
 * made as those that the pipeline executes are (schedule.h), but from block times, by a roofline
 * (cost.h) or measured, and with the times of messages, where the pipeline has operations alone.
 * Gradients of replicas, and of a tied head, are simulated as if GPUs exchanged them; the program
 * adds them up in host memory (rank_sums.c). */
#pragma once

#include "block_cache.h"
#include "placement.h"
#include "schedule.h"

typedef struct {
    const Model *model;
    Cluster cluster;
    /* stage.batch is the samples in a micro-batch.  With stage.deferred a chunk sends its gradient
     * down before it computes weight gradients, as zero bubble does; otherwise it sends after
     * them. */
    StageSettings stage;
    PlacementKind placement;
    ScheduleKind schedule;
    int submodels; /* 1: full update */
    /* Blocks that train with every submodel, listed as in partition_balanced; NULL or "": none.
     * Others need the plain placement and submodels of equal parameters. */
    const char *always_active;
    int pipeline, replicas;  /* ranks in a pipeline, and the number of pipelines */
    int micro_batches;       /* of one pipeline in a step */
    int slack;               /* see SchedulePlan */
    bool cached;             /* the frozen prefix is not computed, since its outputs are cached */
    bool equal_work;         /* submodels have the same work; false: as in a training, parameters */
    double host_memory;      /* bytes of a node's host; 0: any */
    const Placement *placed; /* NULL: make one that balances the roofline's work */
    BlockCache *cache;       /* of a search among such configurations; NULL: none */
} Configuration;

typedef struct {
    double step_s;                               /* the mean over the submodels */
    double passes_s, reduce_s, tied_s, update_s; /* the parts of step_s */
    double bubble;                               /* the fraction of passes_s in which GPUs wait */
    double tokens_per_s;                         /* of images: images */
    /* Of the rank and submodel that need most; messages between ranks are in the workspace. */
    double bytes[MEM_ROLES], total_bytes;
    double host_bytes;    /* of the fullest node: float copies of bf16, and what is offloaded */
    double missing_bytes; /* what the GPU and the node's host lack, together */
    bool fits;            /* nothing is missing */
} Prediction;

/* Predicts a step: times by simulation, bytes by closed forms.  GPUs are assigned node by node,
 * pipeline after pipeline and rank after rank.  Overwrites *prediction, and submodel_s[submodels]
 * with the step time of each submodel unless that is NULL.  measured[submodels][blocks], unless
 * NULL, has block times of one micro-batch that replace the roofline's.  -1 and an error if the
 * configuration is impossible. */
int simulate(Prediction *prediction, double *submodel_s, const Configuration *configuration,
             const BlockCost *measured);

/* Does the same without a schedule, in a fraction of the time, for searches.  Bytes are exact;
 * times are lower bounds, because the passes take only as long as the busiest rank computes. */
int simulate_bound(Prediction *prediction, const Configuration *configuration);

/* Overwrites *schedule with the forward and backward passes of one submodel, whose tasks have their
 * times in seconds, for schedule_free to free.  -1 and an error as above. */
int simulate_timeline(Schedule *schedule, const Configuration *configuration, int submodel);

/* Overwrites cost[blocks] with the roofline's for a micro-batch of a full update.  -1 and an error
 * when memory runs out. */
int simulate_full_costs(BlockCost *cost, const Configuration *configuration);

/* Makes the placement of a configuration that has none, as a training has it, for placement_free to
 * free: submodels have the same number of parameters, and ranks the same share of the roofline's
 * work of a full update.  Those of Figure 2 follow from the ranks.  -1 and an error as above. */
int simulate_place(Placement *placement, const Configuration *configuration);

/* Finds the value of *number at which the simulated step takes step_s.  *number is a field of
 * configuration->cluster.efficiency, a fraction or a rate, with which a step gets faster.  -1 and
 * an error if no value within a factor of 1000 of the present one does, to a hundredth; *number is
 * then as before. */
int simulate_calibrate(Configuration *configuration, double *number, double step_s);
