/* Tests the contracts of cuda/device.h. */
#include <math.h>
#include <string.h>

#include "../../cuda/matmul.h"
#include "../../cuda/node.h"
#include "../../cuda/update.h"
#include "../../ref/base/error.h"
#include "../test.h"
#include "device_array.h"

enum { COUNT = 1000 };

static void tells_what_it_is(void) {
    DeviceInfo info;
    if (!CHECK(!device_open() && !device_open() && !device_info(&info), "%s", error_message()))
        return;
    CHECK(info.name[0] && info.runtime[0], "no name");
    CHECK(info.free_bytes > 0 && info.free_bytes <= info.memory_bytes, "%zu of %zu bytes are free",
          info.free_bytes, info.memory_bytes);
    CHECK(info.multiprocessors > 0, "%d processors", info.multiprocessors);
    test_note("%s, %s, %zu bytes", info.name, info.runtime, info.memory_bytes);
}

static void aligns_memory(void) {
    void *memory[] = {device_alloc(0), device_alloc(1), device_alloc(1000), device_alloc(257)};
    for (int i = 0; i < 4; i++)
        CHECK(memory[i] && (uintptr_t)memory[i] % 256 == 0, "%p", memory[i]);
    for (int i = 0; i < 4; i++) device_free(memory[i]);
    void *pinned = pinned_alloc(100);
    CHECK(pinned, "%s", error_message());
    pinned_free(pinned);
    device_free(NULL);
    pinned_free(NULL);
}

static void refuses_what_is_too_large(void) {
    CHECK(!device_alloc((size_t)1 << 60), "2^60 bytes were there");
    CHECK(strstr(error_message(), "1152921504606846976"), "the error does not say how many: %s",
          error_message());
    device_test_wait(); /* the device still works */
}

static void numbers(int *x, int from) {
    for (int i = 0; i < COUNT; i++) x[i] = from + i;
}

static void check_numbers(const int *x, int first, int end, int from) {
    for (int i = first; i < end; i++) CHECK(x[i] == from + i, "[%d] is %d", i, x[i]);
}

static void copies_in_order(void) {
    int x[COUNT], y[COUNT];
    Stream stream = device_test_stream();
    int *a = device_alloc(sizeof x), *b = device_alloc(sizeof x);
    numbers(x, 5);
    copy_to_device(stream, a, x, sizeof x);
    copy_on_device(stream, b, a, sizeof x);
    fill_zero(stream, a, sizeof x);
    copy_on_device(stream, a + 10, b + 10, 7 * sizeof *a);
    copy_to_device(stream, b, x, 0);
    copy_to_host(stream, y, a, sizeof y);
    device_test_wait();
    check_numbers(y, 10, 17, 5);
    for (int i = 0; i < COUNT; i++) CHECK((i >= 10 && i < 17) || y[i] == 0, "[%d] is %d", i, y[i]);
    copy_to_host(stream, y, b, sizeof y);
    device_test_wait();
    check_numbers(y, 0, COUNT, 5);
    device_free(a);
    device_free(b);
}

static void streams_wait_for_events(void) {
    int x[COUNT], y[COUNT];
    Stream first = device_test_stream(), second = stream_create();
    Event begin = event_create(true), end = event_create(true);
    int *a = device_alloc(sizeof x);
    numbers(x, 9);
    event_record(begin, first);
    copy_to_device(first, a, x, sizeof x);
    event_record(end, first);
    stream_wait_event(second, end);
    copy_to_host(second, y, a, sizeof y);
    CHECK(!device_wait(second) && !event_wait(end), "%s", error_message());
    check_numbers(y, 0, COUNT, 9);
    double ms = event_ms(begin, end);
    CHECK(ms >= 0 && isfinite(ms), "%g ms", ms);
    event_free(begin);
    event_free(end);
    device_free(a);
    CHECK(!device_wait(second), "%s", error_message());
    stream_free(second);
}

/* ---- graphs ---- */

/* Work of three kinds: y += x w with x and y 1 x 1, that is a copy, a product and a kernel. */
typedef struct {
    Stream stream;
    float *x, *w, *y, *copy;
    void *workspace;
} Work;

static Work work_create(void) {
    size_t workspace = cuda_matmul_workspace();
    Work work = {.stream = device_test_stream(),
                 .x = device_alloc(sizeof(float)),
                 .w = device_alloc(sizeof(float)),
                 .y = device_alloc(sizeof(float)),
                 .copy = device_alloc(sizeof(float)),
                 .workspace = device_alloc(workspace ? workspace : 1)};
    return work;
}

static void work_free(Work *work) {
    device_test_wait();
    device_free(work->x);
    device_free(work->w);
    device_free(work->y);
    device_free(work->copy);
    device_free(work->workspace);
}

static void put(const Work *work, float *to, float value) {
    copy_to_device(work->stream, to, &value, sizeof value);
    device_test_wait();
}

static float get(const Work *work, const float *from) {
    float value;
    copy_to_host(work->stream, &value, from, sizeof value);
    device_test_wait();
    return value;
}

static void work_submit(const Work *work) {
    Run run = {work->stream, PRECISION_FP32, 0, work->workspace};
    Product product = {.c = work->y,
                       .a = work->x,
                       .b = work->w,
                       .ldc = 1,
                       .lda = 1,
                       .ldb = 1,
                       .m = 1,
                       .n = 1,
                       .k = 1,
                       .add = true};
    copy_on_device(work->stream, work->copy, work->x, sizeof(float));
    cuda_matmul(&run, &product);
    /* A kernel computes x = relu(w), which the next repetition reads. */
    const Node relu = {.kind = OP_RELU, .in_shape = {1, 1, 1}};
    cuda_node_forward(&run, &relu, &(DeviceIO){.n = 1, .x = work->w, .y = work->x});
}

/* Takes seconds where the library is read from a disk: gpu_check prints how long. */
static void loads_the_library(void) { CHECK(!cuda_matmul_load(), "%s", error_message()); }

static void graphs_repeat(void) {
    Work work = work_create();
    put(&work, work.x, 2);
    put(&work, work.w, 3);
    put(&work, work.y, 0);
    work_submit(&work); /* the first time without a graph, as the stage does */
    CHECK(get(&work, work.y) == 6 && get(&work, work.copy) == 2, "%g", (double)get(&work, work.y));
    if (!CHECK(!graph_begin(work.stream), "%s", error_message())) return;
    work_submit(&work);
    Graph graph = graph_end(work.stream);
    if (!CHECK(graph, "%s", error_message())) return;
    CHECK(get(&work, work.y) == 6 && get(&work, work.x) == 3, "capture did the work");
    for (int i = 0; i < 3; i++) CHECK(!graph_launch(graph, work.stream), "%s", error_message());
    /* x is 3 each time: 6 + 3 * 9 */
    CHECK(get(&work, work.y) == 33 && get(&work, work.copy) == 3, "%g", (double)get(&work, work.y));
    put(&work, work.w, 4); /* other data in the same memory: 33 + 3 * 4, then x is 4 */
    CHECK(!graph_launch(graph, work.stream), "%s", error_message());
    CHECK(get(&work, work.y) == 45 && get(&work, work.x) == 4, "%g", (double)get(&work, work.y));
    graph_free(graph);
    graph_free(NULL);
    work_free(&work);
}

static void captures_forbid_waiting(void) {
    Work work = work_create();
    put(&work, work.x, 2);
    put(&work, work.w, 3);
    put(&work, work.y, 0);
    CHECK(!graph_begin(work.stream), "%s", error_message());
    work_submit(&work);
    CHECK(device_wait(work.stream), "waited for a stream that is captured");
    CHECK(!graph_end(work.stream), "a graph was made of it all the same");
    CHECK(get(&work, work.y) == 0, "a capture that failed did something");
    work_free(&work);
}

static void notes_are_printed_once(void) {
    Stream stream = device_test_stream();
    device_note("something %d", 1);
    device_note("something %d", 2);
    CHECK(device_wait(stream) && strcmp(error_message(), "something 1") == 0, "%s",
          error_message());
    CHECK(!device_wait(stream), "reported twice: %s", error_message());
}

/* One that has none is refused by its name. */
static void every_optimizer_has_a_kernel_or_is_refused(void) {
    Stream stream = device_test_stream();
    for (int kind = 0; kind < OPTIMIZER_KINDS && stream; kind++) {
        const OptimizerSettings settings = optimizer_defaults((OptimizerKind)kind);
        Updater *updater = updater_create(NULL, 0, 1, &settings, stream);
        CHECK(updater || strstr(error_message(), optimizer_names[kind]), "%s: %s",
              optimizer_names[kind], error_message());
        updater_free(updater);
    }
}

void test_device(void) {
    RUN(tells_what_it_is);
    RUN(aligns_memory);
    RUN(refuses_what_is_too_large);
    RUN(copies_in_order);
    RUN(streams_wait_for_events);
    RUN(loads_the_library);
    RUN(graphs_repeat);
    RUN(captures_forbid_waiting);
    RUN(notes_are_printed_once);
    RUN(every_optimizer_has_a_kernel_or_is_refused);
}
