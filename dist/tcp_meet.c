/* How the ranks find each other: all register with rank 0, who tells everyone where the others
 * listen; then the higher of each pair connects to the lower. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../ref/error.h"
#include "tcp_inside.h"

/* "BCD link", which reads otherwise on a machine of the other byte order. */
static const uint64_t magic = 0x6b6e696c20444342u;
enum { VERSION = 1, RETRY_MS = 50, MOST_MISSING = 8 };
/* A rank that is there waits longer than rank 0, who knows better who is missing. */
static const double grace_s = 2;

typedef struct {
    uint64_t magic;
    uint32_t version, ranks, rank, port; /* where it listens */
    uint64_t run; /* as rank 0 said: not of another run that met at the same time; to it: 0 */
} Greeting;

/* Rank 0's to all: failed, and why; or not, and Place[ranks]. */
typedef struct {
    uint64_t magic, run;
    uint32_t failed;
    char why[396];
} Welcome;

/* What one rank knows. */
typedef struct {
    const Launch *launch;
    int listener, port;
    int *socket; /* [ranks], -1: not there */
    Place *place;
    uint64_t run;
    Deadline until;
    double timeout_s;
    int strangers; /* turned away */
} Meeting;

static Greeting greet(const Meeting *m) {
    return (Greeting){
        magic, VERSION, (uint32_t)m->launch->ranks, (uint32_t)m->launch->rank, (uint32_t)m->port,
        m->run};
}

/* The ranks from `first` on that are not there, as words. */
static void name_missing(char *text, size_t size, const Meeting *m, int first) {
    int missing = 0;
    size_t used = 0;
    for (int r = first; r < m->launch->ranks; r++)
        missing += r != m->launch->rank && m->socket[r] < 0;
    used += (size_t)snprintf(text, size, missing == 1 ? "rank" : "ranks");
    int named = 0;
    for (int r = first; r < m->launch->ranks && named < MOST_MISSING; r++)
        if (r != m->launch->rank && m->socket[r] < 0)
            used += (size_t)snprintf(text + used, size - used, "%s %d", named++ ? "," : "", r);
    if (missing > named) snprintf(text + used, size - used, " and %d more", missing - named);
}

static bool all_there(const Meeting *m, int first) {
    for (int r = first; r < m->launch->ranks; r++)
        if (r != m->launch->rank && m->socket[r] < 0) return false;
    return true;
}

/* Tells one rank that the meeting has failed. */
static void refuse(int socket) {
    Welcome w = {.magic = magic, .failed = 1};
    snprintf(w.why, sizeof w.why, "%s", error_message());
    socket_send(socket, &w, sizeof w, deadline_in(grace_s));
}

/* ---- those who come -----------------------------------------------------------------------------
 */

enum { MOST_WAITING = 64 };

typedef struct {
    int socket;
    size_t read;
    Greeting greeting;
} Newcomer;

static void turn_away(Meeting *m, Newcomer *n) {
    close(n->socket);
    n->socket = -1;
    m->strangers++;
}

/* A whole greeting is here.  -1 and an error when it is of us, and wrong. */
static int admit(Meeting *m, Newcomer *n, int first) {
    const Greeting g = n->greeting;
    int ranks = m->launch->ranks, failed = 0;
    if (g.magic != magic || g.run != m->run) {
        turn_away(m, n);
        return 0;
    }
    if (g.version != VERSION)
        failed = error_set("link: a rank speaks version %u of the link, rank %d version %d",
                           g.version, m->launch->rank, VERSION);
    else if (g.ranks != (uint32_t)ranks)
        failed = error_set("link: rank %u was started as one of %u, rank %d as one of %d", g.rank,
                           g.ranks, m->launch->rank, ranks);
    else if (g.rank < (uint32_t)first || g.rank >= (uint32_t)ranks || m->socket[g.rank] >= 0 ||
             (int)g.rank == m->launch->rank)
        failed = error_set("link: two processes say that they are rank %u", g.rank);
    if (failed) {
        refuse(n->socket);
        close(n->socket);
    } else {
        m->socket[g.rank] = n->socket;
        m->place[g.rank] = socket_peer(n->socket);
        m->place[g.rank].port = g.port;
    }
    n->socket = -1;
    return failed;
}

/* Reads on in a greeting; who ends before it is whole is a stranger. */
static int listen_to(Meeting *m, Newcomer *n, int first) {
    ssize_t got = read(n->socket, (char *)&n->greeting + n->read, sizeof n->greeting - n->read);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
    if (got > 0) n->read += (size_t)got;
    if (got <= 0 || (n->read >= sizeof magic && n->greeting.magic != magic))
        turn_away(m, n);
    else if (n->read == sizeof n->greeting)
        return admit(m, n, first);
    return 0;
}

/* Where many who say nothing wait already, the first of them has to go. */
static void take_in(Meeting *m, Newcomer *waiting) {
    int s = socket_accept(m->listener), at = 0;
    if (s < 0) return;
    while (at < MOST_WAITING && waiting[at].socket >= 0) at++;
    if (at == MOST_WAITING) {
        turn_away(m, &waiting[0]);
        memmove(waiting, waiting + 1, (MOST_WAITING - 1) * sizeof *waiting);
        at--;
    }
    waiting[at] = (Newcomer){.socket = s};
}

static int late(const Meeting *m, int first) {
    char missing[120], more[60] = "";
    name_missing(missing, sizeof missing, m, first);
    if (m->strangers)
        snprintf(more, sizeof more, " (%d other connections were turned away)", m->strangers);
    if (m->launch->rank)
        return error_set("link: %s did not come to rank %d within %g s%s", missing, m->launch->rank,
                         m->timeout_s, more);
    return error_set("link: %s did not come to %s, port %d, within %g s%s", missing,
                     m->launch->address, m->port, m->timeout_s, more);
}

/* Until all ranks from `first` on have connected. */
static int gather(Meeting *m, int first) {
    Newcomer waiting[MOST_WAITING];
    int failed = 0;
    for (int i = 0; i < MOST_WAITING; i++) waiting[i].socket = -1;
    while (!failed && !all_there(m, first)) {
        struct pollfd watched[MOST_WAITING + 1];
        for (int i = 0; i < MOST_WAITING; i++)
            watched[i] = (struct pollfd){waiting[i].socket, POLLIN, 0};
        watched[MOST_WAITING] = (struct pollfd){m->listener, POLLIN, 0};
        if (poll(watched, MOST_WAITING + 1, deadline_ms(m->until, 60000)) <= 0) {
            if (deadline_over(m->until)) failed = late(m, first);
            continue;
        }
        for (int i = 0; i < MOST_WAITING && !failed; i++)
            if (watched[i].revents) failed = listen_to(m, &waiting[i], first);
        if (watched[MOST_WAITING].revents) take_in(m, waiting);
    }
    for (int i = 0; i < MOST_WAITING; i++)
        if (waiting[i].socket >= 0) close(waiting[i].socket);
    return failed;
}

/* ---- rank 0 -------------------------------------------------------------------------------------
 */

static int host(Meeting *m) {
    int ranks = m->launch->ranks, failed = gather(m, 1);
    Welcome w = {.magic = magic};
    if (!failed && getentropy(&m->run, sizeof m->run))
        failed = error_set("link: no random number: %s", strerror(errno));
    w.run = m->run;
    for (int r = 1; r < ranks; r++) {
        if (m->socket[r] < 0) continue;
        if (failed)
            refuse(m->socket[r]);
        else if (!socket_send(m->socket[r], &w, sizeof w, m->until) ||
                 !socket_send(m->socket[r], m->place, (size_t)ranks * sizeof *m->place, m->until))
            failed = error_set("link: rank %d died while the ranks met", r);
    }
    return failed;
}

/* ---- the others ---------------------------------------------------------------------------------
 */

static void pause_retry(void) { nanosleep(&(struct timespec){0, RETRY_MS * 1000000L}, NULL); }

/* 1: welcome; 0: rank 0 hung up, it may be the last run's; -1 and an error. */
static int register_at(Meeting *m, int s) {
    const Launch *launch = m->launch;
    Greeting g = greet(m);
    Welcome w;
    Deadline until = deadline_in(m->timeout_s + grace_s);
    size_t places = (size_t)launch->ranks * sizeof *m->place, head = sizeof w.magic;
    if (!socket_send(s, &g, sizeof g, until) || !socket_receive(s, &w.magic, head, until))
        return deadline_over(until) ? error_set("link: rank 0 does not answer at %s, port %d",
                                                launch->address, launch->port)
                                    : 0;
    if (w.magic != magic)
        return error_set("link: what listens at %s, port %d, is no rank 0 of this program",
                         launch->address, launch->port);
    if (!socket_receive(s, (char *)&w + head, sizeof w - head, until)) return 0;
    w.why[sizeof w.why - 1] = 0;
    if (w.failed) return error_set("%s", w.why);
    if (!socket_receive(s, m->place, places, until)) return 0;
    m->run = w.run;
    return 1;
}

static int find_host(Meeting *m) {
    const Launch *launch = m->launch;
    error_set("it hung up");
    for (;;) {
        bool refused = true;
        int s = socket_connect(launch->address, launch->port, m->until, &refused);
        int met = s < 0 ? 0 : register_at(m, s);
        if (met > 0) {
            m->socket[0] = s;
            return 0;
        }
        if (s >= 0) close(s);
        if (met < 0) return -1;
        if (!refused || deadline_over(m->until)) {
            char why[100];
            snprintf(why, sizeof why, "%s", error_message());
            return error_set("link: rank 0 did not come to %s, port %d, within %g s (%s)",
                             launch->address, launch->port, m->timeout_s, why);
        }
        pause_retry();
    }
}

/* The lower ranks listen already. */
static int connect_lower(Meeting *m) {
    Greeting g = greet(m);
    for (int r = 1; r < m->launch->rank; r++) {
        Place *p = &m->place[r];
        bool refused;
        p->host[sizeof p->host - 1] = 0;
        const char *at = *p->host ? p->host : m->launch->address;
        m->socket[r] = socket_connect(at, (int)p->port, m->until, &refused);
        if (m->socket[r] < 0) {
            char why[100];
            snprintf(why, sizeof why, "%s", error_message());
            return error_set("link: rank %d cannot reach rank %d at %s, port %u: %s",
                             m->launch->rank, r, at, p->port, why);
        }
        if (!socket_send(m->socket[r], &g, sizeof g, m->until))
            return error_set("link: rank %d died while the ranks met", r);
    }
    return 0;
}

static int join(Meeting *m) {
    if (find_host(m)) return -1;
    m->until = deadline_in(m->timeout_s);
    return connect_lower(m) || gather(m, m->launch->rank + 1) ? -1 : 0;
}

int tcp_meet(int *socket, const Launch *launch, double timeout_s) {
    size_t ranks = (size_t)launch->ranks;
    Meeting m = {.launch = launch,
                 .port = launch->rank ? 0 : launch->port,
                 .socket = socket,
                 .place = calloc(ranks, sizeof *m.place),
                 .until = deadline_in(timeout_s),
                 .timeout_s = timeout_s};
    for (size_t r = 0; r < ranks; r++) socket[r] = -1;
    if (!m.place) return error_set("link: out of memory for %d ranks", launch->ranks);
    m.listener = launch->ranks > 1 ? socket_listen(launch->address, &m.port) : -1;
    int failed = launch->ranks > 1 && m.listener < 0;
    if (!failed) failed = launch->rank ? join(&m) : host(&m);
    if (m.listener >= 0) close(m.listener);
    for (size_t r = 0; r < ranks && failed; r++)
        if (socket[r] >= 0) close(socket[r]);
    free(m.place);
    return failed ? -1 : 0;
}
