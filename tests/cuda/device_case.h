/* A row of the case table on the device: the arrays of a CaseData (tests/ref/cases.h), copied there
 * between guard bytes, one or more calls of cuda/node.h, and copied back. */
#ifndef TESTS_CUDA_DEVICE_CASE_H
#define TESTS_CUDA_DEVICE_CASE_H

#include "../../cuda/node.h"
#include "../ref/cases.h"
#include "device_array.h"

typedef struct {
    Precision precision;
    int version;
    int order; /* 0 .. device_orders() - 1 */
    int align; /* rows of a linear layer's y and dy start at multiples of so many numbers; 0: no
                  gaps */
} How;

typedef enum { RUN_FORWARD = 1, RUN_GRADIENTS = 2 } Calls;

/* Runs the node as `io` says, whose pointers are those of `data` or NULL; `data` then holds what
 * the device's arrays held.  Arrays of the value type are rounded to it on the way there.  Fails
 * the running case when the device tells an error or something was written beside an array.
 * 0, or -1 when nothing can be compared. */
int device_case_run(CaseData *data, const NodeIO *io, How how, Calls calls);

/* One precision for each type of values, fp32 and bf16: where nothing is multiplied on tensor
 * cores, tf32 runs the kernels of fp32. */
enum { VALUE_TYPES = 2 };
extern const Precision value_types[VALUE_TYPES];

/* Whether an array holds values (bf16 in that precision) or floats. */
bool array_is_value(Array array);
/* Rounds the inputs of the value type as the device holds them. */
void device_case_round(CaseData *data, Precision precision);

/* ---- differs by device: tests/simt/, tests/gpu/ ---- */

/* Orders in which the device's threads can be made to run (a GPU: 3, whatever comes). */
int device_orders(void);
void device_choose_order(int order);
/* It is played by this CPU, or watched: what is the same in several precisions is tried in one. */
bool device_is_slow(void);
/* It has cuda/gpu on stand-ins for NVIDIA's libraries (tests/fake); its kernels are SIMT's, which
 * are tested there. */
bool device_stands_in(void);
/* Every access is watched, slowly: it is enough to go once through all calls. */
bool device_is_watched(void);
/* Makes memory forbidden, or allowed again, where something watches. */
void device_forbid(void *memory, size_t bytes, bool forbid);
/* Ranks that NCCL would join on it. */
int device_ranks(void);

#endif
