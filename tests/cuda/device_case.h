/* A row of the case table on the device: the arrays of a CaseData (tests/ref/cases.h), copied there
 * between guard bytes, one or more calls of cuda/node.h, and copied back. */
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
 * arrays back to `data`.  Arrays of the value type are rounded to it on the way there.  The running
 * case fails if the device reports an error or something was written beside an array.  Returns -1
 * when nothing can be compared. */
int device_case_run(CaseData *data, const NodeIO *io, How how, Calls calls);

/* One precision for each type of values, fp32 and bf16: where nothing is multiplied on tensor
 * cores, tf32 runs the kernels of fp32. */
enum { VALUE_TYPES = 2 };
extern const Precision value_types[VALUE_TYPES];

/* Returns true if an array holds values (bf16 in that precision), false if it holds floats. */
bool array_is_value(Array array);
/* Rounds the inputs to the value type, as the device holds them. */
void device_case_round(CaseData *data, Precision precision);

/* ---- differs by device: tests/simt/, tests/gpu/ ---- */

/* Returns in how many orders threads can be made to run; on a GPU 3, which is how often a test is
 * repeated in the GPU's own order. */
int device_orders(void);
void device_choose_order(int order);
/* Returns true under SIMT and where accesses are watched: tests then try what is the same in
 * several precisions only in one. */
bool device_is_slow(void);
/* Returns true if cuda/gpu/ runs on stand-ins for NVIDIA's libraries (tests/fake).  Kernels are
 * then those of SIMT, which have tests of their own. */
bool device_stands_in(void);
/* Returns true if a sanitizer or the race checker sees every access, which is slow: tests then make
 * each call once. */
bool device_is_watched(void);
/* Forbids access to memory, or allows it again, where a sanitizer watches. */
void device_forbid(void *memory, size_t bytes, bool forbid);
/* Returns how many ranks NCCL can join on this device. */
int device_ranks(void);
