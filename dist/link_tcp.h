/* Ranks as processes, of one host or several, each joined with each by a TCP connection. */
#ifndef DIST_LINK_TCP_H
#define DIST_LINK_TCP_H

#include "launch.h"
#include "link.h"

/* The world of this process: who it is comes from the environment (launch.h), and all come together
 * at rank 0's port.  Waits up to timeout_s for those that start late.  NULL and an error, which
 * names the ranks that did not come, two with the same rank, a port in use ... */
Link *link_tcp_create(double timeout_s);

/* The same for a rank that is told who it is. */
Link *link_tcp_join(const Launch *launch, double timeout_s);

#endif
