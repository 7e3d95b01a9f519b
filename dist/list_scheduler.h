/* The list scheduler of schedule_make, which simulates a step to make the lists of tasks. */
#ifndef DIST_LIST_SCHEDULER_H
#define DIST_LIST_SCHEDULER_H

#include "schedule.h"

/* The steps of one micro-batch on one chunk. */
typedef enum { FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT, STEPS } Step;

/* Messages from one rank to another, values or gradients, in the order they are sent. */
typedef struct {
    Task *message; /* [room]: the receiver's tasks */
    int room;      /* for the messages of a step; 0 if no chunks communicate in this direction */
    int sent, received;
} SchedulerChannel;

typedef struct {
    Step step;
    int chunk, urgency;
} Choice;

/* A micro-batch on a chunk. */
typedef struct {
    double done[STEPS]; /* when the step ended; -1: not yet */
    int message[2];     /* the indices, in their channels, of its input and its gradient */
} SchedulerMicroBatch;

typedef struct {
    int next[STEPS];     /* the micro-batch that comes next */
    double ready[STEPS]; /* when that step could start; -1: not yet */
    int above;           /* the next chunk of the same rank, or plan->chunks */
    int bound;           /* see schedule_bound */
} SchedulerChunk;

typedef struct {
    int lowest;    /* its lowest chunk */
    double clock;  /* when it has finished its last task */
    Choice choice; /* the step that it would take next */
    double start;  /* when that starts; INFINITY: there is none */
} SchedulerRank;

typedef struct {
    const SchedulePlan *plan;
    Schedule *schedule;
    SchedulerMicroBatch *micro; /* [chunks][micro_batches] */
    SchedulerChunk *chunk;      /* [chunks] */
    SchedulerRank *rank;        /* [ranks] */
    SchedulerChannel *channel;  /* [ranks][ranks][2] */
} ListScheduler;

/* Returns the channel from a chunk to its neighbour. */
SchedulerChannel *scheduler_channel(const ListScheduler *scheduler, int from_chunk, int to_chunk);

/* Simulates the step to its end.  All arrays have been allocated. */
void scheduler_run(ListScheduler *scheduler);

#endif
