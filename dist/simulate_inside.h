/* Inside simulate.c. */
#ifndef DIST_SIMULATE_INSIDE_H
#define DIST_SIMULATE_INSIDE_H

#include "simulate.h"

/* Everything about one submodel's step. */
typedef struct {
    const Configuration *c;
    bool quick;    /* the passes take what the busiest rank computes: no schedule is made */
    Placement own; /* unless the configuration brings one */
    const Placement *placement;
    bool *active;       /* [blocks] */
    BlockCost *block;   /* [blocks] */
    BlockMemory *bytes; /* [blocks] */
    ChunkCost *chunk;   /* [chunks] */
    bool *trains;       /* [chunks] */
    double *update_s;   /* [ranks] */
    double *reduced;    /* [ranks]: bytes of gradients all pipelines add up */
    double *transfer_s; /* [chunks]: of a message to the chunk above or back */
    bool *local;        /* [blocks]: on the rank in question, */
    int *in_flight;     /* [blocks]: and micro-batches in flight there */
    SchedulePlan plan;
} Simulation;

/* The parameter that the head shares with another rank's block, and both ranks; NULL: none. */
const Param *simulation_tied(const Simulation *s, int *owner, int *user);

/* Puts the bytes of the fullest rank into *max, if they are more than those there. */
void simulation_memory(Simulation *s, Prediction *max);

#endif
