/* The part of schedule.c that makes the lists, by playing a step through. */
#ifndef DIST_SCHEDULE_PLAY_H
#define DIST_SCHEDULE_PLAY_H

#include "schedule.h"

/* The steps of one micro-batch on one chunk. */
typedef enum { FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT, STEPS } Step;

/* Messages from one rank to another, values or gradients, in the order they are sent. */
typedef struct {
    Task *message; /* the receiver's tasks; NULL if no chunks communicate in this direction */
    int sent, received;
} PlayChannel;

typedef struct {
    Step step;
    int chunk, urgency;
} Choice;

/* A micro-batch on a chunk. */
typedef struct {
    double done[STEPS]; /* when the step ended; -1: not yet */
    int message[2];     /* the indices, in their channels, of its input and its gradient */
} PlayMicroBatch;

typedef struct {
    int next[STEPS];     /* the micro-batch that comes next */
    double ready[STEPS]; /* when that step could start; -1: not yet */
    int above;           /* the next chunk of the same rank, or plan->chunks */
    int bound;           /* see schedule_bound */
} PlayChunk;

typedef struct {
    int lowest;    /* its lowest chunk */
    double clock;  /* when it has finished its last task */
    Choice choice; /* the step that it would take next */
    double start;  /* when that starts; INFINITY: there is none */
} PlayRank;

typedef struct {
    const SchedulePlan *plan;
    Schedule *schedule;
    PlayMicroBatch *micro; /* [chunks][micro_batches] */
    PlayChunk *chunk;      /* [chunks] */
    PlayRank *rank;        /* [ranks] */
    PlayChannel *channel;  /* [ranks][ranks][2] */
} Play;

/* Returns the channel from a chunk to its neighbour. */
PlayChannel *play_channel(const Play *play, int from_chunk, int to_chunk);

/* Plays the step to its end.  All arrays have been allocated. */
void play_run(Play *play);

#endif
