/* Executes the schedules of every small size by a simple interpreter, which knows only the lists of
 * the ranks and channels that keep their order. */
#include <stdio.h>
#include <string.h>

#include "../../dist/schedule.h"
#include "../test.h"

enum { MAX_CHUNKS = 12, MAX_MICRO = 6, MAX_RANKS = 4, MAX_MESSAGES = 200 };

typedef struct {
    SchedulePlan plan;
    int rank_of[MAX_CHUNKS];
    ChunkCost cost[MAX_CHUNKS];
} Setting;

/* The state of the interpreter. */
typedef struct {
    const Setting *setting;
    int at[MAX_RANKS]; /* the next task of each rank */
    struct {
        Task message[MAX_MESSAGES];
        int sent, received;
    } channel[MAX_RANKS][MAX_RANKS][2];
    bool value[MAX_CHUNKS][MAX_MICRO];    /* the chunk's input is on its rank */
    bool gradient[MAX_CHUNKS][MAX_MICRO]; /* the gradient of the chunk's output is on its rank */
    bool done[MAX_CHUNKS][MAX_MICRO][TASK_WEIGHT_GRADIENT + 1];
    int held[MAX_CHUNKS], max_held[MAX_CHUNKS];
} Machine;

static void describe(const Setting *s, char text[120]) {
    const SchedulePlan *p = &s->plan;
    snprintf(text, 120,
             "kind %d, %d ranks, %d chunks, %d micro-batches, first %d, lowest %d, slack %d",
             (int)p->kind, p->ranks, p->chunks, p->micro_batches, p->first, p->lowest, p->slack);
}

static bool trains(const SchedulePlan *p, int chunk) {
    return p->cost[chunk].pass[PASS_WEIGHT_GRADIENT] > 0;
}

static bool same_rank(const Setting *s, int a, int b) { return s->rank_of[a] == s->rank_of[b]; }

/* Returns the chunk at the other end of a message; -1 for other tasks. */
static int peer(const Task *t) {
    switch (t->kind) {
        case TASK_SEND_VALUE:
        case TASK_RECEIVE_GRADIENT:
            return t->chunk + 1;
        case TASK_SEND_GRADIENT:
        case TASK_RECEIVE_VALUE:
            return t->chunk - 1;
        default:
            return -1;
    }
}

static void hold(Machine *m, int chunk, int change) {
    if ((m->held[chunk] += change) > m->max_held[chunk]) m->max_held[chunk] = m->held[chunk];
}

static void send(Machine *m, const Task *t) {
    const int *rank_of = m->setting->rank_of;
    int gradient = t->kind == TASK_SEND_GRADIENT;
    Task arriving = {.kind = gradient ? TASK_RECEIVE_GRADIENT : TASK_RECEIVE_VALUE,
                     .chunk = peer(t),
                     .micro_batch = t->micro_batch};
    int from = rank_of[t->chunk], to = rank_of[peer(t)];
    int *sent = &m->channel[from][to][gradient].sent;
    m->channel[from][to][gradient].message[(*sent)++] = arriving;
}

/* Returns false if there is no message yet.  CHECKs that the message is the expected one. */
static bool receive(Machine *m, const Task *t) {
    const int *rank_of = m->setting->rank_of;
    int gradient = t->kind == TASK_RECEIVE_GRADIENT;
    int from = rank_of[peer(t)], to = rank_of[t->chunk];
    int *received = &m->channel[from][to][gradient].received;
    if (*received == m->channel[from][to][gradient].sent) return false;
    const Task *message = &m->channel[from][to][gradient].message[(*received)++];
    CHECK(message->chunk == t->chunk && message->micro_batch == t->micro_batch,
          "receives %d.%d, but %d.%d was sent", t->chunk, t->micro_batch, message->chunk,
          message->micro_batch);
    (gradient ? m->gradient : m->value)[t->chunk][t->micro_batch] = true;
    return true;
}

static void forward(Machine *m, int c, int k) {
    const SchedulePlan *p = &m->setting->plan;
    CHECK(c == p->first || m->value[c][k], "forward %d.%d without its input", c, k);
    if (c >= p->lowest) hold(m, c, 1);
    if (c + 1 < p->chunks && same_rank(m->setting, c, c + 1)) m->value[c + 1][k] = true;
}

static void input_gradient(Machine *m, int c, int k) {
    const SchedulePlan *p = &m->setting->plan;
    CHECK(c >= p->lowest, "an input gradient below the lowest active chunk: %d.%d", c, k);
    CHECK(m->done[c][k][TASK_FORWARD], "gradient %d.%d before its forward", c, k);
    CHECK(c == p->chunks - 1 || m->gradient[c][k], "gradient %d.%d without its input", c, k);
    if (c > p->lowest && same_rank(m->setting, c, c - 1)) m->gradient[c - 1][k] = true;
    if (!trains(p, c)) hold(m, c, -1);
}

static void weight_gradient(Machine *m, int c, int k) {
    CHECK(trains(&m->setting->plan, c), "a weight gradient of a frozen chunk: %d.%d", c, k);
    CHECK(m->done[c][k][TASK_INPUT_GRADIENT], "weight gradient %d.%d before the other", c, k);
    hold(m, c, -1);
}

/* Executes one task.  Returns false if it has to wait. */
static bool execute_task(Machine *m, const Task *t) {
    int c = t->chunk, k = t->micro_batch;
    if ((t->kind == TASK_RECEIVE_VALUE || t->kind == TASK_RECEIVE_GRADIENT) && !receive(m, t))
        return false;
    CHECK(!m->done[c][k][t->kind], "task %d of %d.%d twice", (int)t->kind, c, k);
    if (t->kind == TASK_SEND_VALUE || t->kind == TASK_SEND_GRADIENT) {
        TaskKind before = t->kind == TASK_SEND_VALUE ? TASK_FORWARD : TASK_INPUT_GRADIENT;
        CHECK(m->done[c][k][before], "%d.%d is sent before it is made", c, k);
        send(m, t);
    }
    if (t->kind == TASK_FORWARD) forward(m, c, k);
    if (t->kind == TASK_INPUT_GRADIENT) input_gradient(m, c, k);
    if (t->kind == TASK_WEIGHT_GRADIENT) weight_gradient(m, c, k);
    m->done[c][k][t->kind] = true;
    return true;
}

/* The gradient of the logits overwrites them, so it must be computed directly after the loss. */
static void check_after_loss(const Machine *m, const TaskList *list, int i) {
    const SchedulePlan *p = &m->setting->plan;
    const Task *now = &list->task[i], *next = now + 1;
    if (now->kind != TASK_FORWARD || now->chunk != p->chunks - 1 || p->lowest == p->chunks) return;
    CHECK(i + 1 < list->tasks && next->kind == TASK_INPUT_GRADIENT && next->chunk == now->chunk &&
              next->micro_batch == now->micro_batch,
          "the gradient of %d.%d does not follow its loss", now->chunk, now->micro_batch);
}

static void execute(Machine *m, const Schedule *schedule) {
    for (bool moved = true; moved;) {
        moved = false;
        for (int r = 0; r < schedule->ranks; r++) {
            const TaskList *list = &schedule->rank[r];
            while (m->at[r] < list->tasks && execute_task(m, &list->task[m->at[r]])) {
                CHECK(m->setting->rank_of[list->task[m->at[r]].chunk] == r, "on a strange rank");
                check_after_loss(m, list, m->at[r]);
                m->at[r]++;
                moved = true;
            }
        }
    }
}

static void check_complete(const Machine *m, const Schedule *schedule) {
    const SchedulePlan *p = &m->setting->plan;
    for (int r = 0; r < schedule->ranks; r++)
        CHECK(m->at[r] == schedule->rank[r].tasks, "rank %d hangs at task %d of %d", r, m->at[r],
              schedule->rank[r].tasks);
    for (int c = 0; c < p->chunks; c++) {
        for (int k = 0; k < p->micro_batches; k++) {
            const bool *done = m->done[c][k];
            CHECK(done[TASK_FORWARD] == (c >= p->first), "forward %d.%d", c, k);
            CHECK(done[TASK_INPUT_GRADIENT] == (c >= p->lowest), "input gradient %d.%d", c, k);
            CHECK(done[TASK_WEIGHT_GRADIENT] == (c >= p->lowest && trains(p, c)),
                  "weight gradient %d.%d", c, k);
        }
        /* Chunks below the lowest keep nothing. */
        if (c < p->lowest) continue;
        CHECK(m->max_held[c] <= schedule_bound(p, c), "chunk %d holds %d micro-batches, not %d", c,
              m->max_held[c], schedule_bound(p, c));
    }
    for (int a = 0; a < p->ranks; a++)
        for (int b = 0; b < p->ranks; b++)
            for (int g = 0; g < 2; g++)
                CHECK(m->channel[a][b][g].sent == m->channel[a][b][g].received,
                      "messages from %d to %d are left", a, b);
}

static void check_setting(const Setting *setting) {
    static Machine machine;
    Schedule schedule;
    char text[120];
    memset(&machine, 0, sizeof machine);
    machine.setting = setting;
    describe(setting, text);
    if (!CHECK(schedule_make(&schedule, &setting->plan) == 0, "%s: %s", text, error_message()))
        return;
    execute(&machine, &schedule);
    check_complete(&machine, &schedule);
    schedule_free(&schedule);
}

/* A model in chunks of equal cost, of which those from `lowest` to `end` train; none does where
 * `lowest` is their number. */
static void setting_make(Setting *s, SchedulePlan plan, int end) {
    *s = (Setting){.plan = plan};
    for (int c = 0; c < plan.chunks; c++) {
        s->rank_of[c] = c % plan.ranks;
        s->cost[c] = (ChunkCost){{1, 1, c >= plan.lowest && c < end}};
    }
    s->plan.rank_of = s->rank_of;
    s->plan.cost = s->cost;
}

static void active_parts(SchedulePlan plan) {
    Setting s;
    for (plan.lowest = 0; plan.lowest <= plan.chunks; plan.lowest++)
        for (plan.first = 0; plan.first <= plan.lowest && plan.first < plan.chunks; plan.first++)
            for (int end = plan.lowest + (plan.lowest < plan.chunks); end <= plan.chunks; end++) {
                setting_make(&s, plan, end);
                check_setting(&s);
            }
}

/* Of 0 chunks for each rank, there is one in all: the other ranks have no tasks, as when a short
 * prefix is inferred in pieces. */
static void every_small_size(const void *row) {
    SchedulePlan plan = {.kind = *(const ScheduleKind *)row};
    for (plan.ranks = 1; plan.ranks <= MAX_RANKS; plan.ranks++)
        for (int v = 0; v <= 3; v++)
            for (plan.micro_batches = 1; plan.micro_batches <= MAX_MICRO; plan.micro_batches++)
                for (plan.slack = 0; plan.slack <= 1; plan.slack++) {
                    plan.chunks = v ? plan.ranks * v : 1;
                    active_parts(plan);
                }
}

/* Checks irregular costs, and chunks on ranks in no particular order. */
static void uneven(const void *row) {
    static const int rank_of[5] = {0, 2, 0, 1, 1};
    static const double transfer[4] = {0.7, 0.2, 0, 0.4};
    SchedulePlan plan = {.kind = *(const ScheduleKind *)row,
                         .ranks = 3,
                         .chunks = 5,
                         .micro_batches = 6,
                         .lowest = 1,
                         .transfer = transfer};
    Setting s;
    setting_make(&s, plan, 4);
    for (int c = 0; c < 5; c++) {
        s.rank_of[c] = rank_of[c];
        s.cost[c] = (ChunkCost){{1 + 0.37 * c, 0.3 * (5 - c),
                                 s.cost[c].pass[PASS_WEIGHT_GRADIENT] * (0.11 * c + 0.01)}};
    }
    check_setting(&s);
}

static double time_of(SchedulePlan plan, int end) {
    Setting s;
    Schedule schedule;
    setting_make(&s, plan, end);
    if (!CHECK(schedule_make(&schedule, &s.plan) == 0, "%s", error_message())) return 0;
    double time = schedule.time;
    schedule_free(&schedule);
    return time;
}

/* Forward, input gradient and weight gradient take 1 each.  Then p ranks and m micro-batches take 3
 * m + 2 (p - 1) in 1F1B, where a gradient is sent before the weight gradient is computed, and 3 m +
 * (p - 1) with zero bubble, where weight gradients fill the gaps. */
static void times_in_closed_form(void) {
    for (int p = 1; p <= 4; p++)
        for (int m = p; m <= 6; m++) {
            SchedulePlan plan = {
                .kind = SCHEDULE_1F1B, .ranks = p, .chunks = p, .micro_batches = m};
            double work = 3 * m, got = time_of(plan, p);
            CHECK(got == work + 2 * (p - 1), "1F1B on %d ranks, %d micro-batches: %g", p, m, got);
            plan.kind = SCHEDULE_ZERO_BUBBLE;
            plan.slack = p;
            got = time_of(plan, p);
            CHECK(got == work + (p - 1), "zero bubble on %d ranks, %d micro-batches: %g", p, m,
                  got);
        }
}

/* ---- timelines ---- */

/* Returns when the input of a task arrives, 0 if it has none, or -1 if no task makes it. */
static double input_end(const Schedule *schedule, const Setting *s, const Task *t) {
    TaskKind want = t->kind;
    int chunk = t->chunk;
    if (t->kind == TASK_FORWARD) chunk--;
    if (t->kind == TASK_INPUT_GRADIENT && chunk == s->plan.chunks - 1) want = TASK_FORWARD;
    if (t->kind == TASK_INPUT_GRADIENT && want == t->kind) chunk++;
    if (t->kind == TASK_WEIGHT_GRADIENT) want = TASK_INPUT_GRADIENT;
    if (chunk < s->plan.first) return 0;
    int from = s->rank_of[chunk];
    double way =
        from == s->rank_of[t->chunk] ? 0 : s->plan.transfer[chunk < t->chunk ? chunk : t->chunk];
    for (int i = 0; i < schedule->rank[from].tasks; i++) {
        const Task *other = &schedule->rank[from].task[i];
        if (other->kind == want && other->chunk == chunk && other->micro_batch == t->micro_batch)
            return other->end + way;
    }
    return -1;
}

static double task_cost(const Setting *s, const Task *t) {
    const ChunkCost *c = &s->cost[t->chunk];
    return t->kind == TASK_FORWARD          ? c->pass[PASS_FORWARD]
           : t->kind == TASK_INPUT_GRADIENT ? c->pass[PASS_INPUT_GRADIENT]
                                            : c->pass[PASS_WEIGHT_GRADIENT];
}

/* CHECKs that every task starts when the rank is free and its input has arrived, takes its cost,
 * and that the last one ends with the schedule. */
static void check_timeline(const Setting *s) {
    Schedule schedule;
    if (!CHECK(schedule_make(&schedule, &s->plan) == 0, "%s", error_message())) return;
    double latest = 0;
    for (int r = 0; r < schedule.ranks; r++) {
        double clock = 0;
        for (int i = 0; i < schedule.rank[r].tasks; i++) {
            const Task *t = &schedule.rank[r].task[i];
            if (peer(t) >= 0) {
                double way = s->plan.transfer[peer(t) < t->chunk ? peer(t) : t->chunk];
                CHECK(t->end == t->start + way, "a message takes %g, not %g", t->end - t->start,
                      way);
                continue;
            }
            double input = input_end(&schedule, s, t);
            CHECK(input >= 0 && t->start == (clock > input ? clock : input),
                  "task %d of %d.%d starts at %g; free at %g, input at %g", (int)t->kind, t->chunk,
                  t->micro_batch, t->start, clock, input);
            CHECK(t->end == t->start + task_cost(s, t), "it ends at %g", t->end);
            clock = t->end;
        }
        if (clock > latest) latest = clock;
    }
    CHECK(latest == schedule.time, "the last task ends at %g, the schedule at %g", latest,
          schedule.time);
    schedule_free(&schedule);
}

static void timeline_adds_up(const void *row) {
    static const double transfer[8] = {0.5, 0.25, 1, 0, 2, 0.125, 0.75, 3};
    for (int first = 0; first < 3; first++) {
        SchedulePlan plan = {.kind = *(const ScheduleKind *)row,
                             .ranks = 3,
                             .chunks = 9,
                             .micro_batches = 5,
                             .first = first,
                             .lowest = 2,
                             .transfer = transfer};
        Setting s;
        setting_make(&s, plan, 6);
        for (int c = 0; c < plan.chunks; c++)
            s.cost[c] = (ChunkCost){
                {1 + c % 3, 2, s.cost[c].pass[PASS_WEIGHT_GRADIENT] * 0.5 * (1 + c % 2)}};
        check_timeline(&s);
    }
}

void test_schedule(void) {
    static const ScheduleKind kinds[] = {SCHEDULE_1F1B, SCHEDULE_ZERO_BUBBLE};
    RUN_ROW("every small size, 1F1B", every_small_size, &kinds[0]);
    RUN_ROW("every small size, zero bubble", every_small_size, &kinds[1]);
    RUN_ROW("uneven, 1F1B", uneven, &kinds[0]);
    RUN_ROW("uneven, zero bubble", uneven, &kinds[1]);
    RUN(times_in_closed_form);
    RUN_ROW("timeline, 1F1B", timeline_adds_up, &kinds[0]);
    RUN_ROW("timeline, zero bubble", timeline_adds_up, &kinds[1]);
}
