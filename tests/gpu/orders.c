/* What differs between the devices of tests/cuda/, on a GPU. */
#include <stdlib.h>

#include "../cuda/device_case.h"

/* Its own order, twice. */
int device_orders(void) { return 2; }

void device_choose_order(int order) { (void)order; }

/* Under compute-sanitizer, which tests/cuda/gpu_check tells by this. */
bool device_is_watched(void) { return getenv("WATCHED") != NULL; }

bool device_is_slow(void) { return device_is_watched(); }

void device_forbid(void *memory, size_t bytes, bool forbid) {
    (void)memory;
    (void)bytes;
    (void)forbid;
}

int device_ranks(void) { return 1; }
