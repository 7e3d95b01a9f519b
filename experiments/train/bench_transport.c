/* Times messages that go back and forth between two threads (ping-pong). */
#include <pthread.h>
#include <stdlib.h>

#include "../../dist/transport.h"
#include "../../ref/error.h"
#include "bench.h"
#include "progress.h"

enum { ROUND_TRIPS = 200 };

typedef struct {
    Transport *transport;
    char *data;
    size_t bytes;
    double seconds; /* of the shortest round trip */
    int failed;
} Player;

static void *play(void *argument) {
    Player *p = argument;
    Transport *transport = p->transport;
    Transfer send = transport_send(1 - transport->rank, CHANNEL_VALUES, p->data, p->bytes);
    Transfer receive = transport_receive(1 - transport->rank, CHANNEL_VALUES, p->data, p->bytes);
    Transfer *first = transport->rank ? &receive : &send,
             *second = transport->rank ? &send : &receive;
    p->seconds = 1e9;
    for (int i = 0; i < ROUND_TRIPS && !p->failed; i++) {
        double start = clock_seconds();
        p->failed = transport->is->sendrecv(transport, first, 1) ||
                    transport->is->sendrecv(transport, second, 1);
        double took = clock_seconds() - start;
        if (took < p->seconds) p->seconds = took;
    }
    transport->is->free(transport);
    return NULL;
}

static int message_time(double *seconds, size_t bytes) {
    Transport *transport[2];
    pthread_t thread;
    char *data = calloc(2, bytes);
    if (!data) return error_set("timing: out of memory for a message");
    if (transport_local_create(transport, 2, 1, 10, NULL)) {
        free(data);
        return -1;
    }
    Player one = {.transport = transport[0], .data = data, .bytes = bytes};
    Player two = {.transport = transport[1], .data = data + bytes, .bytes = bytes};
    int failed = pthread_create(&thread, NULL, play, &two);
    if (failed) {
        transport[1]->is->free(transport[1]);
        transport[0]->is->free(transport[0]);
    } else {
        play(&one);
        pthread_join(thread, NULL);
        failed = one.failed || two.failed;
    }
    free(data);
    *seconds = one.seconds / 2;
    return failed ? error_set("timing: the transport between two threads failed") : 0;
}

int bench_transport(double *latency_s, double *rate) {
    const size_t small = 4, large = 1 << 20;
    double large_s;
    if (message_time(latency_s, small) || message_time(&large_s, large)) return -1;
    *rate = (double)large / (large_s > *latency_s ? large_s - *latency_s : large_s);
    return 0;
}
