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

typedef struct {
    const SchedulePlan *plan;
    Schedule *schedule;
    double *done;         /* [chunks][micro][STEPS]: when the step ended; -1: not yet */
    int *next;            /* [chunks][STEPS]: the micro-batch that comes next */
    int *above;           /* [chunks]: the next chunk of the same rank, or `chunks` */
    int *bound;           /* [chunks]: see schedule_bound */
    int *lowest_of;       /* [ranks]: its lowest chunk */
    double *clock;        /* [ranks]: when the rank has finished its last task */
    double *ready;        /* [chunks][STEPS]: when the next such step could start; -1: not yet */
    Choice *choice;       /* [ranks]: the step that it would take next */
    double *start;        /* [ranks]: when that starts; INFINITY: there is none */
    PlayChannel *channel; /* [ranks][ranks][2] */
    int *message_index; /* [2][chunks][micro]: the index of the message to a chunk in its channel */
} Play;

/* Returns the channel from a chunk to its neighbour. */
PlayChannel *play_channel(const Play *play, int from_chunk, int to_chunk);

/* Plays the step to its end.  All arrays have been allocated. */
void play_run(Play *play);

#endif
