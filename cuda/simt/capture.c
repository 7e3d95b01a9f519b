/* Streams, events and graphs under SIMT.  A capture keeps the work of one stream in a queue.  A
 * wait for an event may not cross its border, because work outside has no place in the graph. */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/base/error.h"
#include "../device.h"
#include "engine.h"
#include "late.h"

typedef struct {
    LateQueue work; /* not open: it is repeated by each launch */
    bool failed;    /* something forbidden happened */
} Capture;

static _Thread_local Capture *active; /* this thread's; others are not restricted */

/* Sets the error and returns -1.  A forbidden call spoils the capture, as it does on a GPU. */
static int refuse(const char *error) {
    if (active) active->failed = true;
    return error_set("%s", error);
}

int capture_refuses(const char *what) { return active ? refuse(what) : 0; }

/* ---- streams ---- */

Stream stream_create(void) {
    LateQueue *stream = calloc(1, sizeof *stream);
    if (!stream) return error_null("no memory for a stream");
    late_queue_open(stream);
    return stream;
}

void stream_free(Stream stream) {
    LateQueue *s = stream;
    if (s) late_queue_close(s);
    free(s);
}

int device_wait(Stream stream) {
    LateQueue *s = stream;
    if (s->capture) return refuse("device_wait: the stream is being captured");
    late_finish(s);
    char text[SIMT_ERROR_BYTES];
    return simt_take_error(text) ? error_set("%s", text) : 0;
}

/* ---- events ---- */

Event event_create(bool timed) {
    LateEvent *event = late_event_new();
    if (!event) return error_null("no memory for an event");
    event->timed = timed;
    return event;
}

void event_free(Event event) { late_event_release(event); }

void event_record(Event event, Stream stream) {
    LateEvent *e = event;
    LateQueue *s = stream;
    e->capture = s->capture;
    if (!s->capture) late_record(s, e);
}

void stream_wait_event(Stream stream, Event event) {
    LateEvent *e = event;
    LateQueue *s = stream;
    if (s->capture == e->capture) {
        if (!s->capture) late_wait(s, e);
        return;
    }
    simt_note_error("stream_wait_event: the event lies %s the capture",
                    s->capture ? "outside" : "inside");
    if (active) active->failed = true;
}

int event_wait(Event event) {
    LateEvent *e = event;
    if (e->capture) return refuse("event_wait: the event is part of a graph");
    late_reach(e);
    return 0;
}

int event_over(Event event) {
    LateEvent *e = event;
    if (e->capture) return refuse("event_over: the event is part of a graph");
    return late_reached(e);
}

static double time_of(const LateEvent *event) {
    return event->timed && !event->capture ? event->time : NAN;
}

/* Returns NaN if one of the events is not timed, was never recorded, or is part of a graph. */
double event_ms(Event from, Event to) { return time_of(to) - time_of(from); }

/* ---- graphs ---- */

static bool keep(void *stream, SimtRun *run, const void *closure, size_t bytes) {
    LateQueue *s = stream;
    if (!s) {
        simt_note_error("work without a stream");
        return true;
    }
    if (!s->capture) {
        if (late_on()) late_work(s, run, closure, bytes);
        return late_on();
    }
    late_work(&active->work, run, closure, bytes);
    return true;
}

void capture_open(void) { simt_set_recorder(keep); }

int graph_begin(Stream stream) {
    static atomic_uint count;
    if (active) return refuse("graph_begin: a stream is being captured already");
    active = calloc(1, sizeof *active);
    if (!active) return error_set("no memory for a graph");
    active->work.end = &active->work.first;
    ((LateQueue *)stream)->capture = ++count;
    return 0;
}

Graph graph_end(Stream stream) {
    LateQueue *s = stream;
    Capture *capture = active;
    if (!s->capture) return error_null("graph_end: no capture began on this stream");
    s->capture = 0;
    active = NULL;
    if (!capture->failed) return capture;
    graph_free(capture);
    return error_null("graph_end: the capture was spoilt");
}

static void play(const void *closure) { late_repeat(&(*(Capture *const *)closure)->work); }

int graph_launch(Graph graph, Stream stream) {
    simt_submit(stream, play, &graph, sizeof graph);
    return 0;
}

void graph_free(Graph graph) {
    Capture *capture = graph;
    if (!capture) return;
    late_finish_all(); /* a launch of it may still be on a queue */
    late_drop(&capture->work);
    free(capture);
}
