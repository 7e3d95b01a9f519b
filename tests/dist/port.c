#include "port.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* Below those that the system hands out, which it could give to anyone meanwhile. */
enum { FIRST_PORT = 15000, PORTS = 15000 };

/* The number of a process has 22 bits at most. */
const char *own_address(void) {
    static char address[16];
    unsigned process = (unsigned)getpid();
    if (!*address)
        snprintf(address, sizeof address, "127.%u.%u.%u", 64 + (process >> 16 & 63),
                 process >> 8 & 255, process & 255);
    return address;
}

int listen_somewhere(int *port) {
    static int next;
    for (int i = 0; i < PORTS; i++) {
        *port = FIRST_PORT + next++ % PORTS;
        struct sockaddr_in at = {.sin_family = AF_INET,
                                 .sin_port = htons((uint16_t)*port),
                                 .sin_addr.s_addr = inet_addr(own_address())};
        int s = socket(AF_INET, SOCK_STREAM, 0);
        if (s >= 0 && bind(s, (struct sockaddr *)&at, sizeof at) == 0 && listen(s, 10) == 0)
            return s;
        close(s);
    }
    abort();
}

int free_port(void) {
    int port;
    close(listen_somewhere(&port));
    return port;
}

Launch here(int rank, int ranks, int port) {
    Launch launch = {.rank = rank, .ranks = ranks, .port = port, .names = "a test"};
    snprintf(launch.address, sizeof launch.address, "%s", own_address());
    return launch;
}
