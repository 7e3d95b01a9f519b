/* The devices, memory and copies of the stand-in CUDA runtime. */
#include "cudart.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

FakeGpu fake_gpu = {
    .driver = 13000, .devices = 2, .capability = 90, .memory_bytes = (size_t)8 << 30};

/* ---- errors ---- */

static _Thread_local cudaError_t last;
static _Thread_local char details[SIMT_ERROR_BYTES + 64];

cudaError_t fake_error(cudaError_t error) {
    if (error != cudaSuccess) last = error;
    return error;
}

cudaError_t cudaGetLastError(void) {
    cudaError_t error = last;
    last = cudaSuccess;
    return error;
}

cudaError_t cudaPeekAtLastError(void) { return last; }

static const char FAULT[] = "an illegal memory access was encountered: ";

void fake_fault(const char *format, ...) {
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    simt_note_error("%s%s", FAULT, text);
}

static bool lost;

void fake_lose(bool now) {
    snprintf(details, sizeof details, "%sthe device is lost", FAULT);
    lost = now;
}

cudaError_t fake_outcome(void) {
    char text[SIMT_ERROR_BYTES];
    if (lost) return cudaErrorIllegalAddress;
    if (!simt_take_error(text)) return cudaSuccess;
    bool fault = strncmp(text, FAULT, sizeof FAULT - 1) == 0;
    snprintf(details, sizeof details, "%s%s", fault ? "" : "unspecified launch failure: ", text);
    return fault ? cudaErrorIllegalAddress : cudaErrorLaunchFailure;
}

/* For a failed launch the text has details, which the real runtime's lacks. */
const char *cudaGetErrorString(cudaError_t error) {
    static const struct {
        cudaError_t error;
        const char *text;
    } texts[] = {
        {cudaSuccess, "no error"},
        {cudaErrorInvalidValue, "invalid argument"},
        {cudaErrorMemoryAllocation, "out of memory"},
        {cudaErrorInvalidDevice, "invalid device ordinal"},
        {cudaErrorNoDevice, "no CUDA-capable device is detected"},
        {cudaErrorInsufficientDriver, "CUDA driver version is insufficient"},
        {cudaErrorInvalidResourceHandle, "invalid resource handle"},
        {cudaErrorNotReady, "device not ready"},
        {cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"},
        {cudaErrorStreamCaptureInvalidated, "operation failed due to an error during capture"},
        {cudaErrorStreamCaptureMerge, "operation would merge two captures"},
        {cudaErrorStreamCaptureUnmatched, "capture was not begun on this stream"},
        {cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work"},
        {cudaErrorStreamCaptureIsolation, "dependency on uncaptured work in another stream"},
        {cudaErrorCapturedEvent, "operation not permitted on an event last recorded in a capture"},
        {cudaErrorStreamCaptureWrongThread, "attempt to end a capture from another thread"},
    };
    if (error == cudaErrorLaunchFailure || error == cudaErrorIllegalAddress) return details;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].error == error) return texts[i].text;
    return "unknown error";
}

/* ---- devices ---- */

static _Thread_local int current;

int fake_device(void) { return current; }

static cudaError_t there_is_one(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fake_take_launches);
    if (fake_gpu.driver < CUDART_VERSION / 1000 * 1000) return cudaErrorInsufficientDriver;
    return fake_gpu.devices ? cudaSuccess : cudaErrorNoDevice;
}

cudaError_t cudaGetDeviceCount(int *count) {
    *count = fake_gpu.devices;
    return fake_error(there_is_one());
}

cudaError_t cudaDriverGetVersion(int *version) {
    *version = fake_gpu.driver;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version) {
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
    if (device < 0 || device >= fake_gpu.devices) return fake_error(cudaErrorInvalidDevice);
    current = device;
    return fake_error(there_is_one());
}

cudaError_t cudaGetDevice(int *device) {
    *device = current;
    return fake_error(there_is_one());
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device) {
    if (device < 0 || device >= fake_gpu.devices) return fake_error(cudaErrorInvalidDevice);
    bool major = attribute == cudaDevAttrComputeCapabilityMajor;
    if (!major && attribute != cudaDevAttrComputeCapabilityMinor)
        return fake_error(cudaErrorInvalidValue);
    *value = major ? fake_gpu.capability / 10 : fake_gpu.capability % 10;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device) {
    if (device < 0 || device >= fake_gpu.devices) return fake_error(cudaErrorInvalidDevice);
    memset(properties, 0, sizeof *properties);
    snprintf(properties->name, sizeof properties->name, "stand-in %d", device);
    properties->uuid.bytes[0] = (char)(device + 1);
    properties->major = fake_gpu.capability / 10;
    properties->minor = fake_gpu.capability % 10;
    properties->multiProcessorCount = 132;
    properties->l2CacheSize = 50 << 20;
    return cudaSuccess;
}

/* ---- memory ---- */

typedef struct Piece {
    struct Piece *next;
    bool pinned;
    int device;
    char *start;
    size_t bytes;
} Piece;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Piece *pieces;

/* Returns the allocation that contains all of these bytes. */
static Piece *find(const void *memory, size_t bytes) {
    uintptr_t at = (uintptr_t)memory;
    for (Piece *p = pieces; p; p = p->next) {
        uintptr_t start = (uintptr_t)p->start;
        if (at >= start && at - start < p->bytes && bytes <= p->bytes - (at - start)) return p;
    }
    return NULL;
}

static size_t used_bytes(int device) {
    size_t sum = 0;
    for (const Piece *p = pieces; p; p = p->next)
        if (!p->pinned && p->device == device) sum += p->bytes;
    return sum;
}

/* Overwrites the beginning of new or freed memory with NaN. SIMT overwrites all of it; with a
 * workspace of 32 MiB that would take longer than the test. */
static void poison(void *memory, size_t bytes) {
    enum { BEGINNING = 1 << 16 };
    simt_poison(memory, bytes < BEGINNING ? bytes : BEGINNING);
}

static cudaError_t allocate(void **memory, size_t bytes, bool pinned) {
    *memory = NULL;
    cudaError_t error = there_is_one();
    if (error != cudaSuccess) return error;
    if (fake_forbidden()) return cudaErrorStreamCaptureUnsupported;
    if (lost) return cudaErrorIllegalAddress;
    if (bytes == 0) return cudaSuccess;
    pthread_mutex_lock(&lock);
    Piece *piece = malloc(sizeof *piece);
    bool fits = pinned || bytes <= fake_gpu.memory_bytes - used_bytes(current);
    if (!piece || !fits || posix_memalign(memory, 256, bytes)) {
        free(piece);
        error = cudaErrorMemoryAllocation;
    } else {
        poison(*memory, bytes);
        *piece = (Piece){pieces, pinned, current, *memory, bytes};
        pieces = piece;
    }
    pthread_mutex_unlock(&lock);
    return error;
}

/* Frees memory, after waiting for all work, which may still use it. */
static cudaError_t release(void *memory, bool pinned) {
    if (fake_forbidden()) return cudaErrorStreamCaptureUnsupported;
    if (!memory) return pinned ? cudaErrorInvalidValue : cudaSuccess;
    late_finish_all();
    pthread_mutex_lock(&lock);
    Piece **at = &pieces;
    while (*at && ((*at)->start != memory || (*at)->pinned != pinned)) at = &(*at)->next;
    Piece *piece = *at;
    if (piece) *at = piece->next;
    pthread_mutex_unlock(&lock);
    if (!piece) return cudaErrorInvalidValue;
    poison(memory, piece->bytes);
    free(memory);
    free(piece);
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **memory, size_t bytes) {
    return fake_error(allocate(memory, bytes, false));
}
cudaError_t cudaFree(void *memory) { return fake_error(release(memory, false)); }

cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned flags) {
    if (flags != cudaHostAllocDefault) return fake_error(cudaErrorInvalidValue);
    return fake_error(allocate(memory, bytes, true));
}
cudaError_t cudaFreeHost(void *memory) { return fake_error(release(memory, true)); }

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes) {
    pthread_mutex_lock(&lock);
    *total_bytes = fake_gpu.memory_bytes;
    *free_bytes = fake_gpu.memory_bytes - used_bytes(current);
    pthread_mutex_unlock(&lock);
    return fake_error(there_is_one());
}

/* BEYOND: the range begins in memory of the runtime and ends outside of it. */
typedef enum { PAGEABLE, PINNED, DEVICE, BEYOND } Place;

static Place kind_of(const void *memory, size_t bytes) {
    pthread_mutex_lock(&lock);
    const Piece *first = find(memory, 0), *all = find(memory, bytes);
    Place kind = !first ? PAGEABLE : !all ? BEYOND : all->pinned ? PINNED : DEVICE;
    pthread_mutex_unlock(&lock);
    return kind;
}

bool fake_holds(int device, const void *memory, size_t bytes) {
    pthread_mutex_lock(&lock);
    const Piece *piece = find(memory, bytes);
    bool holds = piece && !piece->pinned && piece->device == device;
    pthread_mutex_unlock(&lock);
    return holds;
}

/* ---- copies ---- */

typedef struct {
    void *to;
    const void *from; /* NULL: zeros */
    size_t bytes;
    Place to_kind, from_kind;
    bool inside; /* the data itself follows the struct */
} Copy;

/* Returns true if memory of the runtime still is what it was when the copy was submitted. */
static bool still(const void *memory, size_t bytes, Place kind) {
    if (kind == PAGEABLE || kind_of(memory, bytes) == kind) return true;
    fake_fault("%zu bytes at %p were freed before they were copied", bytes, memory);
    return false;
}

static void do_copy(const void *closure) {
    const Copy *c = closure;
    if (!still(c->to, c->bytes, c->to_kind) ||
        (c->from && !c->inside && !still(c->from, c->bytes, c->from_kind)))
        return;
    if (c->inside)
        memcpy(c->to, c + 1, c->bytes);
    else if (c->from)
        memcpy(c->to, c->from, c->bytes);
    else
        memset(c->to, 0, c->bytes);
}

/* Submits a copy that holds its data: pageable memory has been read when the call returns. */
static cudaError_t submit_inside(cudaStream_t stream, Copy copy) {
    Copy *whole = malloc(sizeof copy + copy.bytes);
    if (!whole) return cudaErrorMemoryAllocation;
    memcpy(whole + 1, copy.from, copy.bytes);
    copy.inside = true;
    *whole = copy;
    cudaError_t error = fake_submit(stream, do_copy, whole, sizeof copy + copy.bytes);
    free(whole);
    return error;
}

static cudaError_t submit(cudaStream_t stream, Copy copy) {
    enum cudaStreamCaptureStatus capture;
    cudaError_t error = cudaStreamIsCapturing(stream, &capture);
    if (error != cudaSuccess) return error;
    bool now = capture == cudaStreamCaptureStatusNone;
    if (now && copy.from && copy.from_kind == PAGEABLE) return submit_inside(stream, copy);
    if (now && copy.to_kind == PINNED) simt_poison(copy.to, copy.bytes);
    error = fake_submit(stream, do_copy, &copy, sizeof copy);
    if (error == cudaSuccess && now && copy.to_kind == PAGEABLE)
        error = cudaStreamSynchronize(stream);
    return error;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind direction,
                            cudaStream_t stream) {
    Copy copy = {to, from, bytes, kind_of(to, bytes), kind_of(from, bytes), false};
    bool up = direction == cudaMemcpyHostToDevice, down = direction == cudaMemcpyDeviceToHost;
    if (!up && !down && direction != cudaMemcpyDeviceToDevice)
        return fake_error(cudaErrorInvalidValue);
    if (!to || !from || copy.to_kind == BEYOND || copy.from_kind == BEYOND ||
        (copy.to_kind == DEVICE) == down || (copy.from_kind == DEVICE) == up)
        return fake_error(cudaErrorInvalidValue);
    return fake_error(submit(stream, copy));
}

cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream) {
    Copy copy = {.to = memory, .bytes = bytes, .to_kind = DEVICE};
    if (value != 0 || kind_of(memory, bytes) != DEVICE) return fake_error(cudaErrorInvalidValue);
    return fake_error(submit(stream, copy));
}
