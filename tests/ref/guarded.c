#include "guarded.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../test.h"

enum {
    GUARD = 19, /* numbers on each side: more than the longest vector; odd, so data is misaligned */
    GUARD_BYTE = 0xA5
};

Guarded guarded_create(size_t count) {
    if (count == 0) return (Guarded){NULL, 0};
    size_t bytes = (count + (size_t)2 * GUARD) * sizeof(real);
    real *base = malloc(bytes);
    if (!base) {
        fprintf(stderr, "tests: no %zu bytes for an array\n", bytes);
        exit(2);
    }
    memset(base, GUARD_BYTE, bytes);
    Guarded array = {base + GUARD, count};
    guarded_spoil(array);
    return array;
}

void guarded_free(Guarded *array) {
    if (array->data) free(array->data - GUARD);
    *array = (Guarded){NULL, 0};
}

void guarded_spoil(Guarded array) {
    for (size_t i = 0; i < array.count; i++) array.data[i] = (real)NAN;
}

static bool untouched(const real *words) {
    const unsigned char *bytes = (const unsigned char *)words;
    for (size_t i = 0; i < GUARD * sizeof(real); i++)
        if (bytes[i] != GUARD_BYTE) return false;
    return true;
}

bool guarded_intact(Guarded array) {
    return !array.data || (untouched(array.data - GUARD) && untouched(array.data + array.count));
}

size_t guarded_first_nan(Guarded array) {
    size_t i = 0;
    while (i < array.count && !isnan(array.data[i])) i++;
    return i;
}

size_t guarded_first_difference(Guarded a, Guarded b) {
    size_t i = 0;
    while (i < a.count && memcmp(a.data + i, b.data + i, sizeof(real)) == 0) i++;
    return i;
}

void guarded_check_same(Guarded a, Guarded b, const char *what) {
    size_t first = guarded_first_difference(a, b);
    CHECK(first == a.count, "%s: number %zu is %.9g and %.9g", what, first, (double)a.data[first],
          (double)b.data[first]);
}

double guarded_largest(Guarded array) {
    double largest = 0;
    for (size_t i = 0; i < array.count; i++) largest = fmax(largest, fabs((double)array.data[i]));
    return largest;
}
