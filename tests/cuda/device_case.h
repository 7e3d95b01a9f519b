/* Runs a row of the case table on the device: the arrays of a CaseData (tests/ref/cases.h) are
 * copied there between guard bytes, one or more calls of cuda/node.h run, and the arrays are copied
 * back. */
#pragma once

#include "../../cuda/node.h"
#include "../ref/cases.h"
#include "device_array.h"

typedef struct {
    Precision precision;
    int version;
    int order; /* 0 .. device_orders() - 1 */
    int align; /* rows of a linear layer's y and dy start at multiples of this; 0: no gaps */
} How;

typedef enum { RUN_FORWARD = 1, RUN_GRADIENTS = 2 } Calls;

/* Runs the node as `io` says, whose pointers are those of `data` or NULL, and copies the device's
 * arrays back to `data`. Arrays of the value type are rounded to it on the way there. The running
 * case fails if the device reports an error or a guard byte was overwritten. Returns -1 when
 * nothing can be compared. */
int device_case_run(CaseData *data, const NodeIO *io, How how, Calls calls);

/* fp32 and bf16 stand for the two types of values. Where no tensor core multiplies, tf32 runs the
 * kernels of fp32. */
enum { VALUE_TYPES = 2 };
extern const Precision value_types[VALUE_TYPES];

/* Returns true if an op has kernels of its own in this precision: tf32 often runs those of fp32. */
bool device_has_kernels(OpKind kind, Precision precision);

/* Returns true if an array holds values (bf16 in that precision), false if it holds floats. */
bool array_is_value(Array array);
/* Rounds the inputs to the value type, as the device holds them. */
void device_case_round(CaseData *data, Precision precision);

/* ---- differs by device: tests/simt/, tests/gpu/ ---- */

/* Returns the number of orders in which threads can be made to run; 1 where every access is
 * watched, and on stand-ins, whose kernels are SIMT's. On a GPU it is 3: a test is then repeated
 * three times in the GPU's own order. */
int device_orders(void);
void device_choose_order(int order);
/* Returns true under SIMT and where every access is watched. Tests then try only one of the
 * precisions where they behave alike. */
bool device_is_slow(void);
/* Returns true if cuda/gpu/ runs on stand-ins for NVIDIA's libraries (tests/fake). Its kernels are
 * those of SIMT, which have tests of their own. */
bool device_stands_in(void);
/* Returns true if a sanitizer or the race checker watches every access, which is slow. Tests then
 * make each call once. */
bool device_is_watched(void);
/* Forbids access to memory, or allows it again, where a sanitizer watches; elsewhere does
 * nothing. */
void device_forbid(void *memory, size_t bytes, bool forbid);
/* Returns true if a row of a product has the same bits whatever the number of rows is; cuBLASLt may
 * take another algorithm for another number. */
bool device_products_are_by_row(void);
/* Returns how many ranks NCCL can join on this device. */
int device_ranks(void);
