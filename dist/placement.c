#include "placement.h"

#include <stdlib.h>
#include <string.h>

#include "../ref/base/error.h"

const char *const placement_names[PLACEMENTS] = {PLACEMENT_NAMES};

/* Cuts the blocks of outer part `outer` into `pieces` pieces, numbered from outer * pieces on. */
static int cut_inner(int *piece, const int *outer_of, int outer, int pieces, const double *cost,
                     int blocks) {
    int first = 0, end;
    while (first < blocks && outer_of[first] != outer) first++;
    for (end = first; end < blocks && outer_of[end] == outer;) end++;
    if (end - first < pieces)
        return error_set(
            "placement: part %d of the model has %d blocks, too few for %d pieces; use "
            "fewer ranks or submodels",
            outer + 1, end - first, pieces);
    if (cut_contiguous(piece + first, cost + first, end - first, pieces, 1)) return -1;
    for (int b = first; b < end; b++) piece[b] += outer * pieces;
    return 0;
}

/* Cuts the blocks into outer parts unless these are given, and each of them into pieces. */
static int cut_twice(int *outer_of, bool given, int *piece, int outers, int pieces,
                     const double *cost, int blocks) {
    if (!given && outers * pieces > blocks)
        return error_set("placement: the model has %d blocks, too few for %d parts of %d pieces",
                         blocks, outers, pieces);
    if (!given && cut_contiguous(outer_of, cost, blocks, outers, pieces)) return -1;
    for (int outer = 0; outer < outers; outer++)
        if (cut_inner(piece, outer_of, outer, pieces, cost, blocks)) return -1;
    return 0;
}

static int cut_plain(Placement *p, bool given, const double *cost, int blocks) {
    if (p->ranks > blocks || p->submodels > blocks)
        return error_set(
            "placement: the model has %d blocks, too few for %d ranks and %d submodels", blocks,
            p->ranks, p->submodels);
    return cut_contiguous(p->chunk_of, cost, blocks, p->ranks, 1) ||
           (!given && cut_contiguous(p->submodel_of, cost, blocks, p->submodels, 1));
}

static int cut_virtual(Placement *p, bool given, const double *cost, int blocks) {
    for (int b = 0; given && b < blocks; b++)
        if (p->submodel_of[b] == ALWAYS_ACTIVE || (b && p->submodel_of[b] < p->submodel_of[b - 1]))
            return error_set("placement: virtual stages need submodels contiguous in depth%s",
                             p->submodel_of[b] == ALWAYS_ACTIVE
                                 ? ", without blocks that are always active"
                                 : "");
    return cut_twice(p->submodel_of, given, p->chunk_of, p->submodels, p->ranks, cost, blocks);
}

static int cut_figure2(Placement *p, const double *cost, int blocks) {
    if (cut_twice(p->chunk_of, false, p->submodel_of, p->ranks, p->submodels, cost, blocks))
        return -1;
    for (int b = 0; b < blocks; b++) p->submodel_of[b] %= p->submodels;
    return 0;
}

int placement_reserve(Placement *p, const Model *model, PlacementKind kind, int ranks,
                      int submodels) {
    int chunks = kind == PLACEMENT_VIRTUAL ? ranks * submodels : ranks;
    size_t blocks = (size_t)model->blocks;
    *p = (Placement){.kind = kind,
                     .ranks = ranks,
                     .chunks = chunks,
                     .submodels = submodels,
                     .chunk_of = calloc(blocks, sizeof(int)),
                     .submodel_of = calloc(blocks, sizeof(int)),
                     .rank_of = calloc((size_t)chunks, sizeof(int))};
    if (!p->chunk_of || !p->submodel_of || !p->rank_of) {
        placement_free(p);
        return error_set("placement: out of memory");
    }
    for (int c = 0; c < chunks; c++) p->rank_of[c] = c % ranks;
    return 0;
}

int placement_make(Placement *p, const Model *model, PlacementKind kind, int ranks, int submodels,
                   const double *cost, const int *submodel_of) {
    const bool given = submodel_of != NULL;
    const int blocks = model->blocks;
    if (placement_reserve(p, model, kind, ranks, submodels)) return -1;
    if (given) memcpy(p->submodel_of, submodel_of, (size_t)blocks * sizeof *submodel_of);
    int failed = kind == PLACEMENT_VIRTUAL             ? cut_virtual(p, given, cost, blocks)
                 : kind == PLACEMENT_FIGURE2 && !given ? cut_figure2(p, cost, blocks)
                                                       : cut_plain(p, given, cost, blocks);
    if (failed) placement_free(p);
    return failed ? -1 : 0;
}

void placement_work(double *work, const Model *m) {
    for (int b = 0; b < m->blocks; b++) {
        work[b] = 1;
        for (int i = m->block[b].first_node; i < m->block[b].end_node; i++)
            for (Pass pass = 0; pass < PASSES; pass++) work[b] += node_flops(&m->node[i], pass);
    }
}

int placement_tied_user(const Placement *p, const Model *m, int param) {
    const int owner = placement_rank(p, m->param[param].block);
    for (int i = 0; i < m->nodes; i++) {
        const Node *node = &m->node[i];
        const int user = placement_rank(p, node_block(m, node));
        if ((node->weight == param || node->bias == param) && user != owner) return user;
    }
    return -1;
}

bool placement_splits_tied(const Placement *p, const Model *m) {
    int param = 0;
    while (param < m->params && placement_tied_user(p, m, param) < 0) param++;
    return param < m->params;
}

void placement_free(Placement *p) {
    free(p->chunk_of);
    free(p->submodel_of);
    free(p->rank_of);
    *p = (Placement){0};
}
