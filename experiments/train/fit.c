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

/* Raises max[] to the bytes of one submodel, and max[MEM_ROLES] to their sum. */
static void keep_max(size_t max[MEM_ROLES + 1], const size_t bytes[MEM_ROLES]) {
    size_t sum = 0;
    for (int role = 0; role < MEM_ROLES; role++) {
        sum += bytes[role];
        if (bytes[role] > max[role]) max[role] = bytes[role];
    }
    if (sum > max[MEM_ROLES]) max[MEM_ROLES] = sum;
}

int fit_plan(size_t device[MEM_ROLES + 1], size_t host[MEM_ROLES + 1], FitPlan plan,
             const FitTraining *t) {
    size_t there[MEM_ROLES], here[MEM_ROLES], kept = 0;
    int failed = 0, submodels = t->partition->submodels;
    /* Kept state is there of every submodel, once each had its turn. */
    int first = t->settings.keep_state ? -submodels : 0;
    bool *active = malloc((size_t)t->model->blocks * sizeof *active);
    if (!active) return error_set("memory: none left for a plan");
    memset(device, 0, (MEM_ROLES + 1) * sizeof *device);
    memset(host, 0, (MEM_ROLES + 1) * sizeof *host);
    /* A stage that nothing has trained on yet evaluates, and has the scratch for that. */
    memset(active, 0, (size_t)t->model->blocks * sizeof *active);
    if (plan(there, here, t->model, &t->settings, active)) {
        free(active);
        return -1;
    }
    keep_max(device, there);
    keep_max(host, here);
    for (int m = first; m < submodels; m++) {
        partition_active(t->partition, t->model, m < 0 ? m + submodels : m, active);
        failed = (t->blocks && rank_blocks_set_in_flight(t->blocks, t->placement, t->model,
                                                         t->pipeline, active)) ||
                 plan(there, here, t->model, &t->settings, active);
        if (failed) break;
        if (m < 0) {
            kept += there[MEM_STATE];
            continue;
        }
        if (t->settings.keep_state) there[MEM_STATE] = kept;
        keep_max(device, there);
        keep_max(host, here);
    }
    free(active);
    return failed;
}

/* What the memory to compute in must hold, and the host's next to it (none, where they are one). */
typedef struct {
    size_t device[MEM_ROLES + 1], host[MEM_ROLES + 1];
} Need;

static int need_of(Need *need, const FitMemory *memory, const FitTraining *training) {
    if (fit_plan(need->device, need->host, memory->plan, training)) return -1;
    size_t cache = training->partition->submodels > 1 ? memory->cache : 0;
    need->device[MEM_CACHE] += cache;
    need->device[MEM_ROLES] += cache;
    for (int role = 0; role <= MEM_ROLES && memory->host_bytes <= 0; role++) {
        need->device[role] += need->host[role];
        need->host[role] = 0;
    }
    return 0;
}

static bool fits_device(const Need *need, const FitMemory *memory) {
    return (double)need->device[MEM_ROLES] <= memory->bytes;
}

static bool fits_host(const Need *need, const FitMemory *memory) {
    return !need->host[MEM_ROLES] || (double)need->host[MEM_ROLES] <= memory->host_bytes;
}

/* ---- what would fit -------------------------------------------------------------------------- */

/* Ways to need less, one bit each. */
enum { MORE_SUBMODELS = 1, RECOMPUTE = 2, ACCUMULATE = 4, BF16 = 8, EVERY_WAY = 15 };
enum { MAX_SUBMODELS = 8, MAX_FOUND = 4, TEXT = 256 };

typedef struct {
    const FitMemory *memory;
    const FitTraining *now;
    int found;
    char text[TEXT];  /* what fits */
    size_t min_bytes; /* bytes of memory to compute in, of all that was tried */
} FitSearch;

/* The training with some ways taken; `partition` keeps a new partition.  -1 where there is no such
 * one. */
static int change(FitTraining *to, Partition *partition, const FitTraining *now, int ways,
                  int submodels, int parts) {
    *to = *now;
    if (ways & RECOMPUTE) to->settings.recompute = true;
    if (ways & BF16) to->settings.precision = PRECISION_BF16;
    if (ways & ACCUMULATE) {
        to->accumulate = parts;
        to->settings.batch = (now->batch + parts - 1) / parts;
    }
    if (!(ways & MORE_SUBMODELS)) return 0;
    to->partition = partition;
    return partition_balanced(partition, now->model, submodels, now->always);
}

/* Adds "--submodels 3 --recompute (1.2 GiB)". */
static void add_found(FitSearch *s, int ways, int submodels, int parts, size_t bytes) {
    char more[32] = "", accumulate[32] = "", size[32];
    if (ways & MORE_SUBMODELS) snprintf(more, sizeof more, "--submodels %d ", submodels);
    if (ways & ACCUMULATE) snprintf(accumulate, sizeof accumulate, "--accumulate %d ", parts);
    size_t used = strlen(s->text);
    snprintf(s->text + used, TEXT - used, "%s%s%s%s%s(%s)", s->found ? ", or " : "", more,
             ways & RECOMPUTE ? "--recompute " : "", accumulate,
             ways & BF16 ? "--precision bf16 " : "", format_bytes((double)bytes, size));
    s->found++;
}

static bool try_change(FitSearch *s, int ways, int submodels, int parts) {
    FitTraining training;
    Partition partition = {0};
    Need need;
    bool known = change(&training, &partition, s->now, ways, submodels, parts) == 0 &&
                 need_of(&need, s->memory, &training) == 0;
    partition_free(&partition);
    if (!known) return false;
    if (need.device[MEM_ROLES] < s->min_bytes) s->min_bytes = need.device[MEM_ROLES];
    if (!fits_device(&need, s->memory) || !fits_host(&need, s->memory)) return false;
    add_found(s, ways, submodels, parts, need.device[MEM_ROLES]);
    return true;
}

/* Ways that do not change anything here. */
static bool no_way(const FitSearch *s, int ways) {
    const StageSettings *now = &s->now->settings;
    return ((ways & RECOMPUTE) && now->recompute) ||
           ((ways & BF16) && (!s->memory->bf16 || now->precision == PRECISION_BF16)) ||
           ((ways & MORE_SUBMODELS) && now->offload);
}

/* The fewest submodels and the largest part of a batch with which these ways do. */
static void try_ways(FitSearch *s, int ways) {
    int submodels = s->now->partition->submodels, batch = s->now->batch;
    int last = ways & MORE_SUBMODELS ? MAX_SUBMODELS : submodels + 1;
    if (no_way(s, ways)) return;
    for (int m = submodels + 1; m <= last; m++) {
        if (!(ways & ACCUMULATE)) {
            if (try_change(s, ways, m, 0)) return;
            continue;
        }
        for (int parts = 2 * s->now->accumulate; parts < 2 * batch; parts *= 2)
            if (try_change(s, ways, m, parts < batch ? parts : batch)) return;
    }
}

static int count_ways(int ways) {
    return (ways & 1) + (ways >> 1 & 1) + (ways >> 2 & 1) + (ways >> 3);
}

/* One way alone, where that is enough; else two together, and so on. */
static void search(FitSearch *s) {
    for (int count = 1; count <= 4 && !s->found; count++)
        for (int ways = 1; ways <= EVERY_WAY && s->found < MAX_FOUND; ways++)
            if (count_ways(ways) == count) try_ways(s, ways);
}

/* "parameters 5.8 GiB, gradients 5.8 GiB, ..." */
static void list_roles(char text[TEXT], const size_t roles[MEM_ROLES + 1]) {
    char size[32];
    *text = 0;
    for (int role = 0; role < MEM_ROLES; role++) {
        size_t used = strlen(text);
        if (roles[role] * 200 >= roles[MEM_ROLES]) /* less than half a percent says nothing */
            snprintf(text + used, TEXT - used, "%s%s %s", used ? ", " : "", mem_role_names[role],
                     format_bytes((double)roles[role], size));
    }
}

static bool fits_without_cache(const Need *need, const FitMemory *memory) {
    return (double)(need->device[MEM_ROLES] - need->device[MEM_CACHE]) <= memory->bytes &&
           fits_host(need, memory);
}

/* What the training itself leaves, in whole megabytes. */
static void advise_cache(FitSearch *s, double left) {
    snprintf(s->text, TEXT, "--device-cache %.0fM", floor(left / 1048576));
    s->found++;
}

int fit_check(const FitMemory *memory, const FitTraining *training) {
    Need need;
    if (need_of(&need, memory, training)) return -1;
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
