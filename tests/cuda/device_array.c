#include "device_array.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/base/error.h"
#include "../test.h"

Stream device_test_stream(void) {
    static Stream stream;
    if (stream || (!device_open() && (stream = stream_create()))) return stream;
    test_fail(__FILE__, __LINE__, "a device", "%s", error_message());
    return NULL;
}

void device_test_wait(void) {
    const char *error = device_wait(device_test_stream()) ? error_message() : NULL;
    CHECK(!error, "%s", error);
}

void *device_put(const void *host, size_t bytes) {
    Stream stream = device_test_stream(); /* opens the device */
    void *device = device_alloc(bytes ? bytes : 1);
    if (!device) abort();
    if (bytes) copy_to_device(stream, device, host, bytes);
    device_test_wait();
    return device;
}

void device_get(void *host, const void *device, size_t bytes) {
    copy_to_host(device_test_stream(), host, device, bytes);
    device_test_wait();
}

/* ---- values ---- */

float nearest_bf16(float x) {
    uint32_t bits;
    if (isnan(x)) return x;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
    memcpy(&x, &bits, sizeof x);
    return x;
}

void put_numbers(unsigned char *to, const float *from, size_t count, bool bf16) {
    if (!bf16) {
        if (count) memcpy(to, from, count * sizeof *from);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        float rounded = nearest_bf16(from[i]);
        memcpy(to + 2 * i, (unsigned char *)&rounded + 2, 2);
    }
}

void get_numbers(float *to, const unsigned char *from, size_t count, bool bf16) {
    if (!bf16) {
        if (count) memcpy(to, from, count * sizeof *to);
        return;
    }
    if (count) memset(to, 0, count * sizeof *to);
    for (size_t i = 0; i < count; i++) memcpy((unsigned char *)&to[i] + 2, from + 2 * i, 2);
}

void *device_put_values(const float *host, size_t count, Precision precision) {
    unsigned char *packed = malloc(count * precision_bytes(precision) + 1);
    if (!packed) abort();
    put_numbers(packed, host, count, precision == PRECISION_BF16);
    void *device = device_put(packed, count * precision_bytes(precision));
    free(packed);
    return device;
}

void device_get_values(float *host, const void *device, size_t count, Precision precision) {
    unsigned char *packed = malloc(count * precision_bytes(precision) + 1);
    if (!packed) abort();
    device_get(packed, device, count * precision_bytes(precision));
    get_numbers(host, packed, count, precision == PRECISION_BF16);
    free(packed);
}
