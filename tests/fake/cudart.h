/* What the files of the runtime's stand-in share: devices and memory (cudart.c),
 * streams and events (cudart_streams.c), captures and graphs (cudart_graphs.c). */
#pragma once

#include <pthread.h>

#include "../../cuda/simt/engine.h"
#include "../../cuda/simt/late.h"
#include "fake.h"

/* ---- cudart.c ---- */

cudaError_t fake_told(cudaError_t error); /* returns it, and so will cudaGetLastError */
int fake_device(void);                    /* returns this thread's device */
cudaError_t fake_outcome(void);           /* returns, once, the first error of the work done */

/* ---- cudart_streams.c ---- */

enum { STREAMS = 8 }; /* at most, of one capture */

typedef enum { STREAM, EVENT, GRAPH, EXECUTABLE } Kind;
typedef struct Object {
    struct Object *next;
    Kind kind;
    int device;
} Object;

typedef struct Work {
    struct Work *next;
    SimtRun *run;
    void *closure;
} Work;

typedef struct {
    int holders;
    Work *first, **end;
} Works;

typedef struct Stream Stream;
typedef struct Capture {
    struct Capture *next;
    unsigned number; /* of this capture, so that events of an earlier one are recognised */
    enum cudaStreamCaptureMode mode;
    pthread_t thread;
    Stream *streams[STREAMS]; /* the first is where it began */
    int count;
    bool spoilt;
    Works *works;
} Capture;

/* How much of each captured stream's work comes before a stream's next work. */
typedef struct {
    unsigned count[STREAMS];
} Clock;

struct Stream {
    Object object;
    LateQueue queue;
    Capture *capture; /* NULL: none */
    int number;       /* of this stream in it */
    Clock clock;
};

typedef struct {
    Object object;
    LateEvent *late;
    unsigned capture; /* number of the capture that it was last recorded in; 0: none */
    bool timed, recorded;
    Clock clock;
} Event;

typedef struct {
    Object object;
    Works *works;
} Graph; /* also of kind EXECUTABLE */

void *object_new(Kind kind, size_t bytes);
void *object_of(Kind kind, const void *handle); /* NULL if it is not such an object */
void object_free(Object *object);

void fake_take_launches(void); /* from now on kernels go to these streams; called once */
typedef SimtRun FakeWork;
cudaError_t fake_submit(cudaStream_t stream, FakeWork *work, const void *closure, size_t bytes);

/* ---- cudart_graphs.c ---- */

/* Returns true, and spoils the capture, if this thread captures: a call that might wait is refused.
 */
bool fake_forbidden(void);
cudaError_t capture_spoil(Capture *capture, cudaError_t error); /* returns the error */
Capture *capture_of(const Event *event); /* NULL if there is none, or it is over */
void capture_add(Stream *stream, FakeWork *run, const void *closure, size_t bytes);
/* cudaStreamWaitEvent where the stream or the event is captured. */
cudaError_t capture_wait(Stream *stream, const Event *event);
