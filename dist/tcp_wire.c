/* Frames over connections.  One thread moves all of them; a rank that posts a message tries to send
 * it itself first, which saves a short one the way through the thread. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../ref/error.h"
#include "tcp_inside.h"

/* Moved under the lock in one go. */
enum { PIECE_BYTES = 1 << 20 };
/* No message is longer; more is not a length. */
static const uint64_t most_bytes = (uint64_t)1 << 44;

Message *tcp_message(Frame frame, const void *data) {
    Message *m = malloc(sizeof *m + frame.bytes);
    if (!m) {
        error_set("link: out of memory for a message of %zu bytes", (size_t)frame.bytes);
        return NULL;
    }
    m->next = NULL;
    m->frame = frame;
    if (data && frame.bytes) memcpy(m->data, data, frame.bytes);
    return m;
}

void tcp_queue_add(MessageQueue *queue, Message *message) {
    if (!queue->first) queue->end = &queue->first;
    *queue->end = message;
    queue->end = &message->next;
}

Message *tcp_queue_take(MessageQueue *queue) {
    Message *m = queue->first;
    if (m) queue->first = m->next;
    return m;
}

void tcp_queue_free(MessageQueue *queue) {
    for (Message *m; (m = tcp_queue_take(queue));) free(m);
}

/* ---- the ends of a connection -------------------------------------------------------------------
 */

static void close_peer(Peer *p) {
    close(p->socket);
    p->socket = -1;
    tcp_queue_free(&p->out);
    free(p->in);
    p->in = NULL;
    p->out_bytes = 0;
}

/* Both may leave at once, and whoever is told that all is over just goes. */
static void lose(TcpLink *l, int r) {
    char why[100];
    close_peer(&l->peer[r]);
    pthread_cond_broadcast(&l->changed);
    if (l->ends) return;
    snprintf(why, sizeof why, "link: rank %d has died: its connection was closed", r);
    tcp_break(l, why);
}

void tcp_break(TcpLink *l, const char *why) {
    if (l->broken) return;
    l->broken = true;
    snprintf(l->why, sizeof l->why, "%s", why);
    pthread_cond_broadcast(&l->changed);
    Frame frame = {FRAME_GIVES_UP, 0, strlen(l->why)};
    for (int r = 0; r < l->base.ranks; r++) {
        Message *m = l->peer[r].socket < 0 ? NULL : tcp_message(frame, l->why);
        if (m) tcp_post(l, r, m);
    }
}

/* ---- out ----------------------------------------------------------------------------------------
 */

/* Sends a piece of what waits, as much as the socket takes. */
static void push(TcpLink *l, int r) {
    Peer *p = &l->peer[r];
    Message *m = p->out.first;
    size_t head = sizeof m->frame, whole = head + m->frame.bytes;
    size_t of_head = p->written < head ? head - p->written : 0;
    size_t of_data = whole - p->written - of_head;
    struct iovec part[2] = {
        {(char *)&m->frame + (head - of_head), of_head},
        {(char *)m->data + (m->frame.bytes - of_data),
         of_data < PIECE_BYTES ? of_data : PIECE_BYTES},
    };
    struct msghdr both = {.msg_iov = part, .msg_iovlen = 2};
    ssize_t n = sendmsg(p->socket, &both, MSG_NOSIGNAL);
    if (n < 0) {
        if (errno != EAGAIN && errno != EINTR) lose(l, r);
        return;
    }
    p->written += (size_t)n;
    if (p->written < whole) return;
    p->written = 0;
    p->out_bytes -= whole;
    free(tcp_queue_take(&p->out));
    pthread_cond_broadcast(&l->changed);
}

void tcp_wake(TcpLink *l) {
    ssize_t ignored = write(l->wake[1], "", 1); /* full: it wakes up anyway */
    (void)ignored;
}

void tcp_post(TcpLink *l, int to, Message *message) {
    Peer *p = &l->peer[to];
    if (p->socket < 0) { /* has left, and so nobody misses it, or the link is broken */
        free(message);
        return;
    }
    bool first = !p->out.first;
    tcp_queue_add(&p->out, message);
    p->out_bytes += sizeof message->frame + message->frame.bytes;
    if (first) push(l, to);
    if (p->out.first) tcp_wake(l);
}

void tcp_post_word(TcpLink *l, int to, FrameKind kind, int value) {
    Message *m = tcp_message((Frame){kind, value, 0}, NULL);
    if (m)
        tcp_post(l, to, m);
    else
        tcp_break(l, error_message());
}

/* ---- in -----------------------------------------------------------------------------------------
 */

/* Can it be from one of us? */
static bool makes_sense(const TcpLink *l, Frame f) {
    switch (f.kind) {
        case FRAME_MESSAGE:
            return f.value >= 0 && f.value < CHANNELS && f.bytes <= most_bytes;
        case FRAME_GIVES_UP:
            return f.bytes < sizeof l->why;
        case FRAME_ANSWERS:
            return f.value >= TCP_NOBODY && f.value < l->base.ranks && f.bytes == 0;
        default:
            return f.kind < FRAMES && f.bytes == 0;
    }
}

static void take_frame(TcpLink *l, int r) {
    Peer *p = &l->peer[r];
    Message *m = p->in;
    char why[sizeof l->why];
    p->in = NULL;
    p->read = 0;
    switch ((FrameKind)m->frame.kind) {
        case FRAME_MESSAGE:
            tcp_queue_add(&p->inbox[m->frame.value], m);
            m = NULL;
            break;
        case FRAME_ASKS:
            tcp_post_word(l, r, FRAME_ANSWERS, l->waits_for);
            break;
        case FRAME_ANSWERS:
            if (l->asked == r) l->answer = m->frame.value;
            break;
        case FRAME_GIVES_UP:
            snprintf(why, sizeof why, "%.*s", (int)m->frame.bytes, (const char *)m->data);
            close_peer(p);
            tcp_break(l, why);
            break;
        default:
            p->left = true;
            close_peer(p);
    }
    free(m);
    pthread_cond_broadcast(&l->changed);
}

/* Reads up to `bytes` more.  False: not all of them, for now or for ever. */
static bool read_part(TcpLink *l, int r, void *to, size_t bytes) {
    Peer *p = &l->peer[r];
    ssize_t n = recv(p->socket, to, bytes, 0);
    if (n > 0) {
        p->read += (size_t)n;
        return (size_t)n == bytes;
    }
    if (n == 0 || (errno != EAGAIN && errno != EINTR)) lose(l, r);
    return false;
}

static int start_message(TcpLink *l, int r) {
    Peer *p = &l->peer[r];
    if (!makes_sense(l, p->frame))
        return error_set("link: rank %d sent what no rank sends; is it the same program?", r);
    p->in = tcp_message(p->frame, NULL);
    return p->in ? 0 : -1;
}

/* Reads a piece of what has come: the rest of one frame at most. */
static void pull(TcpLink *l, int r) {
    Peer *p = &l->peer[r];
    size_t head = sizeof p->frame;
    if (p->read < head && !read_part(l, r, (char *)&p->frame + p->read, head - p->read)) return;
    if (!p->in && start_message(l, r)) {
        close_peer(p);
        tcp_break(l, error_message());
        return;
    }
    size_t done = p->read - head, left = p->frame.bytes - done;
    size_t part = left < PIECE_BYTES ? left : PIECE_BYTES;
    if (left && (!read_part(l, r, (char *)p->in->data + done, part) || part < left)) return;
    take_frame(l, r);
}

/* ---- the thread ---------------------------------------------------------------------------------
 */

/* Is all said and heard?  The others close when they have read the last word. */
static bool is_over(const TcpLink *l) {
    bool open = false;
    for (int r = 0; r < l->base.ranks; r++) open = open || l->peer[r].socket >= 0;
    return l->ends && (!open || deadline_over(l->end));
}

/* One round; unlocked while it sleeps. */
static void move_round(TcpLink *l, struct pollfd *watched) {
    int ranks = l->base.ranks;
    char bytes[64];
    for (int r = 0; r < ranks; r++) {
        const Peer *p = &l->peer[r];
        watched[r] = (struct pollfd){p->socket, POLLIN, 0};
        if (p->out.first) watched[r].events |= POLLOUT;
    }
    watched[ranks] = (struct pollfd){l->wake[0], POLLIN, 0};
    int most_ms = l->ends ? deadline_ms(l->end, 60000) : 60000;
    pthread_mutex_unlock(&l->lock);
    int ready = poll(watched, (nfds_t)ranks + 1, most_ms);
    pthread_mutex_lock(&l->lock);
    if (ready <= 0) return;
    if (watched[ranks].revents && read(l->wake[0], bytes, sizeof bytes) < 0 && errno != EAGAIN)
        tcp_break(l, "link: a pipe broke");
    for (int r = 0; r < ranks; r++) {
        const Peer *p = &l->peer[r];
        if (p->socket >= 0 && watched[r].revents & ~POLLOUT) pull(l, r);
        if (p->socket >= 0 && watched[r].revents & POLLOUT && p->out.first) push(l, r);
    }
}

void *tcp_move(void *link) {
    TcpLink *l = link;
    struct pollfd *watched = calloc((size_t)l->base.ranks + 1, sizeof *watched);
    pthread_mutex_lock(&l->lock);
    if (!watched) tcp_break(l, "link: out of memory");
    while (watched && !is_over(l)) move_round(l, watched);
    pthread_mutex_unlock(&l->lock);
    free(watched);
    return NULL;
}
