/* Schedules by playing them: at every moment the rank that can start first takes the most urgent
 * task that is ready.  Because the lists come from a play that reached its end, they cannot
 * deadlock; because the play respects the bound of each chunk, so do they.  Why it always reaches
 * the end: chunks take micro-batches in order, so the oldest unfinished one finds no chunk above it
 * full. */
#include "schedule_play.h"

#include <math.h>

static double *done(const Play *play, int chunk, int micro, Step step) {
    return &play->done[((size_t)chunk * (size_t)play->plan->micro_batches + (size_t)micro) * STEPS +
                       step];
}

static int *next(const Play *play, int chunk, Step step) {
    return &play->next[chunk * STEPS + (int)step];
}

static bool runs(const SchedulePlan *plan, int chunk, Step step) {
    switch (step) {
        case FORWARD:
            return chunk >= plan->first;
        case INPUT_GRADIENT:
            return chunk >= plan->lowest;
        default:
            return chunk >= plan->lowest && plan->trains[chunk];
    }
}

static double cost(const SchedulePlan *plan, int chunk, Step step) {
    const ChunkCost *c = &plan->cost[chunk];
    return step == FORWARD          ? c->forward
           : step == INPUT_GRADIENT ? c->input_gradient
                                    : c->weight_gradient;
}

/* ---- what may start, and when ---- */

/* How long a message takes. */
static double transfer_time(const SchedulePlan *plan, int from, int to) {
    if (!plan->transfer || plan->rank_of[from] == plan->rank_of[to]) return 0;
    return plan->transfer[from < to ? from : to];
}

/* When the result of a step elsewhere is here; -1: not yet done. */
static double arrival(const Play *play, int from, int to, int micro, Step step) {
    double end = *done(play, from, micro, step);
    return end < 0 ? -1 : end + transfer_time(play->plan, from, to);
}

/* Micro-batches a chunk holds. */
static int held(const Play *play, int chunk) {
    const SchedulePlan *plan = play->plan;
    int entered = *next(play, chunk, FORWARD);
    if (runs(plan, chunk, WEIGHT_GRADIENT)) return entered - *next(play, chunk, WEIGHT_GRADIENT);
    if (runs(plan, chunk, INPUT_GRADIENT)) return entered - *next(play, chunk, INPUT_GRADIENT);
    return chunk + 1 < plan->chunks ? entered - *next(play, chunk + 1, FORWARD) : 0;
}

/* When the inputs of the step that is next on a chunk are there; -1: not yet. */
static double ready(const Play *play, int chunk, Step step) {
    const SchedulePlan *plan = play->plan;
    int micro = *next(play, chunk, step);
    if (!runs(plan, chunk, step) || micro == plan->micro_batches) return -1;
    switch (step) {
        case FORWARD:
            if (held(play, chunk) >= play->bound[chunk]) return -1;
            return chunk == plan->first ? 0 : arrival(play, chunk - 1, chunk, micro, FORWARD);
        case INPUT_GRADIENT:
            if (chunk == plan->chunks - 1) return *done(play, chunk, micro, FORWARD);
            return arrival(play, chunk + 1, chunk, micro, INPUT_GRADIENT);
        default:
            return *done(play, chunk, micro, INPUT_GRADIENT);
    }
}

/* Gradients before forwards, for they free memory and feed the ranks below; among each kind the
 * chunk that is nearest to the end of the way.  A weight gradient comes at once, or last of all. */
static int urgency(const SchedulePlan *plan, int chunk, Step step) {
    switch (step) {
        case FORWARD:
            return plan->chunks + chunk;
        case INPUT_GRADIENT:
            /* The last chunk turns back at once: its logits become their gradient in place. */
            return chunk == plan->chunks - 1 ? 5 * plan->chunks : 3 * plan->chunks - chunk;
        default:
            return plan->kind == SCHEDULE_1F1B ? 4 * plan->chunks - chunk : chunk;
    }
}

/* True: something about the chunk has changed. */
static bool refresh(Play *play, int chunk) {
    double *known = &play->ready[chunk * STEPS];
    bool changed = false;
    for (Step step = FORWARD; step < STEPS; step++) {
        double now = ready(play, chunk, step);
        changed |= now != known[step];
        known[step] = now;
    }
    return changed;
}

/* The best thing a rank can do next: the earliest start, among equals the most urgent. */
static void choose(Play *play, int rank) {
    const SchedulePlan *plan = play->plan;
    Choice *best = &play->choice[rank];
    double earliest = INFINITY;
    for (int chunk = play->lowest_of[rank]; chunk < plan->chunks; chunk = play->above[chunk])
        for (Step step = FORWARD; step < STEPS; step++) {
            double start = play->ready[chunk * STEPS + (int)step];
            if (start < 0) continue;
            if (start < play->clock[rank]) start = play->clock[rank];
            Choice here = {step, chunk, urgency(plan, chunk, step)};
            if (start > earliest || (start == earliest && here.urgency <= best->urgency)) continue;
            *best = here;
            earliest = start;
        }
    play->start[rank] = earliest;
}

/* The rank that can start first; -1: none. */
static int first_rank(const Play *play) {
    int ranks = play->plan->ranks, r = 0;
    double earliest = INFINITY;
    for (int i = 0; i < ranks; i++)
        earliest = play->start[i] < earliest ? play->start[i] : earliest;
    if (earliest == INFINITY) return -1;
    while (play->start[r] != earliest) r++;
    return r;
}

/* ---- writing it down ---- */

static void list(Play *play, int rank, Task task) {
    TaskList *tasks = &play->schedule->rank[rank];
    tasks->task[tasks->tasks++] = task;
}

PlayChannel *play_channel(const Play *play, int from_chunk, int to_chunk) {
    int ranks = play->plan->ranks, gradient = to_chunk < from_chunk;
    const int *rank_of = play->plan->rank_of;
    return &play->channel[(rank_of[from_chunk] * ranks + rank_of[to_chunk]) * 2 + gradient];
}

static int *message_index(const Play *play, int to, int micro, bool gradient) {
    const SchedulePlan *plan = play->plan;
    return &play->message_index[(gradient * plan->chunks + to) * plan->micro_batches + micro];
}

/* What ended at `now` goes to a neighbour. */
static void send(Play *play, int from, int to, int micro, double now) {
    const int *rank_of = play->plan->rank_of;
    if (rank_of[from] == rank_of[to]) return;
    bool gradient = to < from;
    PlayChannel *c = play_channel(play, from, to);
    double there = now + transfer_time(play->plan, from, to);
    list(play, rank_of[from],
         (Task){gradient ? DO_SEND_GRADIENT : DO_SEND_VALUE, from, micro, now, there});
    *message_index(play, to, micro, gradient) = c->sent;
    c->message[c->sent++] =
        (Task){gradient ? DO_RECEIVE_GRADIENT : DO_RECEIVE_VALUE, to, micro, now, there};
}

/* A channel has no tags: messages are received in the order they were sent, also those that the
 * receiver will need only later. */
static void receive(Play *play, int from, int to, int micro) {
    if (play->plan->rank_of[from] == play->plan->rank_of[to]) return;
    PlayChannel *c = play_channel(play, from, to);
    int wanted = *message_index(play, to, micro, to < from);
    while (c->received <= wanted) list(play, play->plan->rank_of[to], c->message[c->received++]);
}

static void perform(Play *play, int rank, Choice choice) {
    const SchedulePlan *plan = play->plan;
    static const Doing doing[STEPS] = {DO_FORWARD, DO_INPUT_GRADIENT, DO_WEIGHT_GRADIENT};
    int chunk = choice.chunk, micro = (*next(play, chunk, choice.step))++;
    double start = play->start[rank], end = start + cost(plan, chunk, choice.step);
    if (choice.step == FORWARD && chunk > plan->first) receive(play, chunk - 1, chunk, micro);
    if (choice.step == INPUT_GRADIENT && chunk + 1 < plan->chunks)
        receive(play, chunk + 1, chunk, micro);
    list(play, rank, (Task){doing[choice.step], chunk, micro, start, end});
    play->clock[rank] = *done(play, chunk, micro, choice.step) = end;
    if (choice.step == FORWARD && chunk + 1 < plan->chunks)
        send(play, chunk, chunk + 1, micro, end);
    if (choice.step == INPUT_GRADIENT && chunk > plan->lowest)
        send(play, chunk, chunk - 1, micro, end);
}

/* What the ranks can do next changes only for the one that worked and its chunk's neighbours. */
static void choose_around(Play *play, int chunk) {
    const SchedulePlan *plan = play->plan;
    int here = plan->rank_of[chunk];
    refresh(play, chunk);
    for (int c = chunk - 1; c <= chunk + 1; c += 2)
        if (c >= 0 && c < plan->chunks && refresh(play, c) && plan->rank_of[c] != here)
            choose(play, plan->rank_of[c]);
    choose(play, here);
}

void play_run(Play *play) {
    for (int c = 0; c < play->plan->chunks; c++) refresh(play, c);
    for (int r = 0; r < play->plan->ranks; r++) choose(play, r);
    for (int rank; (rank = first_rank(play)) >= 0;) {
        int chunk = play->choice[rank].chunk;
        perform(play, rank, play->choice[rank]);
        if (play->clock[rank] > play->schedule->time) play->schedule->time = play->clock[rank];
        choose_around(play, chunk);
    }
}
