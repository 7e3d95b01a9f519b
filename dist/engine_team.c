#include "engine_team.h"

#include <omp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../ref/error.h"

/* What the ranks are asked to do. */
typedef enum {
    CALL_ACTIVATE,
    CALL_STEP,
    CALL_EVALUATE,
    CALL_READ,
    CALL_WRITE,
    CALL_SET_AGE,
    CALL_END
} Call;

typedef struct Team Team;
typedef struct {
    Team *team;
    pthread_t thread;
    int rank;
    Engine *engine;
    int result;
    size_t count;
    Loss loss;
    char error[512];
} Member;

struct Team {
    Engine base;
    int ranks, threads_each;
    Member *member; /* [ranks] */
    TeamMember *make;
    void *context;
    pthread_mutex_t lock;
    pthread_cond_t asked, done;
    unsigned long round; /* calls so far */
    int busy;            /* ranks that are not done with this one */
    MemCount memory;
    /* The call: */
    Call call;
    const bool *active;
    const Batch *batch;
    double lr;
    TensorRole role;
    int number;
    real *data;       /* of a read */
    const real *from; /* of a write */
    int block;
    uint64_t age;
};

static Team *of(Engine *base) { return (Team *)(void *)base; }

/* ---- in a rank's thread -------------------------------------------------------------------------
 */

/* All ranks receive a tensor; only the first has the caller's array. */
static void read_tensor(Member *me) {
    Team *t = me->team;
    Engine *e = me->engine;
    real *data = t->data;
    me->count = e->is->read(e, t->role, t->number, NULL);
    if (!data || me->count == 0) return;
    if (me->rank > 0 && !(data = malloc(me->count * sizeof *data))) abort();
    e->is->read(e, t->role, t->number, data);
    if (me->rank > 0) free(data);
}

static void answer(Member *me) {
    Team *t = me->team;
    Engine *e = me->engine;
    me->result = 0;
    switch (t->call) {
        case CALL_ACTIVATE:
            me->result = e->is->activate(e, t->active);
            break;
        case CALL_STEP:
            me->result = e->is->step(e, t->batch, t->lr, &me->loss);
            break;
        case CALL_EVALUATE:
            me->result = e->is->evaluate(e, t->batch, &me->loss);
            break;
        case CALL_READ:
            read_tensor(me);
            break;
        case CALL_WRITE:
            me->result = e->is->write(e, t->role, t->number, t->from);
            break;
        case CALL_SET_AGE:
            e->is->set_age(e, t->block, t->age);
            break;
        case CALL_END:
            e->is->free(e);
            break;
    }
    if (me->result) strcpy(me->error, error_message());
}

static void finish_call(Member *me) {
    Team *t = me->team;
    pthread_mutex_lock(&t->lock);
    if (--t->busy == 0) pthread_cond_signal(&t->done);
    pthread_mutex_unlock(&t->lock);
}

static void *serve(void *argument) {
    Member *me = argument;
    Team *t = me->team;
    omp_set_num_threads(t->threads_each);
    me->engine = t->make(t->context, me->rank);
    me->result = me->engine ? 0 : -1;
    if (me->result) strcpy(me->error, error_message());
    bool over = !me->engine;
    finish_call(me);
    for (unsigned long round = 1; !over; round++) {
        pthread_mutex_lock(&t->lock);
        while (t->round < round) pthread_cond_wait(&t->asked, &t->lock);
        pthread_mutex_unlock(&t->lock);
        answer(me);
        over = t->call == CALL_END;
        finish_call(me);
    }
    return NULL;
}

/* ---- in the caller's thread ---------------------------------------------------------------------
 */

static void wait_all(Team *t) {
    pthread_mutex_lock(&t->lock);
    while (t->busy > 0) pthread_cond_wait(&t->done, &t->lock);
    pthread_mutex_unlock(&t->lock);
}

/* The error of the lowest rank that has one. */
static int outcome(const Team *t) {
    for (int r = 0; r < t->ranks; r++)
        if (t->member[r].result) return error_set("%s", t->member[r].error);
    return 0;
}

static int ask(Team *t, Call call) {
    pthread_mutex_lock(&t->lock);
    t->call = call;
    t->busy = t->ranks;
    t->round++;
    pthread_cond_broadcast(&t->asked);
    pthread_mutex_unlock(&t->lock);
    wait_all(t);
    return outcome(t);
}

static int team_activate(Engine *base, const bool *active) {
    of(base)->active = active;
    return ask(of(base), CALL_ACTIVATE);
}

static int team_step(Engine *base, const Batch *batch, double lr, Loss *loss) {
    Team *t = of(base);
    t->batch = batch;
    t->lr = lr;
    int failed = ask(t, CALL_STEP);
    *loss = t->member[0].loss;
    return failed;
}

static int team_evaluate(Engine *base, const Batch *batch, Loss *loss) {
    Team *t = of(base);
    t->batch = batch;
    int failed = ask(t, CALL_EVALUATE);
    *loss = t->member[0].loss;
    return failed;
}

static size_t team_read(Engine *base, TensorRole role, int number, real *data) {
    Team *t = of(base);
    t->role = role;
    t->number = number;
    t->data = data;
    return ask(t, CALL_READ) ? 0 : t->member[0].count;
}

static int team_write(Engine *base, TensorRole role, int number, const real *data) {
    Team *t = of(base);
    t->role = role;
    t->number = number;
    t->from = data;
    return ask(t, CALL_WRITE);
}

static uint64_t team_age(Engine *base, int block) {
    Engine *first = of(base)->member[0].engine;
    return first->is->age(first, block);
}

static void team_set_age(Engine *base, int block, uint64_t age) {
    Team *t = of(base);
    t->block = block;
    t->age = age;
    ask(t, CALL_SET_AGE);
}

/* Of all ranks together. */
static const MemCount *team_memory(Engine *base) {
    Team *t = of(base);
    t->memory = (MemCount){0};
    for (int r = 0; r < t->ranks; r++) {
        const MemCount *one = t->member[r].engine->is->memory(t->member[r].engine);
        for (int role = 0; role < MEM_ROLES; role++) {
            t->memory.current[role] += one->current[role];
            t->memory.peak[role] += one->peak[role];
        }
        t->memory.total_current += one->total_current;
        t->memory.total_peak += one->total_peak;
    }
    return &t->memory;
}

static void team_free(Engine *base) {
    Team *t = of(base);
    ask(t, CALL_END);
    for (int r = 0; r < t->ranks; r++) pthread_join(t->member[r].thread, NULL);
    pthread_cond_destroy(&t->asked);
    pthread_cond_destroy(&t->done);
    pthread_mutex_destroy(&t->lock);
    free(t->member);
    free(t);
}

static int start(Team *t) {
    for (int r = 0; r < t->ranks; r++) {
        t->member[r] = (Member){.team = t, .rank = r};
        if (pthread_create(&t->member[r].thread, NULL, serve, &t->member[r])) abort();
    }
    wait_all(t);
    return outcome(t);
}

/* Some ranks could not be made: those that were have to end. */
static void dismiss(Team *t) {
    int made = 0;
    for (int r = 0; r < t->ranks; r++) made += t->member[r].engine != NULL;
    pthread_mutex_lock(&t->lock);
    t->call = CALL_END;
    t->busy = made;
    t->round++;
    pthread_cond_broadcast(&t->asked);
    pthread_mutex_unlock(&t->lock);
    for (int r = 0; r < t->ranks; r++) pthread_join(t->member[r].thread, NULL);
    free(t->member);
    free(t);
}

Engine *engine_team_create(const Model *model, int ranks, TeamMember *member, void *context) {
    static const EngineClass class = {
        .activate = team_activate,
        .step = team_step,
        .evaluate = team_evaluate,
        .read = team_read,
        .write = team_write,
        .age = team_age,
        .set_age = team_set_age,
        .memory = team_memory,
        .free = team_free,
    };
    Team *t = calloc(1, sizeof *t);
    Member *members = calloc((size_t)ranks, sizeof *members);
    if (!t || !members) {
        free(t);
        free(members);
        error_set("pipeline: out of memory");
        return NULL;
    }
    int threads = omp_get_max_threads() / ranks;
    *t = (Team){.base = {&class, model},
                .ranks = ranks,
                .threads_each = threads > 1 ? threads : 1,
                .member = members,
                .make = member,
                .context = context,
                .busy = ranks};
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->asked, NULL);
    pthread_cond_init(&t->done, NULL);
    if (start(t) == 0) return &t->base;
    dismiss(t);
    return NULL;
}
