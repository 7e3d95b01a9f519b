/* Bytes of a stage on a device, from the shapes alone.  The stage allocates by these numbers, so
 * that a training that does not fit is refused before it starts. */
#ifndef CUDA_PLAN_H
#define CUDA_PLAN_H

#include "../ref/layout.h"

/* What a stage on the device makes of the settings it is asked for: rows of the logits start at
 * multiples of LOGITS_ALIGN numbers, because no fast product of sm_90 takes rows at odd addresses.
 */
enum { LOGITS_ALIGN = 64 };
StageSettings device_settings(StageSettings settings);

/* Workspace that is there whatever is active; on a stage of a pipeline, what its blocks use of it.
 * Offsets in bytes; first what the host sends. */
typedef struct {
    size_t scale, slots;    /* float; int [batch] */
    size_t ids;             /* int [batch], of images that are made here */
    size_t targets, inputs; /* int [batch * targets]; int tokens or float images */
    size_t sent;            /* the end of that part */
    size_t images;          /* of the value type; `inputs` itself unless bf16 */
    size_t loss, correct;   /* [batch * targets] */
    size_t sums;            /* LossSums [2]: of the step so far, of one call */
    size_t node;            /* workspace of one node's kernels */
    size_t resident;        /* settings.image_bytes */
    size_t bytes;
} FixedOffsets;
FixedOffsets fixed_offsets(const Model *model, const StageSettings *settings);

/* Where activations kept for the backward pass lie: the one in slot k at `at + k * step`. */
typedef struct {
    size_t at, step;
} StoredOffset;
typedef struct {
    StoredOffset *value, *aux; /* [values], [nodes]; of those not stored here: `at` is SIZE_MAX */
    StoredOffset *gradient;    /* [values]: kept for deferred weight gradients */
    size_t bytes, requested;
} StoredOffsets;
/* -1 and an error when memory runs out. */
int stored_offsets_create(StoredOffsets *offsets, const Model *model, const StageSettings *settings,
                          const Layout *layout);
void stored_offsets_destroy(StoredOffsets *offsets);

/* Bytes by role while `active` blocks train: what a stage with these settings (here and slots too)
 * allocates on the device, as it counts them, and what it takes of host memory in addition (masters
 * of inactive blocks in bf16; with offload masters, gradients and state; buffers for transfers).
 * Kept state, the prefix cache and messages (message.h) count as if there were none.  -1 and an
 * error when memory runs out. */
int cuda_memory_plan(size_t device[MEM_ROLES], size_t host[MEM_ROLES], const Model *model,
                     const StageSettings *settings, const bool *active);

#endif
