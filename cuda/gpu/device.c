/* cuda/device.h over the CUDA runtime. */
#include "../device.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cublaslt_library.h"
#include "internal.h"

/* ---- errors ---- */

/* The first failure since the last device_wait, of any thread. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    bool set;
    char text[400];
} failure;

void device_note(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    pthread_mutex_lock(&lock);
    if (!failure.set) vsnprintf(failure.text, sizeof failure.text, format, arguments);
    failure.set = true;
    pthread_mutex_unlock(&lock);
    va_end(arguments);
}

/* Moves the failure, if any, to the caller's error line.  Returns -1 then, else 0. */
static int tell_failure(void) {
    pthread_mutex_lock(&lock);
    int result = failure.set ? error_set("%s", failure.text) : 0;
    failure.set = false;
    pthread_mutex_unlock(&lock);
    return result;
}

/* Returns a hint for a device that the build left out, and for errors that earlier asynchronous
 * work left behind, which any later call reports; "" for those of a call itself. */
static const char *hint_of(cudaError_t error) {
    switch (error) {
        case cudaErrorNoKernelImageForDevice:
        case cudaErrorUnsupportedPtxVersion:
            return " (the program was built for other GPUs: make ARCHS=80 is for compute "
                   "capability 8.0, ARCHS=89 for 8.9, ARCHS=90a for 9.0)";
        case cudaErrorIllegalAddress:
        case cudaErrorMisalignedAddress:
        case cudaErrorInvalidAddressSpace:
        case cudaErrorInvalidPc:
        case cudaErrorIllegalInstruction:
        case cudaErrorHardwareStackError:
        case cudaErrorLaunchFailure:
        case cudaErrorLaunchTimeout:
        case cudaErrorAssert:
        case cudaErrorECCUncorrectable:
            return " (by this or earlier work: CUDA_LAUNCH_BLOCKING=1 names it, compute-sanitizer "
                   "its line)";
        default:
            return "";
    }
}

void device_note_launch(cudaError_t error, const char *kernel, const char *file, int line) {
    if (error != cudaSuccess)
        device_note("kernel %s, %s:%d: %s%s", kernel, file, line, cudaGetErrorString(error),
                    hint_of(error));
}

/* Returns true if a call of the runtime succeeded, else notes the error.  Clears errors that can be
 * cleared, so that the next call is not blamed. */
static bool good(cudaError_t error, const char *what) {
    if (error == cudaSuccess) return true;
    (void)cudaGetLastError();
    device_note("%s: %s%s", what, cudaGetErrorString(error), hint_of(error));
    return false;
}

/* Returns 0 if a call succeeded, else -1 with the first failure as the error. */
static int status_of(cudaError_t error, const char *what) {
    return good(error, what) ? 0 : tell_failure();
}

bool device_captures(Stream stream) {
    enum cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    return cudaStreamIsCapturing(stream, &capture) == cudaSuccess &&
           capture != cudaStreamCaptureStatusNone;
}

bool device_is_sound(Stream stream) {
    return device_captures(stream) || good(cudaStreamSynchronize(stream), "a kernel or copy");
}

/* ---- the device ---- */

static cudaError_t ask_capability(int *major, int *minor, int device) {
    const cudaError_t error =
        cudaDeviceGetAttribute(major, cudaDevAttrComputeCapabilityMajor, device);
    return error ? error : cudaDeviceGetAttribute(minor, cudaDevAttrComputeCapabilityMinor, device);
}

int device_capability(void) {
    int device = 0, major = 0, minor = 0;
    return cudaGetDevice(&device) || ask_capability(&major, &minor, device) ? 0 : major;
}

static int check_capability(int device) {
    int major = 0, minor = 0;
    const cudaError_t error = ask_capability(&major, &minor, device);
    if (error != cudaSuccess)
        return error_set("CUDA device %d: %s", device, cudaGetErrorString(error));
    if (major >= 8) return 0;
    return error_set(
        "CUDA device %d has compute capability %d.%d, at least 8.0 is needed (A100, RTX 30 or "
        "later); CUDA_VISIBLE_DEVICES chooses another device",
        device, major, minor);
}

/* Returns the device of this process.  The processes of one node take one each, by the local rank
 * that their launcher sets.  Slurm's comes last: inside a batch job mpirun's processes all inherit
 * that of the job's script. */
static int own_number(int devices) {
    static const char *const names[] = {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
                                        "MPI_LOCALRANKID", "SLURM_LOCALID"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *number = getenv(names[i]);
        if (number && *number) return (int)(strtoul(number, NULL, 10) % (unsigned long)devices);
    }
    return 0;
}

/* The runtime keeps the chosen device for each thread, so each thread must call this. */
int device_open(void) {
    static _Thread_local bool open;
    if (open) return 0;
    int count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error == cudaErrorInsufficientDriver) {
        int driver = 0, runtime = 0;
        (void)cudaDriverGetVersion(&driver);
        (void)cudaRuntimeGetVersion(&runtime);
        if (driver == 0) return error_set("no NVIDIA driver is installed");
        return error_set("the NVIDIA driver is too old: it knows CUDA %d.%d, CUDA %d is needed",
                         driver / 1000, driver % 1000 / 10, runtime / 1000);
    }
    if (error == cudaErrorNoDevice || (error == cudaSuccess && count == 0))
        return error_set("no CUDA device was found (is CUDA_VISIBLE_DEVICES right?)");
    if (error != cudaSuccess) return error_set("CUDA: %s", cudaGetErrorString(error));
    int device = own_number(count);
    if (check_capability(device)) return -1;
    error = cudaSetDevice(device);
    if (error != cudaSuccess)
        return error_set("CUDA device %d: %s", device, cudaGetErrorString(error));
    open = true;
    return 0;
}

/* Built without sm_90a, a device of compute capability 9.0 runs the code of an earlier one. */
bool device_has_wgmma(void) { return BUILT_FOR_SM_90A && device_capability() == 9; }

int device_info(DeviceInfo *info) {
    struct cudaDeviceProp properties;
    size_t free_bytes, total_bytes;
    int device = 0, runtime = 0, driver = 0, cublas = 0;
    if (cublaslt_open() == 0) cublas = (int)cublaslt.cublasLtGetVersion();
    *info = (DeviceInfo){.major = 0};
    if (!good(cudaGetDevice(&device), "cudaGetDevice") ||
        !good(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties") ||
        !good(cudaMemGetInfo(&free_bytes, &total_bytes), "cudaMemGetInfo") ||
        !good(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion") ||
        !good(cudaDriverGetVersion(&driver), "cudaDriverGetVersion"))
        return tell_failure();
    snprintf(info->name, sizeof info->name, "%.95s", properties.name);
    info->major = properties.major;
    info->minor = properties.minor;
    info->multiprocessors = properties.multiProcessorCount;
    info->memory_bytes = total_bytes;
    info->free_bytes = free_bytes;
    memcpy(info->uuid, properties.uuid.bytes, sizeof info->uuid);
    info->cache_bytes = (size_t)properties.l2CacheSize;
    snprintf(info->runtime, sizeof info->runtime, "CUDA %d.%d", runtime / 1000,
             runtime % 1000 / 10);
    snprintf(info->driver, sizeof info->driver, "CUDA %d.%d", driver / 1000, driver % 1000 / 10);
    snprintf(info->libraries, sizeof info->libraries, "cuBLASLt %d.%d.%d", cublas / 10000,
             cublas / 100 % 100, cublas % 100);
    return 0;
}

/* ---- memory ---- */

void *device_alloc(size_t bytes) {
    void *memory = NULL;
    cudaError_t error = cudaMalloc(&memory, bytes ? bytes : 1);
    if (error == cudaSuccess) return memory;
    (void)cudaGetLastError();
    size_t free_bytes = 0, total_bytes = 0;
    (void)cudaMemGetInfo(&free_bytes, &total_bytes);
    return error_null("no %zu bytes of device memory (%zu of %zu are free): %s%s", bytes,
                      free_bytes, total_bytes, cudaGetErrorString(error), hint_of(error));
}

void device_free(void *device_pointer) { good(cudaFree(device_pointer), "cudaFree"); }

void *pinned_alloc(size_t bytes) {
    void *memory = NULL;
    cudaError_t error = cudaHostAlloc(&memory, bytes ? bytes : 1, cudaHostAllocDefault);
    if (error == cudaSuccess) return memory;
    (void)cudaGetLastError();
    return error_null("no %zu bytes of page-locked memory: %s%s", bytes, cudaGetErrorString(error),
                      hint_of(error));
}

/* Unlike cudaFree, cudaFreeHost does not promise to ignore NULL. */
void pinned_free(void *host_pointer) {
    if (host_pointer) good(cudaFreeHost(host_pointer), "cudaFreeHost");
}

/* ---- streams ---- */

/* Non-blocking, so that work which others put on the default stream does not hold up ours; we put
 * nothing there. */
Stream stream_create(void) {
    cudaStream_t stream = NULL;
    (void)status_of(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    return stream;
}

void stream_free(Stream stream) {
    if (stream) good(cudaStreamDestroy(stream), "cudaStreamDestroy");
}

int device_wait(Stream stream) {
    good(cudaStreamSynchronize(stream), "a kernel or copy");
    return tell_failure();
}

void copy_to_device(Stream stream, void *to, const void *from, size_t bytes) {
    if (bytes)
        good(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream), "copy to device");
}

void copy_to_host(Stream stream, void *to, const void *from, size_t bytes) {
    if (bytes)
        good(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream), "copy to host");
}

void copy_on_device(Stream stream, void *to, const void *from, size_t bytes) {
    if (bytes)
        good(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream), "copy on device");
}

void fill_zero(Stream stream, void *device_pointer, size_t bytes) {
    if (bytes) good(cudaMemsetAsync(device_pointer, 0, bytes, stream), "fill with zeros");
}

/* ---- events ---- */

Event event_create(bool timed) {
    cudaEvent_t event = NULL;
    unsigned flags = timed ? cudaEventDefault : cudaEventDisableTiming;
    (void)status_of(cudaEventCreateWithFlags(&event, flags), "cudaEventCreate");
    return event;
}

void event_free(Event event) {
    if (event) good(cudaEventDestroy(event), "cudaEventDestroy");
}

void event_record(Event event, Stream stream) {
    good(cudaEventRecord(event, stream), "cudaEventRecord");
}

void stream_wait_event(Stream stream, Event event) {
    good(cudaStreamWaitEvent(stream, event, 0), "cudaStreamWaitEvent");
}

int event_wait(Event event) {
    return status_of(cudaEventSynchronize(event), "cudaEventSynchronize");
}

int event_over(Event event) {
    cudaError_t error = cudaEventQuery(event);
    if (error == cudaErrorNotReady) {
        (void)cudaGetLastError(); /* or the next launch of this thread would be blamed for it */
        return 0;
    }
    return status_of(error, "cudaEventQuery") ? -1 : 1;
}

double event_ms(Event from, Event to) {
    float ms = 0;
    return good(cudaEventElapsedTime(&ms, from, to), "cudaEventElapsedTime") ? (double)ms : 0;
}

/* ---- graphs ---- */

/* The capture restricts only this thread: other threads may allocate and wait meanwhile. */
int graph_begin(Stream stream) {
    return status_of(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
                     "graph_begin");
}

Graph graph_end(Stream stream) {
    cudaGraph_t captured = NULL;
    cudaGraphExec_t graph = NULL;
    if (good(cudaStreamEndCapture(stream, &captured), "graph_end") &&
        good(cudaGraphInstantiate(&graph, captured, 0), "cudaGraphInstantiate"))
        good(cudaGraphUpload(graph, stream), "cudaGraphUpload");
    if (captured) good(cudaGraphDestroy(captured), "cudaGraphDestroy");
    if (!tell_failure()) return graph;
    if (graph) (void)cudaGraphExecDestroy(graph);
    return NULL;
}

int graph_launch(Graph graph, Stream stream) {
    return status_of(cudaGraphLaunch(graph, stream), "cudaGraphLaunch");
}

void graph_free(Graph graph) {
    if (graph) good(cudaGraphExecDestroy(graph), "cudaGraphExecDestroy");
}
