/* Test cases for pipelines, whatever kind of stages they are made of. */
#pragma once

#include "pipeline.h"

typedef struct {
    const char *name;
    Stage *(*create)(const Model *model, StageSettings settings); /* NULL: the CPU's */
    Precision precision;
    void (*message_free)(void *message);    /* NULL: boundary values are sent as host data */
    Transport *(*join)(Transport *control); /* as in PipelineRecipe */
    bool alone; /* pipeline_check_same compares with nothing, as another build does */
} StageKind;

typedef struct {
    const char *name;
    const char *spec;
    int ranks;
    PlacementKind placement;
    int submodels; /* of a virtual or Figure 2 placement */
    int micro_batches;
    ScheduleKind kind;
    bool recompute;
    FrozenNorm frozen_norm;
    OptimizerKind optimizer;
    double clip;
    const char *always; /* blocks that are always active */
    int trained;        /* submodels that train in turn; 1: full update */
} PipelineRow;
extern const PipelineRow pipeline_rows[]; /* a NULL name ends */

/* CHECKs that a training over this pipeline has the losses, parameters and evaluation of one over
 * one stage of the same kind, to the last bit. */
void pipeline_check_same(const PipelineRow *row, const StageKind *kind);
/* The same in every placement and schedule, with more micro-batches than any chunk has slots, so
 * that a slot that is reused too early would show. */
void pipeline_check_slots(int ranks, const StageKind *kind);
/* The same with a tied embedding on another rank than the head: up to rounding while the embedding
 * trains, to the last bit while it is frozen. */
void pipeline_check_tied(int ranks, ScheduleKind order, const StageKind *kind);
void pipeline_check_frozen_tied(const StageKind *kind);
/* CHECKs that pre-inference by three, by two and by none of three ranks changes no bit, with a
 * batch of 4 to 12 samples in micro-batches of 2; of 12 every share is of whole micro-batches. */
void pipeline_check_infer(const StageKind *kind, int batch);
/* CHECKs that a step whose loss is NaN fails and changes nothing. */
void pipeline_check_bad_loss(const StageKind *kind);
