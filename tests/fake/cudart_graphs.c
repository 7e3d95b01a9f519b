/* Captures and graphs of the stand-in CUDA runtime. */
#include <stdlib.h>
#include <string.h>

#include "cudart.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Capture *captures;

/* ---- works ---- */

static void works_add(Works *works, FakeWork *run, const void *closure, size_t bytes) {
    Work *work = malloc(sizeof *work);
    void *copy = malloc(bytes);
    if (!work || !copy) abort();
    memcpy(copy, closure, bytes);
    *work = (Work){NULL, run, copy};
    *works->end = work;
    works->end = &work->next;
}

static Works *works_new(void) {
    Works *works = calloc(1, sizeof *works);
    if (!works) abort();
    *works = (Works){.holders = 1, .end = &works->first};
    return works;
}

static void works_release(Works *works) {
    if (--works->holders) return;
    while (works->first) {
        Work *work = works->first;
        works->first = work->next;
        free(work->closure);
        free(work);
    }
    free(works);
}

static void play(const void *closure) {
    const Works *works = *(Works *const *)closure;
    for (const Work *work = works->first; work; work = work->next) work->run(work->closure);
}

/* ---- captures ---- */

bool fake_forbidden(void) {
    bool forbidden = false;
    pthread_mutex_lock(&lock);
    for (Capture *c = captures; c; c = c->next)
        if (c->mode == cudaStreamCaptureModeGlobal ||
            (c->mode == cudaStreamCaptureModeThreadLocal &&
             pthread_equal(c->thread, pthread_self())))
            forbidden = c->spoilt = true;
    pthread_mutex_unlock(&lock);
    return forbidden;
}

cudaError_t capture_spoil(Capture *capture, cudaError_t error) {
    capture->spoilt = true;
    return error;
}

static void draw_in(Capture *capture, Stream *stream) {
    if (capture->count == STREAMS) abort();
    stream->capture = capture;
    stream->number = capture->count;
    memset(&stream->clock, 0, sizeof stream->clock);
    capture->streams[capture->count++] = stream;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, enum cudaStreamCaptureMode mode) {
    static unsigned count;
    Stream *stream = object_of(STREAM, handle);
    if (!stream) return fake_error(cudaErrorInvalidResourceHandle);
    if (stream->capture) return fake_error(capture_spoil(stream->capture, cudaErrorInvalidValue));
    Capture *capture = calloc(1, sizeof *capture);
    if (!capture) abort();
    pthread_mutex_lock(&lock);
    *capture = (Capture){.next = captures,
                         .number = ++count,
                         .mode = mode,
                         .thread = pthread_self(),
                         .works = works_new()};
    captures = capture;
    draw_in(capture, stream);
    pthread_mutex_unlock(&lock);
    return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, enum cudaStreamCaptureStatus *status) {
    const Stream *stream = object_of(STREAM, handle);
    if (!stream) return fake_error(cudaErrorInvalidResourceHandle);
    *status = !stream->capture          ? cudaStreamCaptureStatusNone
              : stream->capture->spoilt ? cudaStreamCaptureStatusInvalidated
                                        : cudaStreamCaptureStatusActive;
    return cudaSuccess;
}

static bool all_came_back(const Capture *capture) {
    for (int i = 1; i < capture->count; i++)
        if (capture->streams[0]->clock.count[i] < capture->streams[i]->clock.count[i]) return false;
    return true;
}

static void capture_free(Capture *capture) {
    for (int i = 0; i < capture->count; i++) capture->streams[i]->capture = NULL;
    pthread_mutex_lock(&lock);
    Capture **at = &captures;
    while (*at != capture) at = &(*at)->next;
    *at = capture->next;
    pthread_mutex_unlock(&lock);
    works_release(capture->works);
    free(capture);
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t *graph) {
    Stream *stream = object_of(STREAM, handle);
    *graph = NULL;
    if (!stream) return fake_error(cudaErrorInvalidResourceHandle);
    Capture *capture = stream->capture;
    if (!capture) return fake_error(cudaErrorInvalidValue);
    if (capture->mode != cudaStreamCaptureModeRelaxed &&
        !pthread_equal(capture->thread, pthread_self()))
        return fake_error(cudaErrorStreamCaptureWrongThread);
    if (stream->number != 0)
        return fake_error(capture_spoil(capture, cudaErrorStreamCaptureUnmatched));
    cudaError_t error = capture->spoilt           ? cudaErrorStreamCaptureInvalidated
                        : !all_came_back(capture) ? cudaErrorStreamCaptureUnjoined
                                                  : cudaSuccess;
    if (error == cudaSuccess) {
        Graph *made = object_new(GRAPH, sizeof *made);
        made->works = capture->works;
        made->works->holders++;
        *graph = (cudaGraph_t)(void *)made;
    }
    capture_free(capture);
    return fake_error(error);
}

Capture *capture_of(const Event *event) {
    pthread_mutex_lock(&lock);
    Capture *capture = captures;
    while (capture && capture->number != event->capture) capture = capture->next;
    pthread_mutex_unlock(&lock);
    return event->capture ? capture : NULL;
}

void capture_add(Stream *stream, FakeWork *run, const void *closure, size_t bytes) {
    works_add(stream->capture->works, run, closure, bytes);
    stream->clock.count[stream->number]++;
}

cudaError_t capture_wait(Stream *stream, const Event *event) {
    Capture *capture = capture_of(event);
    if (!capture && !stream->capture)
        return cudaErrorCapturedEvent; /* the event belongs to a capture that has ended */
    if (!capture) return capture_spoil(stream->capture, cudaErrorStreamCaptureIsolation);
    if (stream->capture && stream->capture != capture)
        return capture_spoil(stream->capture, capture_spoil(capture, cudaErrorStreamCaptureMerge));
    if (!stream->capture) draw_in(capture, stream);
    for (int i = 0; i < STREAMS; i++)
        if (stream->clock.count[i] < event->clock.count[i])
            stream->clock.count[i] = event->clock.count[i];
    stream->clock.count[stream->number]++; /* a stream that has waited must be joined again */
    return cudaSuccess;
}

/* ---- graphs ---- */

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *executable, cudaGraph_t handle,
                                 unsigned long long flags) {
    const Graph *graph = object_of(GRAPH, handle);
    if (!graph || flags) return fake_error(cudaErrorInvalidValue);
    if (fake_gpu.without_graphs) return fake_error(cudaErrorNotSupported);
    Graph *made = object_new(EXECUTABLE, sizeof *made);
    made->works = graph->works;
    made->works->holders++;
    *executable = (cudaGraphExec_t)(void *)made;
    return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t handle, cudaStream_t stream) {
    bool there = object_of(EXECUTABLE, handle) && object_of(STREAM, stream);
    return fake_error(there ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t handle, cudaStream_t stream) {
    const Graph *graph = object_of(EXECUTABLE, handle);
    if (!graph) return fake_error(cudaErrorInvalidValue);
    return fake_error(fake_submit(stream, play, &graph->works, sizeof graph->works));
}

/* Launches that are running are finished first. */
static cudaError_t graph_destroy(Kind kind, const void *handle) {
    Graph *graph = object_of(kind, handle);
    if (!graph) return cudaErrorInvalidValue;
    late_finish_all();
    works_release(graph->works);
    object_free(&graph->object);
    return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return fake_error(graph_destroy(GRAPH, graph)); }
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
    return fake_error(graph_destroy(EXECUTABLE, executable));
}
