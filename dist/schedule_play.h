/* Inside schedule.c: the play that makes the lists. */
#ifndef DIST_SCHEDULE_PLAY_H
#define DIST_SCHEDULE_PLAY_H

#include "schedule.h"

/* What can be done with one micro-batch on one chunk. */
typedef enum { FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT, STEPS } Step;

/* Messages from one rank to another, values or gradients, in the order they are sent. */
typedef struct {
    Task *message; /* as the receiver will list them; NULL: no two chunks talk this way */
    int sent, received;
} PlayChannel;

typedef struct {
    Step step;
    int chunk, urgency;
} Choice;

typedef struct {
    const SchedulePlan *plan;
    Schedule *schedule;
    double *done;         /* [chunks][micro][STEPS]: when it ended; -1: not yet */
    int *next;            /* [chunks][STEPS]: the micro-batch whose turn it is */
    int *above;           /* [chunks]: the next chunk of the same rank; chunks: none */
    int *bound;           /* [chunks]: see schedule_bound */
    int *lowest_of;       /* [ranks]: its first chunk */
    double *clock;        /* [ranks]: when the rank is free */
    double *ready;        /* [chunks][STEPS]: when that step could start; -1: not yet */
    Choice *choice;       /* [ranks]: the best thing it can do next, */
    double *start;        /* [ranks]: and when; INFINITY: there is nothing to do */
    PlayChannel *channel; /* [ranks][ranks][2] */
    int *message_index;   /* [2][chunks][micro]: of the message to that chunk, in its channel */
} Play;

/* From one chunk to its neighbour. */
PlayChannel *play_channel(const Play *play, int from_chunk, int to_chunk);

/* Plays to the end; everything is reserved. */
void play_run(Play *play);

#endif
