/* A rank of the link over TCP.  Sends are copied and go on by themselves (tcp_wire.c); what comes
 * in is kept until it is asked for.  So nobody ever waits for a rank that computes, unless it has
 * far too much on its way to it. */
#include "link_tcp.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../ref/error.h"
#include "tcp_inside.h"

/* On its way to one rank, before a send waits. */
enum { MOST_OUT_BYTES = 1 << 26 };
static const double answer_s = 1, last_words_s = 0.25;

static TcpLink *of(Link *link) { return (TcpLink *)(void *)link; }

/* ---- waiting (locked) ---------------------------------------------------------------------------
 */

/* Who is to blame that `missing` does not come: it may wait for another itself, and says so, or
 * says nothing any more. */
static int culprit(TcpLink *l, int missing) {
    for (int hops = 0; hops < l->base.ranks; hops++) {
        Deadline until = deadline_in(answer_s);
        int late = 0;
        l->asked = missing;
        l->answer = TCP_SILENT;
        tcp_post_word(l, missing, FRAME_ASKS, 0);
        while (!l->broken && l->answer == TCP_SILENT && !late)
            late = pthread_cond_timedwait(&l->changed, &l->lock, &until);
        if (l->answer < 0 || l->answer == l->base.rank) break;
        missing = l->answer;
    }
    return missing;
}

/* Sleeps until something changes.  -1 and an error when the link is broken, or when it is late:
 * then breaks it, naming the rank to blame. */
static int wait_change(TcpLink *l, const Deadline *until, int missing, const char *what) {
    char why[200] = "";
    l->waits_for = missing;
    if (l->peer[missing].left) {
        snprintf(why, sizeof why, "link: rank %d has left, and rank %d waits for it (%s)", missing,
                 l->base.rank, what);
    } else if (!l->broken && pthread_cond_timedwait(&l->changed, &l->lock, until) == ETIMEDOUT) {
        int guilty = culprit(l, missing);
        snprintf(why, sizeof why,
                 "link: rank %d waited %g s for rank %d (%s); it has died or hangs", l->base.rank,
                 l->base.timeout_s, guilty, what);
    }
    if (*why) tcp_break(l, why);
    l->waits_for = TCP_NOBODY;
    return l->broken ? error_set("%s", l->why) : 0;
}

/* ---- messages -----------------------------------------------------------------------------------
 */

static int send_one(TcpLink *l, const Transfer *t, const Deadline *until) {
    Peer *p = &l->peer[t->peer];
    Message *m = tcp_message((Frame){FRAME_MESSAGE, (int32_t)t->channel, t->bytes}, t->data);
    if (!m) return -1;
    pthread_mutex_lock(&l->lock);
    int failed = l->broken ? error_set("%s", l->why) : 0;
    while (!failed && (p->left || p->out_bytes > MOST_OUT_BYTES))
        failed = wait_change(l, until, t->peer, "to take a message");
    if (failed)
        free(m);
    else if (t->peer == l->base.rank)
        tcp_queue_add(&p->inbox[t->channel], m);
    else
        tcp_post(l, t->peer, m);
    pthread_mutex_unlock(&l->lock);
    return failed;
}

static int receive_one(TcpLink *l, const Transfer *t, const Deadline *until) {
    MessageQueue *inbox = &l->peer[t->peer].inbox[t->channel];
    pthread_mutex_lock(&l->lock);
    int failed = l->broken ? error_set("%s", l->why) : 0;
    while (!failed && !inbox->first) failed = wait_change(l, until, t->peer, "to send a message");
    Message *m = failed ? NULL : tcp_queue_take(inbox);
    pthread_mutex_unlock(&l->lock);
    if (!m) return -1;
    if (m->frame.bytes != t->bytes)
        failed = error_set("link: rank %d sent %zu bytes where rank %d expects %zu", t->peer,
                           (size_t)m->frame.bytes, l->base.rank, t->bytes);
    else if (t->bytes)
        memcpy(t->data, m->data, t->bytes);
    free(m);
    return failed;
}

static int tcp_exchange(Link *link, Transfer *transfers, int count) {
    TcpLink *l = of(link);
    Deadline until = deadline_in(link->timeout_s);
    int failed = 0;
    for (int i = 0; i < count && !failed; i++)
        if (transfers[i].send) failed = send_one(l, &transfers[i], &until);
    for (int i = 0; i < count && !failed; i++)
        if (!transfers[i].send) failed = receive_one(l, &transfers[i], &until);
    if (!failed) return 0;
    pthread_mutex_lock(&l->lock);
    tcp_break(l, error_message());
    pthread_mutex_unlock(&l->lock);
    return -1;
}

/* ---- life ---------------------------------------------------------------------------------------
 */

static void tcp_give_up(Link *link, const char *why) {
    TcpLink *l = of(link);
    char line[sizeof l->why];
    snprintf(line, sizeof line, "link: rank %d gave up: %s", link->rank, why);
    pthread_mutex_lock(&l->lock);
    tcp_break(l, line);
    pthread_mutex_unlock(&l->lock);
}

static void link_close(TcpLink *l) {
    for (int r = 0; r < l->base.ranks; r++) {
        Peer *p = &l->peer[r];
        if (p->socket >= 0) close(p->socket);
        free(p->in);
        tcp_queue_free(&p->out);
        for (int c = 0; c < CHANNELS; c++) tcp_queue_free(&p->inbox[c]);
    }
    close(l->wake[0]);
    close(l->wake[1]);
    pthread_cond_destroy(&l->changed);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

/* Waits until the others have read all: the system throws away what it has not delivered when a
 * process ends with something unread. */
static void tcp_free(Link *link) {
    TcpLink *l = of(link);
    pthread_mutex_lock(&l->lock);
    l->end = deadline_in(l->broken ? last_words_s : link->timeout_s);
    l->ends = true;
    for (int r = 0; r < link->ranks && !l->broken; r++) tcp_post_word(l, r, FRAME_LEAVES, 0);
    tcp_wake(l);
    pthread_mutex_unlock(&l->lock);
    pthread_join(l->mover, NULL);
    link_close(l);
}

static TcpLink *link_open(const Launch *launch, double timeout_s) {
    static const LinkClass class = {
        .exchange = tcp_exchange, .give_up = tcp_give_up, .free = tcp_free};
    TcpLink *l = calloc(1, sizeof *l + (size_t)launch->ranks * sizeof *l->peer);
    if (!l || pipe(l->wake)) {
        error_set("link: no memory or no pipe for %d ranks", launch->ranks);
        free(l);
        return NULL;
    }
    for (int i = 0; i < 2; i++) {
        fcntl(l->wake[i], F_SETFL, O_NONBLOCK);
        fcntl(l->wake[i], F_SETFD, FD_CLOEXEC);
    }
    l->base = (Link){&class, launch->rank, launch->ranks, timeout_s, false};
    l->waits_for = l->asked = TCP_NOBODY;
    for (int r = 0; r < launch->ranks; r++) l->peer[r].socket = -1;
    pthread_mutex_init(&l->lock, NULL);
    deadline_condition(&l->changed);
    return l;
}

Link *link_tcp_join(const Launch *launch, double timeout_s) {
    TcpLink *l = link_open(launch, timeout_s);
    int *connection = malloc((size_t)launch->ranks * sizeof *connection);
    int failed = !l ? -1 : connection ? 0 : error_set("link: out of memory");
    failed = failed || tcp_meet(connection, launch, timeout_s);
    for (int r = 0; r < launch->ranks && !failed; r++) l->peer[r].socket = connection[r];
    free(connection);
    if (!failed && pthread_create(&l->mover, NULL, tcp_move, l))
        failed = error_set("link: no thread for the connections");
    if (!failed) return &l->base;
    if (l) link_close(l);
    return NULL;
}

Link *link_tcp_create(double timeout_s) {
    Launch launch;
    return launch_read(&launch) ? NULL : link_tcp_join(&launch, timeout_s);
}
