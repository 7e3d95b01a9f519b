/* Ports of this host, for ranks that meet here: at an address of its own for each process, so that
 * tests beside this one cannot take them. */
#ifndef TESTS_DIST_PORT_H
#define TESTS_DIST_PORT_H

#include "../../dist/link_tcp.h"

/* The address: of the network that is this host, 127.0.0.0/8. */
const char *own_address(void);

/* A socket that listens, and where; aborts when there is none. */
int listen_somewhere(int *port);

/* One where nobody listens, and where nobody will. */
int free_port(void);

/* A rank of those that meet at a port of this host. */
Launch here(int rank, int ranks, int port);

#endif
