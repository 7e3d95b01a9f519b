/* The parts of the link over TCP:
 *   tcp_socket.c  sockets with a time limit
 *   tcp_meet.c    how the ranks find each other
 *   tcp_wire.c    what goes over a connection, and the thread that moves it
 *   link_tcp.c    exchanges, and whom to blame for those that fail */
#ifndef DIST_TCP_INSIDE_H
#define DIST_TCP_INSIDE_H

#include <pthread.h>
#include <stddef.h>

#include "deadline.h"
#include "launch.h"
#include "link.h"

/* ---- tcp_socket.c -------------------------------------------------------------------------------
 */

typedef struct {
    char host[64]; /* a number; "": that of rank 0 */
    uint32_t port;
} Place;

/* All sockets are non-blocking and closed on exec. */

/* Listens at every address of this host, or only to this host where rank 0's, `host`, says that all
 * are here (127.0.0.1).  Port 0: any that is free, returned in *port.  The socket, or -1 and an
 * error. */
int socket_listen(const char *host, int *port);

/* The next who connects, -1: nobody does just now. */
int socket_accept(int listener);

/* -1 and an error, without a word about what it was for, when it does not succeed in time.
 * *refused: nobody listens there, or the host is not known: perhaps not yet. */
int socket_connect(const char *host, int port, Deadline until, bool *refused);

/* The other end of a connection; that of this host is "". */
Place socket_peer(int socket);

/* Whole, in time?  No error is set. */
bool socket_send(int socket, const void *data, size_t bytes, Deadline until);
bool socket_receive(int socket, void *data, size_t bytes, Deadline until);

/* ---- tcp_meet.c ---------------------------------------------------------------------------------
 */

/* socket[ranks]: a connection to every other rank, -1 for its own.  -1 and an error, then none is
 * open. */
int tcp_meet(int *socket, const Launch *launch, double timeout_s);

/* ---- tcp_wire.c ---------------------------------------------------------------------------------
 */

typedef enum {
    FRAME_MESSAGE,  /* of channel `value` */
    FRAME_ASKS,     /* whom do you wait for? */
    FRAME_ANSWERS,  /* for rank `value`, or TCP_NOBODY */
    FRAME_GIVES_UP, /* the bytes say why */
    FRAME_LEAVES,
    FRAMES
} FrameKind;
enum { TCP_NOBODY = -1, TCP_SILENT = -2 };

typedef struct {
    uint32_t kind;
    int32_t value;
    uint64_t bytes; /* that follow */
} Frame;

typedef struct Message {
    struct Message *next;
    Frame frame;
    max_align_t data[];
} Message;

typedef struct {
    Message *first, **end;
} MessageQueue;

typedef struct {
    int socket;       /* -1: closed */
    bool left;        /* with a word of goodbye */
    MessageQueue out; /* on its way, of which */
    size_t written;   /* bytes of the first are gone */
    size_t out_bytes; /* all together */
    Frame frame;      /* coming in, of which */
    size_t read;      /* bytes are here, those of `in` included */
    Message *in;      /* once that is whole */
    MessageQueue inbox[CHANNELS];
} Peer;

typedef struct {
    Link base;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t changed;
    pthread_t mover;
    int wake[2]; /* a pipe: a byte ends the mover's sleep */
    bool ends;
    Deadline end;      /* the mover then has until */
    int waits_for;     /* a rank or TCP_NOBODY */
    int asked, answer; /* the rank asked last; a rank, TCP_NOBODY or TCP_SILENT */
    bool broken;
    char why[400];
    Peer peer[];
} TcpLink;

/* NULL and an error when memory runs out. */
Message *tcp_message(Frame frame, const void *data);

/* All that follow: locked. */
void tcp_queue_add(MessageQueue *queue, Message *message);
Message *tcp_queue_take(MessageQueue *queue); /* NULL: empty */
void tcp_queue_free(MessageQueue *queue);

/* Sends it on its way; takes it over. */
void tcp_post(TcpLink *l, int to, Message *message);
/* A frame without bytes. */
void tcp_post_word(TcpLink *l, int to, FrameKind kind, int value);

void tcp_wake(TcpLink *l); /* the mover */

/* The first reason stays; all others are told. */
void tcp_break(TcpLink *l, const char *why);

/* A thread (TcpLink): moves what can be moved until the link ends, at all times, so that a rank
 * that computes keeps nobody waiting. */
void *tcp_move(void *link);

#endif
