/* Makes schedules by list scheduling (Graham 1966): a step is simulated, and at each moment the
 * rank that can start first takes the most urgent pass that is ready.  The lists record a
 * simulation that reached its end, so they cannot deadlock, and like it they respect the bound of
 * each chunk.  It always reaches its end, because chunks take micro-batches in order: the oldest
 * unfinished one never finds the chunk above it full. */
#include "schedule.h"

#include <math.h>
#include <stdlib.h>

#include "../ref/base/error.h"

const char *const schedule_names[SCHEDULE_KINDS] = {"1f1b", "zero-bubble"};

int schedule_bound(const SchedulePlan *plan, int chunk) {
    int v = (plan->chunks + plan->ranks - 1) / plan->ranks; /* chunks per rank */
    if (chunk < plan->lowest) return 2 + plan->slack;
    int above = plan->kind == SCHEDULE_ZERO_BUBBLE ? plan->chunks : plan->chunks - chunk;
    return (above + v - 1) / v + (v > 1) + plan->slack;
}

/* A message on its way to a chunk. */
typedef struct SchedulerMessage {
    struct SchedulerMessage *next; /* sent later through the same channel */
    Task task;                     /* the receiver's */
    bool received;
} SchedulerMessage;

/* What one rank has sent to another, values or gradients, and that has not received yet. */
typedef struct {
    SchedulerMessage *first, **end;
} SchedulerChannel;

typedef struct {
    Pass pass;
    int chunk, urgency;
} Choice;

/* A micro-batch on a chunk. */
typedef struct {
    double done[PASSES];         /* when the pass ended; -1: not yet */
    SchedulerMessage message[2]; /* its input and its gradient, if they come from another rank */
} SchedulerMicroBatch;

typedef struct {
    int next[PASSES];     /* the micro-batch that comes next */
    double ready[PASSES]; /* when that pass could start; -1: not yet */
    int above;            /* the next chunk of the same rank, or plan->chunks */
    int bound;            /* see schedule_bound */
} SchedulerChunk;

typedef struct {
    int lowest;    /* its lowest chunk */
    double clock;  /* when it has finished its last task */
    Choice choice; /* the pass that it would run next */
    double start;  /* when that starts; INFINITY: there is none */
} SchedulerRank;

typedef struct {
    const SchedulePlan *plan;
    Schedule *schedule;
    SchedulerMicroBatch *micro; /* [chunks][micro_batches] */
    SchedulerChunk *chunk;      /* [chunks] */
    SchedulerRank *rank;        /* [ranks] */
    SchedulerChannel *channel;  /* [ranks][ranks][2] */
} ListScheduler;

static SchedulerMicroBatch *micro_batch(const ListScheduler *s, int chunk, int micro) {
    return &s->micro[(size_t)chunk * (size_t)s->plan->micro_batches + (size_t)micro];
}

/* Returns true if a chunk has such a pass at all. */
static bool runs(const SchedulePlan *plan, int chunk, Pass pass) {
    switch (pass) {
        case PASS_FORWARD:
            return chunk >= plan->first;
        case PASS_INPUT_GRADIENT:
            return chunk >= plan->lowest;
        default:
            return chunk >= plan->lowest && plan->cost[chunk].pass[PASS_WEIGHT_GRADIENT] > 0;
    }
}

/* ---- what may start, and when ---- */

/* Returns the time that a message takes. */
static double transfer_time(const SchedulePlan *plan, int from, int to) {
    if (!plan->transfer || plan->rank_of[from] == plan->rank_of[to]) return 0;
    return plan->transfer[from < to ? from : to];
}

/* Returns when the result of a pass on chunk `from` arrives at chunk `to`, or -1 if the pass is not
 * done yet. */
static double arrival(const ListScheduler *s, int from, int to, int micro, Pass pass) {
    double end = micro_batch(s, from, micro)->done[pass];
    return end < 0 ? -1 : end + transfer_time(s->plan, from, to);
}

/* Returns the micro-batches that a chunk holds now. */
static int held(const ListScheduler *s, int chunk) {
    const SchedulePlan *plan = s->plan;
    int entered = s->chunk[chunk].next[PASS_FORWARD];
    if (runs(plan, chunk, PASS_WEIGHT_GRADIENT))
        return entered - s->chunk[chunk].next[PASS_WEIGHT_GRADIENT];
    if (runs(plan, chunk, PASS_INPUT_GRADIENT))
        return entered - s->chunk[chunk].next[PASS_INPUT_GRADIENT];
    return chunk + 1 < plan->chunks ? entered - s->chunk[chunk + 1].next[PASS_FORWARD] : 0;
}

/* Returns when the inputs of a chunk's next such pass arrive, or -1 if they are not on their way
 * yet. */
static double ready(const ListScheduler *s, int chunk, Pass pass) {
    const SchedulePlan *plan = s->plan;
    int micro = s->chunk[chunk].next[pass];
    if (!runs(plan, chunk, pass) || micro == plan->micro_batches) return -1;
    switch (pass) {
        case PASS_FORWARD:
            if (held(s, chunk) >= s->chunk[chunk].bound) return -1;
            return chunk == plan->first ? 0 : arrival(s, chunk - 1, chunk, micro, PASS_FORWARD);
        case PASS_INPUT_GRADIENT:
            if (chunk == plan->chunks - 1) return micro_batch(s, chunk, micro)->done[PASS_FORWARD];
            return arrival(s, chunk + 1, chunk, micro, PASS_INPUT_GRADIENT);
        default:
            return micro_batch(s, chunk, micro)->done[PASS_INPUT_GRADIENT];
    }
}

/* Gradients are more urgent than forward passes, because they free memory and feed the ranks below.
 * Among chunks, the one closest to the end of its pass is the most urgent.  Weight gradients come
 * at once in 1F1B, last in zero bubble. */
static int urgency(const SchedulePlan *plan, int chunk, Pass pass) {
    switch (pass) {
        case PASS_FORWARD:
            return plan->chunks + chunk;
        case PASS_INPUT_GRADIENT:
            /* The last chunk runs backward at once, since the logits' gradient overwrites them. */
            return chunk == plan->chunks - 1 ? 5 * plan->chunks : 3 * plan->chunks - chunk;
        default:
            return plan->kind == SCHEDULE_1F1B ? 4 * plan->chunks - chunk : chunk;
    }
}

/* Updates when the passes of a chunk are ready.  Returns true if one has changed. */
static bool refresh(ListScheduler *s, int chunk) {
    double *known = s->chunk[chunk].ready;
    bool changed = false;
    for (Pass pass = PASS_FORWARD; pass < PASSES; pass++) {
        double now = ready(s, chunk, pass);
        changed |= now != known[pass];
        known[pass] = now;
    }
    return changed;
}

/* Chooses a rank's next pass: the one with the earliest start, on a tie the most urgent. */
static void choose(ListScheduler *s, int rank) {
    const SchedulePlan *plan = s->plan;
    Choice *best = &s->rank[rank].choice;
    double earliest = INFINITY;
    for (int chunk = s->rank[rank].lowest; chunk < plan->chunks; chunk = s->chunk[chunk].above)
        for (Pass pass = PASS_FORWARD; pass < PASSES; pass++) {
            double start = s->chunk[chunk].ready[pass];
            if (start < 0) continue;
            if (start < s->rank[rank].clock) start = s->rank[rank].clock;
            Choice candidate = {pass, chunk, urgency(plan, chunk, pass)};
            if (start > earliest || (start == earliest && candidate.urgency <= best->urgency))
                continue;
            *best = candidate;
            earliest = start;
        }
    s->rank[rank].start = earliest;
}

/* Returns the rank that can start first, or -1 if none can. */
static int first_rank(const ListScheduler *s) {
    int ranks = s->plan->ranks, r = 0;
    double earliest = INFINITY;
    for (int i = 0; i < ranks; i++)
        earliest = s->rank[i].start < earliest ? s->rank[i].start : earliest;
    if (earliest == INFINITY) return -1;
    while (s->rank[r].start != earliest) r++;
    return r;
}

/* ---- recording the lists ---- */

static void append_task(ListScheduler *s, int rank, Task task) {
    TaskList *tasks = &s->schedule->rank[rank];
    tasks->task[tasks->tasks++] = task;
}

/* Returns the channel from a chunk to its neighbour. */
static SchedulerChannel *channel(const ListScheduler *s, int from_chunk, int to_chunk) {
    int ranks = s->plan->ranks, gradient = to_chunk < from_chunk;
    const int *rank_of = s->plan->rank_of;
    return &s->channel[(rank_of[from_chunk] * ranks + rank_of[to_chunk]) * 2 + gradient];
}

/* Sends the result of a pass that ended at `now` to a neighbouring chunk. */
static void send(ListScheduler *s, int from, int to, int micro, double now) {
    const int *rank_of = s->plan->rank_of;
    if (rank_of[from] == rank_of[to]) return;
    bool gradient = to < from;
    SchedulerChannel *c = channel(s, from, to);
    SchedulerMessage *message = &micro_batch(s, to, micro)->message[gradient];
    double arrives = now + transfer_time(s->plan, from, to);
    append_task(s, rank_of[from],
                (Task){gradient ? TASK_SEND_GRADIENT : TASK_SEND_VALUE, from, micro, now, arrives});
    message->task =
        (Task){gradient ? TASK_RECEIVE_GRADIENT : TASK_RECEIVE_VALUE, to, micro, now, arrives};
    *c->end = message;
    c->end = &message->next;
}

/* Receives the message for a pass.  Messages have no tags and arrive in the order they were sent,
 * so earlier ones that the receiver needs only later are received first. */
static void receive(ListScheduler *s, int from, int to, int micro) {
    if (s->plan->rank_of[from] == s->plan->rank_of[to]) return;
    SchedulerChannel *c = channel(s, from, to);
    const SchedulerMessage *wanted = &micro_batch(s, to, micro)->message[to < from];
    while (!wanted->received) {
        SchedulerMessage *message = c->first;
        append_task(s, s->plan->rank_of[to], message->task);
        message->received = true;
        c->first = message->next;
        if (!c->first) c->end = &c->first;
    }
}

static void perform(ListScheduler *s, int rank, Choice choice) {
    const SchedulePlan *plan = s->plan;
    static const TaskKind kind[PASSES] = {TASK_FORWARD, TASK_INPUT_GRADIENT, TASK_WEIGHT_GRADIENT};
    int chunk = choice.chunk, micro = s->chunk[chunk].next[choice.pass]++;
    double start = s->rank[rank].start, end = start + plan->cost[chunk].pass[choice.pass];
    if (choice.pass == PASS_FORWARD && chunk > plan->first) receive(s, chunk - 1, chunk, micro);
    if (choice.pass == PASS_INPUT_GRADIENT && chunk + 1 < plan->chunks)
        receive(s, chunk + 1, chunk, micro);
    append_task(s, rank, (Task){kind[choice.pass], chunk, micro, start, end});
    s->rank[rank].clock = micro_batch(s, chunk, micro)->done[choice.pass] = end;
    if (choice.pass == PASS_FORWARD && chunk + 1 < plan->chunks)
        send(s, chunk, chunk + 1, micro, end);
    if (choice.pass == PASS_INPUT_GRADIENT && chunk > plan->lowest)
        send(s, chunk, chunk - 1, micro, end);
}

/* Chooses again for the ranks whose choice may have changed: that of the chunk that worked and
 * those of its neighbours. */
static void choose_around(ListScheduler *s, int chunk) {
    const SchedulePlan *plan = s->plan;
    int rank = plan->rank_of[chunk];
    refresh(s, chunk);
    for (int c = chunk - 1; c <= chunk + 1; c += 2)
        if (c >= 0 && c < plan->chunks && refresh(s, c) && plan->rank_of[c] != rank)
            choose(s, plan->rank_of[c]);
    choose(s, rank);
}

/* Simulates the step to its end. */
static void run(ListScheduler *s) {
    for (int c = 0; c < s->plan->chunks; c++) refresh(s, c);
    for (int r = 0; r < s->plan->ranks; r++) choose(s, r);
    for (int rank; (rank = first_rank(s)) >= 0;) {
        int chunk = s->rank[rank].choice.chunk;
        perform(s, rank, s->rank[rank].choice);
        if (s->rank[rank].clock > s->schedule->time) s->schedule->time = s->rank[rank].clock;
        choose_around(s, chunk);
    }
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
    if (!failed) run(&s);
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
