/* How long messages between threads take: there and back again. */
#include <pthread.h>
#include <stdlib.h>

#include "../../dist/transport.h"
#include "../../ref/error.h"
#include "bench.h"
#include "progress.h"

enum { TURNS = 200 };

typedef struct {
    Link *link;
    char *data;
    size_t bytes;
    double seconds; /* the least of the turns */
    int failed;
} Player;

static void *play(void *argument) {
    Player *p = argument;
    Link *link = p->link;
    Transfer send = link_send(1 - link->rank, CHANNEL_VALUES, p->data, p->bytes);
    Transfer receive = link_receive(1 - link->rank, CHANNEL_VALUES, p->data, p->bytes);
    Transfer *first = link->rank ? &receive : &send, *second = link->rank ? &send : &receive;
    p->seconds = 1e9;
    for (int i = 0; i < TURNS && !p->failed; i++) {
        double start = clock_seconds();
        p->failed = link->is->exchange(link, first, 1) || link->is->exchange(link, second, 1);
        double took = clock_seconds() - start;
        if (took < p->seconds) p->seconds = took;
    }
    link->is->free(link);
    return NULL;
}

static int message_time(double *seconds, size_t bytes) {
    Link *link[2];
    pthread_t thread;
    char *data = calloc(2, bytes);
    if (!data) return error_set("timing: out of memory for a message");
    if (link_local_create(link, 2, 1, 10, NULL)) {
        free(data);
        return -1;
    }
    Player one = {.link = link[0], .data = data, .bytes = bytes};
    Player two = {.link = link[1], .data = data + bytes, .bytes = bytes};
    int failed = pthread_create(&thread, NULL, play, &two);
    if (failed) {
        link[1]->is->free(link[1]);
        link[0]->is->free(link[0]);
    } else {
        play(&one);
        pthread_join(thread, NULL);
        failed = one.failed || two.failed;
    }
    free(data);
    *seconds = one.seconds / 2;
    return failed ? error_set("timing: the link between two threads failed") : 0;
}

int bench_link(double *latency_s, double *rate) {
    const size_t small = 4, large = 1 << 20;
    double most;
    if (message_time(latency_s, small) || message_time(&most, large)) return -1;
    *rate = (double)large / (most > *latency_s ? most - *latency_s : most);
    return 0;
}
