/* The state of a simulation, shared by simulate.c and simulate_time.c. */
#pragma once

#include "simulate.h"

typedef struct {
    const Configuration *c;
    bool quick;    /* for simulate_bound, which makes no schedule */
    Placement own; /* unless the configuration has one */
    const Placement *placement;
    /* Of the present submodel: */
    bool *active;       /* [blocks] */
    BlockCost *block;   /* [blocks] */
    BlockMemory *bytes; /* [blocks] */
    ChunkCost *chunk;   /* [chunks] */
    double *update_s;   /* [ranks] */
    double *reduced;    /* [ranks]: bytes of the gradients that replicas add up */
    double *transfer_s; /* [chunks]: of a message between this chunk and the one above */
    bool *local;        /* [blocks]: on the rank whose memory is computed */
    int *in_flight;     /* [blocks]: micro-batches in flight there */
    SchedulePlan plan;
} Simulation;

/* Makes the plan of the schedule: where forward begins, where backward ends, and the costs. */
void simulation_plan(Simulation *s);

/* Adds the times of the present submodel's step to *sum.  -1 and an error when memory runs out. */
int simulation_time(const Simulation *s, Prediction *sum);

/* Returns the number of nodes that a pipeline is on. */
int simulation_nodes(const Configuration *configuration);
