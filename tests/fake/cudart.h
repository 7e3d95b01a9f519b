/* What the files of the runtime's stand-in share: devices and memory (cudart.c),
 * streams and events (cudart_streams.c), captures and graphs (cudart_graphs.c). */
#pragma once

#include <pthread.h>

#include "../../cuda/simt/engine.h"
#include "../../cuda/simt/late.h"
#include "fake.h"

/* ---- cudart.c ---- */

cudaError_t fake_error(cudaError_t error); /* keeps it for cudaGetLastError, and returns it */
int fake_device(void);                     /* returns this thread's device */
cudaError_t fake_outcome(void); /* returns the first error of the work done so far, once */

/* ---- cudart_streams.c ---- */

enum { STREAMS = 8 }; /* of one capture, at most */

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
    unsigned number; /* of this capture, by which events of an earlier one are recognised */
    enum cudaStreamCaptureMode mode;
    pthread_t thread;
    Stream *streams[STREAMS]; /* the first is where the capture began */
    int count;
    bool spoilt;
    Works *works;
} Capture;

/* How many operations of each captured stream come before a stream's next operation. */
typedef struct {
    unsigned count[STREAMS];
} Clock;

struct Stream {
    Object object;
    LateQueue queue;
    Capture *capture; /* NULL: none */
    int number;       /* this stream's number in the capture */
    Clock clock;
};

typedef struct {
    Object object;
    LateEvent *late;
    unsigned capture; /* the number of the capture that recorded it last; 0: none */
    bool timed, recorded;
    Clock clock;
} Event;

typedef struct {
    Object object;
    Works *works;
} Graph; /* also for EXECUTABLE */

void *object_new(Kind kind, size_t bytes);
void *object_of(Kind kind, const void *handle); /* NULL if it is not such an object */
void object_free(Object *object);

void fake_take_launches(void); /* makes kernels go to these streams from now on; called once */
typedef SimtRun FakeWork;
cudaError_t fake_submit(cudaStream_t stream, FakeWork *work, const void *closure, size_t bytes);

/* ---- cudart_graphs.c ---- */

/* Returns true if this thread captures, and then invalidates the capture: a call that might wait is
 * refused. */
bool fake_forbidden(void);
cudaError_t capture_spoil(Capture *capture, cudaError_t error); /* returns the error */
Capture *capture_of(const Event *event); /* NULL if there is none, or it has ended */
void capture_add(Stream *stream, FakeWork *run, const void *closure, size_t bytes);
/* Does what cudaStreamWaitEvent does where the stream or the event is captured. */
cudaError_t capture_wait(Stream *stream, const Event *event);
