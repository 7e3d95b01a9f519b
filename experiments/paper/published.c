#include "published.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

const PaperCard paper_cards[] = {
    {"CUDA cores", "", 16384, 6912},          {"memory", "GB", 24, NAN}, /* of the A100: "40/80" */
    {"memory bandwidth", "GB/s", 1008, 1555}, {"memory bus", "bit", 384, 5120},
    {"FP32", "TFLOP/s", 82.6, 19.5},          {"tensor cores, FP16", "TFLOP/s", 330, 312},
    {"price", "$/hour", 0.29, 1.20},
};
const size_t paper_card_count = COUNT(paper_cards);

const PaperModel paper_models[] = {
    {"G-1.6B", 1, 30, 2048, 16, 0, 24.077},    {"G-5.4B", 4, 28, 3968, 32, 0, 81.881},
    {"G-10B", 8, 56, 3968, 32, 0, 160.738},    {"G-20B", 16, 110, 3968, 32, 0, 312.805},
    {"L-1.5B", 1, 30, 2048, 16, 5050, 24.632}, {"L-6.0B", 4, 32, 4096, 32, 9200, 89.815},
    {"L-11B", 8, 64, 4096, 32, 9200, 175.714}, {"L-23B", 16, 128, 4096, 32, 9200, 347.539},
};
const size_t paper_model_count = COUNT(paper_models);

const PaperOffload paper_offload[] = {
    {"G-1.6B", 1, 2403, 378}, {"G-5.4B", 4, 4373, 1211}, {"G-10B", 8, 7076, 2414},
    {"L-1.5B", 1, 4824, 415}, {"L-6.0B", 4, 6367, 941},  {"L-11B", 8, 7292, 1807},
};
const size_t paper_offload_count = COUNT(paper_offload);

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
};
const size_t paper_distributed_count = COUNT(paper_distributed);

const PaperUfp paper_ufp[] = {
    {15, "G-1.6B", 1, {378.49, 331.7375, 305.52}},
    {15, "G-5.4B", 4, {1210.61, 1070.81, 996.47}},
    {15, "G-10B", 8, {2414.32, 2207.405, 2036.528}},
    {16, "L-1.5B", 1, {414.81, 331.81, 276.266}},
    {16, "L-6.0B", 4, {941.44, 895.7075, 835.798}},
    {16, "L-11B", 8, {1807.11, 1738.2525, 1574.92}},
};
const size_t paper_ufp_count = COUNT(paper_ufp);

const PaperElsewhere paper_elsewhere[] = {
    {"a100", "G-1.6B", {1, 1}, 1064}, {"a100", "G-5.4B", {1, 2}, 2952},
    {"a100", "G-10B", {1, 4}, 5772},  {"a100", "G-20B", {1, 8}, 11222},
    {"a800", "G-1.6B", {1, 1}, 1122}, {"a800", "G-5.4B", {1, 2}, 3126},
    {"a800", "G-10B", {1, 4}, 6042},  {"a800", "G-20B", {1, 8}, 11722},
};
const size_t paper_elsewhere_count = COUNT(paper_elsewhere);

const PaperReduction paper_reductions[] = {
    {5, "rtx4090", "G-1.6B", {1, 2}, {1, 1}, 0.565, 0.804},
    {5, "rtx4090", "G-5.4B", {1, 8}, {1, 4}, 0.301, 0.685},
    {5, "rtx4090", "G-10B", {2, 8}, {1, 8}, -0.028, 0.536},
    {5, "rtx4090", "G-20B", {4, 8}, {2, 8}, 0.294, 0.683},
    {6, "a100", "G-1.6B", {1, 1}, {1, 1}, 0.751, 0.888},
    {6, "a100", "G-5.4B", {1, 2}, {1, 4}, 0.456, 0.755},
    {6, "a100", "G-10B", {1, 4}, {1, 8}, 0.444, 0.749},
    {6, "a100", "G-20B", {1, 8}, {2, 8}, 0.573, 0.808},
    {7, "a800", "G-1.6B", {1, 1}, {1, 1}, 0.611, 0.825},
    {7, "a800", "G-5.4B", {1, 2}, {1, 4}, 0.099, 0.594},
    {7, "a800", "G-10B", {1, 4}, {1, 8}, 0.070, 0.581},
    {7, "a800", "G-20B", {1, 8}, {2, 8}, 0.285, 0.677},
    {12, "rtx4090", "G-1.6B", {0, 0}, {0, 0}, 0.561, 0.802},
    {12, "rtx4090", "G-5.4B", {0, 0}, {0, 0}, 0.133, 0.609},
    {12, "rtx4090", "G-10B", {0, 0}, {0, 0}, -0.028, 0.536},
    {12, "rtx4090", "G-20B", {0, 0}, {0, 0}, 0.294, 0.682},
    {13, "a100", "G-1.6B", {0, 0}, {0, 0}, 0.015, 0.556},
    {13, "a100", "G-5.4B", {0, 0}, {0, 0}, -1.270, -0.024},
    {13, "a100", "G-10B", {0, 0}, {0, 0}, -1.318, -0.045},
    {13, "a100", "G-20B", {0, 0}, {0, 0}, -0.780, 0.197},
    {14, "a800", "G-1.6B", {0, 0}, {0, 0}, 0.064, 0.578},
    {14, "a800", "G-5.4B", {0, 0}, {0, 0}, -1.147, 0.032},
    {14, "a800", "G-10B", {0, 0}, {0, 0}, -1.216, 0.0008},
    {14, "a800", "G-20B", {0, 0}, {0, 0}, -0.705, 0.231},
};
const size_t paper_reduction_count = COUNT(paper_reductions);

const PaperPrices paper_prices[] = {
    {"section 4.4.1", 0.29, 1.20, 0.69},      {"AutoDL Cloud", 0.31, NAN, 0.88},
    {"Parallel Technology", 0.50, 2.25, NAN}, {"AnyGPU", 0.40, NAN, NAN},
    {"AI Galaxy Cloud", 0.19, 1.12, NAN},     {"Hengyuan Cloud", 0.22, 1.39, 1.25},
};
const size_t paper_price_count = COUNT(paper_prices);

const double paper_average_multiplier = 1.39, paper_worst_multiplier = 2.77;

const PaperClaim paper_claims[PAPER_CLAIMS] = {
    [CLAIM_OFFLOAD] = {"section 4.3.3", "time saved over OffLoad (average)", 0.420},
    [CLAIM_OFFLOAD_WORST] = {"section 4.3.3", "faster than OffLoad (worst)", 1.125},
    [CLAIM_DISTRIBUTED_WORST] = {"section 4.3.3", "slower than distributed (worst)", 0.489},
    [CLAIM_SPEEDUP_LEAST] = {"section 4.3.2", "least speed-up of a step", 1.52},
    [CLAIM_SPEEDUP_MOST] = {"section 4.3.2", "greatest speed-up of a step", 1.76},
    [CLAIM_SPEEDUP_MEAN] = {"section 4.3.2", "mean speed-up of a step", 1.41},
    [CLAIM_COST_4090] = {"abstract", "cost saved on RTX 4090, more than", 0.536},
    [CLAIM_COST_A100] = {"abstract", "cost saved over A100, more than", 0.749},
};

/* ---- recomputed ------------------------------------------------------------------------------
 */

int paper_gpus(PaperGpus gpus) { return gpus.nodes * gpus.per_node; }

const PaperModel *paper_model(const char *model) {
    for (size_t i = 0; i < paper_model_count; i++)
        if (strcmp(paper_models[i].model, model) == 0) return &paper_models[i];
    return NULL;
}

/* The row of Table 4 that has the very nodes, else one with as many GPUs (Table 5 calls 2 x 4 of
 * them 1/8); NULL: none. */
static const PaperDistributed *distributed_row(const char *model, PaperGpus gpus) {
    const PaperDistributed *found = NULL;
    for (size_t i = 0; i < paper_distributed_count; i++) {
        const PaperDistributed *d = &paper_distributed[i];
        if (strcmp(d->model, model) || paper_gpus(d->full) != paper_gpus(gpus)) continue;
        if (d->full.nodes == gpus.nodes) return d;
        found = d;
    }
    return found;
}

PaperGpus paper_timed_gpus(const char *gpu, const char *model, PaperGpus gpus) {
    const PaperDistributed *row = strcmp(gpu, "rtx4090") == 0 ? distributed_row(model, gpus) : NULL;
    return row ? row->full : gpus;
}

double paper_full_ms(const char *gpu, const char *model, PaperGpus gpus) {
    if (strcmp(gpu, "rtx4090") == 0) {
        const PaperDistributed *row = distributed_row(model, gpus);
        return row ? row->full_ms : NAN;
    }
    for (size_t i = 0; i < paper_elsewhere_count; i++) {
        const PaperElsewhere *e = &paper_elsewhere[i];
        if (!strcmp(e->gpu, gpu) && !strcmp(e->model, model) &&
            paper_gpus(e->gpus) == paper_gpus(gpus))
            return e->full_ms;
    }
    return NAN;
}

double paper_bcd_ms(const char *model) {
    for (size_t i = 0; i < paper_ufp_count; i++)
        if (strcmp(paper_ufp[i].model, model) == 0) return paper_ufp[i].ms[0];
    for (size_t i = 0; i < paper_distributed_count; i++)
        if (strcmp(paper_distributed[i].model, model) == 0) return paper_distributed[i].bcd_ms;
    return NAN;
}

bool paper_is_cost(const PaperReduction *reduction) { return reduction->table < 12; }

/* The row of cost for the same GPU and model. */
static const PaperReduction *cost_row(const PaperReduction *reduction) {
    const PaperReduction *cost = paper_reductions;
    while (strcmp(cost->gpu, reduction->gpu) || strcmp(cost->model, reduction->model)) cost++;
    return cost;
}

PaperGpus paper_reduction_full(const PaperReduction *reduction) {
    return cost_row(reduction)->full;
}

PaperGpus paper_reduction_bcd(const PaperReduction *reduction) { return cost_row(reduction)->bcd; }

double paper_price(const char *gpu) {
    const PaperPrices *prices = &paper_prices[0];
    if (strcmp(gpu, "rtx4090") == 0) return prices->rtx4090;
    if (strcmp(gpu, "a100") == 0) return prices->a100;
    return strcmp(gpu, "a800") == 0 ? prices->a800 : NAN;
}

double paper_time_ratio(const PaperReduction *reduction) {
    PaperGpus full = paper_reduction_full(reduction), bcd = paper_reduction_bcd(reduction);
    return paper_bcd_ms(reduction->model) * paper_gpus(bcd) /
           (paper_full_ms(reduction->gpu, reduction->model, full) * paper_gpus(full));
}

double paper_row_multiplier(const PaperReduction *reduction) {
    return paper_worst_multiplier * (1 - reduction->average) / (1 - reduction->worst);
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double paper_table_multiplier(void) {
    double row[COUNT(paper_reductions)];
    for (size_t i = 0; i < COUNT(row); i++) row[i] = paper_row_multiplier(&paper_reductions[i]);
    qsort(row, COUNT(row), sizeof *row, by_size);
    return (row[(COUNT(row) - 1) / 2] + row[COUNT(row) / 2]) / 2;
}
