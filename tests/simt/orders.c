/* What differs between the devices of tests/cuda/: under SIMT and, with STANDS_IN, on
 * tests/fake. */
#include "../../cuda/simt/control.h"
#include "../../cuda/simt/sanitizer.h"
#include "../cuda/device_case.h"

#ifndef STANDS_IN
#define STANDS_IN false
#endif
bool device_stands_in(void) { return STANDS_IN; }

bool device_is_watched(void) { return simt_checks_races() || SIMT_ADDRESS_SANITIZER; }

int device_orders(void) { return device_stands_in() || device_is_watched() ? 1 : SIMT_ORDERS; }

void device_choose_order(int order) { simt_set_order((SimtOrder)order, 12345); }

bool device_is_slow(void) { return true; }

void device_forbid(void *memory, size_t bytes, bool forbid) {
    if (forbid)
        SIMT_POISON(memory, bytes);
    else
        SIMT_UNPOISON(memory, bytes);
}

bool device_products_are_by_row(void) { return true; }

int device_ranks(void) { return 4; }
