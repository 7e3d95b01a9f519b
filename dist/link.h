/* What joins the ranks of a pipeline: messages between two of them, and a few things that all of
 * them do together.  Implementations: threads of one process (link_local.c).
 *
 * Between two ranks there are two channels, one up (values) and one down (gradients), each in
 * order; messages carry no tags.  Every call waits at most timeout_s: a rank that died or hangs is
 * named in the error, and the link is then broken for all. */
#ifndef DIST_LINK_H
#define DIST_LINK_H

#include "../ref/real.h"

typedef enum { CHANNEL_VALUES, CHANNEL_GRADIENTS, CHANNELS } Channel;

typedef struct {
    bool send; /* else receive */
    int peer;
    Channel channel;
    void *data; /* read by a send, overwritten by a receive */
    size_t bytes;
} Transfer;

typedef struct Link Link;
typedef struct {
    /* Does a batch of sends and receives, in any order, so that two neighbours who send to each
     * other do not wait for each other.  On return the data of sends may be overwritten.  A send
     * waits while the channel holds as many messages as link_capacity allows. */
    int (*exchange)(Link *link, const Transfer *transfers, int count);
    /* x[count] = sum of all ranks' x, added in the order of ranks: the same bits everywhere, and
     * for any timing. */
    int (*all_reduce)(Link *link, real *x, size_t count);
    /* Every rank's data becomes that of rank root. */
    int (*broadcast)(Link *link, int root, void *data, size_t bytes);
    /* all[ranks][bytes] = every rank's `bytes` at mine. */
    int (*gather)(Link *link, void *all, const void *mine, size_t bytes);
    int (*barrier)(Link *link);
    /* Tells the others that this rank gives up, and why; their calls fail with that line. */
    void (*give_up)(Link *link, const char *why);
    void (*free)(Link *link);
} LinkClass;

/* All functions return 0, or -1 and an error that names the rank which is missing. */
struct Link {
    const LinkClass *is;
    int rank, ranks;
    double timeout_s;
};

/* Ranks as threads of this process: fills link[ranks], each to be used by one thread and freed by
 * it.  A channel holds up to `capacity` messages.  -1 and an error when memory runs out. */
int link_local_create(Link **link, int ranks, int capacity, double timeout_s);

#endif
