/* The number type of the reference, and its error unit.
 *
 * `real` is float; the build with -DBCD_DOUBLE makes it double.  The double build exists for
 * finite differences: there a central difference is accurate to about 1e-9, in float to 1e-3,
 * which would hide most mistakes. */
#pragma once

#include <float.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef BCD_DOUBLE
typedef double real;
#define REAL_EPS DBL_EPSILON
#define REAL_NAME "double"
#define real_sqrt sqrt
#else
typedef float real;
#define REAL_EPS FLT_EPSILON
#define REAL_NAME "float"
#define real_sqrt sqrtf
#endif

/* Loops over fewer numbers than this use one thread: waking the others, about 2 us, would cost more
 * than they save. */
enum { WORTH_THREADS = 1 << 15 };

/* How a device stores and multiplies values and weights.  The CPU has only the first.  Gradients of
 * parameters, optimizer state and statistics are float in all of them. */
typedef enum {
    PRECISION_FP32, /* float */
    PRECISION_TF32, /* float; products round their factors to 10-bit mantissas */
    PRECISION_BF16, /* bf16 values and weights; the active submodel has float masters */
    PRECISIONS
} Precision;
extern const char *const precision_names[PRECISIONS];
/* Returns the bytes of a value or a weight. */
static inline size_t precision_bytes(Precision precision) {
    return precision == PRECISION_BF16 ? 2 : sizeof(real);
}
