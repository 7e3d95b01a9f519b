/* A placement says which rank holds each block and which submodel trains it. */
#pragma once

#include "../ref/partition.h"

typedef enum {
    /* Each rank has one chunk, and submodels are contiguous in depth.  While one submodel trains,
     * most ranks only run forward or pass gradients on. */
    PLACEMENT_PLAIN,
    /* Submodels are contiguous in depth, and each is cut into one chunk per rank (virtual stages).
     * Every rank has a part of every submodel and works all the time, and the frozen prefix can be
     * cached. */
    PLACEMENT_VIRTUAL,
    /* The paper's Figure 2.  Each rank has one chunk, which is cut into M slices; submodel k is the
     * k-th slice of every rank. */
    PLACEMENT_FIGURE2,
    PLACEMENTS
} PlacementKind;
#define PLACEMENT_NAMES "plain", "virtual", "figure2"
extern const char *const placement_names[PLACEMENTS];

typedef struct {
    PlacementKind kind;
    int ranks, chunks, submodels;
    int *chunk_of;    /* [blocks], ascending */
    int *submodel_of; /* [blocks]; ALWAYS_ACTIVE (-1) where a block is in none */
    int *rank_of;     /* [chunks] */
} Placement;

/* Returns the rank that holds a block. */
static inline int placement_rank(const Placement *placement, int block) {
    return placement->rank_of[placement->chunk_of[block]];
}

/* Makes a placement whose chunk_of and submodel_of are still to be filled in.  -1 and an error if
 * memory runs out. */
int placement_reserve(Placement *placement, const Model *model, PlacementKind kind, int ranks,
                      int submodels);
/* Makes a placement that balances cost[blocks], any measure of a block's work.  submodel_of[blocks]
 * gives the submodels, as a training has them; if it is NULL they follow from the placement.
 * (Figure 2 with given submodels is the plain placement of them.)  -1 and an error if the model has
 * too few blocks, or a submodel fewer than virtual stages need, one for each rank; if virtual
 * stages are wanted for submodels that are not contiguous; or if memory runs out. */
int placement_make(Placement *placement, const Model *model, PlacementKind kind, int ranks,
                   int submodels, const double *cost, const int *submodel_of);
/* Overwrites work[blocks] with the operations of a full update of one sample, plus 1. */
void placement_work(double *work, const Model *model);

/* Returns the rank that uses a tied parameter, but does not own it; -1 if there is none. */
int placement_tied_user(const Placement *placement, const Model *model, int param);
/* Returns true if a tied parameter is used on two ranks.  Its gradient is then added up in another
 * order than on one device, and the training differs from that by rounding. */
bool placement_splits_tied(const Placement *placement, const Model *model);

void placement_free(Placement *placement);
