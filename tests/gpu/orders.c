/* What differs between the devices of tests/cuda/: on a GPU. */
#include <stdlib.h>

#include "../cuda/device_case.h"

/* A GPU has one order of its own; each test repeats it three times. */
int device_orders(void) { return 3; }

void device_choose_order(int order) { (void)order; }

/* compute-sanitizer watches; cuda/check/gpu_check sets this variable. */
bool device_is_watched(void) { return getenv("WATCHED") != NULL; }

bool device_is_slow(void) { return device_is_watched(); }

bool device_stands_in(void) { return false; }

void device_forbid(void *memory, size_t bytes, bool forbid) {
    (void)memory;
    (void)bytes;
    (void)forbid;
}

bool device_products_are_by_row(void) { return false; }

int device_ranks(void) { return 1; }
