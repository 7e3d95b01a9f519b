/* The published times of a step: Tables 3, 4, 15 and 16, and section 4.4.2. */
#include "published.h"

#include <math.h>
#include <string.h>

const PaperOffload paper_offload[] = {
    {"G-1.6B", 1, 2403, 378}, {"G-5.4B", 4, 4373, 1211}, {"G-10B", 8, 7076, 2414},
    {"L-1.5B", 1, 4824, 415}, {"L-6.0B", 4, 6367, 941},  {"L-11B", 8, 7292, 1807},
    {NULL, 0, 0, 0},
};

const PaperDistributed paper_distributed[] = {
    {"G-1.6B", {1, 2}, 24.077, 576, {1, 1}, 12.038, 378},
    {"G-5.4B", {2, 4}, 81.881, 1934, {1, 4}, 40.942, 1211},
    {"G-10B", {4, 4}, 160.738, 3178, {1, 8}, 80.370, 2414},
    {"G-10B", {2, 8}, 160.738, 3252, {1, 8}, 80.370, 2414},
    {"G-20B", {4, 8}, 312.805, 6378, {2, 8}, 156.402, 3606},
    {"L-1.5B", {1, 2}, 24.632, 423, {1, 1}, 11.662, 415},
    {"L-6.0B", {2, 4}, 89.815, 1287, {1, 4}, 44.908, 941},
    {"L-8.0B", {2, 6}, 120.327, 1651, {1, 6}, 60.163, 1197},
    {"L-11B", {4, 4}, 175.714, 2511, {1, 8}, 87.858, 1807},
    {"L-23B", {4, 8}, 347.539, 4908, {2, 8}, 173.769, 3479},
    {NULL, {0, 0}, 0, 0, {0, 0}, 0, 0},
};

const PaperOtherGpu paper_other_gpus[] = {
    {"a100", "G-1.6B", {1, 1}, 1064}, {"a100", "G-5.4B", {1, 2}, 2952},
    {"a100", "G-10B", {1, 4}, 5772},  {"a100", "G-20B", {1, 8}, 11222},
    {"a800", "G-1.6B", {1, 1}, 1122}, {"a800", "G-5.4B", {1, 2}, 3126},
    {"a800", "G-10B", {1, 4}, 6042},  {"a800", "G-20B", {1, 8}, 11722},
    {NULL, NULL, {0, 0}, 0},
};

const PaperUfp paper_ufp[] = {
    {15, "G-1.6B", 1, {378.49, 331.7375, 305.52}},
    {15, "G-5.4B", 4, {1210.61, 1070.81, 996.47}},
    {15, "G-10B", 8, {2414.32, 2207.405, 2036.528}},
    {16, "L-1.5B", 1, {414.81, 331.81, 276.266}},
    {16, "L-6.0B", 4, {941.44, 895.7075, 835.798}},
    {16, "L-11B", 8, {1807.11, 1738.2525, 1574.92}},
    {0, NULL, 0, {0, 0, 0}},
};

/* ---- looking them up ------------------------------------------------------------------------- */

int paper_gpus(PaperGpus gpus) { return gpus.nodes * gpus.per_node; }

void put_gpus(Table *table, int column, PaperGpus gpus, Source source) {
    table_text(table, column, source, "%d/%d", gpus.nodes, gpus.per_node);
}

const PaperOffload *paper_offload_of(const char *model) {
    const PaperOffload *o = paper_offload;
    while (o->model && strcmp(o->model, model)) o++;
    return o->model ? o : NULL;
}

const PaperOtherGpu *paper_other_gpu(const char *gpu, const char *model) {
    const PaperOtherGpu *e = paper_other_gpus;
    while (e->model && (strcmp(e->gpu, gpu) || strcmp(e->model, model))) e++;
    return e->model ? e : NULL;
}

/* Returns the row of Table 4 with these nodes, else one with as many GPUs (2 x 4 of them are 1/8 in
 * Table 5), or NULL. */
static const PaperDistributed *distributed_row(const char *model, PaperGpus gpus) {
    const PaperDistributed *found = NULL;
    for (const PaperDistributed *d = paper_distributed; d->model; d++) {
        if (strcmp(d->model, model) || paper_gpus(d->full) != paper_gpus(gpus)) continue;
        if (d->full.nodes == gpus.nodes) return d;
        found = d;
    }
    return found;
}

double paper_full_ms(const char *gpu, const char *model, PaperGpus gpus) {
    if (strcmp(gpu, "rtx4090") == 0) {
        const PaperDistributed *row = distributed_row(model, gpus);
        return row ? row->full_ms : NAN;
    }
    const PaperOtherGpu *e = paper_other_gpu(gpu, model);
    return e && paper_gpus(e->gpus) == paper_gpus(gpus) ? e->full_ms : NAN;
}

double paper_bcd_ms(const char *model) {
    for (const PaperUfp *u = paper_ufp; u->model; u++)
        if (strcmp(u->model, model) == 0) return u->ms[0];
    for (const PaperDistributed *d = paper_distributed; d->model; d++)
        if (strcmp(d->model, model) == 0) return d->bcd_ms;
    return NAN;
}
