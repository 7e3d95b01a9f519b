/* cuda/gpu/device.c where things go wrong: a missing driver or device, freed memory, calls that a
 * capture forbids. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../cuda/device.h"
#include "../../cuda/gpu/internal.h"
#include "../../cuda/node.h"
#include "../../cuda/stage/stage_cuda.h"
#include "../../ref/base/error.h"
#include "../../ref/blocks/models.h"
#include "../cuda/device_array.h"
#include "../ref/tiny.h"
#include "../test.h"
#include "fake.h"

static bool tells(const char *text) { return strstr(error_message(), text) != NULL; }

/* CHECKs that the next wait fails with these words, and that the one after it does not. */
static void check_told(Stream stream, const char *text) {
    CHECK(device_wait(stream) && tells(text), "\"%s\" has no \"%s\"", error_message(), text);
    CHECK(!device_wait(stream), "reported twice: %s", error_message());
    CHECK(cudaGetLastError() == cudaSuccess, "the next kernel would be blamed");
}

/* ---- opening ---- */

typedef struct {
    FakeGpu gpu;
    int device; /* the device that was opened; -1: none */
    char error[400];
} Opening;

/* Opens the device in a new thread, which has opened nothing before. */
static void *open_here(void *argument) {
    Opening *o = argument;
    o->device = device_open() ? -1 : 0;
    if (o->device == 0) (void)cudaGetDevice(&o->device);
    snprintf(o->error, sizeof o->error, "%s", o->device < 0 ? error_message() : "");
    return NULL;
}

static void open_on(Opening *o) {
    FakeGpu usual = fake_gpu;
    pthread_t thread;
    fake_gpu = o->gpu;
    if (pthread_create(&thread, NULL, open_here, o)) abort();
    pthread_join(thread, NULL);
    fake_gpu = usual;
}

static void check_missing(FakeGpu gpu, const char *text) {
    Opening o = {.gpu = gpu};
    open_on(&o);
    CHECK(o.device < 0 && strstr(o.error, text), "\"%s\" has no \"%s\"", o.error, text);
}

static void says_what_is_missing(void) {
    check_missing((FakeGpu){0, 1, 90, 1 << 20, false}, "no NVIDIA driver is installed");
    check_missing((FakeGpu){11080, 1, 90, 1 << 20, false}, "it knows CUDA 11.8, CUDA 13 is needed");
    check_missing((FakeGpu){13000, 0, 90, 1 << 20, false}, "no CUDA device was found");
    check_missing((FakeGpu){13000, 1, 75, 1 << 20, false}, "compute capability 7.5, at least 8.0");
}

static void processes_of_a_node_share_out(void) {
    for (int rank = 0; rank < 3; rank++) {
        char number[8];
        Opening o = {.gpu = fake_gpu};
        snprintf(number, sizeof number, "%d", rank);
        setenv("LOCAL_RANK", number, 1);
        open_on(&o);
        CHECK(o.device == rank % 2, "rank %d opened device %d of 2", rank, o.device);
    }
    /* Open MPI's variable counts before Slurm's, which may be the same for all processes of a batch
     * job. */
    Opening o = {.gpu = fake_gpu};
    unsetenv("LOCAL_RANK");
    setenv("OMPI_COMM_WORLD_LOCAL_RANK", "1", 1);
    setenv("SLURM_LOCALID", "0", 1);
    open_on(&o);
    CHECK(o.device == 1, "opened device %d", o.device);
    unsetenv("OMPI_COMM_WORLD_LOCAL_RANK");
    unsetenv("SLURM_LOCALID");
    setenv("LOCAL_RANK", "1", 1);
}

static void gpus_are_told_apart(void) {
    DeviceInfo info;
    int device = -1;
    CHECK(!device_info(&info) && !cudaGetDevice(&device), "%s", error_message());
    CHECK(info.uuid[0] == device + 1, "GPU %d is not device %d", info.uuid[0], device);
}

/* ---- memory ---- */

static void memory_runs_out(void) {
    DeviceInfo info;
    FakeGpu usual = fake_gpu;
    CHECK(!device_info(&info), "%s", error_message());
    fake_gpu.memory_bytes = info.memory_bytes - info.free_bytes + 100000;
    info.free_bytes = 100000;
    void *nearly_all = device_alloc(info.free_bytes - 1000);
    CHECK(nearly_all && !device_alloc(1001) && tells("no 1001 bytes of device memory (1000 of"),
          "%s", error_message());
    device_free(nearly_all);
    void *again = device_alloc(1001);
    CHECK(again, "%s", error_message());
    device_free(again);
    Model *m = model_create("resnet:depth=20,width=16");
    if (!m) abort();
    CHECK(!stage_cuda_create(m, (StageSettings){.batch = 1}) && tells("use a smaller batch") &&
              tells("(100000 of ") && tells(": out of memory"),
          "%s", error_message());
    model_free(m);
    fake_gpu = usual;
}

static void wrong_memory_is_told(void) {
    Stream stream = device_test_stream();
    char *device = device_alloc(100), *host = pinned_alloc(100), byte = 0;
    copy_to_device(stream, device + 50, host, 51);
    check_told(stream, "copy to device: invalid argument");
    copy_to_device(stream, &byte, device, 1);
    check_told(stream, "copy to device: invalid argument");
    copy_to_host(stream, device, host, 1);
    check_told(stream, "copy to host: invalid argument");
    copy_on_device(stream, device, host, 1);
    check_told(stream, "copy on device: invalid argument");
    fill_zero(stream, host, 1);
    check_told(stream, "fill with zeros: invalid argument");
    device_free(device + 1);
    check_told(stream, "cudaFree: invalid argument");
    pinned_free(device);
    check_told(stream, "cudaFreeHost: invalid argument");
    device_free(device);
    device_free(device);
    check_told(stream, "cudaFree: invalid argument");
    fill_zero(stream, device, 100);
    check_told(stream, "fill with zeros: invalid argument");
    pinned_free(host);
}

/* ---- streams and events ---- */

static void what_was_freed_is_told(void) {
    Stream stream = device_test_stream(), gone = stream_create();
    Event event = event_create(true), lost = event_create(false);
    stream_free(gone);
    event_free(lost);
    event_record(event, gone);
    check_told(stream, "cudaEventRecord: invalid resource handle");
    stream_wait_event(stream, lost);
    check_told(stream, "cudaStreamWaitEvent: invalid resource handle");
    CHECK(event_over(lost) == -1 && event_wait(lost) == -1, "an event that is gone is over");
    CHECK(device_wait(gone) && tells("invalid resource handle"), "%s", error_message());
    (void)event_ms(event, event);
    check_told(stream, "cudaEventElapsedTime: invalid resource handle"); /* never recorded */
    event_free(event);
}

static void events_are_over_in_the_end(void) {
    Stream stream = device_test_stream();
    Event event = event_create(false);
    char *memory = device_alloc(8);
    int over = 0, asked = 0;
    fill_zero(stream, memory, 8);
    event_record(event, stream);
    while ((over = event_over(event)) == 0) {
        CHECK(cudaGetLastError() == cudaSuccess, "the next kernel would be blamed");
        asked++;
    }
    CHECK(over == 1 && asked > 0, "%d, asked %d times: %s", over, asked, error_message());
    device_test_wait();
    event_free(event);
    device_free(memory);
}

static void events_are_of_one_device(void) {
    Stream stream = device_test_stream();
    (void)cudaSetDevice(0);
    Event event = event_create(false);
    (void)cudaSetDevice(1);
    event_record(event, stream);
    check_told(stream, "cudaEventRecord: invalid resource handle");
    event_free(event);
}

static void kernels_are_of_the_stream_s_device(void) {
    Stream stream = device_test_stream();
    Run run = {stream, PRECISION_FP32, 0, NULL};
    float *x = device_alloc(sizeof *x);
    (void)cudaSetDevice(0);
    const Node relu = {.kind = OP_RELU, .in_shape = {1, 1, 1}};
    cuda_node_forward(&run, &relu, &(DeviceIO){.n = 1, .x = x, .y = x});
    (void)cudaSetDevice(1);
    check_told(stream, "a kernel of device 0 on a stream of device 1");
    device_free(x);
}

/* ---- captures ---- */

typedef struct {
    Stream stream, other;
    Event event, inside;
    char *memory;
} Captured;

/* Each of these calls is refused, and the capture gives no graph. */
static void allocates(const Captured *r) {
    (void)r;
    CHECK(!device_alloc(1) && tells("not permitted when stream is capturing"), "%s",
          error_message());
}
static void allocates_pinned(const Captured *r) {
    (void)r;
    CHECK(!pinned_alloc(1) && tells("not permitted when stream is capturing"), "%s",
          error_message());
}
static void frees(const Captured *r) { device_free(r->memory); }
static void waits(const Captured *r) { CHECK(device_wait(r->stream), "it waited"); }
static void waits_for_another(const Captured *r) { CHECK(device_wait(r->other), "it waited"); }
static void asks_event(const Captured *r) { CHECK(event_over(r->event) == -1, "it answered"); }
static void waits_for_event(const Captured *r) { CHECK(event_wait(r->event), "it waited"); }
static void waits_for_recorded_event(const Captured *r) {
    event_record(r->inside, r->stream);
    CHECK(event_wait(r->inside) && tells("last recorded in a capture"), "%s", error_message());
}
static void waits_for_what_is_outside(const Captured *r) { stream_wait_event(r->stream, r->event); }
static void forgets_to_come_back(const Captured *r) {
    event_record(r->inside, r->stream);
    stream_wait_event(r->other, r->inside);
    fill_zero(r->other, r->memory, 1);
}

static void captures_forbid(void) {
    static const struct {
        void (*does)(const Captured *r);
        const char *reported; /* words of the error with which the capture ends */
    } rows[] = {{allocates, "error during capture"},
                {allocates_pinned, "error during capture"},
                {frees, "not permitted"},
                {waits, "error during capture"},
                {waits_for_another, "error during capture"},
                {asks_event, "error during capture"},
                {waits_for_event, "error during capture"},
                {waits_for_recorded_event, "error during capture"},
                {waits_for_what_is_outside, "uncaptured work"},
                {forgets_to_come_back, "unjoined work"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Captured r = {device_test_stream(), stream_create(), event_create(false),
                      event_create(false), device_alloc(8)};
        event_record(r.event, r.other);
        CHECK(!graph_begin(r.stream), "%s", error_message());
        fill_zero(r.stream, r.memory, 8);
        rows[i].does(&r);
        Graph graph = graph_end(r.stream);
        CHECK(!graph && tells(rows[i].reported), "%zu: \"%s\" has no \"%s\"", i, error_message(),
              rows[i].reported);
        CHECK(!device_wait(r.stream) && !device_wait(r.other), "%s", error_message());
        event_free(r.event);
        event_free(r.inside);
        stream_free(r.other);
        device_free(r.memory);
    }
}

static void captures_have_one_begin_and_end(void) {
    Stream stream = device_test_stream();
    CHECK(!graph_end(stream) && tells("graph_end: invalid argument"), "%s", error_message());
    CHECK(!graph_begin(stream) && graph_begin(stream), "begun twice");
    CHECK(!graph_end(stream), "a graph of two beginnings");
    Graph graph = NULL;
    CHECK(!graph_begin(stream) && (graph = graph_end(stream)), "%s", error_message());
    graph_free(graph);
    CHECK(graph_launch(graph, stream) && tells("cudaGraphLaunch: invalid argument"), "%s",
          error_message());
}

static void *allocate_here(void *memory) {
    if (!device_open()) *(void **)memory = device_alloc(8);
    return NULL;
}

/* The calls of other threads do not concern a capture. */
static void captures_are_of_a_thread(void) {
    Stream stream = device_test_stream();
    pthread_t thread;
    void *memory = NULL;
    CHECK(!graph_begin(stream), "%s", error_message());
    if (pthread_create(&thread, NULL, allocate_here, &memory)) abort();
    pthread_join(thread, NULL);
    Graph graph = graph_end(stream);
    CHECK(memory && graph, "%s", error_message());
    graph_free(graph);
    device_free(memory);
}

/* ---- what the device does later ---- */

/* A fault is reported by the next call, whatever that is: its message says so. */
static void a_fault_may_be_of_earlier_work(void) {
    Stream stream = device_test_stream();
    device_note_launch(cudaErrorIllegalAddress, "innocent", "file.cu", 7);
    CHECK(device_wait(stream) && tells("kernel innocent, file.cu:7") && tells("or earlier work"),
          "%s", error_message());
    device_note_launch(cudaErrorInvalidConfiguration, "guilty", "file.cu", 7);
    CHECK(device_wait(stream) && !tells("earlier"), "%s", error_message());
    fake_lose(true);
    CHECK(!device_alloc(1) && tells("or earlier work"), "%s", error_message());
    CHECK(!pinned_alloc(1) && tells("or earlier work"), "%s", error_message());
    fake_lose(false);
}

static void freed_before_its_graph_is_told(void) {
    Stream stream = device_test_stream();
    char *memory = device_alloc(8);
    CHECK(!graph_begin(stream), "%s", error_message());
    fill_zero(stream, memory, 8);
    Graph graph = graph_end(stream);
    device_free(memory);
    CHECK(graph && !graph_launch(graph, stream), "%s", error_message());
    check_told(stream, "freed before they were copied");
    graph_free(graph);
}

/* A training whose steps cannot be captured has the same bits, and says so once. */
static void goes_on_without_graphs(void) {
    const Recipe recipe = {.spec = "gpt:layers=2,width=8,heads=1,context=4,vocabulary=8",
                           .create = stage_cuda_create,
                           .steps = 4,
                           .rule = {.kind = SWITCH_STEPS, .every = 4},
                           .optimizer = OPTIMIZER_ADAM,
                           .lr = 0.01};
    char text[600];
    Tiny with, without;
    tiny_trained(&with, &recipe);
    const int kept = dup(STDERR_FILENO);
    FILE *file = tmpfile();
    if (!file || kept < 0 || dup2(fileno(file), STDERR_FILENO) < 0) abort();
    fake_gpu.without_graphs = true;
    tiny_trained(&without, &recipe);
    fake_gpu.without_graphs = false;
    if (dup2(kept, STDERR_FILENO) < 0) abort();
    close(kept);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    const char *said = strstr(text, "steps run without CUDA graphs, as none can be made: ");
    CHECK(said && !strstr(said + 1, "steps run"), "\"%s\"", text);
    tiny_check_same(&with, &without, "without graphs");
    tiny_close(&with);
    tiny_close(&without);
}

void test_fake_device(void) {
    RUN(says_what_is_missing);
    RUN(processes_of_a_node_share_out);
    RUN(gpus_are_told_apart);
    RUN(memory_runs_out);
    RUN(wrong_memory_is_told);
    RUN(what_was_freed_is_told);
    RUN(events_are_over_in_the_end);
    RUN(events_are_of_one_device);
    RUN(kernels_are_of_the_stream_s_device);
    RUN(captures_forbid);
    RUN(captures_have_one_begin_and_end);
    RUN(captures_are_of_a_thread);
    RUN(a_fault_may_be_of_earlier_work);
    RUN(freed_before_its_graph_is_told);
    RUN(goes_on_without_graphs);
}
