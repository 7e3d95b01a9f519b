/* Times messages between two ranks that are threads of this machine; the simulator uses these times
 * for such ranks. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../dist/transport.h"
#include "../../ref/base/error.h"
#include "bench.h"

/* One of two ranks that send a message back and forth. */
typedef struct {
    Transport *transport;
    size_t bytes;
    char *data;
    int failed;
} Player;

static int send_message(Player *p) {
    Transfer t = transport_send(1 - p->transport->rank, CHANNEL_VALUES, p->data, p->bytes);
    return transport_sendrecv(p->transport, &t, 1);
}

static int receive_message(Player *p) {
    Transfer t = transport_receive(1 - p->transport->rank, CHANNEL_VALUES, p->data, p->bytes);
    return transport_sendrecv(p->transport, &t, 1);
}

static void send_and_return(void *context) {
    Player *p = context;
    p->failed = p->failed || send_message(p) || receive_message(p);
}

/* Returns each message until the other rank aborts. */
static void *return_messages(void *context) {
    Player *p = context;
    while (receive_message(p) == 0 && send_message(p) == 0) continue;
    transport_free(p->transport);
    return NULL;
}

/* Sets *ms to the time of one message in one direction. */
static int measure(double *ms, size_t bytes, double min_ms) {
    Transport *transport[2];
    Player player[2];
    pthread_t other;
    if (transport_local_create(transport, 2, 60, NULL)) return -1;
    for (int r = 0; r < 2; r++) player[r] = (Player){transport[r], bytes, calloc(bytes, 1), 0};
    if (!player[0].data || !player[1].data ||
        pthread_create(&other, NULL, return_messages, &player[1]))
        return error_set("bench: no memory or no thread");
    Times times = bench_repeat(send_and_return, &player[0], min_ms);
    *ms = times_median(&times) / 2;
    transport_abort(transport[0], "measured");
    transport_free(transport[0]);
    pthread_join(other, NULL);
    for (int r = 0; r < 2; r++) free(player[r].data);
    return player[0].failed;
}

int bench_transport(double min_ms) {
    enum { SMALL = 8, MIDDLE = 1 << 20, LARGE = 1 << 24 };
    double small, middle, large;
    if (measure(&small, SMALL, min_ms) || measure(&middle, MIDDLE, min_ms) ||
        measure(&large, LARGE, min_ms))
        return -1;
    printf("\nlinks between two ranks of this machine, one way, measured\n%-14s %10s %13s %13s\n",
           "", "8 bytes", "1 MiB", "16 MiB");
    printf("%-14s %7.1f us %8.2f GB/s %8.2f GB/s\n", "threads", 1e3 * small, 1e-6 * MIDDLE / middle,
           1e-6 * LARGE / large);
    return 0;
}
