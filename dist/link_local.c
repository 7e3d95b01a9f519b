/* Ranks as threads: channels are queues of copied messages under one lock.  Training spends its
 * time in kernels, not here, so one lock and one condition for everything are enough, and easy to
 * see through. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../ref/error.h"
#include "link.h"

typedef struct Message {
    struct Message *next;
    size_t bytes;
    max_align_t data[];
} Message;

typedef struct {
    Message *first, **end;
    int count;
} Queue;

/* Shared by all ranks; the last to leave frees it. */
typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int ranks, capacity, users;
    Queue *queue; /* [from][to][CHANNELS] */
    /* What all do together: who has come, and how often all have. */
    bool *here; /* [ranks] */
    int arrived;
    unsigned long round;
    void **data;      /* [ranks]: each rank's array in this round */
    int *waiting_for; /* [ranks]: a rank that this one waits for, -1: none */
    bool broken;
    char why[400];
} Hub;

typedef struct {
    Link base;
    Hub *hub;
} LocalLink;

static Hub *hub_of(Link *base) { return ((LocalLink *)(void *)base)->hub; }

static struct timespec deadline(const Link *link) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    double seconds = link->timeout_s + 1e-9 * (double)t.tv_nsec;
    t.tv_sec += (time_t)seconds;
    t.tv_nsec = (long)(1e9 * (seconds - (double)(time_t)seconds));
    return t;
}

/* Locked: the others find out at their next look. */
static void break_link(Hub *hub, const char *why) {
    if (hub->broken) return;
    hub->broken = true;
    snprintf(hub->why, sizeof hub->why, "%s", why);
    pthread_cond_broadcast(&hub->changed);
}

/* Who is to blame that `missing` does not come: it may wait for another itself. */
static int culprit(const Hub *hub, int missing) {
    for (int i = 0; i < hub->ranks && hub->waiting_for[missing] >= 0; i++)
        missing = hub->waiting_for[missing];
    return missing;
}

/* Locked: sleeps until something changes.  -1 and an error when the link is broken, or when it is
 * late: then breaks it, naming the rank waited for. */
static int wait_change(Link *link, const struct timespec *until, int missing, const char *what) {
    Hub *hub = hub_of(link);
    hub->waiting_for[link->rank] = missing;
    int late = hub->broken ? 0 : pthread_cond_timedwait(&hub->changed, &hub->lock, until);
    if (late == ETIMEDOUT && !hub->broken) {
        char why[200];
        snprintf(why, sizeof why,
                 "link: rank %d waited %g s for rank %d (%s); it has died or hangs", link->rank,
                 link->timeout_s, culprit(hub, missing), what);
        break_link(hub, why);
    }
    hub->waiting_for[link->rank] = -1;
    return hub->broken ? error_set("%s", hub->why) : 0;
}

/* ---- messages ----------------------------------------------------------------------------------
 */

static Queue *queue_of(Link *link, const Transfer *t) {
    Hub *hub = hub_of(link);
    int from = t->send ? link->rank : t->peer, to = t->send ? t->peer : link->rank;
    return &hub->queue[(from * hub->ranks + to) * CHANNELS + (int)t->channel];
}

static Message *copy_message(const Transfer *t) {
    Message *m = malloc(sizeof *m + t->bytes);
    if (!m) return NULL;
    m->next = NULL;
    m->bytes = t->bytes;
    memcpy(m->data, t->data, t->bytes);
    return m;
}

/* Locked.  1: done; 0: not yet possible; -1 and an error. */
static int try_transfer(Link *link, const Transfer *t) {
    Hub *hub = hub_of(link);
    Queue *queue = queue_of(link, t);
    if (t->send) {
        if (queue->count == hub->capacity) return 0;
        Message *m = copy_message(t);
        if (!m) return error_set("link: out of memory for a message of %zu bytes", t->bytes);
        *queue->end = m;
        queue->end = &m->next;
        queue->count++;
    } else {
        Message *m = queue->first;
        if (!m) return 0;
        if (m->bytes != t->bytes)
            return error_set("link: rank %d sent %zu bytes where rank %d expects %zu", t->peer,
                             m->bytes, link->rank, t->bytes);
        memcpy(t->data, m->data, t->bytes);
        queue->first = m->next;
        if (!m->next) queue->end = &queue->first;
        queue->count--;
        free(m);
    }
    pthread_cond_broadcast(&hub->changed);
    return 1;
}

/* Locked.  One round over the batch; those of one channel stay in order.  Returns how many are
 * left, and which is the first of them; -1 and an error. */
static int try_batch(Link *link, const Transfer *transfers, bool *done, int count, int *first) {
    int left = 0;
    for (int i = 0; i < count; i++) {
        if (done[i]) continue;
        bool behind = false; /* an earlier one of the same channel waits */
        for (int k = 0; k < i && !behind; k++)
            behind = !done[k] && queue_of(link, &transfers[k]) == queue_of(link, &transfers[i]);
        int result = behind ? 0 : try_transfer(link, &transfers[i]);
        if (result < 0) return -1;
        done[i] = result;
        if (!done[i] && left++ == 0) *first = i;
    }
    return left;
}

static int local_exchange(Link *link, const Transfer *transfers, int count) {
    enum { BATCH = 64 };
    Hub *hub = hub_of(link);
    bool done[BATCH] = {false};
    if (count > BATCH) return error_set("link: %d transfers in a batch, at most %d", count, BATCH);
    struct timespec until = deadline(link);
    pthread_mutex_lock(&hub->lock);
    int left, first = 0, failed = hub->broken ? error_set("%s", hub->why) : 0;
    while (!failed && (left = try_batch(link, transfers, done, count, &first)) != 0) {
        const Transfer *t = &transfers[first];
        failed = left < 0 || wait_change(link, &until, t->peer,
                                         t->send ? "to take a message" : "to send a message");
    }
    if (failed) break_link(hub, error_message());
    pthread_mutex_unlock(&hub->lock);
    return failed ? -1 : 0;
}

/* ---- all together -------------------------------------------------------------------------------
 */

/* Locked: waits until every rank has come here. */
static int meet(Link *link, const char *what) {
    Hub *hub = hub_of(link);
    struct timespec until = deadline(link);
    if (hub->broken) return error_set("%s", hub->why);
    unsigned long round = hub->round;
    hub->here[link->rank] = true;
    if (++hub->arrived == hub->ranks) {
        hub->arrived = 0;
        hub->round++;
        memset(hub->here, 0, (size_t)hub->ranks * sizeof *hub->here);
    }
    pthread_cond_broadcast(&hub->changed); /* who waits sees who is still missing */
    while (hub->round == round) {
        int missing = 0;
        while (missing < hub->ranks - 1 && hub->here[missing]) missing++;
        if (wait_change(link, &until, missing, what)) return -1;
    }
    return 0;
}

/* Two meetings around some work on everybody's arrays: all have brought theirs before, all are done
 * after. */
static int together(Link *link, void *data, const char *what,
                    void (*work)(Link *, void **data, size_t size), size_t size) {
    Hub *hub = hub_of(link);
    pthread_mutex_lock(&hub->lock);
    hub->data[link->rank] = data;
    int failed = meet(link, what);
    if (!failed && work) {
        pthread_mutex_unlock(&hub->lock);
        work(link, hub->data, size);
        pthread_mutex_lock(&hub->lock);
        failed = meet(link, what);
    }
    pthread_mutex_unlock(&hub->lock);
    return failed ? -1 : 0;
}

static int local_barrier(Link *link) { return together(link, NULL, "at a barrier", NULL, 0); }

/* Each rank adds up its share of the numbers, and writes the sums to all. */
static void add_share(Link *link, void **data, size_t count) {
    size_t ranks = (size_t)link->ranks, rank = (size_t)link->rank;
    size_t first = count * rank / ranks, end = count * (rank + 1) / ranks;
    for (size_t i = first; i < end; i++) {
        real sum = 0;
        for (size_t r = 0; r < ranks; r++) sum += ((real *)data[r])[i];
        for (size_t r = 0; r < ranks; r++) ((real *)data[r])[i] = sum;
    }
}

static int local_all_reduce(Link *link, real *x, size_t count) {
    return together(link, x, "to add up", add_share, count);
}

typedef struct {
    int root;
    void *data;
} Broadcast;

static void copy_from_root(Link *link, void **data, size_t bytes) {
    const Broadcast *mine = data[link->rank], *root = data[mine->root];
    if (link->rank != mine->root) memcpy(mine->data, root->data, bytes);
}

static int local_broadcast(Link *link, int root, void *data, size_t bytes) {
    Broadcast broadcast = {root, data};
    return together(link, &broadcast, "to broadcast", copy_from_root, bytes);
}

typedef struct {
    void *all;
    const void *mine;
} Gather;

static void copy_from_all(Link *link, void **data, size_t bytes) {
    char *all = ((const Gather *)data[link->rank])->all;
    for (int r = 0; r < link->ranks; r++)
        memcpy(all + (size_t)r * bytes, ((const Gather *)data[r])->mine, bytes);
}

static int local_gather(Link *link, void *all, const void *mine, size_t bytes) {
    Gather gather = {all, mine};
    return together(link, &gather, "to gather", copy_from_all, bytes);
}

/* ---- life ---------------------------------------------------------------------------------------
 */

static void local_give_up(Link *link, const char *why) {
    Hub *hub = hub_of(link);
    char line[400];
    snprintf(line, sizeof line, "link: rank %d gave up: %s", link->rank, why);
    pthread_mutex_lock(&hub->lock);
    break_link(hub, line);
    pthread_mutex_unlock(&hub->lock);
}

static void hub_free(Hub *hub) {
    int queues = hub->ranks * hub->ranks * CHANNELS;
    for (int i = 0; hub->queue && i < queues; i++)
        while (hub->queue[i].first) {
            Message *m = hub->queue[i].first;
            hub->queue[i].first = m->next;
            free(m);
        }
    free(hub->queue);
    free(hub->here);
    free(hub->data);
    free(hub->waiting_for);
    pthread_cond_destroy(&hub->changed);
    pthread_mutex_destroy(&hub->lock);
    free(hub);
}

static void local_free(Link *link) {
    Hub *hub = hub_of(link);
    pthread_mutex_lock(&hub->lock);
    bool last = --hub->users == 0;
    pthread_mutex_unlock(&hub->lock);
    free(link);
    if (last) hub_free(hub);
}

static Hub *hub_create(int ranks, int capacity) {
    Hub *hub = calloc(1, sizeof *hub);
    if (!hub) return NULL;
    size_t queues = (size_t)ranks * (size_t)ranks * CHANNELS;
    pthread_condattr_t monotonic; /* deadlines must not jump with the time of day */
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&hub->lock, NULL);
    pthread_cond_init(&hub->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    hub->ranks = hub->users = ranks;
    hub->capacity = capacity;
    hub->queue = calloc(queues, sizeof *hub->queue);
    hub->here = calloc((size_t)ranks, sizeof *hub->here);
    hub->data = calloc((size_t)ranks, sizeof *hub->data);
    hub->waiting_for = malloc((size_t)ranks * sizeof *hub->waiting_for);
    for (size_t i = 0; hub->queue && i < queues; i++) hub->queue[i].end = &hub->queue[i].first;
    for (int r = 0; hub->waiting_for && r < ranks; r++) hub->waiting_for[r] = -1;
    if (hub->queue && hub->here && hub->data && hub->waiting_for) return hub;
    hub_free(hub);
    return NULL;
}

int link_local_create(Link **link, int ranks, int capacity, double timeout_s) {
    static const LinkClass class = {
        .exchange = local_exchange,
        .all_reduce = local_all_reduce,
        .broadcast = local_broadcast,
        .gather = local_gather,
        .barrier = local_barrier,
        .give_up = local_give_up,
        .free = local_free,
    };
    Hub *hub = hub_create(ranks, capacity);
    if (!hub) return error_set("link: out of memory for %d ranks", ranks);
    for (int r = 0; r < ranks; r++) {
        LocalLink *local = malloc(sizeof *local);
        if (!local) {
            while (r > 0) free(link[--r]);
            hub_free(hub);
            return error_set("link: out of memory for %d ranks", ranks);
        }
        *local = (LocalLink){{&class, r, ranks, timeout_s}, hub};
        link[r] = &local->base;
    }
    return 0;
}
