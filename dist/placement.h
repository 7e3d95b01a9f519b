/* Which rank holds which blocks, and which submodel trains them. */
#ifndef DIST_PLACEMENT_H
#define DIST_PLACEMENT_H

#include "../ref/submodel.h"

typedef enum {
    /* One chunk per rank, submodels contiguous in depth: while one trains, most ranks only run
     * forward or pass gradients on. */
    PLACEMENT_PLAIN,
    /* Submodels contiguous in depth, each cut into a piece per rank: every rank holds a piece of
     * every submodel (virtual stages), works all the time, and a prefix can be cached. */
    PLACEMENT_VIRTUAL,
    /* The paper's Figure 2: one chunk per rank, each cut into M slices; submodel k is the k-th
     * slice of every rank. */
    PLACEMENT_FIGURE2,
    PLACEMENTS
} PlacementKind;
extern const char *const placement_names[PLACEMENTS];

typedef struct {
    int ranks, chunks, submodels;
    int *chunk_of;    /* [blocks], ascending */
    int *submodel_of; /* [blocks] */
    int *rank_of;     /* [chunks] */
} Placement;

/* Cuts by cost[blocks], any measure of a block's work.  submodel_of[blocks], unless NULL, says
 * which submodel trains each block, as a training that goes on has it; else that follows from the
 * cuts. (Figure 2 with submodels that are given is the plain placement of them.)  -1 and an error
 * when the model has too few blocks for so many pieces, virtual stages are asked of submodels that
 * are not contiguous, or memory runs out. */
int placement_make(Placement *placement, const Model *model, PlacementKind kind, int ranks,
                   int submodels, const double *cost, const int *submodel_of);
/* Overwrites work[blocks]: operations of a full update per sample, at least 1. */
void placement_work(double *work, const Model *model);

void placement_free(Placement *placement);

#endif
