/* Whether a training fits, and what would make it fit. */
#include "fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../dist/cluster.h"
#include "../../ref/base/alloc.h"
#include "../../ref/base/error.h"
#include "../../ref/memory.h"
#include "../base/alloc.h"
#include "../base/cgroup.h"
#include "../base/text.h"

/* Where host memory and the memory to compute in are the same, counts all of it as the latter. */
static void join_memories(FitBytes *need, const FitMemory *memory) {
    for (int role = 0; role <= MEM_ROLES && memory->host_bytes <= 0; role++) {
        need->device[role] += need->host[role];
        need->host[role] = 0;
    }
}

static void add_cache(size_t bytes[MEM_ROLES + 1], size_t cache) {
    bytes[MEM_CACHE] += cache;
    bytes[MEM_ROLES] += cache;
}

static void max_bytes(size_t max[MEM_ROLES + 1], const size_t bytes[MEM_ROLES + 1]) {
    for (int role = 0; role <= MEM_ROLES; role++) max[role] = size_max(max[role], bytes[role]);
}

/* The lowest rank on the machine of a rank.  Threads share one. */
static int machine_of(const Setup *s, int rank) { return s->machine ? s->machine[rank] : 0; }

/* Whether each rank computes in a memory of its own: a process on its GPU. */
static bool has_own_device(const FitMemory *memory, const Setup *s) {
    return s->options.world && memory->host_bytes > 0;
}

/* Overwrites *need with the bytes of the training and its prefix cache: those of all ranks of a
 * machine together, on the fullest one, or of the fullest rank where each has a GPU.  A rank of
 * each replica keeps a --cache of its own, which may be any of its ranks. */
static int plan_need(FitBytes *need, const FitMemory *memory, const Setup *s) {
    const int ranks = s->ranks ? s->ranks : 1;
    FitBytes *sum = xcalloc((size_t)ranks, sizeof *sum); /* of each machine, at its lowest rank */
    int *count = xcalloc((size_t)ranks, sizeof *count);  /* of the ranks on it */
    int failed = 0;
    *need = (FitBytes){.device = {0}};
    for (int r = 0; r < ranks; r++) {
        const int machine = machine_of(s, r);
        FitBytes one;
        failed = fit_plan(&one, s, r);
        if (failed) break;
        const size_t messages = fit_message_bytes(s, r);
        one.device[MEM_WORKSPACE] += messages;
        one.device[MEM_ROLES] += messages;
        add_cache(one.host, fit_inferred_bytes(s, r));
        join_memories(&one, memory);
        fit_add(sum[machine].host, one.host);
        if (has_own_device(memory, s))
            max_bytes(need->device, one.device);
        else
            fit_add(sum[machine].device, one.device);
        count[machine]++;
    }
    for (int m = 0; m < ranks && !failed; m++) {
        const int caches = count[m] < s->options.replicas ? count[m] : s->options.replicas;
        add_cache(sum[m].host, (size_t)(s->ranks ? caches : 1) *
                                   (fit_cache_bytes(s) + fit_cache_batch_bytes(s)));
        max_bytes(need->device, sum[m].device);
        max_bytes(need->host, sum[m].host);
    }
    if (!s->ranks && s->bcd.partition.submodels > 1)
        add_cache(need->device, s->options.device_cache);
    join_memories(need, memory);
    free(count);
    free(sum);
    return failed ? -1 : 0;
}

static bool fits_device(const FitBytes *need, const FitMemory *memory) {
    return (double)need->device[MEM_ROLES] <= memory->bytes;
}

static bool fits_host(const FitBytes *need, const FitMemory *memory) {
    return !need->host[MEM_ROLES] || (double)need->host[MEM_ROLES] <= memory->host_bytes;
}

static bool fits(const FitBytes *need, const FitMemory *memory) {
    return fits_device(need, memory) && fits_host(need, memory);
}

/* Sets the error that says which memory lacks, and returns -1.  `what` it is for; `whose` need, or
 * NULL for the bytes of each role; and what to do. */
static int refuse(const Setup *s, const FitBytes *need, const FitMemory *memory, const char *what,
                  const char *whose, const char *advice) {
    const bool on_device = !fits_device(need, memory);
    const size_t *bytes = on_device ? need->device : need->host;
    const bool reserves = on_device && s->options.device == DEVICE_CUDA;
    return error_set(
        "memory: %s%s needs %s%s %s%s%s, %s has %s%s%s%s", what, s->model->name,
        format_bytes((double)bytes[MEM_ROLES]).text, on_device ? "" : " of host memory",
        whose ? "" : "(", whose ? whose : fit_list_roles(bytes).text, whose ? "" : ")",
        on_device ? memory->name : "this machine",
        format_bytes(on_device ? memory->bytes : memory->host_bytes).text,
        reserves ? " beside a reserve for libraries" : "", *advice ? "; " : "", advice);
}

/* ---- what would fit -------------------------------------------------------------------------- */

enum { MANY_SUBMODELS = 8 };

FitChoice fit_choice(const Setup *s) {
    return (FitChoice){.submodels = s->bcd.partition.submodels,
                       .accumulate = s->options.accumulate,
                       .recompute = s->stage_settings.recompute,
                       .precision = s->stage_settings.precision,
                       .optimizer = s->stage_settings.optimizer.kind};
}

/* Overwrites *changed with the setup as it would be with this choice.  It shares all but a
 * partition of another number of submodels, which close_choice frees.  -1 and an error. */
static int open_choice(Setup *changed, const Setup *s, const FitChoice *choice) {
    const FitChoice now = fit_choice(s);
    const int batch = s->options.batch, parts = choice->accumulate;
    StageSettings *settings = &changed->stage_settings;
    *changed = *s;
    changed->options.accumulate = parts;
    settings->batch = (batch + parts - 1) / parts;
    settings->recompute = choice->recompute;
    settings->precision = choice->precision;
    if (choice->optimizer != now.optimizer)
        settings->optimizer = optimizer_defaults(choice->optimizer);
    if (choice->submodels == now.submodels) return 0;
    changed->options.submodels = choice->submodels;
    setup_resolve_phase(&changed->options);
    changed->bcd.rule = changed->options.switch_rule;
    changed->bcd.partition = (Partition){0};
    return partition_balanced(&changed->bcd.partition, s->model, choice->submodels,
                              s->options.always_active);
}

static void close_choice(Setup *changed, const Setup *s) {
    if (changed->bcd.partition.of_block != s->bcd.partition.of_block)
        partition_free(&changed->bcd.partition);
}

int fit_plan_choice(FitBytes *bytes, const Setup *s, const FitChoice *choice) {
    Setup changed;
    const int failed = open_choice(&changed, s, choice) || fit_plan(bytes, &changed, 0);
    close_choice(&changed, s);
    return failed ? -1 : 0;
}

/* Returns true if the training fits with this choice.  Overwrites *bytes with its need of memory to
 * compute in; SIZE_MAX if the model cannot be cut so. */
static bool fits_with(size_t *bytes, const FitMemory *memory, const Setup *s,
                      const FitChoice *choice) {
    Setup changed;
    FitBytes need;
    const bool possible =
        open_choice(&changed, s, choice) == 0 && plan_need(&need, memory, &changed) == 0;
    close_choice(&changed, s);
    *bytes = possible ? need.device[MEM_ROLES] : SIZE_MAX;
    return possible && fits(&need, memory);
}

/* "it fits with --submodels 3 --recompute (1.2 GiB)". */
static Text list_changes(const Setup *s, const FitChoice *to, size_t bytes) {
    const FitChoice choice = fit_choice(s), *const from = &choice;
    Text text = text_of("it fits with ");
    if (to->submodels > from->submodels) text_add(&text, "--submodels %d ", to->submodels);
    if (to->recompute && !from->recompute) text_add(&text, "--recompute ");
    if (to->accumulate > from->accumulate) text_add(&text, "--accumulate %d ", to->accumulate);
    if (to->precision != from->precision) text_add(&text, "--precision bf16 ");
    text_add(&text, "(%s)", format_bytes((double)bytes).text);
    if (to->accumulate > from->accumulate && setup_has_batch_norm(s->model))
        text_add(&text, "; its batch norms then see smaller batches, which changes the result");
    return text;
}

/* The number of submodels that is tried after m: more and more, at last a block each. */
static int next_submodels(int m, int most) {
    if (m < MANY_SUBMODELS || m >= most) return m + 1;
    return 2 * m < most ? 2 * m : most;
}

/* Returns the first changes with which the training fits: those that make the same update before
 * those that do not.  Smaller parts of a batch are tried first, then recompute, then more
 * submodels, then, where batch norms see the difference, parts, and bf16 last.  If nothing helps,
 * returns the least that was needed. */
static Text advise(const FitMemory *memory, const Setup *s) {
    const FitChoice now = fit_choice(s);
    FitChoice next = now;
    const int end = 2 * s->options.batch;
    const bool offload = s->stage_settings.offload, norm = setup_has_batch_norm(s->model);
    const int most = offload ? now.submodels : s->model->blocks;
    size_t bytes, min_bytes = SIZE_MAX;
    for (int bf16 = 0; bf16 <= memory->bf16; bf16++)
        for (int late = now.accumulate; late < end; late = norm ? 2 * late : end)
            for (int m = now.submodels; m <= most; m = next_submodels(m, most))
                for (int recompute = now.recompute; recompute <= 1; recompute++)
                    for (int parts = late; parts < end; parts = norm ? end : 2 * parts) {
                        next.submodels = m;
                        next.recompute = recompute;
                        next.accumulate = parts < s->options.batch ? parts : s->options.batch;
                        if (bf16) next.precision = PRECISION_BF16;
                        if (fits_with(&bytes, memory, s, &next))
                            return list_changes(s, &next, bytes);
                        if (bytes < min_bytes) min_bytes = bytes;
                    }
    return text_of("with %srecompute and a sample at a time it still needs %s%s",
                   offload ? "" : "any number of submodels, ", format_bytes((double)min_bytes).text,
                   s->model->tokens ? "; a shorter --context needs less" : "");
}

Text fit_list_roles(const size_t roles[MEM_ROLES + 1]) {
    Text text = {""};
    for (int role = 0; role < MEM_ROLES; role++)
        if (roles[role] * 200 >= roles[MEM_ROLES]) /* half a percent or more */
            text_add(&text, "%s%s %s", *text.text ? ", " : "", mem_role_names[role],
                     format_bytes((double)roles[role]).text);
    return text;
}

/* Advises a smaller cache where that is enough, and otherwise changes of the training. */
static Text advise_on(const FitBytes *need, const FitMemory *memory, const Setup *s) {
    const bool on_device = !fits_device(need, memory);
    const size_t *bytes = on_device ? need->device : need->host;
    const bool of_host = !on_device || memory->host_bytes <= 0; /* whether host memory counts */
    const bool in_host = fit_cache_bytes(s) > 0 && of_host;
    /* What the training itself leaves free for a cache, which may be nothing. */
    const double left = (on_device ? memory->bytes : memory->host_bytes) -
                        (double)(bytes[MEM_ROLES] - bytes[MEM_CACHE]) -
                        (of_host ? (double)fit_cache_batch_bytes(s) : 0);
    /* Beside a cache of the device, host memory holds a batch alone. */
    const bool no_cache = on_device ? !bytes[MEM_CACHE] : !fit_cache_bytes(s);
    if ((on_device && !fits_host(need, memory)) || no_cache || left < 0) return advise(memory, s);
    return text_of("it fits with --%scache %.0fM", in_host ? "" : "device-", floor(left / 1048576));
}

int fit_check(const FitMemory *memory, Setup *s) {
    FitBytes need;
    if (plan_need(&need, memory, s)) return -1;
    while (!fits(&need, memory) && s->pipeline.infer_ranks > 0) {
        s->pipeline.infer_ranks--;
        if (plan_need(&need, memory, s)) return -1;
    }
    if (fits(&need, memory)) return 0;
    if (!s->ranks) return refuse(s, &need, memory, "", NULL, advise_on(&need, memory, s).text);
    const bool one_rank = has_own_device(memory, s) && !fits_device(&need, memory);
    return refuse(s, &need, memory, "",
                  one_rank           ? "on the fullest rank"
                  : s->options.world ? "for all ranks of a machine"
                                     : "for all ranks together",
                  "more submodels, --recompute or more ranks would need less");
}

/* ---- this machine ---------------------------------------------------------------------------- */

/* Overwrites *memory with what there is here, and *info, which has its name.  -1 and an error. */
static int find_memory(FitMemory *memory, DeviceInfo *info, const Setup *s) {
    const double installed = memory_here();
    *memory = (FitMemory){.name = "this machine", .bytes = installed, .bf16 = s->device};
    if (s->options.device != DEVICE_CUDA) return 0;
    if (s->device->info(info)) return -1;
    memory->name = info->name;
    memory->bytes = gpu_usable_bytes((double)info->free_bytes);
    memory->host_bytes = installed;
    if (setup_uses_nccl(&s->options)) memory->bytes -= (double)s->device->transport_nccl_bytes();
    return 0;
}

int fit_check_here(Setup *s) {
    FitMemory memory;
    DeviceInfo info;
    if (find_memory(&memory, &info, s)) return -1;
    return fit_check(&memory, s);
}

int fit_check_evaluation_here(const Setup *s) {
    FitMemory memory;
    DeviceInfo info;
    FitBytes need;
    if (find_memory(&memory, &info, s) || fit_plan_evaluation(&need, s)) return -1;
    join_memories(&need, &memory);
    if (fits(&need, &memory)) return 0;
    return refuse(s, &need, &memory, "to evaluate, ", NULL,
                  s->options.batch > 1 ? "a smaller batch needs less" : "");
}
