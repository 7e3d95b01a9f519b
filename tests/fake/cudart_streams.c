/* Streams and events of the stand-in CUDA runtime. Handles are looked up: one that was destroyed,
 * or never existed, is an invalid resource handle. */
#include <math.h>
#include <stdlib.h>

#include "cudart.h"

enum { SEED = 20261122 };

/* ---- objects ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Object *objects;

void *object_new(Kind kind, size_t bytes) {
    Object *object = calloc(1, bytes);
    if (!object) abort();
    pthread_mutex_lock(&lock);
    *object = (Object){objects, kind, fake_device()};
    objects = object;
    pthread_mutex_unlock(&lock);
    return object;
}

void *object_of(Kind kind, const void *handle) {
    pthread_mutex_lock(&lock);
    Object *object = objects;
    while (object && (object != handle || object->kind != kind)) object = object->next;
    pthread_mutex_unlock(&lock);
    return object;
}

void object_free(Object *object) {
    pthread_mutex_lock(&lock);
    Object **at = &objects;
    while (*at != object) at = &(*at)->next;
    *at = object->next;
    pthread_mutex_unlock(&lock);
    free(object);
}

/* ---- streams ---- */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *handle, unsigned flags) {
    if (flags != cudaStreamNonBlocking) return fake_error(cudaErrorInvalidValue);
    Stream *stream = object_new(STREAM, sizeof *stream);
    late_queue_open(&stream->queue);
    *handle = (cudaStream_t)(void *)stream;
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
    Stream *stream = object_of(STREAM, handle);
    if (!stream) return fake_error(cudaErrorInvalidResourceHandle);
    if (stream->capture)
        return fake_error(capture_spoil(stream->capture, cudaErrorStreamCaptureUnsupported));
    late_queue_close(&stream->queue);
    object_free(&stream->object);
    return cudaSuccess;
}

cudaError_t fake_submit(cudaStream_t handle, FakeWork *run, const void *closure, size_t bytes) {
    Stream *stream = object_of(STREAM, handle);
    if (!stream) return cudaErrorInvalidResourceHandle;
    if (stream->capture && stream->capture->spoilt) return cudaErrorStreamCaptureInvalidated;
    if (stream->capture)
        capture_add(stream, run, closure, bytes);
    else
        late_work(&stream->queue, run, closure, bytes);
    return cudaSuccess;
}

/* Puts a kernel on a stream, which must belong to the thread's device. */
static bool keep(void *handle, SimtRun *run, const void *closure, size_t bytes) {
    const Stream *stream = object_of(STREAM, handle);
    if (!stream)
        simt_note_error("a kernel on a stream that is not there");
    else if (stream->object.device != fake_device())
        simt_note_error("a kernel of device %d on a stream of device %d", fake_device(),
                        stream->object.device);
    else
        (void)fake_submit(handle, run, closure, bytes);
    return true;
}

/* Makes this process the second one of its node, with the second device. A thread that has not
 * opened the device is on the first, where there is no memory. */
void fake_take_launches(void) {
    setenv("LOCAL_RANK", "1", 0);
    simt_set_recorder(keep);
    simt_set_late(SEED);
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
    Stream *stream = object_of(STREAM, handle);
    if (!stream) return fake_error(cudaErrorInvalidResourceHandle);
    if (stream->capture)
        return fake_error(capture_spoil(stream->capture, cudaErrorStreamCaptureUnsupported));
    if (fake_forbidden()) return fake_error(cudaErrorStreamCaptureUnsupported);
    late_finish(&stream->queue);
    return fake_error(fake_outcome());
}

/* A function that the host runs in the order of the stream, also from a graph. It must not call the
 * runtime. */
typedef struct {
    cudaHostFn_t function;
    void *data;
} HostCall;
static void do_call(const void *closure) {
    const HostCall *call = closure;
    call->function(call->data);
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data) {
    HostCall call = {function, data};
    return fake_error(fake_submit(stream, do_call, &call, sizeof call));
}

/* ---- events ---- */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *handle, unsigned flags) {
    if (flags & ~(unsigned)cudaEventDisableTiming) return fake_error(cudaErrorInvalidValue);
    Event *event = object_new(EVENT, sizeof *event);
    event->timed = !flags;
    event->late = late_event_new();
    *handle = (cudaEvent_t)(void *)event;
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
    Event *event = object_of(EVENT, handle);
    if (!event) return fake_error(cudaErrorInvalidResourceHandle);
    late_event_release(event->late);
    object_free(&event->object);
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t on) {
    Event *event = object_of(EVENT, handle);
    Stream *stream = object_of(STREAM, on);
    if (!event || !stream || event->object.device != stream->object.device)
        return fake_error(cudaErrorInvalidResourceHandle);
    event->recorded = true;
    event->capture = stream->capture ? stream->capture->number : 0;
    event->clock = stream->clock;
    if (!stream->capture) late_record(&stream->queue, event->late);
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t for_event, unsigned flags) {
    Stream *stream = object_of(STREAM, handle);
    const Event *event = object_of(EVENT, for_event);
    if (!stream || !event) return fake_error(cudaErrorInvalidResourceHandle);
    if (flags) return fake_error(cudaErrorInvalidValue);
    if (stream->capture || event->capture) return fake_error(capture_wait(stream, event));
    if (event->recorded) late_wait(&stream->queue, event->late);
    return cudaSuccess;
}

/* Returns whether the host may query or wait for an event. */
static cudaError_t asked(const Event *event) {
    if (!event) return cudaErrorInvalidResourceHandle;
    Capture *capture = capture_of(event);
    if (capture) capture->spoilt = true;
    if (event->capture) return cudaErrorCapturedEvent;
    return fake_forbidden() ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
    const Event *event = object_of(EVENT, handle);
    cudaError_t error = asked(event);
    if (error != cudaSuccess) return fake_error(error);
    if (event->recorded) late_reach(event->late);
    return fake_error(fake_outcome());
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
    const Event *event = object_of(EVENT, handle);
    cudaError_t error = asked(event);
    if (error != cudaSuccess) return fake_error(error);
    if (event->recorded && !late_reached(event->late)) return fake_error(cudaErrorNotReady);
    return fake_error(fake_outcome());
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to) {
    const Event *a = object_of(EVENT, from), *b = object_of(EVENT, to);
    if (!a || !b || !a->timed || !b->timed || !a->recorded || !b->recorded ||
        a->object.device != b->object.device)
        return fake_error(cudaErrorInvalidResourceHandle);
    *ms = (float)(b->late->time - a->late->time);
    return fake_error(isnan(*ms) ? cudaErrorNotReady : cudaSuccess);
}
