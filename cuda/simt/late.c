#include "late.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/base/clock.h"
#include "engine.h"

/* An item of a queue: work or, with an event, a record of it or a wait for it. */
typedef struct LateItem {
    struct LateItem *next;
    SimtRun *run;
    LateEvent *event;
    uint64_t number;  /* which record of the event */
    LateQueue *waits; /* a wait for the record on that queue; NULL: a record */
    _Alignas(16) unsigned char closure[];
} Item;

/* Also held while an item is done, so that one is done at a time, like launches. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static LateQueue *queues;
static uint64_t drawn; /* state of the random numbers; 0: streams are not late */

void simt_set_late(uint64_t seed) {
    late_finish_all();
    drawn = seed;
}

bool late_on(void) { return drawn != 0; }

/* xorshift64; Marsaglia 2003. */
static uint64_t draw(uint64_t below) {
    drawn ^= drawn << 13;
    drawn ^= drawn >> 7;
    drawn ^= drawn << 17;
    return drawn % below;
}

/* ---- events and queues ---- */

LateEvent *late_event_new(void) {
    LateEvent *event = calloc(1, sizeof *event);
    if (event) *event = (LateEvent){.holders = 1, .time = NAN};
    return event;
}

static void release(LateEvent *event) {
    if (event && --event->holders == 0) free(event);
}

void late_event_release(LateEvent *event) {
    pthread_mutex_lock(&lock);
    release(event);
    pthread_mutex_unlock(&lock);
}

void late_queue_open(LateQueue *queue) {
    pthread_mutex_lock(&lock);
    *queue = (LateQueue){.next = queues, .end = &queue->first};
    queues = queue;
    pthread_mutex_unlock(&lock);
}

void late_queue_close(LateQueue *queue) {
    late_finish(queue);
    pthread_mutex_lock(&lock);
    LateQueue **at = &queues;
    while (*at != queue) at = &(*at)->next;
    *at = queue->next;
    pthread_mutex_unlock(&lock);
}

static void put(LateQueue *queue, const Item *item, const void *closure, size_t bytes) {
    Item *kept = malloc(sizeof *kept + bytes);
    if (!kept) {
        simt_note_error("no memory for a stream's queue");
        return;
    }
    *kept = *item;
    if (bytes) memcpy(kept->closure, closure, bytes);
    *queue->end = kept;
    queue->end = &kept->next;
}

void late_work(LateQueue *queue, SimtRun *run, const void *closure, size_t bytes) {
    pthread_mutex_lock(&lock);
    put(queue, &(Item){.run = run}, closure, bytes);
    pthread_mutex_unlock(&lock);
}

void late_repeat(const LateQueue *queue) {
    for (const Item *item = queue->first; item; item = item->next) item->run(item->closure);
}

void late_drop(LateQueue *queue) {
    while (queue->first) {
        Item *item = queue->first;
        queue->first = item->next;
        free(item);
    }
}

void late_record(LateQueue *queue, LateEvent *event) {
    pthread_mutex_lock(&lock);
    event->recorded++;
    event->queue = queue;
    event->time = NAN;
    if (drawn) {
        event->holders++;
        put(queue, &(Item){.event = event, .number = event->recorded}, NULL, 0);
    } else {
        event->done = event->recorded;
        event->time = clock_ms();
    }
    pthread_mutex_unlock(&lock);
}

void late_wait(LateQueue *queue, LateEvent *event) {
    pthread_mutex_lock(&lock);
    if (event->done < event->recorded) {
        event->holders++;
        Item wait = {.event = event, .number = event->recorded, .waits = event->queue};
        put(queue, &wait, NULL, 0);
    }
    pthread_mutex_unlock(&lock);
}

/* ---- which item is done next; callers hold the lock ---- */

static bool can_go(const LateQueue *queue) {
    const Item *item = queue->first;
    return item && !(item->waits && item->event->done < item->number);
}

static void go(LateQueue *queue) {
    Item *item = queue->first;
    queue->first = item->next;
    if (!queue->first) queue->end = &queue->first;
    if (item->run) {
        item->run(item->closure);
    } else if (!item->waits) {
        if (item->event->done < item->number) item->event->done = item->number;
        item->event->time = clock_ms();
    }
    release(item->event);
    free(item);
}

/* Returns a random queue whose first item can be done.  There is none only if all queues are empty,
 * because an item waits only for records that are already on a queue. */
static LateQueue *any(void) {
    LateQueue *chosen = NULL;
    uint64_t ready = 0;
    for (LateQueue *q = queues; q; q = q->next)
        if (can_go(q) && draw(++ready) == 0) chosen = q;
    return chosen;
}

/* Returns the queue whose first item must be done next for this one to get on; it must not be
 * empty. */
static LateQueue *needed(LateQueue *queue) {
    while (!can_go(queue)) queue = queue->first->waits;
    return queue;
}

/* Does one item: mostly one that the queue needs, so that the rest is as late as can be; sometimes
 * any. */
static void step(LateQueue *queue) { go(draw(4) ? needed(queue) : any()); }

void late_finish(LateQueue *queue) {
    pthread_mutex_lock(&lock);
    while (queue->first) step(queue);
    pthread_mutex_unlock(&lock);
}

void late_reach(LateEvent *event) {
    pthread_mutex_lock(&lock);
    while (event->done < event->recorded) step(event->queue);
    pthread_mutex_unlock(&lock);
}

bool late_reached(LateEvent *event) {
    pthread_mutex_lock(&lock);
    bool reached = event->done == event->recorded;
    if (!reached) step(event->queue);
    pthread_mutex_unlock(&lock);
    return reached;
}

bool late_go_on(void) {
    pthread_mutex_lock(&lock);
    LateQueue *queue = drawn ? any() : NULL;
    if (queue) go(queue);
    pthread_mutex_unlock(&lock);
    return queue != NULL;
}

void late_finish_all(void) {
    pthread_mutex_lock(&lock);
    for (LateQueue *q = queues; q; q = q->next)
        while (q->first) step(q);
    pthread_mutex_unlock(&lock);
}
