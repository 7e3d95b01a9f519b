#include "fit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/error.h"
#include "../alloc.h"
#include "../text.h"

int fit_plan_cpu(size_t device[MEM_ROLES], size_t host[MEM_ROLES], const Model *model,
                 const StageSettings *settings, const bool *active) {
    memset(host, 0, MEM_ROLES * sizeof *host);
    return memory_plan(device, model, settings, active);
}

/* Raises each role of max[], and the total at its end, to what one submodel needs. */
static void raise_to(size_t max[MEM_ROLES + 1], const size_t bytes[MEM_ROLES]) {
    size_t sum = 0;
    for (int role = 0; role < MEM_ROLES; role++) {
        sum += bytes[role];
        if (bytes[role] > max[role]) max[role] = bytes[role];
    }
    if (sum > max[MEM_ROLES]) max[MEM_ROLES] = sum;
}

int fit_plan(FitBytes *max, FitPlan plan, const FitTraining *t) {
    size_t device[MEM_ROLES], host[MEM_ROLES], kept = 0;
    int submodels = t->partition->submodels;
    /* With kept state the submodels are gone through twice: first to add up their states. */
    int first = t->settings.keep_state ? -submodels : 0;
    bool *active = xcalloc((size_t)t->model->blocks, sizeof *active);
    *max = (FitBytes){.device = {0}};
    /* Before the first step no block is active, and the stage has the scratch of an evaluation. */
    int failed = plan(device, host, t->model, &t->settings, active);
    if (!failed) {
        raise_to(max->device, device);
        raise_to(max->host, host);
    }
    for (int m = first; m < submodels && !failed; m++) {
        partition_active(t->partition, t->model, m < 0 ? m + submodels : m, active);
        failed = (t->blocks && rank_blocks_set_in_flight(t->blocks, t->placement, t->model,
                                                         t->pipeline, active)) ||
                 plan(device, host, t->model, &t->settings, active);
        if (failed) break;
        if (m < 0) {
            kept += device[MEM_STATE];
            continue;
        }
        if (t->settings.keep_state) device[MEM_STATE] = kept;
        raise_to(max->device, device);
        raise_to(max->host, host);
    }
    free(active);
    return failed ? -1 : 0;
}

/* As fit_plan, with the prefix cache.  Where host memory and the memory to compute in are the same,
 * all of it is counted as the latter. */
static int plan_with_cache(FitBytes *need, const FitMemory *memory, const FitTraining *training) {
    if (fit_plan(need, memory->plan, training)) return -1;
    size_t cache = training->partition->submodels > 1 ? memory->cache : 0;
    need->device[MEM_CACHE] += cache;
    need->device[MEM_ROLES] += cache;
    for (int role = 0; role <= MEM_ROLES && memory->host_bytes <= 0; role++) {
        need->device[role] += need->host[role];
        need->host[role] = 0;
    }
    return 0;
}

static bool fits_device(const FitBytes *need, const FitMemory *memory) {
    return (double)need->device[MEM_ROLES] <= memory->bytes;
}

static bool fits_host(const FitBytes *need, const FitMemory *memory) {
    return !need->host[MEM_ROLES] || (double)need->host[MEM_ROLES] <= memory->host_bytes;
}

/* ---- what would fit -------------------------------------------------------------------------- */

enum { MAX_SUBMODELS = 8 };

/* Returns true if the training, cut into so many submodels, fits.  Overwrites *bytes with its need
 * of memory to compute in; SIZE_MAX if the model cannot be cut so. */
static bool fits_with(size_t *bytes, const FitMemory *memory, FitTraining training, int submodels) {
    Partition partition = {0};
    FitBytes need;
    bool possible = true;
    if (submodels > training.partition->submodels) {
        possible = partition_balanced(&partition, training.model, submodels, training.always) == 0;
        training.partition = &partition;
    }
    possible = possible && plan_with_cache(&need, memory, &training) == 0;
    partition_free(&partition);
    *bytes = possible ? need.device[MEM_ROLES] : SIZE_MAX;
    return possible && fits_device(&need, memory) && fits_host(&need, memory);
}

/* "it fits with --submodels 3 --recompute (1.2 GiB)". */
static Text list_changes(const FitTraining *now, const FitTraining *changed, int submodels,
                         size_t bytes) {
    const StageSettings *from = &now->settings, *to = &changed->settings;
    Text text = text_of("it fits with ");
    if (submodels > now->partition->submodels) text_add(&text, "--submodels %d ", submodels);
    if (to->recompute && !from->recompute) text_add(&text, "--recompute ");
    if (changed->accumulate > now->accumulate)
        text_add(&text, "--accumulate %d ", changed->accumulate);
    if (to->precision != from->precision) text_add(&text, "--precision bf16 ");
    text_add(&text, "(%s)", format_bytes((double)bytes).text);
    return text;
}

/* Returns the first changes with which the training fits.  More submodels are tried first, then
 * recompute, then smaller parts of a batch, and bf16 last.  If nothing helps, returns the least
 * that was needed. */
static Text advise(const FitMemory *memory, const FitTraining *now) {
    FitTraining t = *now;
    int submodels = now->partition->submodels;
    int last = now->settings.offload || submodels > MAX_SUBMODELS ? submodels : MAX_SUBMODELS;
    size_t bytes, min_bytes = SIZE_MAX;
    for (int bf16 = 0; bf16 <= memory->bf16; bf16++)
        for (int parts = now->accumulate; parts < 2 * now->batch; parts *= 2)
            for (int recompute = now->settings.recompute; recompute <= 1; recompute++)
                for (int m = submodels; m <= last; m++) {
                    t.accumulate = parts < now->batch ? parts : now->batch;
                    t.settings.batch = (now->batch + t.accumulate - 1) / t.accumulate;
                    t.settings.recompute = recompute;
                    if (bf16) t.settings.precision = PRECISION_BF16;
                    if (fits_with(&bytes, memory, t, m)) return list_changes(now, &t, m, bytes);
                    if (bytes < min_bytes) min_bytes = bytes;
                }
    return text_of("with %srecompute and a sample at a time it still needs %s",
                   now->settings.offload ? "" : "up to 8 submodels, ",
                   format_bytes((double)min_bytes).text);
}

/* "parameters 5.8 GiB, gradients 5.8 GiB, ..." */
static Text list_roles(const size_t roles[MEM_ROLES + 1]) {
    Text text = {""};
    for (int role = 0; role < MEM_ROLES; role++)
        if (roles[role] * 200 >= roles[MEM_ROLES]) /* half a percent or more */
            text_add(&text, "%s%s %s", *text.text ? ", " : "", mem_role_names[role],
                     format_bytes((double)roles[role]).text);
    return text;
}

int fit_check(const FitMemory *memory, const FitTraining *training) {
    FitBytes need;
    if (plan_with_cache(&need, memory, training)) return -1;
    bool on_device = !fits_device(&need, memory);
    if (!on_device && fits_host(&need, memory)) return 0;
    const size_t *bytes = on_device ? need.device : need.host;
    /* What the training itself leaves free for a cache, which may be nothing. */
    const double left = memory->bytes - (double)(bytes[MEM_ROLES] - bytes[MEM_CACHE]);
    Text advice = on_device && bytes[MEM_CACHE] && left >= 0 && fits_host(&need, memory)
                      ? text_of("it fits with --device-cache %.0fM", floor(left / 1048576))
                      : advise(memory, training);
    return error_set(
        "memory: %s needs %s%s (%s), %s has %s; %s", training->model->name,
        format_bytes((double)bytes[MEM_ROLES]).text, on_device ? "" : " of host memory",
        list_roles(bytes).text, on_device ? memory->name : "this machine",
        format_bytes(on_device ? memory->bytes : memory->host_bytes).text, advice.text);
}
