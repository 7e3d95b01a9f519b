/* Late streams, under SIMT: each stream keeps its work in a queue, and does it only when the host
 * waits. How much of which queue is done, and in what order, is drawn from a seed, within what a
 * GPU may do.  So a missing event, or page-locked memory that is used again too early, changes the
 * results. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "control.h"

/* An event as queues know it; it lives as long as one of them does. */
typedef struct LateEvent {
    int holders;
    uint64_t recorded, done; /* how often it was put on a stream, the last that was reached */
    struct LateQueue *queue; /* of that stream */
    double time;             /* ms; NaN: never reached */
    /* capture.c: */
    bool timed;
    unsigned capture; /* of the stream on which it was recorded last */
} LateEvent;

typedef struct LateQueue {
    struct LateQueue *next; /* of all */
    struct LateItem *first, **end;
    unsigned capture; /* capture.c: the number of the capture that it is in; 0: none */
} LateQueue;

bool late_on(void); /* returns true if streams are late */

LateEvent *late_event_new(void); /* returns NULL when memory runs out */
void late_event_release(LateEvent *event);

void late_queue_open(LateQueue *queue);
void late_queue_close(LateQueue *queue); /* does what is left */

/* Puts work, an event's record, or a wait on the queue; while streams are not late, does it at
 * once. */
void late_work(LateQueue *queue, SimtRun *run, const void *closure, size_t bytes);
void late_record(LateQueue *queue, LateEvent *event);
void late_wait(LateQueue *queue, LateEvent *event);

/* Of a queue that is not open, and so is never done by itself: do all its work, which stays on it;
 * and free it. */
void late_repeat(const LateQueue *queue);
void late_drop(LateQueue *queue);

/* Do the work of queues until this one is empty, or the event is reached, and possibly more. */
void late_finish(LateQueue *queue);
void late_reach(LateEvent *event);
bool late_reached(LateEvent *event); /* returns false if it is not, after doing some work for it */
void late_finish_all(void);
bool late_go_on(void); /* does one item of some queue; returns false if there is none */

/* ---- capture.c: streams, events and graphs, for device.c ---- */

void capture_open(void); /* from now on every launch and copy goes to a stream's queue first */
/* Returns -1, with this error, while this thread captures a stream; else 0. */
int capture_refuses(const char *error);
