/* What the files of the runtime's stand-in know of each other: devices and memory (cudart.c),
 * streams and events (cudart_streams.c), captures and graphs (cudart_graphs.c). */
#ifndef TESTS_FAKE_CUDART_H
#define TESTS_FAKE_CUDART_H

#include <pthread.h>

#include "../../cuda/simt/engine.h"
#include "../../cuda/simt/late.h"
#include "fake.h"

/* ---- cudart.c ---- */

cudaError_t fake_told(cudaError_t error); /* what cudaGetLastError will say, too */
int fake_device(void);                    /* of this thread */
cudaError_t fake_outcome(void);           /* of the work that is over */

/* ---- cudart_streams.c ---- */

enum { STREAMS = 8 }; /* that one capture may have */

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
    unsigned number; /* so that events of an earlier one are known */
    enum cudaStreamCaptureMode mode;
    pthread_t thread;
    Stream *streams[STREAMS]; /* the first is where it began */
    int count;
    bool spoilt;
    Works *works;
} Capture;

/* What a captured stream has come after: how much of each other one's work. */
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
    unsigned capture; /* the number of that it was last recorded in; 0: in none */
    bool recorded;
    Clock clock;
} Event;

typedef struct {
    Object object;
    Works *works;
} Graph; /* one that can be executed, too */

void *object_new(Kind kind, size_t bytes);
void *object_of(Kind kind, const void *handle); /* NULL: there is none */
void object_free(Object *object);

void fake_take_launches(void); /* what kernels put on streams; once */
typedef SimtRun FakeWork;
cudaError_t fake_submit(cudaStream_t stream, FakeWork *work, const void *closure, size_t bytes);

/* ---- cudart_graphs.c ---- */

/* This thread captures: a call that might wait is refused, and spoils the capture. */
bool fake_forbidden(void);
cudaError_t capture_spoil(Capture *capture, cudaError_t error); /* gives the error */
Capture *capture_of(const Event *event);                        /* NULL: none, or it is over */
void capture_add(Stream *stream, FakeWork *run, const void *closure, size_t bytes);
/* One of the two is being captured. */
cudaError_t capture_wait(Stream *stream, const Event *event);

#endif
