#include "schedule.h"

#include <stdlib.h>

#include "../ref/error.h"
#include "list_scheduler.h"

const char *const schedule_names[SCHEDULE_KINDS] = {"1f1b", "zero-bubble"};

int schedule_bound(const SchedulePlan *plan, int chunk) {
    int v = (plan->chunks + plan->ranks - 1) / plan->ranks; /* chunks per rank */
    if (chunk < plan->lowest) return 2 + plan->slack;
    int above = plan->kind == SCHEDULE_ZERO_BUBBLE ? plan->chunks : plan->chunks - chunk;
    return (above + v - 1) / v + (v > 1) + plan->slack;
}

/* ---- create and destroy ---- */

static int open_lists(ListScheduler *s) {
    const SchedulePlan *plan = s->plan;
    s->schedule->rank = calloc((size_t)plan->ranks, sizeof *s->schedule->rank);
    if (!s->schedule->rank) return -1;
    for (int r = 0; r < plan->ranks; r++) {
        size_t capacity = 0; /* for each chunk all passes, two sends and two receives */
        for (int c = 0; c < plan->chunks; c++)
            if (plan->rank_of[c] == r) capacity += (size_t)plan->micro_batches * (PASSES + 4);
        s->schedule->rank[r].task = malloc((capacity + 1) * sizeof(Task));
        if (!s->schedule->rank[r].task) return -1;
    }
    return 0;
}

/* Links the chunks of each rank in ascending order, and computes their bounds. */
static void prepare_chunks(ListScheduler *s) {
    const SchedulePlan *plan = s->plan;
    for (int r = 0; r < plan->ranks; r++) s->rank[r].lowest = plan->chunks;
    for (int c = plan->chunks - 1; c >= 0; c--) {
        SchedulerRank *rank = &s->rank[plan->rank_of[c]];
        s->chunk[c].above = rank->lowest;
        s->chunk[c].bound = schedule_bound(plan, c);
        rank->lowest = c;
    }
}

static int reserve(ListScheduler *s) {
    const SchedulePlan *plan = s->plan;
    size_t micro = (size_t)plan->chunks * (size_t)plan->micro_batches;
    size_t channels = (size_t)plan->ranks * (size_t)plan->ranks * 2;
    s->micro = calloc(micro, sizeof *s->micro);
    s->chunk = calloc((size_t)plan->chunks, sizeof *s->chunk);
    s->rank = calloc((size_t)plan->ranks, sizeof *s->rank);
    s->channel = calloc(channels, sizeof *s->channel);
    if (!s->micro || !s->chunk || !s->rank || !s->channel) return -1;
    for (size_t i = 0; i < channels; i++) s->channel[i].end = &s->channel[i].first;
    for (size_t i = 0; i < micro; i++)
        for (int pass = 0; pass < PASSES; pass++) s->micro[i].done[pass] = -1;
    prepare_chunks(s);
    return open_lists(s);
}

static void release(ListScheduler *s) {
    free(s->channel);
    free(s->micro);
    free(s->chunk);
    free(s->rank);
}

int schedule_make(Schedule *schedule, const SchedulePlan *plan) {
    *schedule = (Schedule){.ranks = plan->ranks, .lowest = plan->lowest};
    ListScheduler s = {.plan = plan, .schedule = schedule};
    int failed = reserve(&s);
    if (!failed) scheduler_run(&s);
    release(&s);
    if (!failed) return 0;
    schedule_free(schedule);
    return error_set("schedule: out of memory");
}

void schedule_free(Schedule *schedule) {
    for (int r = 0; schedule->rank && r < schedule->ranks; r++) free(schedule->rank[r].task);
    free(schedule->rank);
    *schedule = (Schedule){0};
}
