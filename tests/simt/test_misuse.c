/* Wrong uses of the device interface, which the SIMT layer reports. On a GPU they may or may not
 * show. */
#include <string.h>

#include "../../cuda/device.h"
#include "../../ref/base/error.h"
#include "../cuda/device_array.h"
#include "../test.h"

static void check_told(const char *words) {
    CHECK(device_wait(device_test_stream()) && strstr(error_message(), words),
          "\"%s\" is not in: %s", words, error_message());
}

static void copies_know_memory(void) {
    Stream stream = device_test_stream();
    char host[64] = {0};
    char *device = device_alloc(sizeof host), *pinned = pinned_alloc(sizeof host);
    copy_to_device(stream, host, host, sizeof host);
    check_told("copy_to_device, to");
    copy_to_device(stream, device, device, sizeof host);
    check_told("copy_to_device, from");
    copy_to_device(stream, device + 1, host, sizeof host);
    check_told("copy_to_device, to");
    copy_to_host(stream, host, host, sizeof host);
    check_told("copy_to_host, from");
    copy_to_host(stream, device, device, sizeof host);
    check_told("copy_to_host, to");
    copy_on_device(stream, device, pinned, sizeof host);
    check_told("copy_on_device, from");
    fill_zero(stream, device, sizeof host + 1);
    check_told("fill_zero");
    copy_to_device(stream, device, pinned, sizeof host);
    device_test_wait();
    device_free(pinned);
    check_told("not the start of device memory");
    device_free(device + 1);
    check_told("not the start of device memory");
    device_free(device);
    device_free(device);
    check_told("not the start of device memory");
    pinned_free(pinned);
    device_test_wait();
}

static void captures_forbid(void) {
    Stream stream = device_test_stream(), other = stream_create();
    Event outside = event_create(false), inside = event_create(false);
    event_record(outside, other);
    CHECK(!graph_begin(stream), "%s", error_message());
    CHECK(!device_alloc(1), "memory while capture");
    CHECK(graph_begin(stream) && graph_begin(other), "two captures at a time");
    stream_wait_event(stream, outside);
    event_record(inside, stream);
    CHECK(event_wait(inside), "waited for an event of a capture");
    CHECK(!graph_end(other), "ended where it did not begin");
    CHECK(!graph_end(stream), "a graph came of it all");
    check_told("outside the capture");
    CHECK(!graph_begin(stream), "%s", error_message());
    event_record(inside, stream);
    stream_wait_event(stream, inside);
    stream_wait_event(other, inside);
    CHECK(!graph_end(stream), "another stream waited for a recorded event");
    check_told("inside the capture");
    event_free(outside);
    event_free(inside);
    stream_free(other);
}

void test_simt_misuse(void);
void test_simt_misuse(void) {
    RUN(copies_know_memory);
    RUN(captures_forbid);
}
