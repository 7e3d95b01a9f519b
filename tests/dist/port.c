#include "port.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* Below those that the system hands out, which it could give to anyone meanwhile. */
enum { FIRST_PORT = 15000, PORTS = 15000 };

int listen_somewhere(int *port) {
    static int next;
    for (int i = 0; i < PORTS; i++) {
        *port = FIRST_PORT + (getpid() * 37 + next++) % PORTS;
        struct sockaddr_in at = {.sin_family = AF_INET,
                                 .sin_port = htons((uint16_t)*port),
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
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
    return (Launch){rank, ranks, "127.0.0.1", port, "a test"};
}
