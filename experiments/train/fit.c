#include "fit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ref/error.h"
#include "progress.h" /* format_bytes */

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
    bool *active = calloc((size_t)t->model->blocks, sizeof *active);
    if (!active) return error_set("memory: none left for a plan");
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

/* Changes that save memory, one bit each. */
enum { MORE_SUBMODELS = 1, RECOMPUTE = 2, ACCUMULATE = 4, BF16 = 8, ALL_CHANGES = 15 };
enum { MAX_SUBMODELS = 8, MAX_FOUND = 4, TEXT = 256 };

typedef struct {
    const FitMemory *memory;
    const FitTraining *now;
    int found;
    char text[TEXT];  /* the flags found so far */
    size_t min_bytes; /* the smallest need of all that was tried, of memory to compute in */
} FitSearch;

/* Overwrites `to` with the changed training, which points at `partition` where that changes.  -1 if
 * the model cannot be cut into so many submodels. */
static int apply(FitTraining *to, Partition *partition, const FitTraining *now, int changes,
                 int submodels, int parts) {
    *to = *now;
    if (changes & RECOMPUTE) to->settings.recompute = true;
    if (changes & BF16) to->settings.precision = PRECISION_BF16;
    if (changes & ACCUMULATE) {
        to->accumulate = parts;
        to->settings.batch = (now->batch + parts - 1) / parts;
    }
    if (!(changes & MORE_SUBMODELS)) return 0;
    to->partition = partition;
    return partition_balanced(partition, now->model, submodels, now->always);
}

/* Adds "--submodels 3 --recompute (1.2 GiB)". */
static void add_found(FitSearch *s, int changes, int submodels, int parts, size_t bytes) {
    char more[32] = "", accumulate[32] = "", size[32];
    if (changes & MORE_SUBMODELS) snprintf(more, sizeof more, "--submodels %d ", submodels);
    if (changes & ACCUMULATE) snprintf(accumulate, sizeof accumulate, "--accumulate %d ", parts);
    size_t used = strlen(s->text);
    snprintf(s->text + used, TEXT - used, "%s%s%s%s%s(%s)", s->found ? ", or " : "", more,
             changes & RECOMPUTE ? "--recompute " : "", accumulate,
             changes & BF16 ? "--precision bf16 " : "", format_bytes((double)bytes, size));
    s->found++;
}

/* Returns true if the training fits with these changes. */
static bool try_changes(FitSearch *s, int changes, int submodels, int parts) {
    FitTraining training;
    Partition partition = {0};
    FitBytes need;
    bool possible = apply(&training, &partition, s->now, changes, submodels, parts) == 0 &&
                    plan_with_cache(&need, s->memory, &training) == 0;
    partition_free(&partition);
    if (!possible) return false;
    if (need.device[MEM_ROLES] < s->min_bytes) s->min_bytes = need.device[MEM_ROLES];
    if (!fits_device(&need, s->memory) || !fits_host(&need, s->memory)) return false;
    add_found(s, changes, submodels, parts, need.device[MEM_ROLES]);
    return true;
}

/* Returns true if one of the changes has been made already, or cannot be. */
static bool is_impossible(const FitSearch *s, int changes) {
    const StageSettings *now = &s->now->settings;
    return ((changes & RECOMPUTE) && now->recompute) ||
           ((changes & BF16) && (!s->memory->bf16 || now->precision == PRECISION_BF16)) ||
           ((changes & MORE_SUBMODELS) && now->offload);
}

/* Finds the fewest submodels and the fewest parts of a batch with which these changes suffice. */
static void search_sizes(FitSearch *s, int changes) {
    int submodels = s->now->partition->submodels, batch = s->now->batch;
    int last = changes & MORE_SUBMODELS ? MAX_SUBMODELS : submodels + 1;
    if (is_impossible(s, changes)) return;
    for (int m = submodels + 1; m <= last; m++) {
        if (!(changes & ACCUMULATE)) {
            if (try_changes(s, changes, m, 0)) return;
            continue;
        }
        for (int parts = 2 * s->now->accumulate; parts < 2 * batch; parts *= 2)
            if (try_changes(s, changes, m, parts < batch ? parts : batch)) return;
    }
}

/* Tries each change alone; if none suffices, two together, and so on. */
static void search(FitSearch *s) {
    for (int count = 1; count <= 4 && !s->found; count++)
        for (int changes = 1; changes <= ALL_CHANGES && s->found < MAX_FOUND; changes++)
            if (__builtin_popcount((unsigned)changes) == count) search_sizes(s, changes);
}

/* "parameters 5.8 GiB, gradients 5.8 GiB, ..." */
static void list_roles(char text[TEXT], const size_t roles[MEM_ROLES + 1]) {
    char size[32];
    *text = 0;
    for (int role = 0; role < MEM_ROLES; role++) {
        size_t used = strlen(text);
        if (roles[role] * 200 >= roles[MEM_ROLES]) /* half a percent or more */
            snprintf(text + used, TEXT - used, "%s%s %s", used ? ", " : "", mem_role_names[role],
                     format_bytes((double)roles[role], size));
    }
}

static bool fits_without_cache(const FitBytes *need, const FitMemory *memory) {
    return (double)(need->device[MEM_ROLES] - need->device[MEM_CACHE]) <= memory->bytes &&
           fits_host(need, memory);
}

/* Suggests a cache of what the training itself leaves free, in whole MiB. */
static void advise_cache(FitSearch *s, double left) {
    snprintf(s->text, TEXT, "--device-cache %.0fM", floor(left / 1048576));
    s->found++;
}

int fit_check(const FitMemory *memory, const FitTraining *training) {
    FitBytes need;
    if (plan_with_cache(&need, memory, training)) return -1;
    bool on_device = !fits_device(&need, memory);
    if (!on_device && fits_host(&need, memory)) return 0;
    FitSearch s = {.memory = memory, .now = training, .min_bytes = need.device[MEM_ROLES]};
    char roles[TEXT], needs[32], has[32], min_text[32];
    const size_t *bytes = on_device ? need.device : need.host;
    list_roles(roles, bytes);
    format_bytes((double)bytes[MEM_ROLES], needs);
    format_bytes(on_device ? memory->bytes : memory->host_bytes, has);
    if (on_device && bytes[MEM_CACHE] && fits_without_cache(&need, memory))
        advise_cache(&s, memory->bytes - (double)(bytes[MEM_ROLES] - bytes[MEM_CACHE]));
    else
        search(&s);
    if (!s.found)
        snprintf(s.text, TEXT, "with %srecompute and a sample at a time it still needs %s",
                 training->settings.offload ? "" : "up to 8 submodels, ",
                 format_bytes((double)s.min_bytes, min_text));
    return error_set("memory: %s needs %s%s (%s), %s has %s; %s%s", training->model->name, needs,
                     on_device ? "" : " of host memory", roles,
                     on_device ? memory->name : "this machine", has, s.found ? "it fits with " : "",
                     s.text);
}
