/* Times messages between two ranks of this machine, over each kind of link: what the simulator
 * takes for such ranks. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../dist/link_tcp.h"
#include "../../ref/error.h"
#include "../dist/port.h"
#include "bench.h"

/* One rank of two, who throw a message to and fro. */
typedef struct {
    Link *link;
    Launch launch; /* over TCP */
    size_t bytes;
    char *data;
    int failed;
} Player;

static const double timeout_s = 60;

static int throw_ball(Player *p) {
    Transfer t = link_send(1 - p->link->rank, CHANNEL_VALUES, p->data, p->bytes);
    return p->link->is->exchange(p->link, &t, 1);
}

static int catch_ball(Player *p) {
    Transfer t = link_receive(1 - p->link->rank, CHANNEL_VALUES, p->data, p->bytes);
    return p->link->is->exchange(p->link, &t, 1);
}

static void there_and_back(void *context) {
    Player *p = context;
    p->failed = p->failed || throw_ball(p) || catch_ball(p);
}

/* Until the other gives up. */
static void *play_back(void *context) {
    Player *p = context;
    if (!p->link) p->link = link_tcp_join(&p->launch, timeout_s);
    if (!p->link) return NULL;
    while (catch_ball(p) == 0 && throw_ball(p) == 0) continue;
    p->link->is->free(p->link);
    return NULL;
}

/* *ms: one way. */
static int measure(double *ms, bool tcp, size_t bytes, double least_ms) {
    Link *link[2] = {NULL, NULL};
    Player player[2];
    pthread_t other;
    int port = free_port();
    if (!tcp && link_local_create(link, 2, 1, timeout_s, NULL)) return -1;
    for (int r = 0; r < 2; r++)
        player[r] = (Player){link[r], here(r, 2, port), bytes, calloc(bytes, 1), 0};
    if (!player[0].data || !player[1].data || pthread_create(&other, NULL, play_back, &player[1]))
        return error_set("bench: no memory or no thread");
    if (tcp) player[0].link = link_tcp_join(&player[0].launch, timeout_s);
    if (player[0].link) {
        Times times = bench_repeat(there_and_back, &player[0], least_ms);
        *ms = times_median(&times) / 2;
        player[0].link->is->give_up(player[0].link, "measured");
        player[0].link->is->free(player[0].link);
    }
    pthread_join(other, NULL);
    for (int r = 0; r < 2; r++) free(player[r].data);
    return player[0].link && !player[0].failed ? 0 : -1;
}

int bench_links(double least_ms) {
    static const char *const kinds[] = {"local", "tcp"};
    enum { SMALL = 8, MIDDLE = 1 << 20, LARGE = 1 << 24 };
    printf("\nlinks between two ranks of this machine, one way, measured\n%-14s %10s %13s %13s\n",
           "", "8 bytes", "1 MiB", "16 MiB");
    for (int tcp = 0; tcp < 2; tcp++) {
        double small, middle, large;
        if (measure(&small, tcp, SMALL, least_ms) || measure(&middle, tcp, MIDDLE, least_ms) ||
            measure(&large, tcp, LARGE, least_ms))
            return -1;
        printf("%-14s %7.1f us %8.2f GB/s %8.2f GB/s\n", kinds[tcp], 1e3 * small,
               1e-6 * MIDDLE / middle, 1e-6 * LARGE / large);
    }
    return 0;
}
