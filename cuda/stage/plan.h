/* Bytes of a stage on a device, from the shapes alone.  The stage allocates by these numbers, so
 * that a training that does not fit is refused before it starts. */
#pragma once

#include "../../ref/layout.h"

/* Returns the settings that a stage on the device uses for the settings it is given: rows of the
 * logits start at multiples of LOGITS_ALIGN numbers, because no fast product of sm_90 takes rows at
 * odd addresses. */
enum { LOGITS_ALIGN = 64 };
StageSettings device_settings(StageSettings settings);

/* -1 and an error for a model that the kernels cannot run: it has attention heads of more than
 * ATTENTION_MAX_HEAD numbers. */
int device_check(const Model *model);

/* Where the parameters of some blocks lie in one array.  They are in order and aligned as in an
 * arena; those of a block are next to each other, so that a block moves in one copy.  On a stage of
 * a pipeline, copies of tied parameters whose own block is on another stage come last. */
typedef struct {
    size_t *param;           /* [params]: offset in bytes; of absent ones: SIZE_MAX */
    size_t *block;           /* [blocks + 1]: block b lies from block[b] to block[b + 1] */
    size_t bytes, requested; /* of the array, and without the gaps */
    size_t own_requested;    /* without the copies, which begin at block[blocks] */
} ParamOffsets;

/* Computes offsets for numbers of `size` bytes: of the parameters on this stage or, unless `active`
 * is NULL, of those whose block b is active[b].  -1 and an error when memory runs out. */
int param_offsets_create(ParamOffsets *offsets, const Model *model, const StageSettings *settings,
                         size_t size, const bool *active);
void param_offsets_destroy(ParamOffsets *offsets);

/* The workspace that does not depend on which blocks are active; on a stage of a pipeline, only
 * what its blocks use.  Offsets are in bytes.  What the host sends comes first. */
typedef struct {
    size_t scale, slots;    /* float; int [batch] */
    size_t ids;             /* int [batch]: samples whose images are made on the device */
    size_t targets, inputs; /* int [batch * targets]; int tokens or float images */
    size_t sent;            /* the end of what the host sends */
    size_t images;          /* of the value type; `inputs` itself unless bf16 */
    size_t loss, correct;   /* [batch * targets] */
    size_t sums;            /* LossSums [2]: of the step so far, of one call */
    size_t node;            /* workspace of one node's kernels */
    size_t resident;        /* settings.image_bytes */
    size_t bytes;
} FixedOffsets;
FixedOffsets fixed_offsets(const Model *model, const StageSettings *settings);

/* Where an activation lies that is kept for the backward pass: in slot k, at byte `at + k * step`.
 */
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

/* Returns the bytes of workspace that an update of any local parameter needs. */
size_t host_update_bytes(const Model *model, const StageSettings *settings);

/* Computes the bytes by role while the `active` blocks train: in `device` what a stage with these
 * settings (local and in_flight too) allocates on the device, as the stage counts it, and in `host`
 * what it takes of host memory in addition (masters of inactive blocks in bf16; with offload
 * masters, gradients and state; buffers for transfers).  State kept from earlier submodels, the
 * prefix cache and messages (message.h) are not included.  -1 and an error as of memory_plan and
 * device_check. */
int cuda_memory_plan(size_t device[MEM_ROLES], size_t host[MEM_ROLES], const Model *model,
                     const StageSettings *settings, const bool *active);
