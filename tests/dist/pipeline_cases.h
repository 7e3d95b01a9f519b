/* What a pipeline must be like, whatever kind of stages it is made of; the tests of ref/ and of
 * devices go through these. */
#ifndef TESTS_DIST_PIPELINE_CASES_H
#define TESTS_DIST_PIPELINE_CASES_H

#include "pipeline.h"

typedef struct {
    const char *name;
    Stage *(*create)(const Model *model, StageSettings settings); /* NULL: the CPU's */
    Precision precision;
    void (*message_free)(void *message); /* NULL: boundary values travel as host data */
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
    const char *always; /* active beside each submodel */
    int trained;        /* submodels that train in turn; 1: full update */
} PipelineRow;
extern const PipelineRow pipeline_rows[]; /* a NULL name ends */

/* CHECKs that a training over this pipeline has the losses, parameters and evaluation of one over
 * one stage of the same kind, to the last bit. */
void pipeline_check_same(const PipelineRow *row, const StageKind *kind);
/* The same with more micro-batches than any chunk has room for, in every placement and order: a
 * place that is used again too early would show. */
void pipeline_check_places(int ranks, const StageKind *kind);
/* The same of a tied embedding on other ranks than the head: while it trains to rounding (of
 * floats), while it is frozen to the last bit. */
void pipeline_check_tied(int ranks, ScheduleKind order, const StageKind *kind);
void pipeline_check_frozen_tied(const StageKind *kind);
/* CHECKs that a loss that is not a number changes nothing. */
void pipeline_check_bad_loss(const StageKind *kind);

#endif
