/* Ports of this host, for ranks that meet here. */
#ifndef TESTS_DIST_PORT_H
#define TESTS_DIST_PORT_H

#include "../../dist/link_tcp.h"

/* A socket that listens, and where; aborts when there is none. */
int listen_somewhere(int *port);

/* One where nobody listens, and where nobody will soon. */
int free_port(void);

/* A rank of those that meet at a port of this host. */
Launch here(int rank, int ranks, int port);

#endif
