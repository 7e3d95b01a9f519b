/* Streams, events and graphs under SIMT.
 *
 * A recording begins at one stream and spreads to others as they wait for its events.  It keeps the
 * work in the order in which it was put on the streams, which is an order the graph allows.  A GPU
 * demands that the first stream has waited, directly or through others, for all work of the streams
 * that joined, before the recording ends.  To check this, each recorded stream counts its work, and
 * keeps the counts of the others up to which it has waited. */
#include "record.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/error.h"
#include "../device.h"
#include "engine.h"
#include "late.h"

enum { STREAMS = 8 }; /* that one recording may include */

typedef struct RecordedWork {
    struct RecordedWork *next;
    SimtRun *run;
    void *closure;
} RecordedWork;

typedef struct SimtStream SimtStream;
typedef struct {
    unsigned number; /* of this recording, so that events of an earlier one are recognised */
    RecordedWork *first, **end;
    SimtStream *streams[STREAMS]; /* the first is where it began */
    int count;
    bool failed; /* something forbidden, out of memory, or too many streams */
} Recording;

struct SimtStream {
    LateQueue queue;
    bool recorded; /* by `active`; otherwise work is done at once, or late */
    int number;    /* of this stream among the recorded ones */
    unsigned seen[STREAMS];
};

typedef struct {
    LateEvent *late;    /* its records outside of recordings */
    unsigned recording; /* number of the recording it is in; 0: none */
    unsigned seen[STREAMS];
} SimtEvent;

static _Thread_local Recording *active; /* this thread's; others are not restricted */

/* Sets the error and returns -1.  A forbidden call spoils the recording, as it does on a GPU. */
static int refuse(const char *error) {
    if (active) active->failed = true;
    return error_set("%s", error);
}

int record_refuses(const char *what) { return active ? refuse(what) : 0; }
bool record_has(Stream stream) { return ((SimtStream *)stream)->recorded; }

/* ---- streams ---- */

void record_finish(Stream stream) { late_finish(&((SimtStream *)stream)->queue); }

Stream stream_create(void) {
    SimtStream *stream = calloc(1, sizeof *stream);
    if (!stream)
        error_set("no memory for a stream");
    else
        late_queue_open(&stream->queue);
    return stream;
}

void stream_free(Stream stream) {
    SimtStream *s = stream;
    if (s) late_queue_close(&s->queue);
    free(s);
}

int device_wait(Stream stream) {
    SimtStream *s = stream;
    if (s->recorded) return refuse("device_wait: the stream is being recorded");
    late_finish(&s->queue);
    char text[SIMT_ERROR_BYTES];
    return simt_take_error(text) ? error_set("%s", text) : 0;
}

/* ---- events ---- */

Event event_create(void) {
    SimtEvent *event = calloc(1, sizeof *event);
    if (event && (event->late = late_event_new())) return event;
    free(event);
    error_set("no memory for an event");
    return NULL;
}

void event_free(Event event) {
    SimtEvent *e = event;
    if (e) late_event_release(e->late);
    free(e);
}

void event_record(Event event, Stream stream) {
    SimtEvent *e = event;
    SimtStream *s = stream;
    e->recording = s->recorded ? active->number : 0;
    if (!s->recorded) late_record(&s->queue, e->late);
    memcpy(e->seen, s->seen, sizeof e->seen);
}

static void draw_in(SimtStream *stream) {
    if (active->count == STREAMS) {
        active->failed = true;
        return;
    }
    stream->recorded = true;
    stream->number = active->count;
    memset(stream->seen, 0, sizeof stream->seen);
    active->streams[active->count++] = stream;
}

/* As on a GPU, a wait may not cross the border of a recording: work outside has no place in the
 * graph. */
void stream_wait_event(Stream stream, Event event) {
    SimtEvent *e = event;
    SimtStream *s = stream;
    bool event_recorded = active && e->recording == active->number;
    if (!event_recorded && (s->recorded || e->recording)) {
        simt_note_error("stream_wait_event: the event lies %s the recording",
                        s->recorded ? "outside" : "inside");
        if (active) active->failed = true;
        return;
    }
    if (!event_recorded) {
        late_wait(&s->queue, e->late);
        return;
    }
    if (!s->recorded) draw_in(s);
    for (int i = 0; i < STREAMS; i++)
        if (s->seen[i] < e->seen[i]) s->seen[i] = e->seen[i];
    s->seen[s->number]++; /* the wait counts as work, for which the first stream must wait */
}

int event_wait(Event event) {
    SimtEvent *e = event;
    if (e->recording) return refuse("event_wait: the event is part of a graph");
    late_reach(e->late);
    return 0;
}

int event_over(Event event) {
    SimtEvent *e = event;
    if (e->recording) return refuse("event_over: the event is part of a graph");
    return late_reached(e->late);
}

/* Returns NaN if one of the events was never recorded, or is part of a graph. */
double event_ms(Event from, Event to) {
    const SimtEvent *a = from, *b = to;
    return a->recording || b->recording ? NAN : b->late->time - a->late->time;
}

/* ---- graphs ---- */

static bool keep(void *stream, SimtRun *run, const void *closure, size_t bytes) {
    SimtStream *s = stream;
    if (!s) {
        simt_note_error("work without a stream");
        return true;
    }
    if (!s->recorded) {
        if (late_on()) late_work(&s->queue, run, closure, bytes);
        return late_on();
    }
    RecordedWork *work = malloc(sizeof *work);
    void *copy = malloc(bytes);
    if (!work || !copy) {
        free(work);
        free(copy);
        active->failed = true;
        return true;
    }
    memcpy(copy, closure, bytes);
    *work = (RecordedWork){NULL, run, copy};
    *active->end = work;
    active->end = &work->next;
    s->seen[s->number]++;
    return true;
}

void record_open(void) { simt_set_recorder(keep); }

int graph_begin(Stream stream) {
    static atomic_uint count;
    if (active) return refuse("graph_begin: a stream is being recorded already");
    active = calloc(1, sizeof *active);
    if (!active) return error_set("no memory for a graph");
    active->number = ++count;
    active->end = &active->first;
    draw_in(stream);
    return 0;
}

static bool all_came_back(const Recording *recording) {
    const SimtStream *origin = recording->streams[0];
    for (int i = 1; i < recording->count; i++)
        if (origin->seen[i] < recording->streams[i]->seen[i]) return false;
    return true;
}

Graph graph_end(Stream stream) {
    SimtStream *s = stream;
    if (!s->recorded || s->number != 0) {
        error_set("graph_end: no recording began on this stream");
        return NULL;
    }
    Recording *recording = active;
    bool together = all_came_back(recording);
    for (int i = 0; i < recording->count; i++) recording->streams[i]->recorded = false;
    active = NULL;
    if (together && !recording->failed) return recording;
    error_set(together ? "graph_end: the recording was spoilt, or too large"
                       : "graph_end: a stream that was drawn in was not waited for");
    graph_free(recording);
    return NULL;
}

static void play(const void *closure) {
    const Recording *recording = *(Recording *const *)closure;
    for (const RecordedWork *work = recording->first; work; work = work->next)
        work->run(work->closure);
}

int graph_launch(Graph graph, Stream stream) {
    simt_submit(stream, play, &graph, sizeof graph);
    return 0;
}

void graph_free(Graph graph) {
    Recording *recording = graph;
    if (!recording) return;
    late_finish_all(); /* a launch of it may still be on a queue */
    for (RecordedWork *work = recording->first; work;) {
        RecordedWork *next = work->next;
        free(work->closure);
        free(work);
        work = next;
    }
    free(recording);
}
