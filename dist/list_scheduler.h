/* The list scheduler of schedule_make, which simulates a step to make the lists of tasks. */
#pragma once

#include "schedule.h"

/* A message on its way to a chunk. */
typedef struct SchedulerMessage {
    struct SchedulerMessage *next; /* sent later through the same channel */
    Task task;                     /* the receiver's */
    bool received;
} SchedulerMessage;

/* What one rank has sent to another, values or gradients, and that has not received yet. */
typedef struct {
    SchedulerMessage *first, **end;
} SchedulerChannel;

typedef struct {
    Pass pass;
    int chunk, urgency;
} Choice;

/* A micro-batch on a chunk. */
typedef struct {
    double done[PASSES];         /* when the pass ended; -1: not yet */
    SchedulerMessage message[2]; /* its input and its gradient, if they come from another rank */
} SchedulerMicroBatch;

typedef struct {
    int next[PASSES];     /* the micro-batch that comes next */
    double ready[PASSES]; /* when that pass could start; -1: not yet */
    int above;            /* the next chunk of the same rank, or plan->chunks */
    int bound;            /* see schedule_bound */
} SchedulerChunk;

typedef struct {
    int lowest;    /* its lowest chunk */
    double clock;  /* when it has finished its last task */
    Choice choice; /* the pass that it would run next */
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

/* Simulates the step to its end.  All arrays have been allocated. */
void scheduler_run(ListScheduler *scheduler);
